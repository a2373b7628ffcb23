"""A second matching index, too simple to be wrong: it evaluates every filter."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from godwit.content.filters import Filter
from godwit.content.values import Record
from godwit.errors import UsageError

K = TypeVar("K", bound=Hashable)


class NaiveIndex(Generic[K]):
    def __init__(self) -> None:
        self.filters: dict[K, Filter] = {}

    def __len__(self) -> int:
        return len(self.filters)

    def __contains__(self, key: K) -> bool:
        return key in self.filters

    def add(self, key: K, filter: Filter) -> None:
        if key in self.filters:
            raise UsageError(f"{key!r} already has a filter")
        self.filters[key] = filter

    def remove(self, key: K) -> None:
        if key not in self.filters:
            raise UsageError(f"{key!r} has no filter")
        del self.filters[key]

    def match(self, record: Record) -> list[K]:
        return [key for key, filter in self.filters.items() if filter.matches(record)]
