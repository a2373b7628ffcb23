"""What the clients of a simulated broker have received: the last sequence number of each publisher.

It is kept for all clients together, because most of them never move and need no marks of their own.
No publication is kept for it: memory that is used again at once stays in the processor's cache.

L1  The copies of a publication may arrive one group after the other, but those of one publication
    before those of the next.  Until the last group is there, only clients of groups that have
    arrived have the publication.
"""

from __future__ import annotations

from collections.abc import Sequence

from godwit.broker.effects import Deliver
from godwit.broker.stimuli import LocalClient
from godwit.content.messages import Publication


class LastDelivered:
    __slots__ = ("_arriving", "_groups", "sequences")

    def __init__(self) -> None:
        self.sequences: dict[str, int] = {}
        """By publisher, the last publication of which all copies have arrived."""
        self._arriving: Publication | None = None
        self._groups: list[Sequence[LocalClient]] = []
        """The clients that have the publication of which copies arrive in groups."""

    def add_group(self, some: Deliver) -> None:
        """Some copies of a publication have arrived, and others follow."""
        if some.publication is not self._arriving:
            self._arriving = some.publication
            self._groups = []
        self._groups.append(some.to)

    def stop_waiting(self) -> None:
        """The copies that have not left the broker are lost."""
        if self._arriving is not None:
            self.sequences[self._arriving.publisher] = self._arrived(self._arriving)
            self._arriving = None

    def _arrived(self, last: Publication) -> int:
        return max(last.sequence, self.sequences.get(last.publisher, last.sequence))

    def of(self, client: LocalClient) -> dict[str, int]:
        """By publisher, the sequence number up to which the client has all that it is owed."""
        found = dict(self.sequences)
        # Its copy may be under way (L1).  If it gets none, the number before is right as well.
        if self._arriving is not None and any(client in group for group in self._groups):
            found[self._arriving.publisher] = self._arrived(self._arriving)
        return found
