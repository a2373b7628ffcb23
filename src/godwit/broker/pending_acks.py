"""Acknowledgement: a broker acknowledges what others have acknowledged to it.

    a read: 7 messages --> copies to B2 and alice --> both acknowledge --> 7 are acknowledged

So a publication is acknowledged to its publisher when every subscriber has it.  Until then some
broker on its way, or the publisher itself, can send it again: a broker that fails loses nothing
that was acknowledged.  It is back-pressure, too: a peer that gets no acknowledgements stops.

The driver reports what it handled, what peers acknowledged and which peers it does not wait for.
The results are what to acknowledge now.  A peer is any key: a hop, a port.  Messages of a peer and
copies for it are counted from 1, in the order in which they are received and put.

The waiting has no cycle.  What came from a peer waits for other peers only, and the overlay is a
tree, so it leads away from the publisher until it ends at a subscriber.

A1  Reads of a peer are acknowledged in their order, so acknowledging the last one covers all.
A2  A peer is waited for from `open` to `close`, except while it is excused.
A3  A peer with unsettled reads is a waiter of exactly one other, and settled when that one has
    acknowledged something, is excused or closed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable
from typing import Generic, TypeAlias, TypeVar

K = TypeVar("K", bound=Hashable)

#: How far a peer can be acknowledged: the peer; how many of its messages, of all since `open`; the
#: peer that its next read begins to wait for; bytes of its reads that are not settled.
Settled: TypeAlias = tuple[K, int, K | None, int]


class _Peer(Generic[K]):
    __slots__ = ("answered", "is_excused", "reads", "received", "size_bytes", "waiters")

    def __init__(self) -> None:
        self.reads: deque[tuple[int, int, dict[K, int]]] = deque()
        """Unsettled: messages received by then, bytes, and the copies: peers and positions."""
        self.received = 0
        """Messages that were settled."""
        self.size_bytes = 0
        self.answered = 0
        """Up to where it has acknowledged its copies."""
        self.is_excused = False
        self.waiters: dict[K, None] = {}
        """Peers whose oldest read waits for this one."""


class PendingAcks(Generic[K]):
    """What one broker has handled and not acknowledged."""

    __slots__ = ("_peers",)

    def __init__(self) -> None:
        self._peers: dict[K, _Peer[K]] = {}

    def open(self, peer: K) -> None:
        """A peer from which messages come, and which acknowledges its copies."""
        self._peers[peer] = _Peer()

    def close(self, peer: K) -> list[Settled[K]]:
        """Forget a peer: what came from it, and that anything waits for it."""
        gone = self._peers.pop(peer, None)
        return [] if gone is None else self._released(gone)

    def restart(self, peer: K, position: int) -> list[Settled[K]]:
        """The peer has lost its state: it sends again from 1, and lacks copies after `position`."""
        found = self._peers[peer]
        found.reads.clear()
        found.received = found.size_bytes = 0
        return self.acknowledged(peer, position)

    def handled(
        self, source: K, received: int, size_bytes: int, positions: dict[K, int]
    ) -> Settled[K]:
        """All messages up to `received` were handled; copies were put up to these positions."""
        found = self._peers.get(source)
        if found is None:
            return source, 0, None, 0  # Closed by one of these messages.
        found.reads.append((received, size_bytes, positions))
        found.size_bytes += size_bytes
        if len(found.reads) > 1:  # A1, A3
            return source, found.received, None, found.size_bytes
        return self._settle(source, found)

    def acknowledged(self, peer: K, position: int) -> list[Settled[K]]:
        """A peer has acknowledged its copies up to `position`."""
        found = self._peers[peer]
        found.answered = position
        return self._released(found)

    def excuse(self, peer: K) -> list[Settled[K]]:
        """Do not wait for a peer until it is expected again."""
        found = self._peers[peer]
        found.is_excused = True
        return self._released(found)

    def expect(self, peer: K) -> None:
        """Wait for a peer that was excused."""
        self._peers[peer].is_excused = False

    def replace(self, peer: K, positions: dict[K, int]) -> None:
        """What a peer has not acknowledged was sent to others: wait for these in its place.

        The peer is closed next, which settles what waits for it.
        """
        answered = self._peers[peer].answered
        for source, found in self._peers.items():
            for *_, awaited in found.reads:
                if awaited.get(peer, 0) > answered:
                    for other, position in positions.items():
                        if other != source:
                            awaited[other] = max(awaited.get(other, 0), position)

    def reads(self, source: K) -> int:
        """Reads of a peer that are not settled."""
        return len(self._peers[source].reads)

    def waiters(self, peer: K) -> Collection[K]:
        """Peers whose acknowledgement waits for this one."""
        return self._peers[peer].waiters

    def _released(self, found: _Peer[K]) -> list[Settled[K]]:
        if not found.waiters:
            return []
        waiters, found.waiters = found.waiters, {}
        peers = self._peers
        return [self._settle(each, peers[each]) for each in waiters if each in peers]

    def _settle(self, source: K, found: _Peer[K]) -> Settled[K]:
        """Forget reads whose copies all are acknowledged, up to the first that waits."""
        reads, peers = found.reads, self._peers
        while reads:
            received, size_bytes, positions = reads[0]
            while positions:
                for key, position in positions.items():  # noqa: B007  The first, faster than iter.
                    break
                peer = peers.get(key)
                if peer is not None and peer.answered < position and not peer.is_excused:
                    peer.waiters[source] = None
                    return source, found.received, key, found.size_bytes
                del positions[key]
            reads.popleft()
            found.size_bytes -= size_bytes
            found.received = received
        return source, found.received, None, 0
