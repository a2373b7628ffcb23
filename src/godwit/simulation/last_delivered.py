"""What the clients of a simulated broker have received: the last sequence number of each publisher.

It is kept for all clients together, because most of them never move and need no marks of their own.

L1  The copies of a publication may arrive one group after the other, but those of one publication
    before those of the next.  Only clients of the groups that have arrived have the last one.
"""

from __future__ import annotations

from collections.abc import Sequence

from godwit.broker.effects import Deliver
from godwit.broker.stimuli import LocalClient
from godwit.content.messages import Publication


class LastDelivered:
    __slots__ = ("_before", "_groups", "_last", "_publication")

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._publication: Publication | None = None
        self._before: int | None = None
        """The number before that of the last publication."""
        self._groups: list[Sequence[LocalClient]] = []
        """Of the last publication, those that have arrived."""

    def add(self, deliver: Deliver) -> None:
        publication = deliver.publication
        if publication is not self._publication:
            self._publication = publication
            self._before = self._last.get(publication.publisher)
            self._last[publication.publisher] = publication.sequence
            self._groups = []
        self._groups.append(deliver.to)

    def of(self, client: LocalClient) -> dict[str, int]:
        """By publisher, the sequence number up to which the client has all that it is owed."""
        found = dict(self._last)
        if self._publication is None or any(client in group for group in self._groups):
            return found
        # Its copy may be under way (L1).  If it gets none, the number before is right as well.
        if self._before is None:
            del found[self._publication.publisher]
        else:
            found[self._publication.publisher] = self._before
        return found
