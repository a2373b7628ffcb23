"""Clustering within a group: the closest units are merged as long as a cluster is small enough.

Paper    Cheung, thesis 6.2.3: the loop of CRAM, with limits instead of the allocation test.
Words    closest pair of each GIF -> an entry of the heap; "noted" pairs -> not `_open`.
Claim    The merges are those of a loop that compares all pairs of the group each time.
Departs  1. A merge is limited by a share of a broker (unit_limits.py): a task on Spark does not see
            the other units, so it cannot pack them.
         2. Pairs are left for later rounds if they are not close enough for the size of their
            profiles: a closer partner may be in another group.
         3. Two units are merged at a time: there is no one-to-many clustering here.
Tested   tests/policies/large_allocation/test_group_clustering.py: against such a loop.

GC1  Of every open pair, the entry of at least one unit is as close or closer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from godwit.policies.allocation.closeness import ClosenessMetric, Floats, Ints
from godwit.policies.allocation.packed_profiles import PackedProfile, PublisherTable
from godwit.policies.large_allocation.unit_limits import UnitLimits

#: Order of the pair (-closeness, -common, lower, higher), unit, its version, partner, its version.
Entry = tuple[float, int, int, int, int, int, int, int]
Matrix = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class GroupUnit:
    profile: PackedProfile
    bandwidth_bytes_s: float
    subscriptions: int


class GroupClustering:
    """Units by their place; a cluster has the lowest place of its parts."""

    def __init__(
        self,
        units: Sequence[GroupUnit],
        table: PublisherTable,
        limits: UnitLimits,
        metric: ClosenessMetric,
        *,
        least: float = 0.0,
    ) -> None:
        """`least`: the smallest closeness of a pair, as a share of the larger with itself."""
        n = len(units)
        self._table = table
        self._limits = limits
        self._metric = metric
        self._least = least
        self._bandwidths: Floats = np.array([unit.bandwidth_bytes_s for unit in units])
        self._subscriptions = [unit.subscriptions for unit in units]
        self._sizes: Ints = np.array([unit.profile.count for unit in units], np.int64)
        self._own: Floats = np.array([metric.of_itself(size) for size in self._sizes.tolist()])
        self._counts = [dict(unit.profile.counts) for unit in units]
        self._rows: list[dict[int, int]] = [{} for _ in units]
        self._words: dict[int, Matrix] = {}
        self._owners: dict[int, Ints] = {}
        self._common: Ints = np.zeros((n, n), np.int64)
        self._open = ~np.eye(n, dtype=np.bool_)
        self._versions = [0] * n
        self._members = [[place] for place in range(n)]
        self._is_alive = [True] * n
        self._alive = n
        self.evaluations = 0
        self._fill(units)

    def _fill(self, units: Sequence[GroupUnit]) -> None:
        owners: dict[int, list[int]] = {}
        for place, unit in enumerate(units):
            for p in unit.profile.blocks:
                self._rows[place][p] = len(owners.setdefault(p, []))
                owners[p].append(place)
        for p, places in owners.items():
            words = np.array([units[place].profile.blocks[p] for place in places], np.uint64)
            self._words[p], self._owners[p] = words, np.array(places, np.int64)
            if len(places) > 1:
                # A product of 0/1 matrices counts common bits; floats up to 2^24 are exact.
                bits = np.unpackbits(words.view(np.uint8), axis=1).astype(np.float32)
                self._common[np.ix_(places, places)] += (bits @ bits.T).astype(np.int64)

    def run(self) -> list[list[int]]:
        """The places of each cluster, the lowest first."""
        n = len(self._members)
        self.evaluations += n * (n - 1) // 2
        heap: list[Entry] = [entry for place in range(n) if (entry := self._closest(place))]
        heapify(heap)
        while heap:
            *_, place, version, partner, partner_version = heappop(heap)
            if version != self._versions[place]:
                continue
            again = place
            if partner_version == self._versions[partner] and self._open[place, partner]:
                low, high = min(place, partner), max(place, partner)
                if self._allows(low, high):
                    self._merge(low, high)
                    again = low
                else:
                    self._open[low, high] = self._open[high, low] = False
            entry = self._closest(again)
            if entry is not None:
                heappush(heap, entry)
        return [self._members[place] for place in range(n) if self._is_alive[place]]

    def _closest(self, place: int) -> Entry | None:
        common = self._common[place]
        values = self._metric.values(common, int(self._sizes[place]), self._sizes)
        limit = self._limits.bandwidth_bytes_s - self._bandwidths[place]
        enough = self._least * np.maximum(self._own, self._own[place])
        chosen = self._open[place] & (self._bandwidths <= limit) & (values >= enough)
        values = np.where(chosen, values, 0.0)
        highest = float(values.max(initial=0.0))
        if highest <= 0:
            return None
        ties = np.flatnonzero(values == highest)
        partner = int(ties[common[ties].argmax()])
        low, high = min(place, partner), max(place, partner)
        order = (-highest, -int(common[partner]), low, high)
        return (*order, place, self._versions[place], partner, self._versions[partner])

    # -- merging -------------------------------------------------------------------------------

    def _allows(self, low: int, high: int) -> bool:
        return self._limits.allows(
            float(self._bandwidths[low] + self._bandwidths[high]),
            self._rate_per_s(self._union_counts(low, high)),
            self._subscriptions[low] + self._subscriptions[high],
        )

    def _union_counts(self, low: int, high: int) -> dict[int, int]:
        counts = dict(self._counts[low])
        for p, row in self._rows[high].items():
            if p in counts:
                words = self._words[p]
                both = words[self._rows[low][p]] & words[row]
                counts[p] += self._counts[high][p] - int(np.bitwise_count(both).sum())
            else:
                counts[p] = self._counts[high][p]
        return counts

    def _rate_per_s(self, counts: dict[int, int]) -> float:
        table = self._table
        return sum(table.rates_per_s[p] * table.share(p, count) for p, count in counts.items())

    def _merge(self, low: int, high: int) -> None:
        """`high` goes into `low`."""
        self._counts[low] = self._union_counts(low, high)
        for p, row in self._rows[high].items():
            words = self._words[p]
            if p in self._rows[low]:
                words[self._rows[low][p]] |= words[row]
            else:
                self._rows[low][p] = row
                self._owners[p][row] = low
        self._sizes[low] = sum(self._counts[low].values())
        self._own[low] = self._metric.of_itself(int(self._sizes[low]))
        self._bandwidths[low] += self._bandwidths[high]
        self._subscriptions[low] += self._subscriptions[high]
        self._members[low] += self._members[high]
        # What is too large with a part is too large with the whole.
        self._open[low] &= self._open[high]
        self._open[high] = False
        self._open[:, high] = False
        self._open[:, low] = self._open[low]
        self._is_alive[high] = False
        self._alive -= 1
        self._versions[low] += 1
        self._versions[high] += 1
        self._compare(low)

    def _compare(self, place: int) -> None:
        """What the cluster at `place` has in common with all others."""
        common = np.zeros(len(self._members), np.int64)
        for p, row in self._rows[place].items():
            words = self._words[p]
            # Each unit owns one row at most, so no place occurs twice.
            common[self._owners[p]] += np.bitwise_count(words & words[row]).sum(
                axis=1, dtype=np.int64
            )
        self._common[place] = common
        self._common[:, place] = common
        self.evaluations += self._alive - 1
