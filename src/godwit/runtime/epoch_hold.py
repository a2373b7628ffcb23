"""What a live broker holds, unacknowledged, while the network changes its shape.

    of the next epoch     publications and sweeps, and whatever follows them on their link, until
                          the old epoch has drained (E3 in overlay/epochs/epoch_routing.py)
    of a local publisher  what is handled after the flip, until all before is acknowledged: should
                          this broker fail, the client sends those again, in the next epoch, and
                          later ones must not have been there before

What waited at the flip because of another path (path_hold.py) was not handled before it.  It stays
there until the gate of its client is open, in front of what has come later.

What is held is not acknowledged: if this broker fails, it will be sent again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from godwit.broker.routing import Reshapable
from godwit.content.messages import OtherMessage, Publication
from godwit.runtime.held_messages import HeldMessages
from godwit.runtime.peer_reader import Arrived, MessageHandler
from godwit.runtime.port import Port


class EpochHold:
    def __init__(self, epochs: Reshapable, *, window_bytes: int) -> None:
        self._epochs = epochs
        self._held = HeldMessages(window_bytes=window_bytes)
        self._gates: dict[Port, int] = {}
        """Clients, and how many of their frames have to be acknowledged first."""

    @property
    def is_empty(self) -> bool:
        return not self._held and not self._gates

    def holds(self, source: Port) -> bool:
        return source in self._held

    def takes_run(self, source: Port, run: Sequence[Arrived]) -> bool:
        """Keep publications that have to wait; False if they have not."""
        if source not in self._held and not self._starts(source, run[0][0]):
            return False
        for arrived in run:
            self._held.hold(source, arrived)
        return True

    def takes(self, source: Port, message: OtherMessage, hops: int, body: bytes) -> bool:
        """As `takes_run`, for another message."""
        if source not in self._held and not self._starts(source, message):
            return False
        self._held.hold(source, (message, hops, body))
        return True

    def _starts(self, source: Port, message: Publication | OtherMessage) -> bool:
        if source in self._gates:
            return isinstance(message, Publication)
        return self._epochs.starts_hold(message, source.hop)

    def forget(self, source: Port) -> None:
        """The peer is gone, or will send it all again."""
        self._held.forget(source)
        self._gates.pop(source, None)

    # -- the flip ------------------------------------------------------------------------------

    def gate(self, clients: Iterable[tuple[Port, int]]) -> None:
        """Local publications go to the next epoch now; with each client: what waits of it."""
        for port, waiting in clients:
            handled = port.stream.received - waiting
            if handled > port.acknowledged:
                self._gates[port] = handled

    def has_gate(self, source: Port) -> bool:
        return source in self._gates

    def is_settled(self, port: Port) -> bool:
        """Whether all that a client published before the flip is acknowledged."""
        first = self._gates.get(port)
        return first is not None and port.acknowledged >= first

    def open_gate(self, port: Port, handler: MessageHandler) -> None:
        if self._gates.pop(port, None) is not None:
            self._held.hand_over(port, handler)

    # -- the end of the old epoch --------------------------------------------------------------

    def drop_lane(self, lane: int, handler: MessageHandler) -> None:
        """An epoch is over: what came on its lane is forgotten, what came on the other handled."""
        for port in [port for port in self._held if port.is_link]:
            if getattr(port.hop, "lane", None) == lane:
                self.forget(port)
            else:
                self._held.hand_over(port, handler)
