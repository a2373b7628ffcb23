"""The algorithms by name: from a problem to a tree with all subscribers and publishers.

Paper    Cheung, thesis 6.2, 6.3 and 7.3.2.
Departs  1. Without subscriptions the plan is one broker: the smallest that can receive what the
            publishers send.
         2. Of CRAM's scheme with the fewest brokers and its last one, the one whose tree has the
            fewest brokers in all is built, or as many and less input.
         3. With `keep="fewest"`, brokers that only forward are left out if GRAPE's places for the
            publishers make them superfluous (direct_links.py).
         4. With `keep="fewest"`, if the finished tree loads a broker above its capacity, free
            brokers help (overload_relief.py).
Tested   tests/policies/allocation/test_planner.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from godwit.policies.allocation.direct_links import linked_directly, score
from godwit.policies.allocation.effort import Effort
from godwit.policies.allocation.expected_traffic import ExpectedTraffic
from godwit.policies.allocation.fbf import fastest_broker_first
from godwit.policies.allocation.first_fit import Packed
from godwit.policies.allocation.gathered_reading import AllocationProblem
from godwit.policies.allocation.overlay_construction import Allocator, construct
from godwit.policies.allocation.overlay_tree import OverlayTree, star
from godwit.policies.allocation.overload_relief import relieved
from godwit.policies.allocation.plan_improvement import PlanImprovement, within
from godwit.policies.allocation.publisher_placement import place_publishers
from godwit.policies.allocation.settings import AllocationAlgorithm, AllocationSettings
from godwit.policies.allocation.staying import Staying
from godwit.policies.allocation.units import AllocationUnit, UnitFactory

Clock: TypeAlias = Callable[[], float]
#: The units that an algorithm begins with.
UnitsOf: TypeAlias = Callable[[AllocationProblem, UnitFactory], list[AllocationUnit]]


METRICS = {
    AllocationAlgorithm.CRAM_INTERSECT: ClosenessMetric.INTERSECT,
    AllocationAlgorithm.CRAM_XOR: ClosenessMetric.XOR,
    AllocationAlgorithm.CRAM_IOS: ClosenessMetric.IOS,
    AllocationAlgorithm.CRAM_IOU: ClosenessMetric.IOU,
}


@dataclass(frozen=True, slots=True)
class AllocationOutcome:
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


def allocate(
    problem: AllocationProblem,
    settings: AllocationSettings,
    clock: Clock,
    units_of: UnitsOf = subscriber_units,
) -> AllocationOutcome:
    factory, effort, random = UnitFactory(problem.table), Effort(), Random(settings.seed)
    units = units_of(problem, factory)
    run = allocator(problem, settings, factory, effort)

    def finish(tree: OverlayTree, uses_grape: bool) -> ExpectedTraffic:
        return finished(problem, tree, uses_grape=uses_grape)

    def finish_staying(tree: OverlayTree, uses_grape: bool) -> ExpectedTraffic:
        return finished(problem, tree, uses_grape=uses_grape, stays=not uses_grape)

    if settings.is_baseline:
        tree = baseline(problem, settings, units, factory, effort, random)
        traffic = finished(
            problem,
            tree,
            uses_grape=settings.uses_grape,
            homes=_random_homes(problem, tree, random),
        )
        return AllocationOutcome(traffic, effort.clusters, effort.closeness_evaluations)

    def build(problem: AllocationProblem) -> OverlayTree:
        return _built(problem, settings, units, factory, effort, run) if units else _lone(problem)

    traffic = finish(build(problem), settings.uses_grape)
    if settings.links_directly:
        traffic = linked_directly(traffic, lambda tree: finish(tree, settings.uses_grape))
    notes: tuple[str, ...] = ()
    if units and (settings.improve_s or settings.improve_steps):
        improvement = PlanImprovement(
            problem,
            factory,
            run,
            lambda tree: finish(tree, settings.uses_grape),
            within(settings.improve_s, settings.improve_steps, clock),
            random,
        )
        traffic, notes = improvement.improved(traffic)
    if units and settings.stay > 0:
        traffic = Staying(problem, units, factory, run, finish_staying).chosen(
            traffic, settings.stay
        )
    if settings.keep == "fewest":
        traffic = relieved(problem, traffic, lambda tree: finish(tree, settings.uses_grape), build)
    return AllocationOutcome(traffic, effort.clusters, effort.closeness_evaluations, notes)


def finished(
    problem: AllocationProblem,
    tree: OverlayTree,
    *,
    uses_grape: bool,
    stays: bool = False,
    homes: Mapping[int, int] | None = None,
) -> ExpectedTraffic:
    """A tree with its publishers: by GRAPE, or else at `homes`, where they are, or at the root."""
    traffic = ExpectedTraffic(tree, problem.subscribers, problem.table)
    fixed = pinned(problem, tree)
    for p, broker in enumerate(problem.table.brokers):
        if p in fixed:
            traffic.move(p, traffic.places[fixed[p]])
        elif homes is not None:
            traffic.move(p, homes[p])
        elif not uses_grape and stays and broker in traffic.places:
            traffic.move(p, traffic.places[broker])
    if uses_grape:
        place_publishers(traffic, fixed)
    traffic.recount()
    return traffic


def _random_homes(problem: AllocationProblem, tree: OverlayTree, random: Random) -> dict[int, int]:
    return {p: random.randrange(len(tree.order)) for p in range(len(problem.table.ids))}


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
    run: Allocator,
) -> OverlayTree:
    """The tree with the fewest brokers, of the schemes that the algorithm returns."""
    packed = run(units, problem.brokers)
    if packed.without_room is not None:
        reason = explain_no_room(packed.without_room, packed.fills, units, problem.table)
        raise UnallocatableError(
            f"{settings.algorithm} finds no room for all subscriptions: {reason}"
        )
    best: tuple[tuple[int, float], int, OverlayTree] | None = None
    failure: UnallocatableError | None = None
    for scheme in [packed] if packed.last is None else [packed.last, packed]:
        try:
            tree = _tree(problem, settings, scheme, factory, run)
        except UnallocatableError as error:
            failure = failure or error
            continue
        result = score(ExpectedTraffic(tree, problem.subscribers, problem.table))
        if best is None or result < best[0]:
            best = result, sum(len(fill.units) for fill in scheme.used), tree
    if best is None:
        assert failure is not None
        raise failure
    effort.clusters = best[1]
    return best[2]


def _tree(
    problem: AllocationProblem,
    settings: AllocationSettings,
    scheme: Packed,
    factory: UnitFactory,
    run: Allocator,
) -> OverlayTree:
    used = {fill.broker.id for fill in scheme.used}
    free = [broker for broker in problem.brokers if broker.id not in used]
    if not settings.overlay:
        return star((fill.broker, tuple(fill.units)) for fill in scheme.used)
    return construct(
        scheme.used, free, run, problem.table, factory,
        optimisations=settings.overlay_optimisations,
    )  # fmt: skip


def _lone(problem: AllocationProblem) -> OverlayTree:
    """Without subscriptions."""
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
