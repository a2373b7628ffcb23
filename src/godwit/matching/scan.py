"""Few filters, tested one by one in plain Python.

For a handful, nothing is faster: only the boxes are read, and in a simulation of many brokers much
of the cost of a match is fetching objects that are no longer in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import TypeAlias, TypeGuard, TypeVar

from godwit.content.values import Number, Record, Value
from godwit.matching.shapes import Box, Checks, Intervals

K = TypeVar("K", bound=Hashable)

#: A key, and the intervals and checks of its box.  Flat: Python unpacks a plain tuple much faster
#: than a named one.
Boxed: TypeAlias = tuple[K, Intervals, Checks]


def boxed(key: K, box: Box) -> Boxed[K]:
    return key, _shared(box.intervals), box.checks


@lru_cache(maxsize=4096)
def _shared(intervals: Intervals) -> Intervals:
    """Equal intervals as one object, in all indexes.

    The same filter is in the tables of many brokers, which a publication visits one by one.  In a
    simulation that is fast if it is the same object, because it is then in the cache.
    """
    return intervals


def is_number(value: Value | None) -> TypeGuard[Number]:
    # Comparing types decides nearly always, and costs half of what follows.
    return (
        type(value) is float
        or type(value) is int
        or not (value is None or isinstance(value, str | bool))
    )


def passes(checks: Checks, record: Record) -> bool:
    for attribute, constraint in checks:
        value = record.get(attribute)
        if value is None or not constraint.has(value):
            return False
    return True


def scan(boxes: Iterable[Boxed[K]], record: Record) -> list[K]:
    """The keys of the boxes that hold `record`, in the order of `boxes`."""
    get = record.get
    matching: list[K] = []
    for key, intervals, checks in boxes:
        for attribute, low, high in intervals:
            value = get(attribute)
            # Floats and integers need no call of `is_number`.
            if not (type(value) is float or type(value) is int or is_number(value)):
                break
            if value < low or value > high:
                break
        else:
            if not checks or passes(checks, record):
                matching.append(key)
    return matching
