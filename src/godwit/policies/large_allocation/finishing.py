"""From clusters to a plan: CRAM's last step, the tree above it, the publishers.

Paper    Cheung, thesis 6.2.3 and 6.3.
Words    subscription units -> the clusters that Spark made.
Claim    The plan is what policies/allocation makes of these clusters as units.
Departs  1. Of more than FINISH_MAX clusters, BIN PACKING packs them as they are: CRAM would take
            longer than all rounds before.
Tested   tests/policies/large_allocation/test_finishing.py: equal to make_plan, if each cluster is
         a subscriber.

A cluster stands for many receivers: its profile, the OR, is what a broker receives, and its
deliveries, by publisher, are what the broker sends.  The unit of a cluster therefore has one part,
whose profile has the words of the OR and the number of all deliveries; what is expected of brokers
is computed from these parts, as from subscribers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from godwit.errors import UsageError
from godwit.policies.allocation.algorithms import METRICS, Outcome, allocate, allocator
from godwit.policies.allocation.allocation_bounds import AllocationBounds
from godwit.policies.allocation.capacity import BrokerCapacity, UnallocatableError, explain_no_room
from godwit.policies.allocation.closeness import ClosenessMetric
from godwit.policies.allocation.effort import Effort
from godwit.policies.allocation.expected_traffic import ExpectedTraffic
from godwit.policies.allocation.overlay_construction import construct
from godwit.policies.allocation.overlay_tree import OverlayTree, star
from godwit.policies.allocation.packed_profiles import PackedProfile, PublisherTable
from godwit.policies.allocation.plan import AllocationPlan
from godwit.policies.allocation.plan_writing import written
from godwit.policies.allocation.publisher_placement import place_publishers
from godwit.policies.allocation.reading import AllocationProblem, SubscriberProfile
from godwit.policies.allocation.settings import AllocationAlgorithm, AllocationSettings
from godwit.policies.allocation.units import AllocationUnit, UnitFactory

#: CRAM takes minutes from here on.
FINISH_MAX = 20_000


@dataclass(frozen=True, slots=True)
class SubscriberCluster:
    """Subscribers that are assigned together."""

    profile: PackedProfile
    """The OR of theirs."""

    deliveries: Mapping[int, int]
    """Publications of the window, by publisher, summed over its subscribers."""

    bandwidth_bytes_s: float
    subscriptions: int


@dataclass(frozen=True, slots=True)
class FinishedPlan:
    plan: AllocationPlan
    """Without the assignment of subscriptions, bounds and moves."""

    homes: tuple[str, ...]
    """The broker of each cluster."""


def check_settings(settings: AllocationSettings) -> ClosenessMetric:
    """The metric; raises UsageError for what works on one machine only."""
    metric = METRICS.get(settings.algorithm_kind)
    if metric is None or not metric.is_zero_if_disjoint:
        raise UsageError(
            f"algorithm {settings.algorithm} does not run on Spark; use cram-iou, cram-ios or "
            "cram-intersect there, or plan on one machine"
        )
    for name in ("improve_s", "improve_steps", "stay"):
        if getattr(settings, name):
            raise UsageError(f"{name} is for plans on one machine; set it to 0 for Spark")
    return metric


def finished(
    clusters: Sequence[SubscriberCluster],
    table: PublisherTable,
    brokers: Sequence[BrokerCapacity],
    settings: AllocationSettings,
    *,
    pinned: Mapping[int, int] | None = None,
    finish_max: int = FINISH_MAX,
) -> FinishedPlan:
    """`pinned`: publishers whose client is a subscriber, and the cluster it is in."""
    problem = AllocationProblem(table, tuple(brokers), tuple(map(_receivers, clusters)))
    effort = Effort()
    tree = _tree(problem, clusters, settings, effort, finish_max)
    homes = dict(tree.assignment())
    traffic = ExpectedTraffic(tree, problem.subscribers, table)
    at_home = {p: homes[cluster] for p, cluster in (pinned or {}).items()}
    for p, broker in at_home.items():
        traffic.move(p, traffic.places[broker])
    if settings.uses_grape:
        place_publishers(traffic, at_home)
    traffic.recount()
    outcome = Outcome(traffic, effort.clusters, effort.closeness_evaluations)
    plan = written(problem, outcome, settings, lambda: 0.0)
    return FinishedPlan(plan, tuple(homes[index] for index in range(len(clusters))))


def completed(
    plan: AllocationPlan,
    bounds: AllocationBounds,
    *,
    moves: int,
    evaluations: int,
    seconds: float,
) -> AllocationPlan:
    """With what Spark has counted."""
    return replace(
        plan,
        lower_bound_brokers=bounds.brokers,
        lower_bound_traffic_per_s=bounds.traffic_per_s,
        moves=moves,
        closeness_evaluations=plan.closeness_evaluations + evaluations,
        seconds=seconds,
    )


def _receivers(cluster: SubscriberCluster) -> SubscriberProfile:
    profile = PackedProfile(cluster.profile.blocks, cluster.deliveries)
    return SubscriberProfile("", (), profile, None)


def _units(
    problem: AllocationProblem, clusters: Sequence[SubscriberCluster], factory: UnitFactory
) -> list[AllocationUnit]:
    table, found = problem.table, []
    for index, cluster in enumerate(clusters):
        receivers = AllocationUnit(
            index,  # It is never compared with others: only its cluster is in a pool.
            problem.subscribers[index].profile,
            cluster.bandwidth_bytes_s,
            sum(table.rates_per_s[p] * n / table.lengths[p] for p, n in cluster.deliveries.items()),
            cluster.subscriptions,
            subscriber=index,
        )
        found.append(factory.merged([receivers], cluster.profile))
    return found


def _tree(
    problem: AllocationProblem,
    clusters: Sequence[SubscriberCluster],
    settings: AllocationSettings,
    effort: Effort,
    finish_max: int,
) -> OverlayTree:
    if not clusters:
        return allocate(problem, settings, lambda: 0.0).traffic.tree
    factory = UnitFactory(problem.table)
    units = _units(problem, clusters, factory)
    run = allocator(problem, settings, factory, effort)
    first = run
    if len(units) > finish_max:
        only_packed = replace(settings, algorithm=AllocationAlgorithm.BIN_PACKING.value)
        first = allocator(problem, only_packed, factory, effort)
    packed = first(units, problem.brokers)
    if packed.without_room is not None:
        reason = explain_no_room(packed.without_room, packed.fills, units, problem.table)
        raise UnallocatableError(
            f"{settings.algorithm} on Spark finds no room for all subscriptions: {reason}"
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
