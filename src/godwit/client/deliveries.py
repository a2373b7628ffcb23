"""Which publications are new to a client.  Pure.

A publication may reach a client twice: its publisher sends again what a failed broker had not
acknowledged, and during a move both brokers deliver.  A client that moves also receives its own.

D1  The sequence numbers of a publisher arrive in rising order.  A number that does not rise is a
    duplicate.
"""

from __future__ import annotations

from collections.abc import Mapping

from godwit.content.messages import Publication

#: Publishers whose last sequence number is remembered.
PUBLISHERS_KNOWN_MAX = 100_000


class DeliveryMarks:
    """The last sequence number of each publisher, as one client has received them."""

    def __init__(self, client: str, last_sequences: Mapping[str, int] | None = None) -> None:
        """`last_sequences` are those that the client has received already, by publisher."""
        self.duplicates = 0
        self._client = client
        self._last_sequence = dict(last_sequences or {})

    def is_new(self, publication: Publication) -> bool:
        """Whether to deliver it; if so, it is remembered."""
        publisher, sequence = publication.publisher, publication.sequence
        if publisher == self._client:
            return False
        last_sequence = self._last_sequence
        if sequence <= last_sequence.get(publisher, -1):  # D1
            self.duplicates += 1
            return False
        last_sequence[publisher] = sequence
        if len(last_sequence) > PUBLISHERS_KNOWN_MAX:
            del last_sequence[next(iter(last_sequence))]  # The one known the longest.
        return True
