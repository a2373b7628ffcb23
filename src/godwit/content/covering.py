"""A set of filters in which covered ones are kept behind a front that covers them.

Two tables of a router are such sets: the subscriptions sent over a link (a covered one need not
be sent), and the subscriptions of one hop (a covered one cannot change where a publication goes).
Only the fronts matter there; when one leaves, those behind it step forward.

This is the covering subscription set, one level deep: the full poset (poset.py) also has the order
among covered filters, which routing does not need and which costs more to keep.

V1  A front was covered by no other when it was added; a filter behind is covered by its front.
    Fronts that a new filter covers stay in front unless the owner calls `step_back`: what was sent
    over a link stays sent, but the set that decides where publications go should be small.
V2  A front that leaves is replaced by the maximal ones among those behind it that no other
    front covers.

Finding a cover looks only at fronts that fix the same attributes to the same values as the
new filter (a cover cannot fix what the covered leaves open), the most useful first, and stops
after SCAN_MAX of them.  Stopping early costs traffic, never a delivery, and bounds the time to
add a filter.  Removing one takes that time for each filter behind it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import combinations, islice
from typing import Generic, TypeVar

from godwit.content.filters import Filter
from godwit.content.values import hash_key

K = TypeVar("K", bound=Hashable)

SCAN_MAX = 256


class CoveringSet(Generic[K]):
    """Filters by key; each is in front, or behind one front that covers it."""

    def __init__(self) -> None:
        self._filters: dict[K, Filter] = {}
        self._front_of: dict[K, K] = {}
        self._behind: dict[K, dict[K, None]] = {}
        # Fronts by the attributes they fix, then by the values they fix them to.
        self._fronts: dict[tuple[str, ...], dict[tuple[object, ...], dict[K, Filter]]] = {}
        self._front_by_filter: dict[Filter, K] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def __iter__(self) -> Iterator[K]:
        return iter(self._filters)

    def __contains__(self, key: K) -> bool:
        return key in self._filters

    def front_of(self, key: K) -> K | None:
        """The front that `key` is behind; None if it is a front."""
        return self._front_of.get(key)

    def add(self, key: K, filter: Filter) -> K | None:
        """Add a filter; returns the front that it is behind, if any."""
        assert key not in self._filters, f"{key} was added before"
        self._filters[key] = filter
        return self._place(key, filter)

    def remove(self, key: K) -> list[K]:
        """Remove a filter; returns those that stepped forward in its place."""
        filter = self._filters.pop(key)
        front = self._front_of.pop(key, None)
        if front is not None:
            del self._behind[front][key]
            return []
        self._leave_front(key, filter)
        waiting = self._behind.pop(key, {})
        for follower in waiting:
            del self._front_of[follower]
        # Few constraints first: a wide filter that is placed early saves a second look below.
        ordered = sorted(waiting, key=lambda k: len(self._filters[k].constraints))
        stepped = [k for k in ordered if self._place(k, self._filters[k]) is None]
        return [k for k in stepped if not self._step_back(k)]  # V2: only the maximal ones.

    def step_back(self, front: K) -> list[K]:
        """Move other fronts that `front` covers behind it; returns them."""
        filter = self._filters[front]
        covered = [key for key, other in self._narrower(front, filter) if filter.covers(other)]
        for key in covered:
            self._move_behind(key, front)
        return covered

    def _narrower(self, key: K, filter: Filter) -> Iterator[tuple[K, Filter]]:
        """Other fronts that fix the same attributes to the same values; at most SCAN_MAX."""
        return islice(
            (
                (front, other)
                for fronts in self._groups_within(_fixed(filter))
                for front, other in fronts.items()
                if front != key
            ),
            SCAN_MAX,
        )

    def _groups_within(self, fixed: dict[str, object]) -> Iterator[dict[K, Filter]]:
        same = self._fronts.get(tuple(fixed), {}).get(tuple(fixed.values()))
        if same:
            yield same
        looked = 0
        for attributes, by_values in self._fronts.items():
            if len(attributes) <= len(fixed) or not fixed.keys() <= set(attributes):
                continue
            places = [attributes.index(name) for name in fixed]
            wanted = list(fixed.values())
            for values, fronts in by_values.items():
                looked += 1
                if looked > SCAN_MAX:
                    return
                if [values[place] for place in places] == wanted:
                    yield fronts

    def _place(self, key: K, filter: Filter) -> K | None:
        front = self._find_cover(key, filter)
        if front is None:
            self._enter_front(key, filter)
            return None
        self._front_of[key] = front
        self._behind.setdefault(front, {})[key] = None
        return front

    def _step_back(self, key: K) -> bool:
        """Move a front behind another front that covers it; False if none does."""
        filter = self._filters[key]
        front = self._find_cover(key, filter)
        if front is None:
            return False
        self._move_behind(key, front)
        return True

    def _move_behind(self, key: K, front: K) -> None:
        """Move a front, and all behind it, behind another front that covers it."""
        self._leave_front(key, self._filters[key])
        behind = self._behind.setdefault(front, {})
        for follower in (key, *self._behind.pop(key, {})):
            self._front_of[follower] = front
            behind[follower] = None

    def _find_cover(self, key: K, filter: Filter) -> K | None:
        equal = self._front_by_filter.get(filter)
        if equal is not None and equal != key:
            return equal
        fixed = _fixed(filter)
        for attributes in self._sets_within(fixed):
            fronts = self._fronts[attributes].get(tuple(fixed[name] for name in attributes))
            if fronts:
                found = self._scan(fronts, key, filter)
                if found is not None:
                    return found
        return None

    def _sets_within(self, fixed: dict[str, object]) -> Iterator[tuple[str, ...]]:
        """The sets of attributes that some fronts fix, and that are part of `fixed`."""
        if 2 ** len(fixed) <= SCAN_MAX:  # Nearly always: most filters fix few attributes.
            for size in range(len(fixed) + 1):
                yield from (c for c in combinations(fixed, size) if c in self._fronts)
        else:
            for attributes in islice(self._fronts, SCAN_MAX):
                if fixed.keys() >= set(attributes):
                    yield attributes

    def _scan(self, fronts: dict[K, Filter], key: K, filter: Filter) -> K | None:
        for scanned, (front, candidate) in enumerate(reversed(fronts.items())):
            if scanned == SCAN_MAX:
                break
            if front != key and candidate.covers(filter):
                if scanned:  # Useful ones move to the end, where the next scan starts.
                    fronts[front] = fronts.pop(front)
                return front
        return None

    def _enter_front(self, key: K, filter: Filter) -> None:
        fixed = _fixed(filter)
        by_values = self._fronts.setdefault(tuple(fixed), {})
        by_values.setdefault(tuple(fixed.values()), {})[key] = filter
        self._front_by_filter[filter] = key

    def _leave_front(self, key: K, filter: Filter) -> None:
        fixed = _fixed(filter)
        attributes, values = tuple(fixed), tuple(fixed.values())
        fronts = self._fronts[attributes][values]
        del fronts[key]
        if self._front_by_filter.get(filter) == key:
            del self._front_by_filter[filter]
        if not fronts:
            del self._fronts[attributes][values]
            if not self._fronts[attributes]:
                del self._fronts[attributes]

    def check(self) -> None:
        """Assert V1's second half and the bookkeeping around it."""
        for key, filter in self._filters.items():
            front = self._front_of.get(key)
            if front is not None:
                assert front in self._filters, f"{front} was removed"
                assert front not in self._front_of, f"{front} is not a front"
                assert self._filters[front].covers(filter), f"V1: {front} does not cover {key}"
                assert key in self._behind[front], f"{key} is not listed behind {front}"


class FlatSet(CoveringSet[K]):
    """The same without covering: every filter is a front."""

    def _find_cover(self, key: K, filter: Filter) -> K | None:
        return None


def _fixed(filter: Filter) -> dict[str, object]:
    """The attributes that can have one value only, by name, with that value."""
    found = ((name, c.only_value) for name, c in sorted(filter.constraints.items()))
    return {name: hash_key(value) for name, value in found if value is not None}
