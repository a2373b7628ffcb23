"""What a broker has taken in and not confirmed: it confirms what others have confirmed to it.

    a read: 7 messages --> copies to B2 and alice --> both confirm --> the sender is confirmed 7

So a publisher is told that a publication was taken in when every subscriber has it: until then
there is somebody on the way, or the publisher itself, who can send it again.  A broker that fails
loses nothing that was confirmed.  It is back-pressure too: who is not confirmed stops.

The waiting has no cycle.  What came from a hop waits for other hops only, and the overlay is a
tree, so it leads away from the publisher until it ends at a subscriber.

A1  Reads are confirmed in their order, so a confirmation of the last is one of all.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, Protocol, TypeVar


class Answerer(Protocol):
    def has_answered(self, position: int) -> bool:
        """Has this peer confirmed what was put up to there, or is it not waited for?"""
        ...


A = TypeVar("A", bound=Answerer)


class Unanswered(Generic[A]):
    """The reads of one peer that are not confirmed yet."""

    __slots__ = ("_reads", "size_bytes")

    def __init__(self) -> None:
        # (messages received by then, bytes of the read, who has to answer), oldest first.
        self._reads: deque[tuple[int, int, dict[A, int]]] = deque()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._reads)

    def add(self, received: int, size_bytes: int, positions: dict[A, int]) -> None:
        """One more read; its outputs were put up to these positions."""
        self._reads.append((received, size_bytes, positions))
        self.size_bytes += size_bytes

    def settle(self) -> tuple[int, A | None]:
        """Forget the reads that were answered for.

        The result is how many messages the last of them makes, 0 if there is none, and who has to
        answer for the next.
        """
        answered = 0
        while self._reads:
            received, size_bytes, positions = self._reads[0]
            while positions:
                answerer, position = next(iter(positions.items()))
                if not answerer.has_answered(position):
                    return answered, answerer
                del positions[answerer]
            self._reads.popleft()
            self.size_bytes -= size_bytes
            answered = received
        return answered, None

    def clear(self) -> None:
        self._reads.clear()
        self.size_bytes = 0
