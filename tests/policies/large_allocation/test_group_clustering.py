"""Clustering of a group against a loop that compares all pairs before each merge."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from tests.policies.allocation.scenes import brokers, problem_with_units, random_gathered

from godwit.policies.allocation.closeness import ClosenessMetric
from godwit.policies.allocation.packed_profiles import PackedProfile, PublisherTable, union
from godwit.policies.large_allocation.group_clustering import GroupClustering, GroupUnit
from godwit.policies.large_allocation.unit_limits import UnitLimits
from godwit.profile.matching_delay import MatchingDelay

METRICS = (ClosenessMetric.INTERSECT, ClosenessMetric.IOS, ClosenessMetric.IOU)


def group(seed: int, n: int = 24) -> tuple[list[GroupUnit], PublisherTable]:
    document = random_gathered(Random(seed), subscriptions=n, publishers=3, capacities=brokers(3))
    problem, units, _ = problem_with_units(document)
    found = [
        GroupUnit(unit.profile, unit.bandwidth_bytes_s, Random(seed).randint(1, 3))
        for unit in units
    ]
    return found, problem.table


def limits(bandwidth: float, slope_s: float = 0.0) -> UnitLimits:
    return UnitLimits(1.0, bandwidth, MatchingDelay(slope_s, 0.0), 1.0)


def plain(
    units: list[GroupUnit],
    table: PublisherTable,
    limits: UnitLimits,
    metric: ClosenessMetric,
    least: float,
) -> list[list[int]]:
    clusters: dict[int, list[int]] = {place: [place] for place in range(len(units))}

    def profile(place: int) -> PackedProfile:
        return union(units[each].profile for each in clusters[place])

    def allowed(a: int, b: int) -> bool:
        both = clusters[a] + clusters[b]
        return limits.allows(
            sum(units[each].bandwidth_bytes_s for each in both),
            table.rate_per_s(union(units[each].profile for each in both)),
            sum(units[each].subscriptions for each in both),
        )

    def order(a: int, b: int) -> tuple[float, int, int, int] | None:
        one, two = profile(a), profile(b)
        common = one.intersection_count(two)
        value = metric.of(common, one.count, two.count)
        enough = least * max(metric.of_itself(one.count), metric.of_itself(two.count))
        return (-value, -common, a, b) if value > 0 and value >= enough else None

    while True:
        open_ = [
            found
            for a, b in combinations(sorted(clusters), 2)
            if (found := order(a, b)) is not None and allowed(a, b)
        ]
        if not open_:
            return list(clusters.values())
        *_, a, b = min(open_)
        clusters[a] += clusters.pop(b)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(6))
def test_the_merges_are_those_of_all_pairs(metric: ClosenessMetric, seed: int) -> None:
    units, table = group(seed)
    total = sum(unit.bandwidth_bytes_s for unit in units)
    for bound, least in ((limits(total), 0.0), (limits(total / 4), 0.0), (limits(total), 0.4),
                         (limits(total / 2, slope_s=0.002), 0.0)):  # fmt: skip
        clustering = GroupClustering(units, table, bound, metric, least=least)
        assert clustering.run() == plain(units, table, bound, metric, least), (seed, least)


def test_the_limits_and_the_least_closeness_matter() -> None:
    """Else the comparison above says little."""
    units, table = group(1)
    total = sum(unit.bandwidth_bytes_s for unit in units)
    sizes = [
        len(GroupClustering(units, table, bound, ClosenessMetric.IOU, least=least).run())
        for bound, least in ((limits(2 * total), 0.0), (limits(total / 4), 0.0),
                             (limits(2 * total), 0.4), (limits(2 * total, slope_s=0.002), 0.0))
    ]  # fmt: skip
    assert sizes[0] < min(sizes[1:])


def test_units_without_a_common_publication_stay_apart() -> None:
    units, table = group(2)
    apart = [
        GroupUnit(PackedProfile({p: units[0].profile.blocks.get(p, words)}), 1.0, 1)
        for p, words in enumerate(union(unit.profile for unit in units).blocks.values())
    ]
    found = GroupClustering(apart, table, limits(1e9), ClosenessMetric.IOU).run()
    assert found == [[place] for place in range(len(apart))]


def test_evaluations_are_all_pairs_and_those_of_each_new_cluster() -> None:
    units, table = group(3, n=3)
    same = [GroupUnit(units[0].profile, 1.0, 1)] * 3
    clustering = GroupClustering(same, table, limits(1e9), ClosenessMetric.IOU)
    assert clustering.run() == [[0, 1, 2]]
    assert clustering.evaluations == 3 + 1 + 0
