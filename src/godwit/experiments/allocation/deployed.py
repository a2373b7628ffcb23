"""A plan as a simulated network: its brokers, its tree, and every client where the plan puts it.

As in the thesis (7.3.2), the brokers are new and have empty tables, and all clients connect again.
The simulated brokers are those of production, with the capacities of the setup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from random import Random

from godwit.content.values import Record
from godwit.experiments.allocation.setups import JOINING_S, AllocationSetup
from godwit.overlay.topology import Topology, topology
from godwit.policies.allocation.plan import AllocationPlan
from godwit.simulation.observers import Observer
from godwit.simulation.playing import play
from godwit.simulation.simulator import Modules, Simulator, no_modules
from godwit.workloads.allocation import PUBLICATIONS_PER_MIN
from godwit.workloads.timelines import joins
from godwit.workloads.workload import Workload


@dataclass(frozen=True, slots=True)
class DeployedNetwork:
    topology: Topology
    homes: Mapping[str, str]
    """Client -> broker; a client without an entry is where the workload puts it."""


def network_of(plan: AllocationPlan) -> DeployedNetwork:
    """Clients are named as their subscriptions are, and publishers by their own names."""
    brokers = [broker.id for broker in plan.brokers]
    return DeployedNetwork(topology(brokers, plan.links), {**plan.assignment, **plan.publishers})


def initial_network(setup: AllocationSetup) -> DeployedNetwork:
    """MANUAL, with all clients where the workload puts them."""
    return DeployedNetwork(setup.topology, {})


def settled(workload: Workload, homes: Mapping[str, str]) -> Workload:
    """The same workload with its clients at these brokers."""
    return Workload(
        publishers=tuple(replace(p, at=homes.get(p.name, p.at)) for p in workload.publishers),
        subscribers=tuple(replace(s, at=homes.get(s.name, s.at)) for s in workload.subscribers),
        content=workload.content,
    )


def drawn(workload: Workload, setup: AllocationSetup) -> Mapping[str, Sequence[Record]]:
    """The quotes of each publisher, in order, as `workload` publishes them."""
    found: dict[str, list[Record]] = {each.name: [] for each in workload.publishers}
    quotes = 2 * setup.quotes if setup.plays_later else setup.quotes
    until_s = setup.begins_s + quotes * 60.0 / PUBLICATIONS_PER_MIN
    for publishing in workload.publications(from_s=setup.begins_s, until_s=until_s):
        found[publishing.publisher].append(publishing.record)
    return found


def sampled(workload: Workload, setup: AllocationSetup) -> Workload:
    """One in `quotes_every` of the quotes, and the first again after the last."""
    quotes, first = drawn(workload, setup), setup.quotes if setup.plays_later else 0
    left = {name: cycle(some[first :: setup.quotes_every]) for name, some in quotes.items()}
    return replace(workload, content=lambda publisher: next(left[publisher.name]))


def deployed(
    network: DeployedNetwork,
    setup: AllocationSetup,
    *,
    seed: int,
    publishing_s: float,
    is_sampled: bool,
    observers: Iterable[Observer] = (),
    modules: Modules = no_modules,
) -> Simulator:
    """The network with its clients, who join first and publish from `setup.begins_s` on.

    If `is_sampled`, only some of the quotes are played (`sampled`).
    """
    simulator = Simulator(
        network.topology,
        seed=seed,
        modules=modules,
        resources=setup.resources,
        observers=observers,
        check=False,
    )
    workload = settled(setup.workload(seed), network.homes)
    if is_sampled:
        workload = sampled(workload, setup)
    joining = joins(workload.subscribers, Random(seed), within_s=JOINING_S)
    play(
        simulator,
        workload,
        joining,
        from_s=setup.begins_s,
        until_s=setup.begins_s + publishing_s,
    )
    return simulator
