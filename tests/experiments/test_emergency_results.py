"""Bytes of results, against plain Python that makes the rows."""

from __future__ import annotations

from random import Random

import msgspec
import numpy as np
import pytest

from godwit.demos.emergencies.checking import EXPECTED, ExecutionInput
from godwit.experiments.bad_prototype.emergency_results import EmergencyResults
from godwit.workloads.emergencies import emergency_reports, emergency_subscribers, shelters
from godwit.workloads.emergency_channels import CHANNELS, EmergencyChannel
from godwit.workloads.roads import street_grid, walkers

UNTIL_S, PACE = 60.0, 2.0


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
def test_bytes_are_those_of_the_rows(channel: EmergencyChannel, seed: int) -> None:
    random = Random(seed)
    roads = street_grid()
    refuges = shelters(random, roads)
    reports = [
        (step.at_s, step.record)
        for step in emergency_reports(random, roads, until_s=UNTIL_S, per_s=10.0)
    ]
    every_s = channel.every_s / PACE
    executions = int(UNTIL_S / every_s)
    people = emergency_subscribers(random, roads, 60)
    places = {
        each.user: np.array(
            [(place.latitude, place.longitude) for place in
             (walker.step(every_s) for _ in range(executions))]
        )
        for each, walker in zip(people, walkers(roads, random, 60, (1.0, 9.0)), strict=True)
    }  # fmt: skip
    results = EmergencyResults(reports, refuges, places, pace=PACE, until_s=UNTIL_S)
    asked = {s.arguments for p in people for s in p.subscriptions if s.channel == channel.name}
    names = [name for name, _ in channel.parameters]

    total = 0
    for arguments in asked:
        found = results.bytes_of(channel.name, arguments)
        assert len(found) == executions
        for number in range(executions):
            seen = [r for at_s, r in reports if number * every_s < at_s <= (number + 1) * every_s]
            where = {
                user: {"latitude": at[number, 0], "longitude": at[number, 1]}
                for user, at in places.items()
            }
            seen_by_it = ExecutionInput(list(map(dict, seen)), list(map(dict, refuges)), where)
            rows = EXPECTED[channel.name](seen_by_it, dict(zip(names, arguments, strict=True)))
            assert found[number] == (len(msgspec.json.encode(rows)) if rows else 0)
            total += len(rows)
    assert total > 50
