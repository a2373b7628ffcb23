"""Advertisements of one hop, found without a linear search.

A subscription travels towards a hop if some advertisement from there announces it.  Most
advertisements fix a class or a symbol, and most subscriptions do as well: of those that fix the
same attribute, only those with the same text can meet.

N1  For each indexed attribute, an advertisement is filed under the text it fixes, or as open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId

#: Attributes that are indexed, first come first served: bounds the memory for hostile clients.
INDEXED_ATTRIBUTES_MAX = 8

Filters = dict[AdvertisementId, Filter]


class Announcements:
    __slots__ = ("_by_text", "_filters", "_open")

    def __init__(self) -> None:
        self._filters: Filters = {}
        self._by_text: dict[str, dict[str, Filters]] = {}
        """By attribute and text."""
        self._open: dict[str, Filters] = {}
        """By attribute: advertisements that do not fix it."""

    def __len__(self) -> int:
        return len(self._filters)

    def __iter__(self) -> Iterator[AdvertisementId]:
        return iter(self._filters)

    def add(self, id: AdvertisementId, filter: Filter) -> None:
        texts = dict(filter.fixed_texts)
        for attribute in texts:
            if attribute not in self._by_text and len(self._by_text) < INDEXED_ATTRIBUTES_MAX:
                self._by_text[attribute] = {}
                self._open[attribute] = dict(self._filters)
        for attribute, by_text in self._by_text.items():
            if attribute in texts:
                by_text.setdefault(texts[attribute], {})[id] = filter
            else:
                self._open[attribute][id] = filter
        self._filters[id] = filter

    def remove(self, id: AdvertisementId) -> None:
        texts = dict(self._filters.pop(id).fixed_texts)
        for attribute, by_text in self._by_text.items():
            if attribute not in texts:
                del self._open[attribute][id]
                continue
            of_text = by_text[texts[attribute]]
            del of_text[id]
            if not of_text:
                del by_text[texts[attribute]]

    def announce(self, interest: Filter) -> bool:
        """Whether some advertisement announces what `interest` matches."""
        return any(filter.announces(interest) for filter in self._candidates(interest))

    def _candidates(self, interest: Filter) -> Iterable[Filter]:
        """The advertisements that the most selective text of `interest` leaves."""
        best: tuple[Filters, ...] = (self._filters,)
        for attribute, text in interest.fixed_texts:
            by_text = self._by_text.get(attribute)
            if by_text is not None:
                found = (by_text.get(text, {}), self._open[attribute])
                if sum(map(len, found)) < sum(map(len, best)):
                    best = found
        return (filter for filters in best for filter in filters.values())

    def check(self) -> None:
        for attribute, by_text in self._by_text.items():
            filed = [id for of_text in by_text.values() for id in of_text]
            filed += self._open[attribute]
            assert sorted(filed) == sorted(self._filters), f"N1: {attribute} misses some"
