"""How a live broker finds out that it has failed, and recovers.

Peers that ask for a stream of an earlier run remember it.  What waits meanwhile: recovery.py.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from godwit.broker.stimuli import (
    ClientsReturned,
    LinkKind,
    Loss,
    Neighbour,
    Recovered,
    Recovering,
)
from godwit.content.messages import Sweep
from godwit.protocol.frames import Hello
from godwit.runtime.port import LinkPort, Port
from godwit.runtime.recovery import Recovery

if TYPE_CHECKING:
    from godwit.runtime.broker_node import BrokerNode

log = logging.getLogger("godwit.node")


class NodeRecovery:
    def __init__(self, node: BrokerNode) -> None:
        self.held: Recovery | None = None
        """What waits, while the broker recovers."""
        self._node = node
        self._may_have_failed = True
        """Cleared after `link_s`: by then peers have given up an earlier run of this broker."""
        self._has_failed = False
        """A peer remembers an earlier run."""
        self._found_s = 0.0
        """When this broker found out, by the loop's clock."""
        self._ended: set[str] = set()
        """Streams that have ended meanwhile: they are not of an earlier run."""

    @property
    def is_new(self) -> bool:
        """Whether peers may still remember an earlier run."""
        return self._may_have_failed or self.held is not None

    def has_lost(self, hello: Hello) -> bool:
        """Whether the caller's stream is one of an earlier run of this broker."""
        return self.is_new and hello.has_holdings and hello.stream not in ("", *self._ended)

    def keeps_all_for(self, hello: Hello) -> bool:
        """Do neighbours keep what a client lacks that is back after a failure of this broker?"""
        recovery = self.held
        if recovery is None or recovery.clients_are_back or hello.stream in self._ended:
            return False
        node = self._node
        return hello.away_s < node.limits.link_s and not node.broker.parts.gaps

    def outdates(self, sweep: Sweep) -> bool:
        """Whether the client may have begun to move before this broker failed.

        Then publications that the sweep has to follow may have been lost here, and be on their way
        again from any direction, behind the sweep.  It is discarded, and the client does not move.
        """
        began_s = asyncio.get_running_loop().time() - sweep.age_s
        return self._has_failed and began_s < self._found_s

    def on_removed(self, port: Port) -> None:
        if self.is_new:
            self._ended.add(port.stream.id)

    def begin(self) -> None:
        """A peer remembers this broker, which has lost its state: it has failed."""
        if self._has_failed or not self._may_have_failed:
            return
        node, loop = self._node, asyncio.get_running_loop()
        self._has_failed, self._found_s = True, loop.time()
        log.warning("recovering", extra={"broker": node.name})
        self.held = Recovery(window_bytes=node.limits.window_bytes)
        loop.call_later(node.limits.restart_s, self._on_clients_returned)
        loop.call_later(node.limits.link_s, self.on_took_too_long)
        node.stimulate(Recovering())

    def _on_clients_returned(self) -> None:
        if self.held is not None:
            self.held.clients_are_back = True
            self._node.stimulate(ClientsReturned())

    def on_known(self) -> None:
        """Peers of an earlier run would have called by now."""
        self._may_have_failed = False
        self._node.epochs.give_up_expected()

    def on_took_too_long(self) -> None:
        if self.held is not None:
            self.held.has_taken_too_long = True
            self.end_if_over()

    def end_if_over(self) -> None:
        recovery, node = self.held, self._node
        if recovery is None:
            return
        links = [port for port in node.ports.values() if isinstance(port, LinkPort)]
        used = [port for port in links if not port.is_pending and port.kind is not LinkKind.SOFT]
        linked: set[Neighbour] = {port.hop for port in used}
        is_complete = node.broker.routing.is_complete or node.epochs.has_nothing_to_learn
        if not recovery.is_over(node.epochs.expected, linked, is_complete=is_complete):
            return
        self.held = None
        log.info("recovered", extra={"broker": node.name})
        loss = Loss(node.now_s() - node.limits.link_s, "did not send all its tables in time")
        node.stimulate(Recovered({} if is_complete else dict.fromkeys(linked, loss)))
        recovery.hand_over(node)
        node.read_paths()
