"""The algorithms by name: from a problem to a tree with all subscribers and publishers.

Paper    Cheung, thesis 6.2, 6.3 and 7.3.2.
Departs  1. Without subscriptions the plan is one broker: the smallest that can receive what the
            publishers send.
Tested   tests/policies/allocation/test_planner.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from godwit.policies.allocation.baselines import baseline
from godwit.policies.allocation.bin_packing import bin_packing
from godwit.policies.allocation.capacity import (
    BrokerCapacity,
    UnallocatableError,
    explain_no_room,
)
from godwit.policies.allocation.closeness import ClosenessMetric
from godwit.policies.allocation.cram import Cram
from godwit.policies.allocation.effort import Effort
from godwit.policies.allocation.expected_traffic import ExpectedTraffic
from godwit.policies.allocation.fbf import fastest_broker_first
from godwit.policies.allocation.first_fit import Packed
from godwit.policies.allocation.overlay_construction import Allocator, construct
from godwit.policies.allocation.overlay_tree import OverlayTree, star
from godwit.policies.allocation.publisher_placement import place_publishers
from godwit.policies.allocation.reading import AllocationProblem
from godwit.policies.allocation.settings import AllocationAlgorithm, AllocationSettings
from godwit.policies.allocation.units import AllocationUnit, UnitFactory

Clock: TypeAlias = Callable[[], float]


METRICS = {
    AllocationAlgorithm.CRAM_INTERSECT: ClosenessMetric.INTERSECT,
    AllocationAlgorithm.CRAM_XOR: ClosenessMetric.XOR,
    AllocationAlgorithm.CRAM_IOS: ClosenessMetric.IOS,
    AllocationAlgorithm.CRAM_IOU: ClosenessMetric.IOU,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    traffic: ExpectedTraffic
    """The tree and the places of the publishers."""

    clusters: int
    closeness_evaluations: int
    notes: tuple[str, ...] = ()
    """What the search for a better plan changed."""


def subscriber_units(problem: AllocationProblem, factory: UnitFactory) -> list[AllocationUnit]:
    return [
        factory.subscriber(index, subscriber.profile, len(subscriber.subscriptions))
        for index, subscriber in enumerate(problem.subscribers)
    ]


def allocate(problem: AllocationProblem, settings: AllocationSettings, clock: Clock) -> Outcome:
    factory, effort, random = UnitFactory(problem.table), Effort(), Random(settings.seed)
    units = subscriber_units(problem, factory)
    if settings.is_baseline:
        tree = baseline(problem, settings, units, factory, effort, random)
    elif units:
        tree = _built(problem, settings, units, factory, effort)
    else:
        tree = _without_subscriptions(problem)
    traffic = ExpectedTraffic(tree, problem.subscribers, problem.table)
    if settings.is_baseline:
        for p in range(len(problem.table.ids)):
            traffic.move(p, random.randrange(len(tree.order)))
    for p, broker in pinned(problem, tree).items():
        traffic.move(p, traffic.places[broker])
    if settings.uses_grape:
        place_publishers(traffic, pinned(problem, tree))
    traffic.recount()
    return Outcome(traffic, effort.clusters, effort.closeness_evaluations)


def allocator(
    problem: AllocationProblem, settings: AllocationSettings, factory: UnitFactory, effort: Effort
) -> Allocator:
    """FBF, BIN PACKING or CRAM, for subscriptions and for the layers above them."""
    random = Random(settings.seed)
    table = problem.table

    def allocated(units: Sequence[AllocationUnit], brokers: Sequence[BrokerCapacity]) -> Packed:
        kind = settings.algorithm_kind
        if kind is AllocationAlgorithm.FBF:
            return fastest_broker_first(units, brokers, table, random)
        if kind is AllocationAlgorithm.BIN_PACKING:
            return bin_packing(units, brokers, table)
        cram = Cram(
            units, brokers, table, factory, METRICS[kind],
            is_exact=settings.search == "exact", keeps_fewest=settings.keep == "fewest",
            one_to_many=settings.one_to_many,
        )  # fmt: skip
        packed = cram.run()
        effort.closeness_evaluations += cram.search.evaluations
        return packed

    return allocated


def _built(
    problem: AllocationProblem,
    settings: AllocationSettings,
    units: list[AllocationUnit],
    factory: UnitFactory,
    effort: Effort,
) -> OverlayTree:
    run = allocator(problem, settings, factory, effort)
    packed = run(units, problem.brokers)
    if packed.without_room is not None:
        reason = explain_no_room(packed.without_room, packed.fills, units, problem.table)
        raise UnallocatableError(
            f"{settings.algorithm} finds no room for all subscriptions: {reason}"
        )
    effort.clusters = sum(len(fill.units) for fill in packed.used)
    used = {fill.broker.id for fill in packed.used}
    free = [broker for broker in problem.brokers if broker.id not in used]
    if not settings.overlay:
        return star((fill.broker, tuple(fill.units)) for fill in packed.used)
    return construct(
        packed.used, free, run, problem.table, factory,
        optimisations=settings.overlay_optimisations,
    )  # fmt: skip


def _without_subscriptions(problem: AllocationProblem) -> OverlayTree:
    rate = sum(problem.table.rates_per_s)
    smallest_first = sorted(
        problem.brokers, key=lambda broker: (broker.output_bandwidth_bytes_s, broker.id)
    )
    enough = [broker for broker in smallest_first if broker.rate_max(0) >= rate]
    return star([((enough or smallest_first)[0], ())])


def pinned(problem: AllocationProblem, tree: OverlayTree) -> dict[int, str]:
    """Publishers whose client also subscribes, and the broker of that client."""
    homes = {problem.subscribers[index].name: broker for index, broker in tree.assignment()}
    clients = problem.table.clients
    return {p: homes[name] for p, name in enumerate(clients) if name is not None and name in homes}
