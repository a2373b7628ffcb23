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
from dataclasses import dataclass, replace
from itertools import starmap

from msgspec.structs import replace as msgspec_replace

from godwit.errors import UsageError
from godwit.policies.allocation.algorithms import METRICS, allocate
from godwit.policies.allocation.allocation_bounds import AllocationBounds
from godwit.policies.allocation.bound_distance import why_above
from godwit.policies.allocation.capacity import BrokerCapacity
from godwit.policies.allocation.closeness import ClosenessMetric
from godwit.policies.allocation.gathered_reading import AllocationProblem, SubscriberProfile
from godwit.policies.allocation.packed_profiles import PackedProfile, PublisherTable
from godwit.policies.allocation.plan import AllocationPlan
from godwit.policies.allocation.plan_writing import written
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
    """Without subscriptions and clients that subscribe; bounds and moves are those of clusters."""

    homes: tuple[str, ...]
    """The broker of each cluster."""


#: Settings that are 0 on Spark.
HERE_ONLY = ("improve_s", "improve_steps", "stay")


def runs_on_spark(settings: AllocationSettings) -> bool:
    metric = METRICS.get(settings.algorithm_kind)
    is_possible = metric is not None and metric.is_zero_if_disjoint
    return is_possible and not any(getattr(settings, name) for name in HERE_ONLY)


def check_settings(settings: AllocationSettings) -> ClosenessMetric:
    """The metric; raises UsageError for what works on one machine only."""
    metric = METRICS.get(settings.algorithm_kind)
    if metric is None or not metric.is_zero_if_disjoint:
        raise UsageError(
            f"algorithm {settings.algorithm} does not run on Spark; use cram-iou, cram-ios or "
            "cram-intersect there, or plan on one machine"
        )
    for name in HERE_ONLY:
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
    at = pinned or {}
    clients = tuple(_name(at[p]) if p in at else None for p in range(len(table.ids)))
    problem = AllocationProblem(
        replace(table, clients=clients),
        tuple(brokers),
        tuple(starmap(_receivers, enumerate(clusters))),
        {},
    )
    if len(clusters) > finish_max:
        settings = msgspec_replace(settings, algorithm=AllocationAlgorithm.BIN_PACKING.value)

    def units_of(_: AllocationProblem, factory: UnitFactory) -> list[AllocationUnit]:
        return _units(problem, clusters, factory)

    outcome = allocate(problem, settings, lambda: 0.0, units_of)
    homes = dict(outcome.traffic.tree.assignment())
    plan = written(problem, outcome, settings, lambda: 0.0)
    publishing = {
        client or id: plan.publishers[id]
        for id, client in zip(table.ids, table.clients, strict=True)
    }
    return FinishedPlan(
        msgspec_replace(plan, assignment={}, clients=publishing),
        tuple(homes[index] for index in range(len(clusters))),
    )


def _name(cluster: int) -> str:
    return f"cluster {cluster}"


def completed(
    plan: AllocationPlan,
    bounds: AllocationBounds,
    *,
    algorithm: str,
    moves: int,
    evaluations: int,
    seconds: float,
) -> AllocationPlan:
    """With what Spark has counted."""
    return msgspec_replace(
        plan,
        algorithm=algorithm,
        lower_bound_brokers=bounds.brokers,
        lower_bound_traffic_per_s=bounds.traffic_per_s,
        above_bound=why_above(bounds, plan.brokers, uses_all=False),
        moves=moves,
        closeness_evaluations=plan.closeness_evaluations + evaluations,
        seconds=seconds,
    )


def _receivers(number: int, cluster: SubscriberCluster) -> SubscriberProfile:
    profile = PackedProfile(cluster.profile.blocks, cluster.deliveries)
    return SubscriberProfile(_name(number), (), profile, None)


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
