"""What a publisher sends: rate, bandwidth and the id of its last publication.

Paper    Cheung, thesis 6.1.2.
Words    advId -> publisher; publication rate, bandwidth -> publications_per_s, bytes_per_s.
Departs  1. Keyed by publisher, not by advertisement: a client numbers all its publications.  If a
            publisher can be started again, the key is its incarnation (`incarnation_of`).
         2. `first_id`: before a publisher has sent as many publications as a bit vector has bits,
            a share of the vector is a share of those sent (open in the thesis).
Tested   tests/profile/test_publisher_profile.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from godwit.profile.rate_window import SLICE_S, WINDOW_S, RateWindow


@dataclass(frozen=True, slots=True)
class PublisherProfile:
    publisher: str
    publications_per_s: float
    bytes_per_s: float
    last_id: int
    first_id: int = 0
    """The first publication that could be recorded."""

    def window(self, length: int) -> range:
        """The message ids that bit vectors of this length have in common, up to the last one."""
        return range(max(self.first_id, self.last_id - length + 1), self.last_id + 1)


@dataclass(slots=True)
class _Seen:
    since_s: float
    first_id: int
    last_id: int
    publications: int = 0
    """In the slice of time that is not over."""
    bytes: int = 0


class PublisherMeters:
    """Profiles of a broker's own publishers, over the last `window_s`.

    What is sent in a slice of time is added up, and entered into the windows when the slice is over
    or profiles are read: a publication costs a few additions.
    """

    __slots__ = ("_bytes", "_publications", "_seen", "_slice_s")

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._publications = RateWindow[str](window_s)
        self._bytes = RateWindow[str](window_s)
        self._seen: dict[str, _Seen] = {}
        self._slice_s = -math.inf
        """When the slice began."""

    def record(self, publisher: str, message_id: int, size_bytes: int, now_s: float) -> None:
        if now_s - self._slice_s >= SLICE_S:
            self._end_slice()
            self._slice_s = now_s
        seen = self._seen.get(publisher)
        if seen is None:
            seen = self._seen[publisher] = _Seen(now_s, message_id, message_id)
        elif message_id > seen.last_id:
            seen.last_id = message_id
        seen.publications += 1
        seen.bytes += size_bytes

    def _end_slice(self) -> None:
        for name, seen in self._seen.items():
            if seen.publications:
                self._publications.add(name, seen.publications, self._slice_s)
                self._bytes.add(name, seen.bytes, self._slice_s)
                seen.publications = seen.bytes = 0

    def forget(self, publisher: str) -> None:
        """It has left."""
        if self._seen.pop(publisher, None) is not None:
            self._publications.drop(publisher)
            self._bytes.drop(publisher)

    def profiles(self, now_s: float) -> Mapping[str, PublisherProfile]:
        self._end_slice()
        self._publications.forget_old(now_s)
        self._bytes.forget_old(now_s)
        found: dict[str, PublisherProfile] = {}
        for name, seen in self._seen.items():
            age_s = max(SLICE_S, now_s - seen.since_s)
            found[name] = PublisherProfile(
                name,
                self._publications.per_s(name, age_s),
                self._bytes.per_s(name, age_s),
                seen.last_id,
                seen.first_id,
            )
        return found
