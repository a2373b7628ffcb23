"""The scenario for a while: people and responders act, and what the coordinator sees is noted."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from godwit.client import Client, connect
from godwit.emergencies.pacing import Pacing
from godwit.emergencies.people import Person, Told, all_told
from godwit.emergencies.scenario import Cast, EmergencyScenario
from godwit.emergencies.stage import Stage
from godwit.errors import GodwitError
from godwit.rest import bcs
from godwit.rest import datacluster as api
from godwit.rest.operations import Nothing
from godwit.workloads.emergencies import PUBLISHERS, Published, emergency_reports, user_locations
from godwit.workloads.emergency_channels import EMERGENCY

#: For what was published to be executed, and what came of it to be delivered.
SETTLE_S = 120.0
#: More than there are: a plan moves nobody twice, and a run has few plans.
MOVES_SEEN = 10_000
ADVERTISED = (
    f"class = '{EMERGENCY}' and report_id is a string and etype is a string and severity is a"
    " number and latitude is a number and longitude is a number and message is a string and"
    " at is a number"
)


@dataclass(frozen=True, slots=True)
class Sample:
    """What the coordinator saw at a moment."""

    at_s: float
    cov: float
    mean_load: float
    maximum_load: float
    fe: int
    be: int
    brokers: Sequence[bcs.BrokerShown] = ()


@dataclass(slots=True)
class Played:
    scenario: EmergencyScenario
    folder: Path
    told: list[Told] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    reports: int = 0
    locations: int = 0
    moves: dict[str, int] = field(default_factory=dict)
    """By outcome."""

    started_s: float = 0.0
    """Since 1970; samples count from there."""

    last_moves: list[bcs.MoveRecord] = field(default_factory=list)
    """The latest first."""

    plans: int = 0
    brokers: list[bcs.BrokerShown] = field(default_factory=list)
    datasets: list[api.DatasetShown] = field(default_factory=list)
    channels: list[api.ChannelShown] = field(default_factory=list)

    @property
    def deliveries(self) -> int:
        return sum(len(told.events) for told in self.told)


async def play(
    scenario: EmergencyScenario,
    cast: Cast,
    stage: Stage,
    watch: Callable[[float, Played], None] = lambda _at_s, _played: None,
) -> Played:
    """`watch` is told how it stands, about once a second."""
    played = Played(scenario, stage.folder)
    people = {
        subscriber.user: Person(subscriber, scenario, stage.coordinator_url)
        for subscriber in cast.subscribers
    }
    pacing, is_over = Pacing(scenario.subscribed_s, waits_for=len(people)), asyncio.Event()
    played.started_s = time.time()
    async with asyncio.TaskGroup() as acting:
        for person in people.values():
            acting.create_task(person.live(pacing, is_over))
        watching = acting.create_task(_watch(stage, people, played, pacing, watch))
        walking = acting.create_task(_walk(scenario, cast, people, played, pacing))
        await _report(scenario, cast, stage, played, pacing)
        await walking
        await _settle(stage, people)
        watching.cancel()
        await _look_back(stage, played)
        is_over.set()
    played.told = all_told(list(people.values()))
    return played


async def _walk(
    scenario: EmergencyScenario,
    cast: Cast,
    people: dict[str, Person],
    played: Played,
    pacing: Pacing,
) -> None:
    """Everybody says once a second where they are."""
    steps = user_locations(
        cast.random, cast.roads, scenario.users, until_s=scenario.duration_s, start_s=time.time()
    )
    for step in steps:
        await pacing.until(step.at_s)
        await people[step.publisher].be_at(step.record)
        played.locations += 1


async def _report(
    scenario: EmergencyScenario, cast: Cast, stage: Stage, played: Played, pacing: Pacing
) -> None:
    """Responders report emergencies, each at a broker of its own choice."""
    reports = emergency_reports(
        cast.random,
        cast.roads,
        until_s=scenario.duration_s,
        start_s=time.time(),
        per_s=scenario.reports_per_s,
    )
    async with contextlib.AsyncExitStack() as stack:
        responders: dict[str, Client] = {}
        for number in range(1, PUBLISHERS + 1):
            url = stage.brokers.url(f"B{number % scenario.brokers + 1}")
            name = f"responder-{number}"
            responders[name] = await stack.enter_async_context(connect(url, name=name))
            await responders[name].advertise(ADVERTISED)
        for step in reports:
            await pacing.until(step.at_s)
            await _publish(responders, step)
            played.reports += 1


async def _publish(responders: dict[str, Client], step: Published) -> None:
    await responders[step.publisher].publish(step.record)


async def _watch(
    stage: Stage,
    people: dict[str, Person],
    played: Played,
    pacing: Pacing,
    watch: Callable[[float, Played], None],
) -> None:
    while True:
        await asyncio.sleep(1.0)
        at_s = pacing.now_s
        with contextlib.suppress(GodwitError):  # The next look may succeed.
            seen = await stage.coordinator.call(bcs.BROKERS, Nothing())
            balance = seen.balance
            played.samples.append(
                Sample(
                    at_s,
                    balance.cov,
                    balance.mean_load,
                    balance.maximum_load,
                    balance.fe_subscriptions,
                    balance.be_subscriptions,
                    seen.brokers,
                )
            )
            moves = await stage.coordinator.call(bcs.MOVES, bcs.WhichMoves(limit=1))
            played.moves = moves.outcomes
        played.told = all_told(list(people.values()))
        watch(at_s, played)


async def _settle(stage: Stage, people: dict[str, Person]) -> None:
    """Wait until every channel has seen everything, and everybody was told."""
    deadline_s = time.monotonic() + SETTLE_S
    await asyncio.sleep(2 * max(c.every_s or 0 for c in await _channels(stage)))
    before = -1
    while time.monotonic() < deadline_s:
        datasets = (await stage.cluster.call(api.DATASETS, Nothing())).datasets
        channels = await _channels(stage)
        is_idle = not any(dataset.waiting_bytes for dataset in datasets)
        deliveries = sum(len(told.events) for told in all_told(list(people.values())))
        executions = sum(channel.last[0].execution for channel in channels if channel.last)
        now = deliveries + executions
        if is_idle and now == before:
            return
        before = now
        await asyncio.sleep(1.5 * max(channel.every_s or 0 for channel in channels))


async def _channels(stage: Stage) -> Sequence[api.ChannelShown]:
    return (await stage.cluster.call(api.CHANNELS, Nothing())).channels


async def _look_back(stage: Stage, played: Played) -> None:
    moves = await stage.coordinator.call(bcs.MOVES, bcs.WhichMoves(limit=MOVES_SEEN))
    played.moves, played.last_moves = moves.outcomes, moves.moves
    plan = (await stage.coordinator.call(bcs.PLAN, Nothing())).plan
    played.plans = 0 if plan is None else plan.number
    played.brokers = (await stage.coordinator.call(bcs.BROKERS, Nothing())).brokers
    played.datasets = (await stage.cluster.call(api.DATASETS, Nothing())).datasets
    played.channels = list(await _channels(stage))
