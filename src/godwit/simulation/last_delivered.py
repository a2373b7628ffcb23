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
    __slots__ = ("_before", "_groups", "_last")

    def __init__(self) -> None:
        self._before: dict[str, int] = {}
        """Of all publications before the last."""
        self._last: Publication | None = None
        self._groups: list[Sequence[LocalClient]] = []
        """Of the last publication, those that have arrived."""

    def add(self, deliver: Deliver) -> None:
        last = self._last
        if deliver.publication is last:
            self._groups.append(deliver.to)
            return
        if last is not None:
            self._before[last.publisher] = last.sequence
        self._last = deliver.publication
        self._groups = [deliver.to]

    def of(self, client: LocalClient) -> dict[str, int]:
        """By publisher, the sequence number up to which the client has all that it is owed."""
        found = dict(self._before)
        # Its copy may be under way (L1).  If it gets none, the number before is right as well.
        if self._last is not None and any(client in group for group in self._groups):
            found[self._last.publisher] = self._last.sequence
        return found
