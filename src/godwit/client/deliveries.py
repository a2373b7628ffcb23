"""Which publications are new to a client.  Pure.

A publication may reach a client twice: its publisher sends again what a failed broker had not
acknowledged, and during a move both brokers deliver.  A client that moves also receives its own.

D1  The sequence numbers of an incarnation of a publisher arrive in rising order.  A number that
    does not rise is a duplicate.  A publisher keeps its incarnation when it sends again and when it
    moves; when it is started again it has another one, and is news whatever its numbers are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from godwit.content.messages import AdvertisementId, Publication, incarnation_of

#: Publishers whose last sequence number is remembered, and advertisements.
PUBLISHERS_KNOWN_MAX = 100_000

#: A cell with the last sequence number of an incarnation, shared by its advertisements.
Last: TypeAlias = list[int]


class DeliveryMarks:
    """The last sequence number of each incarnation, as one client has received them."""

    def __init__(self, client: str, last_sequences: Mapping[str, int] | None = None) -> None:
        """`last_sequences` are those that the client has received already, by incarnation."""
        self.duplicates = 0
        self._client = client
        self._last: dict[str, Last] = {
            name: [last] for name, last in (last_sequences or {}).items()
        }
        self._last_under: dict[AdvertisementId, Last] = {}
        """The same cells: an advertisement need not be taken apart for each publication."""

    def is_new(self, publication: Publication) -> bool:
        """Whether to deliver it; if so, it is remembered."""
        if publication.publisher == self._client:
            return False
        last = self._last_under.get(publication.advertisement)
        if last is None:
            last = self._cell(publication)
        sequence = publication.sequence
        if sequence <= last[0]:  # D1
            self.duplicates += 1
            return False
        last[0] = sequence
        return True

    def _cell(self, publication: Publication) -> Last:
        """The cell for an advertisement that is not known yet."""
        last = self._last.setdefault(incarnation_of(publication), [-1])
        self._last_under[publication.advertisement] = last
        if len(self._last) > PUBLISHERS_KNOWN_MAX:
            del self._last[next(iter(self._last))]  # The one known the longest.
        if len(self._last_under) > PUBLISHERS_KNOWN_MAX:
            del self._last_under[next(iter(self._last_under))]
        return last
