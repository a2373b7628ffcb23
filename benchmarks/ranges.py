"""Workload W2: conjunctions of ranges only, without an equality to hash on.

Every record has twenty numeric attributes.  A filter has 3 to 6 ranges on distinct
attributes, popular ones by Zipf's law; half of the ranges have two sides.  The share of records
that a filter matches is log-uniform between 0.1% and 1%, and is divided at random among its ranges.
"""

from __future__ import annotations

from random import Random

from godwit.content.filters import Filter
from godwit.content.predicates import Operator, Predicate
from godwit.content.values import Value

ATTRIBUTES = tuple(f"x{number:02d}" for number in range(20))
VALUE_MAX = 100_000.0
SHARE_MIN, SHARE_MAX = 0.001, 0.01


class RangeWorkload:
    """Records and filters of W2, the same ones for the same generator state."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._zipf_weights = [1 / rank for rank in range(1, len(ATTRIBUTES) + 1)]

    def record(self) -> dict[str, Value]:
        return {name: self._random.uniform(0, VALUE_MAX) for name in ATTRIBUTES}

    def filter(self) -> Filter:
        draw = self._random
        attributes = self._distinct_attributes(draw.randint(3, 6))
        share = SHARE_MIN * (SHARE_MAX / SHARE_MIN) ** draw.random()
        parts = [draw.uniform(0.5, 1.5) for _ in attributes]
        predicates: list[Predicate] = []
        for attribute, part in zip(attributes, parts, strict=True):
            predicates += self._range(attribute, share ** (part / sum(parts)))
        return Filter(predicates)

    def _distinct_attributes(self, count: int) -> list[str]:
        chosen: dict[str, None] = {}
        while len(chosen) < count:
            (name,) = self._random.choices(ATTRIBUTES, self._zipf_weights)
            chosen[name] = None
        return list(chosen)

    def _range(self, attribute: str, share: float) -> list[Predicate]:
        """One or two predicates that `share` of the attribute's values satisfy."""
        width = share * VALUE_MAX
        if self._random.random() < 0.5:
            low = self._random.uniform(0, VALUE_MAX - width)
            return [
                Predicate(attribute, Operator.AT_LEAST, low),
                Predicate(attribute, Operator.AT_MOST, low + width),
            ]
        if self._random.random() < 0.5:
            return [Predicate(attribute, Operator.BELOW, width)]
        return [Predicate(attribute, Operator.ABOVE, VALUE_MAX - width)]
