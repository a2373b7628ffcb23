"""What a live broker holds, unacknowledged, because it would overtake what is on another path.

Only with a router that has several paths (`broker.routing.Multipath`): it says which publication
has to wait.  Whatever follows that one from the same peer waits, too, so streams keep their order.
When a neighbour acknowledges something, the router is told, and the first ones are tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from godwit.broker.routing import Multipath
from godwit.broker.stimuli import Acknowledged, LinkKind, Undelivered
from godwit.content.messages import OtherMessage, Publication
from godwit.runtime.held_messages import HeldMessages
from godwit.runtime.peer_reader import Arrived
from godwit.runtime.port import LinkPort, Port

if TYPE_CHECKING:
    from godwit.runtime.broker_node import BrokerNode


class PathHold:
    def __init__(self, node: BrokerNode, paths: Multipath) -> None:
        self._node = node
        self._paths = paths
        self._held = HeldMessages(window_bytes=node.limits.window_bytes)
        self.waited = 0
        """Publications that had to wait, since the start."""

    def count(self, source: Port) -> int:
        """Messages of a peer that are held."""
        return self._held.count(source)

    def takes(self, source: Port, message: OtherMessage, hops: int, body: bytes) -> bool:
        """Keep a message behind those that wait; False if none does."""
        if source not in self._held:
            return False
        self._held.hold(source, (message, hops, body))
        return True

    def passing(self, source: Port, run: Sequence[Arrived], now_s: float) -> Passing:
        """Those of a run that need not wait; the others are kept."""
        return Passing(self, source, run, now_s)

    def has_to_wait(self, source: Port, publication: Publication, now_s: float) -> bool:
        if source in self._held:
            return True
        if not self._paths.has_to_wait(publication, source.hop, now_s):
            return False
        self.waited += 1
        return True

    def hold_all(self, source: Port, run: Sequence[Arrived]) -> None:
        for arrived in run:
            self._held.hold(source, arrived)

    def forget(self, source: Port) -> None:
        """The peer is gone, or will send it all again."""
        self._held.forget(source)

    # -- links ---------------------------------------------------------------------------------

    def on_acknowledged(self, link: LinkPort) -> None:
        """The router may use other paths now, and what waits may go on."""
        answered = link.stream.answered
        if not self._paths.counts(link.hop):
            return  # Of an epoch with one path between any two brokers.
        if answered != link.told and not link.is_pending:
            link.told = answered
            self._node.stimulate(Acknowledged(link.hop, answered))
            self.retry_soon()

    def on_removed(self, link: LinkPort) -> None:
        """A link is gone: what a soft one did not deliver takes another way."""
        node = self._node
        if link.kind is LinkKind.SOFT:
            for publication, hops in link.undelivered():
                copy = Undelivered(link.hop, publication, hops)
                node.outbox.detour(link, node.broker.handle(copy, now_s=node.now_s()))
        self.retry_soon()

    def retry_soon(self) -> None:
        """Try again what waits; not in the middle of a read."""
        if self._held:
            asyncio.get_running_loop().call_soon(self._retry)

    def _retry(self) -> None:
        """Hand over what need not wait any longer."""
        now_s = self._node.now_s()
        if self._node.recovery.held is not None:
            return  # What has come meanwhile would be in front.
        for source in self._held:
            # It may be forgotten, because of one that was handed over before.
            if source not in self._held or self._has_gate(source):
                continue
            first = self._held.first(source)
            if isinstance(first, Publication) and self._paths.has_to_wait(first, source.hop, now_s):
                continue
            self._held.hand_over(source, self._node)

    def _has_gate(self, source: Port) -> bool:
        """Whether it waits for the end of an epoch; what has come later does, too."""
        return self._node.hold is not None and self._node.hold.has_gate(source)


class Passing:
    """Iterates over publications until one has to wait; that one and those behind it are held."""

    def __init__(self, hold: PathHold, source: Port, run: Sequence[Arrived], now_s: float) -> None:
        self._hold = hold
        self._source = source
        self._run = run
        self._now_s = now_s
        self._next = 0
        self.held: Sequence[Arrived] = ()

    def __iter__(self) -> Iterator[Arrived]:
        return self

    def __next__(self) -> Arrived:
        if self._next == len(self._run):
            raise StopIteration
        arrived = self._run[self._next]
        if self._hold.has_to_wait(self._source, arrived[0], self._now_s):
            self.held = self._run[self._next :]
            self._next = len(self._run)
            self._hold.hold_all(self._source, self.held)
            raise StopIteration
        self._next += 1
        return arrived

    def __length_hint__(self) -> int:
        return len(self._run) - self._next
