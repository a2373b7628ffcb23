"""Closeness of two profiles: how much traffic they share, against what they add.

Paper    Cheung, thesis 6.2.3.
Words    S1, S2 -> cardinalities g and h, with i = |S1 AND S2|.

    INTERSECT   i
    XOR         1 / (g + h - 2 i), capped for equal profiles
    IOS         i^2 / (g + h)
    IOU         i^2 / (g + h - i)

Departs  1. The cap of XOR is 2, above 1, the highest value of two unlike profiles.
         2. Without a common bit, IOS and IOU are 0, even if both profiles are empty.
         3. The bounds are exact; the thesis stops where values fall.  `below` limits the values of
            all nodes below one with i bits of G in common, `at_most` that of one node of
            cardinality h.
Tested   tests/policies/allocation/test_closeness.py: test vector 6, and the bounds on random sets.

C1  `below` and `at_most` are never less than the value that they limit, also after rounding: both
    are quotients with a numerator not less and a denominator not more.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

XOR_CAP = 2.0


class ClosenessMetric(Enum):
    INTERSECT = "intersect"
    XOR = "xor"
    IOS = "ios"
    IOU = "iou"

    @property
    def is_zero_if_disjoint(self) -> bool:
        """Whether a search may leave out profiles without a common bit."""
        return self is not ClosenessMetric.XOR

    def values(self, i: Ints, g: int, h: Ints) -> Floats:
        """Of a profile of cardinality g with several of cardinalities h."""
        if self is ClosenessMetric.INTERSECT:
            return i.astype(np.float64)
        if self is ClosenessMetric.XOR:
            apart = g + h - 2 * i
            return np.where(apart > 0, 1.0 / np.maximum(apart, 1), XOR_CAP)
        whole = g + h if self is ClosenessMetric.IOS else g + h - i
        return cast("Floats", i * i / np.maximum(whole, 1))

    def of(self, i: int, g: int, h: int) -> float:
        if self is ClosenessMetric.INTERSECT:
            return float(i)
        if self is ClosenessMetric.XOR:
            return 1.0 / (g + h - 2 * i) if g + h > 2 * i else XOR_CAP
        whole = g + h if self is ClosenessMetric.IOS else g + h - i
        return i * i / whole if whole else 0.0

    def of_itself(self, g: int) -> float:
        """The closeness of a profile with itself: no other profile is closer to it."""
        return self.of(g, g, g)

    def at_most(self, i: Ints, g: int, h: Ints) -> Floats:
        """Limits of the values if at most i bits are common."""
        return self.values(np.minimum(i, h), g, h)

    def below(self, i: Ints, g: int) -> Floats:
        """Limits of the values at and below nodes with at most i common bits.

        A node below has i' <= i common bits and h' >= i' bits.
        """
        if self is ClosenessMetric.INTERSECT:
            return i.astype(np.float64)
        if self is ClosenessMetric.IOS:
            return i * i / np.maximum(g + i, 1)
        return i * i / max(g, 1)
