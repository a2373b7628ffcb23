"""Marks: publications that similar profiles share, so that only these are compared.

Only profiles with a common publication have a closeness above 0.  The mark of a profile is the
first of its publications in a fixed random order (a min-hash: two profiles have the same mark with
a probability equal to |S1 AND S2| / |S1 OR S2|).  Profiles with the same mark share that
publication; they are candidates for each other, and all other pairs are left out.  Another round
has another order, so that a pair that one round leaves out is a candidate in a later one.

Departs  1. The thesis compares all pairs of GIFs, or walks through their poset.
Tested   tests/policies/large_allocation/test_shared_publications.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from godwit.policies.allocation.packed_profiles import PackedProfile

#: The mark of a profile without publications, after all others.
NO_MARK = 2**32
#: Marks for each profile: the first is shared by a group, the others order it.
MARKS = 3


class Marking:
    """The orders of one round.  A mark is the publication's number in the order."""

    def __init__(self, lengths: Sequence[int], number: int) -> None:
        self._lengths = lengths
        self._number = number
        self._orders: dict[int, npt.NDArray[np.uint32]] = {}

    def marks(self, profile: PackedProfile) -> tuple[int, ...]:
        found = [NO_MARK] * MARKS
        for p, words in profile.blocks.items():
            received = np.unpackbits(words.view(np.uint8), bitorder="little").view(np.bool_)
            received = received[: self._lengths[p]]
            for place, order in enumerate(self._order(p)):
                found[place] = min(found[place], int(order[received].min(initial=NO_MARK - 1)))
        return tuple(found)

    def _order(self, p: int) -> npt.NDArray[np.uint32]:
        order = self._orders.get(p)
        if order is None:
            random = np.random.default_rng((self._number, p))
            order = random.integers(0, NO_MARK, (MARKS, self._lengths[p]), dtype=np.uint32)
            self._orders[p] = order
        return order
