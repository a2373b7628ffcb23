"""How `mesh-cost` is run: soft links are opened under load, then tables are read.

At the end each broker reports, as a decision in the trace:

links         that it uses, primary and soft
covering_set  filters in the covering sets of all links together (the paper's WST)
evaluations   predicates that are evaluated for a publication by going through these sets, each
              filter up to its first predicate that is not satisfied
wom_ms        CPU time to make its map of links anew; wst_ms, to enter all subscriptions by link
s0_us ...     CPU time of a forwarding decision with each strategy, matching included

Brokers do not match like this (matching/index.py); it is what the paper counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from time import process_time

import msgspec

from godwit.broker.effects import Decision
from godwit.broker.routing import in_use
from godwit.broker.stimuli import LocalClient
from godwit.content.covering import CoveringSet
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Publication
from godwit.content.values import Record
from godwit.experiments.mesh.datasets import dataset_of
from godwit.experiments.mesh.prepared import begins_s, prepared, topology_of
from godwit.experiments.mesh.runs import apply_settings, settings_of
from godwit.lab.declaration import Case
from godwit.overlay.mesh.forwarding import Forwarding
from godwit.overlay.mesh.mesh_routing import MeshRouting
from godwit.overlay.mesh.strategies import ForwardingStrategy
from godwit.simulation.observers import Observer
from godwit.simulation.simulator import Simulator
from godwit.workloads.zipf import zipf_workload

POLICY = "mesh cost"
#: Time in which soft links are opened.
PUBLISHING_S = 60.0
#: Publications that tables are tried with.
SAMPLE = 50
REPEATS = 5
TIMED = (ForwardingStrategy.S0, ForwardingStrategy.S1, ForwardingStrategy.S2)
CLIENT = LocalClient("cost")


def run(case: Case, seed: int, folder: Path) -> None:
    network = prepared(case, seed, publishing_s=PUBLISHING_S)
    end_s = begins_s(case) + PUBLISHING_S
    workload = zipf_workload(dataset_of(case), topology_of(case).brokers, Random(f"zipf {seed}"))
    records = list(workload.sample(SAMPLE))

    def change(simulator: Simulator) -> None:
        apply_settings(simulator, settings_of(case))
        simulator.at(end_s, report, simulator, records, network.trace)

    network.go_on(change, folder, until_s=end_s + 1.0, checked=True)


def report(simulator: Simulator, records: Sequence[Record], trace: Observer) -> None:
    for name, node in simulator.brokers.items():
        mesh = in_use(node.broker.routing)
        assert isinstance(mesh, MeshRouting), "a prepared network is a mesh"
        found = {**sizes(mesh, records), **times(mesh, records)}
        trace.on_decision(name, POLICY, Decision("read", name, name, name, found), simulator.now_s)


def sizes(mesh: MeshRouting, records: Sequence[Record]) -> dict[str, float]:
    fronts = [front for each in mesh.working_subscriptions().values() for front in front_of(each)]
    evaluated = sum(evaluations(front, record) for front in fronts for record in records)
    return {
        "links": float(len(mesh.forwarding.wom.brokers)),
        "covering_set": float(len(fronts)),
        "evaluations": evaluated / len(records),
    }


def front_of(filters: Sequence[Filter]) -> list[Filter]:
    """The covering set: filters that no other one covers."""
    covering: CoveringSet[int] = CoveringSet()
    for number, each in enumerate(filters):
        if covering.add(number, each) is None:
            covering.step_back(number)
    return [filters[number] for number in covering if covering.front_of(number) is None]


def evaluations(filter: Filter, record: Record) -> int:
    """Predicates that are evaluated until one is not satisfied, or all are."""
    count = 0
    for attribute, constraint in filter.constraints.items():
        count += 1
        if attribute not in record or not constraint.has(record[attribute]):
            break
    return count


def times(mesh: MeshRouting, records: Sequence[Record]) -> dict[str, float]:
    linked = {link.name for link in mesh.neighbours}
    found = {
        "wom_ms": 1e3 * _shortest_s(lambda: Forwarding(mesh.mom, linked, 0)),
        "wst_ms": 1e3 * _shortest_s(mesh.working_subscriptions),
    }
    publications = [
        Publication(
            publisher="cost", sequence=number, advertisement=AdvertisementId("cost/1"),
            content=dict(record),
        )
        for number, record in enumerate(records)
    ]  # fmt: skip
    settings = mesh.settings
    for strategy in TIMED:
        mesh.change_settings(msgspec.structs.replace(settings, strategy=strategy))

        def decide() -> None:
            for each in publications:
                mesh.preview(each, CLIENT, 0, 0.0)

        found[f"{strategy.value.lower()}_us"] = 1e6 * _shortest_s(decide) / len(publications)
    mesh.change_settings(settings)
    return found


def _shortest_s(do: Callable[[], object]) -> float:
    taken = []
    for _ in range(REPEATS):
        start_s = process_time()
        do()
        taken.append(process_time() - start_s)
    return min(taken)
