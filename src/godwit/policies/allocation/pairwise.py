"""PAIRWISE, a baseline: the two closest clusters by XOR are merged until a number is left.

Paper    Cheung, thesis 7.3.2, after Riabov and others: PAIRWISE-K has as many clusters as CRAM-XOR
         found, at random brokers; PAIRWISE-N one for each broker.  Both in AUTOMATIC's tree.
Claim    The pair that is merged is the closest of all; capacities do not count.
Departs  1. Equal profiles are merged first, all in one step: no pair is closer.
Tested   tests/policies/allocation/test_baselines.py: against all pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from godwit.policies.allocation.closeness import ClosenessMetric
from godwit.policies.allocation.gif_poset import GifPoset
from godwit.policies.allocation.gif_profiles import GifProfiles
from godwit.policies.allocation.packed_profiles import PublisherTable
from godwit.policies.allocation.partner_search import PartnerSearch
from godwit.policies.allocation.units import AllocationUnit, UnitFactory

UNKNOWN = -1


class Pairwise:
    def __init__(
        self, units: Sequence[AllocationUnit], table: PublisherTable, factory: UnitFactory
    ) -> None:
        self._units = units
        self._factory = factory
        self._profiles = GifProfiles(table)
        self.search = PartnerSearch(self._profiles, GifPoset(self._profiles), ClosenessMetric.XOR)
        self._clusters: dict[int, AllocationUnit] = {}
        self._heap: list[tuple[float, float, int, int, int, int]] = []

    def clusters(self, wanted: int) -> list[AllocationUnit]:
        """Clusters of all units; `wanted` of them, or as many as there are units."""
        units = self._without_equals(wanted)
        for unit in units:
            self._add(unit)
        heapify(self._heap)
        while len(self._clusters) > max(1, wanted):
            *_, low, high, cluster, partner = heappop(self._heap)
            if cluster not in self._clusters:
                continue
            if partner == UNKNOWN or partner not in self._clusters:
                self._look(cluster)
            else:
                merged = self._factory.merged([self._clusters[low], self._clusters[high]])
                self._drop(low)
                self._drop(high)
                self._add(merged)
        return list(self._clusters.values())

    def _without_equals(self, wanted: int) -> list[AllocationUnit]:
        groups: dict[object, list[AllocationUnit]] = {}
        for unit in self._units:
            groups.setdefault(unit.profile.key, []).append(unit)
        spare = len(self._units) - wanted
        found: list[AllocationUnit] = []
        for group in sorted(groups.values(), key=lambda units: -units[0].profile.count):
            joint = min(len(group), max(0, spare) + 1)
            spare -= joint - 1
            first = group[0] if joint == 1 else self._factory.merged(group[:joint])
            found += [first, *group[joint:]]
        return found

    def _add(self, unit: AllocationUnit) -> int:
        cluster = self._profiles.add(unit.profile)
        self._clusters[cluster] = unit
        # Nothing is closer than an equal profile.
        highest = ClosenessMetric.XOR.of_itself(unit.profile.count)
        heappush(self._heap, (-highest, float("-inf"), 0, 0, cluster, UNKNOWN))
        return cluster

    def _drop(self, cluster: int) -> None:
        del self._clusters[cluster]
        self._profiles.remove(cluster)

    def _look(self, cluster: int) -> None:
        found = self.search.closest(cluster, set(), with_itself=False)
        if found is not None:
            low, high = min(cluster, found.gif), max(cluster, found.gif)
            heappush(self._heap, (-found.closeness, -found.common, low, high, cluster, found.gif))
