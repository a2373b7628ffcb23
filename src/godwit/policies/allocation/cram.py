"""CRAM, clustering with resource awareness and minimisation.

Paper    Cheung, thesis 6.2.3.
Words    subscription pool -> GifPool and AllocationTest; allocation scheme -> Packed;
         "noted" pairs -> refused; the closest pair of each GIF -> an entry of the heap.
Claim    The merges are those of the thesis's loop: the pair with the highest closeness of all that
         are not refused, then the next.

    1  BIN PACKING without clusters; if it fails, so does CRAM
    2  the closest pair of GIFs is merged, if BIN PACKING still succeeds; else it is refused
    3  again, until no pair is left

A pair is merged by its relation:
    equal       a GIF with itself: as many of its units as pack become one, again with the rest
    covering    the lightest unit of the covering GIF with as many of the covered one as pack
    else        one of both with GIFs that it covers, if that is closer (one_to_many.py); else the
                lightest unit of each

Departs  1. The scheme with the fewest brokers is returned, the later of equals; it is looked for
            whenever a fifth of the units is gone, and at the end.  If it is not the last one, which
            is the thesis's, that one is returned with it: it causes less traffic, so its tree may
            need fewer brokers in all (algorithms.py).  `keep="last"` returns the last only.
         2. A GIF is searched for its partner when a limit of its closeness is the highest value
            left, not before: GIFs that are merged away earlier are never searched.  A limit is the
            closeness with itself, or with the last partner: new GIFs search for themselves.
         3. A GIF that gained a unit is tried with itself again (open in the thesis).
         4. If one-to-many clustering is valid for both of a pair, the closer one is taken, or the
            lower GIF (open).
Tested   tests/policies/allocation/test_cram.py: against the loop as the thesis has it.

CR1  Of every pair that is not refused, the entry of at least one GIF is as close or closer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush

from godwit.policies.allocation.allocation_test import AllocationTest
from godwit.policies.allocation.capacity import BrokerCapacity
from godwit.policies.allocation.closeness import ClosenessMetric
from godwit.policies.allocation.first_fit import Packed
from godwit.policies.allocation.gif_pool import GifPool
from godwit.policies.allocation.one_to_many import covered_set
from godwit.policies.allocation.packed_profiles import PublisherTable
from godwit.policies.allocation.partner_search import Partner, PartnerSearch
from godwit.policies.allocation.units import AllocationUnit, UnitFactory

#: An entry of the heap: the order of the pair, the GIF, its version, its partner or UNKNOWN.
Entry = tuple[float, float, int, int, int, int, int]
UNKNOWN = -1
#: The scheme is packed again when the number of units has fallen to this share.
PACK_AGAIN = 0.8


class Cram:
    def __init__(
        self,
        units: Sequence[AllocationUnit],
        brokers: Sequence[BrokerCapacity],
        table: PublisherTable,
        factory: UnitFactory,
        metric: ClosenessMetric,
        *,
        is_exact: bool = True,
        keeps_fewest: bool = True,
        one_to_many: bool = True,
    ) -> None:
        self._factory = factory
        self._metric = metric
        self._keeps_fewest = keeps_fewest
        self._one_to_many = one_to_many and metric.is_zero_if_disjoint
        self._test = AllocationTest(units, brokers, table)
        self._pool = GifPool((), table)
        self.search = PartnerSearch(
            self._pool.profiles, self._pool.poset, metric, is_exact=is_exact
        )
        self._refused: dict[int, set[int]] = {}
        self._is_maximal: set[int] = set()
        """GIFs that were tried with themselves and gained no unit since."""

        self._versions: dict[int, int] = {}
        self._heap: list[Entry] = []
        self._units = units
        self.merges = 0

    @property
    def gifs(self) -> int:
        return len(self._pool)

    def run(self) -> Packed:
        best = self._test.pack()
        if not best.is_complete:
            return best
        for unit in self._units:
            self._pool.add(unit)
        for gif in list(self._pool):
            self._look_later(gif)
        heapify(self._heap)
        pack_at = PACK_AGAIN * len(self._test.pool)
        while self._heap:
            self._step(heappop(self._heap))
            if self._keeps_fewest and len(self._test.pool) <= pack_at:
                best = self._fewer(best)
                pack_at = PACK_AGAIN * len(self._test.pool)
        last = self._test.pack()
        if not self._keeps_fewest or len(last.used) <= len(best.used):
            return last
        return replace(best, last=last)

    def _fewer(self, best: Packed) -> Packed:
        packed = self._test.pack()
        return packed if len(packed.used) <= len(best.used) else best

    # -- the closest pair ----------------------------------------------------------------------

    def _look_later(self, gif: int, limit: Partner | None = None) -> None:
        """An entry with a limit of the closeness: that with itself, or with the last partner."""
        if limit is None:
            highest = self._metric.of_itself(self._pool.cardinality(gif))
            self._push((-highest, float("-inf"), 0, 0), gif, UNKNOWN)
        else:
            self._push(_order(gif, limit), gif, UNKNOWN)

    def _push(self, order: tuple[float, float, int, int], gif: int, partner: int) -> None:
        version = self._versions[gif] = self._versions.get(gif, 0) + 1
        if order[0] < 0:
            heappush(self._heap, (*order, gif, version, partner))

    def _step(self, entry: Entry) -> None:
        order, (gif, version, partner) = entry[:4], entry[4:]
        if gif not in self._pool or version != self._versions[gif]:
            return
        if partner == UNKNOWN or not self._is_open(gif, partner):
            found = self.search.closest(
                gif, self._refused.get(gif, set()), with_itself=self._is_open(gif, gif)
            )
            if found is not None:
                self._push(_order(gif, found), gif, found.gif)
            return
        closest = Partner(-order[0], int(-order[1]), partner)
        if gif == partner:
            self._merge_equal(gif)
        else:
            self._merge_pair(gif, closest)
        if gif in self._pool and version == self._versions[gif]:
            if self._is_open(gif, partner):
                self._push(order, gif, partner)
            else:
                self._look_later(gif, closest)

    def _is_open(self, gif: int, partner: int) -> bool:
        if partner not in self._pool:
            return False
        if gif == partner:
            return gif not in self._is_maximal and self._pool.count(gif) > 1
        return partner not in self._refused.get(gif, ())

    def _refuse(self, a: int, b: int) -> None:
        self._refused.setdefault(a, set()).add(b)
        self._refused.setdefault(b, set()).add(a)

    # -- merging -------------------------------------------------------------------------------

    def _merge_equal(self, gif: int) -> None:
        rest = self._pool.units(gif)
        profile = self._pool.profile(gif)

        def merge(parts: Sequence[AllocationUnit]) -> AllocationUnit:
            return self._factory.merged(parts, profile)

        self._is_maximal.add(gif)
        while len(rest) > 1:
            k, merged = self._most(rest, merge, 2)
            if merged is None:
                break
            self._commit({gif: rest[:k]}, merged)
            self._is_maximal.add(gif)
            rest = rest[k:]

    def _merge_pair(self, gif: int, partner: Partner) -> None:
        g, h = self._pool.cardinality(gif), self._pool.cardinality(partner.gif)
        if partner.common == h:
            self._merge_covered(gif, partner.gif)
        elif partner.common == g:
            self._merge_covered(partner.gif, gif)
        elif not (self._one_to_many and self._merge_one_to_many(gif, partner)):
            a, b = self._pool.lightest(gif), self._pool.lightest(partner.gif)
            if gif > partner.gif:
                a, b = b, a
            merged = self._factory.merged([a, b])
            if self._test.allows([a, b], merged):
                self._commit({gif: [self._pool.lightest(gif)],
                              partner.gif: [self._pool.lightest(partner.gif)]}, merged)  # fmt: skip
            else:
                self._refuse(gif, partner.gif)

    def _merge_covered(self, covering: int, covered: int) -> None:
        profile = self._pool.profile(covering)
        first, others = self._pool.lightest(covering), self._pool.units(covered)

        def merge(parts: Sequence[AllocationUnit]) -> AllocationUnit:
            return self._factory.merged([first, *parts], profile)

        k, merged = self._most(others, merge, 1, [first])
        if merged is None:
            self._refuse(covering, covered)
        else:
            self._commit({covering: [first], covered: others[:k]}, merged)

    def _most(
        self,
        units: Sequence[AllocationUnit],
        merge: Callable[[Sequence[AllocationUnit]], AllocationUnit],
        fewest: int,
        always: Sequence[AllocationUnit] = (),
    ) -> tuple[int, AllocationUnit | None]:
        """The largest number of units, the lightest first, that pack as one; by binary search."""
        best: tuple[int, AllocationUnit | None] = (0, None)
        low, high = fewest, len(units)
        k = high  # All of them, most often.
        while low <= high:
            merged = merge(units[:k])
            if self._test.allows([*always, *units[:k]], merged):
                best, low = (k, merged), k + 1
            else:
                high = k - 1
            k = (low + high + 1) // 2
        return best

    def _merge_one_to_many(self, gif: int, partner: Partner) -> bool:
        """Cluster one of the pair with GIFs that it covers, if that is closer than the pair."""
        pool = self._pool
        limit = sum(pool.lightest(each).bandwidth_bytes_s for each in (gif, partner.gif))
        valid: list[tuple[float, int, list[int], AllocationUnit]] = []
        for parent in sorted((gif, partner.gif)):
            found = covered_set(pool, parent, self._refused.get(parent, set()), limit)
            if not found.gifs:
                continue
            self.search.evaluations += 1
            n, g = found.profile.count, pool.cardinality(parent)
            closeness = self._metric.of(n, g, n)
            if closeness <= partner.closeness:
                continue
            parts = [pool.lightest(each) for each in (parent, *found.gifs)]
            merged = self._factory.merged(parts, pool.profile(parent))
            if self._test.allows(parts, merged):
                valid.append((-closeness, parent, [parent, *found.gifs], merged))
        if not valid:
            return False
        _, _, members, merged = min(valid, key=lambda entry: entry[:2])
        self._commit({each: [pool.lightest(each)] for each in members}, merged)
        return True

    def _commit(self, taken: dict[int, list[AllocationUnit]], merged: AllocationUnit) -> None:
        """Replace units by their cluster.  It is added first: its GIF may be one of these."""
        self.merges += 1
        self._test.commit([unit for units in taken.values() for unit in units], merged)
        gif, is_new = self._pool.add(merged)
        for each, units in taken.items():
            self._pool.take(each, units)
        if is_new:
            self._look_later(gif)
        else:
            self._is_maximal.discard(gif)
            if self._pool.count(gif) > 1:
                self._look_later(gif)


def _order(gif: int, partner: Partner) -> tuple[float, float, int, int]:
    """Higher closeness, then the larger intersection, then the lower GIFs."""
    low, high = min(gif, partner.gif), max(gif, partner.gif)
    return (-partner.closeness, -partner.common, low, high)
