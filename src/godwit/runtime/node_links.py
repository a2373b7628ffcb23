"""The links of one live broker: which are expected, which are there, what is missing elsewhere.

A broker knows which links it was configured with.  Until each of them has been up and has told
all, nothing comes into effect (overlay/tree/resync.py).  One that has not been up within `link_s`
from the start is given up, as a neighbour that was lost is after that time: things come into effect
without it, and it may join later.

Brokers tell each other the state of their links (overlay/link_states.py), so each of them can say
which brokers are missing, and where.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from godwit.broker.stimuli import LinkGivenUp, LinkKind, Loss, Neighbour
from godwit.content.link_messages import LinkMessage, LinkStatus, MissingBroker, NetworkStatus
from godwit.errors import PeerError
from godwit.overlay.link_states import Letters, LinkStates
from godwit.protocol.connection import Connection
from godwit.protocol.frames import Welcome, encode
from godwit.runtime.port import LinkPort

if TYPE_CHECKING:
    from godwit.runtime.broker_node import BrokerNode

log = logging.getLogger("godwit.links")


class NodeLinks:
    def __init__(
        self, node: BrokerNode, neighbours: Iterable[str], addresses: Iterable[str]
    ) -> None:
        """`addresses` are those of configured neighbours whose names are not known yet."""
        self.expected = set(map(Neighbour, neighbours))
        """Configured neighbours, also while they are linked."""
        self._node = node
        self._addresses = set(addresses)
        self._names: dict[str, str] = {}
        names = [neighbour.name for neighbour in self.expected]
        self._states = LinkStates(node.name, sorted([*names, *self._addresses]))

    # -- calling -------------------------------------------------------------------------------

    def link(
        self,
        welcome: Welcome,
        connection: Connection,
        known: LinkPort | None,
        kind: LinkKind,
        *,
        where: str,
    ) -> LinkPort:
        """A neighbour that we called has answered; `known` has the stream we asked for."""
        node = self._node
        if known is not None and known.stream.id == welcome.stream:
            if node.ports.get(known.hop) is not known:
                raise PeerError("the stream was given up during the call")
            node.attach(known, connection, welcome.received)
            return known
        hop = Neighbour(welcome.name)
        present = node.ports.get(hop)
        if present is not None and present.is_connected:
            raise PeerError(f"broker {welcome.name} is linked already")
        if welcome.received:
            raise PeerError(f"claims to have {welcome.received} frames of a new stream")
        if known is not None and known.hop != hop:
            node.remove(known, "another broker answers in its place")
        if known is None and welcome.was_known:
            node.recover()
        port = node.open(hop, welcome.stream)
        assert isinstance(port, LinkPort)
        port.kind = kind
        node.attach(port, connection, welcome.received)
        self._on_named(where, hop)
        return port

    def _on_named(self, address: str, neighbour: Neighbour) -> None:
        """The neighbour at an address is linked: it is expected by its name from now on."""
        if address in self._addresses:
            self._addresses.discard(address)
            self._names[address] = neighbour.name
            self.expected.add(neighbour)
            self._send(self._states.forget(address))
            self._node.stimulate(LinkGivenUp(Neighbour(address), known_as=neighbour))

    def name_of(self, link: str) -> str:
        """The name of a neighbour that is configured by its name, or by its address."""
        return self._names.get(link, link)

    # -- links come and go ---------------------------------------------------------------------

    def on_attached(self, port: LinkPort, *, knows_us: bool) -> None:
        """A neighbour is connected; `knows_us` if it resumes its stream."""
        if port.kind is LinkKind.SOFT:
            return
        name = port.hop.name
        if knows_us:
            self._send(self._states.set(name, LinkStatus.UP))
        else:
            self._send(self._states.link(name))

    def on_away(self, port: LinkPort) -> None:
        if port.kind is not LinkKind.SOFT:
            self._send(self._states.set(port.hop.name, LinkStatus.AWAY))

    def on_removed(self, port: LinkPort, *, for_good: bool) -> None:
        """A link is down; with `for_good` the neighbour has been drained, and is not missing."""
        if port.kind is LinkKind.SOFT:
            return
        if for_good:
            self.expected.discard(port.hop)
        if port.hop in self.expected:
            self._send(self._states.set(port.hop.name, LinkStatus.GIVEN_UP))
        else:
            self._send(self._states.forget(port.hop.name))

    def expect_no_longer(self, neighbour: Neighbour) -> None:
        """The link was taken out of the configuration."""
        self.expected.discard(neighbour)
        if neighbour not in self._node.ports:
            self._node.stimulate(LinkGivenUp(neighbour))
            self._send(self._states.forget(neighbour.name))

    def give_up_expected(self) -> None:
        """Configured links that have not been up by now are not waited for any longer."""
        limit_s = self._node.limits.link_s
        loss = Loss(self._node.now_s() - limit_s, f"no link within {limit_s:g} s")
        for name in self._states.expected:
            log.warning(
                "gave up",
                extra={
                    "broker": self._node.name,
                    "neighbour": name,
                    "reason": loss.reason,
                },
            )
            self._send(self._states.set(name, LinkStatus.GIVEN_UP))
            self._node.stimulate(LinkGivenUp(Neighbour(name), loss))

    # -- what the network is like --------------------------------------------------------------

    def receive(self, source: LinkPort, message: LinkMessage) -> None:
        self._send(self._states.receive(message, source.hop.name))

    @property
    def missing(self) -> list[MissingBroker]:
        """Brokers that are configured and not there, here or elsewhere in the network."""
        return self._states.missing()

    def status(self, number: int = 0) -> NetworkStatus:
        node, missing = self._node, tuple(self.missing)
        is_complete = node.broker.routing.is_complete and not node.is_recovering and not missing
        return NetworkStatus(number=number, is_complete=is_complete, missing=missing)

    def _send(self, letters: Letters) -> None:
        for name, message in letters:
            port = self._node.ports.get(Neighbour(name))
            if port is not None:  # Else it is being removed.
                port.put(encode(message))
                port.flush()
