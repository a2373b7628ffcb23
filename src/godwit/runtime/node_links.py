"""The links of one live broker: which are expected, which are there, what is missing elsewhere.

A broker knows which links it was configured with.  Until each of them has been up and has told
all, nothing comes into effect (overlay/tree/resync.py).  One that has not been up within `link_s`
from the start is given up, as a neighbour that was lost is after that time: things come into effect
without it, and it may join later.

Brokers tell each other the state of their links (overlay/link_states.py), so each of them can say
which brokers are missing, and where; and refuse a link that would close a cycle, at the call or
while it is pending (overlay/link_proposals.py).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING

from godwit.broker.stimuli import LinkDown, LinkGivenUp, LinkKind, LinkUp, Loss, Neighbour
from godwit.content.link_messages import (
    LinkEnd,
    LinkMessage,
    LinkStatus,
    MissingBroker,
    NetworkStatus,
)
from godwit.errors import PeerError
from godwit.overlay.link_proposals import LinkProposals, LinkStep
from godwit.overlay.link_states import Letters, LinkStates
from godwit.protocol.connection import Connection
from godwit.protocol.frames import Goodbye, Hello, Welcome, encode
from godwit.runtime.giving_up import loss_of
from godwit.runtime.port import LinkPort, because

if TYPE_CHECKING:
    from godwit.runtime.broker_node import BrokerNode

log = logging.getLogger("godwit.links")

#: A link that one end has given up is made anew: others may have taken its place meanwhile.
GIVEN_UP_THERE = "the neighbour had given up the link"


class ClosesCycle(PeerError):  # noqa: N818  An answer to the caller, not an error of ours.
    """Why a caller's link is refused."""


class AlreadyLinked(PeerError):  # noqa: N818  As above.
    """There is a connection with the caller, or with another broker of its name."""

    def __init__(self, broker: str) -> None:
        super().__init__(f"broker {broker} is linked already; each broker needs an id of its own")


class NodeLinks:
    def __init__(
        self,
        node: BrokerNode,
        neighbours: Iterable[str],
        addresses: Iterable[str],
        lane: int = 0,
    ) -> None:
        """`addresses` are those of configured neighbours whose names are not known yet."""
        self.lane = lane
        self.expected = {self._hop(name) for name in neighbours}
        """Configured neighbours, also while they are linked."""
        self._node = node
        addresses = list(addresses)
        self._addresses = frozenset(addresses)
        self._names: dict[str, str] = {}
        """The names of neighbours that are configured by address."""
        self._awaited = dict.fromkeys(
            sorted([*addresses, *(neighbour.name for neighbour in self.expected)])
        )
        """Names and addresses of configured neighbours that have not been linked or given up."""
        self._given_up: set[str] = set()
        """Names and addresses of neighbours whose links were up or awaited, and are no longer."""
        self._troubles: dict[str, str] = {}
        """Why the last call has failed, by the name or address that this broker calls."""
        self._states = LinkStates(node.name, self._awaited)
        self._proposals = LinkProposals(
            self._states,
            run=secrets.token_hex(4),
            refuses_cycles=not self._is_structured,
        )

    @property
    def _is_structured(self) -> bool:
        """Whether the links of this epoch follow from a structure, and may form cycles."""
        broker = self._node.broker
        if broker.epochs is not None:
            return broker.epochs.is_structured(self.lane)
        return broker.structure is not None

    def _why_not(self, name: str) -> str | None:
        """Why a link with this broker is refused."""
        broker = self._node.broker
        if broker.epochs is not None:
            return broker.epochs.why_not(self._hop(name))
        return None if broker.structure is None else broker.structure.why_not_linked(name)

    def _hop(self, name: str) -> Neighbour:
        return Neighbour(name, self.lane)

    # -- new links -----------------------------------------------------------------------------

    def is_expected(self, link: str) -> bool:
        """Whether the link is configured by name, and has not been up or given up."""
        return link in self._awaited and self._hop(link) in self.expected

    def has_given_up(self, link: str) -> bool:
        """Whether the link was given up, and has not been up since."""
        return link in self._given_up or self.name_of(link) in self._given_up

    def name_of(self, link: str) -> str:
        """The name of a neighbour that is configured by its name, or by its address."""
        return self._names.get(link, link)

    def turn_of(self, hello: Hello) -> int:
        """The turn of a caller's link; 0 if it is up at once.  Raises ClosesCycle.

        The link that there was, which the caller has given up, is given up here as well.
        """
        if hello.link is LinkKind.SOFT:
            return 0
        reason = self._why_not(hello.name)
        if reason is not None:
            raise PeerError(reason)
        refusal = self._proposals.refusal(hello.name)
        if refusal is not None:
            raise ClosesCycle(refusal)
        present = self._node.ports.get(self._hop(hello.name))
        if present is not None:
            self._node.remove(present, GIVEN_UP_THERE)
        is_configured = hello.is_expected and self.is_expected(hello.name)
        return 0 if is_configured else self._proposals.next_turn()

    def answered(self, port: LinkPort, turn: int) -> None:
        """A caller's link is pending."""
        self._perform(self._proposals.answered(port.hop.name, turn))

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
        if not node.epochs.wants(self._hop(welcome.name)):
            raise PeerError("the epoch of the link has ended during the call")
        if known is not None and known.stream.id == welcome.stream:
            if node.ports.get(known.hop) is not known:
                raise PeerError("the stream was given up during the call")
            node.attach(known, connection, welcome.received)
            return known
        hop = self._hop(welcome.name)
        present = node.ports.get(hop)
        if present is not None and present.is_connected:
            raise PeerError(f"broker {welcome.name} is linked already")
        if welcome.received:
            raise PeerError(f"claims to have {welcome.received} frames of a new stream")
        if known is not None and known.hop != hop:
            node.remove(known, "another broker answers in its place")
        if known is None and welcome.was_known:
            node.recovery.begin()
        if present is not None and welcome.turn:
            node.remove(present, GIVEN_UP_THERE)
        port = node.open(hop, welcome.stream)
        assert isinstance(port, LinkPort)
        port.kind, port.dialled_at = kind, where
        node.attach(port, connection, welcome.received, is_pending=welcome.turn > 0)
        if welcome.turn:
            self._perform(self._proposals.dialled(hop.name, welcome.turn))
        return port

    def on_trouble(self, where: str, trouble: str) -> None:
        """A call has failed, or with "" has not: this is the reason if the link is given up."""
        self._troubles[where] = trouble
        for port in self._node.ports.values():
            if not isinstance(port, LinkPort) or port.hop.lane != self.lane:
                continue
            if where in (port.hop.name, port.dialled_at):
                port.trouble = trouble

    def on_refused(self, where: str, broker: str) -> None:
        """A link that we made would close a cycle: its ends are linked otherwise."""
        if where in self._awaited:
            self._give_up(where)
        if where in self._addresses:
            self._send(self._states.forget(where))
            self._end_gap(where, broker)

    def _end_gap(self, where: str, broker: str) -> None:
        """A broker that was missed by its address is there: a check in its direction ends that."""
        hop, missing = self._hop(where), self._node.broker.parts.missing.values()
        way = self._states.way(broker)
        if way and any(part.direction == hop for part in missing):
            self._node.stimulate(LinkGivenUp(hop, reached_over=self._hop(way[1])))

    def linked(self, where: str, broker: str) -> LinkPort | None:
        """The broker that we called says that the two are linked: it has called us before.

        The answer is its link; None if there is none here, or not yet.
        """
        port = self._node.ports.get(self._hop(broker))
        if not isinstance(port, LinkPort) or not port.is_connected or port.is_pending:
            return None
        if where in self._addresses and self._names.get(where) != broker:
            self._know(where, self._hop(broker))
        return port

    # -- links come and go ---------------------------------------------------------------------

    def on_attached(self, port: LinkPort, *, knows_us: bool) -> None:
        """A neighbour whose link is up is connected; `knows_us` if it resumes its stream."""
        if port.kind is LinkKind.SOFT:
            return
        name = port.hop.name
        if knows_us:
            self._send(self._states.set(name, LinkStatus.UP))
        else:
            self._perform(self._proposals.restarted(name))
            self._on_up(port)

    def _on_up(self, port: LinkPort) -> None:
        """A link is up: it is not awaited any longer, and known by its name."""
        self._awaited.pop(port.hop.name, None)
        address = port.dialled_at
        self._given_up -= {port.hop.name, address}
        if address in self._addresses:
            self._know(address, port.hop)

    def _know(self, address: str, neighbour: Neighbour) -> None:
        """The neighbour that is configured by this address is linked."""
        self._awaited.pop(address, None)
        self._names[address] = neighbour.name
        self.expected.add(neighbour)
        self._send(self._states.forget(address))
        self._node.stimulate(LinkGivenUp(self._hop(address), known_as=neighbour))

    def on_away(self, port: LinkPort) -> None:
        if port.kind is not LinkKind.SOFT:
            self._send(self._states.set(port.hop.name, LinkStatus.AWAY))

    def on_removed(self, port: LinkPort, reason: str, *, for_good: bool) -> None:
        """A link is down; with `for_good` the neighbour has been drained, and is not missing.

        What was queued is acknowledged after this: publishers are told first what is missing.
        """
        node = self._node
        if port.was_attached and not port.is_pending:  # Else nothing has relied on it.
            loss = loss_of(port, node.broker.routing, reason, for_good=for_good)
            if loss is not None:
                node.dropped["link lost"] += sum(loss.publications.values())
            node.stimulate(LinkDown(port.hop, loss))
        port.decided.set()
        if not port.was_attached or port.kind is LinkKind.SOFT:
            return
        if for_good:
            self.expected.discard(port.hop)
        name = port.hop.name
        if not port.is_pending:
            self._given_up.add(name)
        if name in self._awaited:
            self._send(self._states.set(name, LinkStatus.EXPECTED))
        elif port.hop in self.expected:
            self._send(self._states.set(name, LinkStatus.GIVEN_UP))
        else:
            self._send(self._states.forget(name))
        self._perform(self._proposals.gone(name))

    def expect_no_longer(self, neighbour: Neighbour) -> None:
        """The link was taken out of the configuration."""
        self.expected.discard(neighbour)
        if neighbour not in self._node.ports:
            self._awaited.pop(neighbour.name, None)
            self._node.stimulate(LinkGivenUp(neighbour))
            self._send(self._states.forget(neighbour.name))
            self._perform(self._proposals.gone(neighbour.name))

    def give_up_expected(self) -> None:
        """Configured links that have not been up by now are not waited for any longer."""
        limit_s = self._node.limits.link_s
        for link in list(self._awaited):
            reason = because(f"no link within {limit_s:g} s", self._troubles.get(link, ""))
            log.warning("gave up", extra={"neighbour": link, "reason": reason})
            self._give_up(link, Loss(self._node.now_s() - limit_s, reason))

    def _give_up(self, link: str, loss: Loss | None = None) -> None:
        """Without `loss` nothing is missing: its ends are linked otherwise."""
        del self._awaited[link]
        self._given_up.add(link)
        if self._hop(link) not in self._node.ports:  # Else it is pending.
            self._send(self._states.set(link, LinkStatus.GIVEN_UP))
            self._perform(self._proposals.gone(link))
        self._node.stimulate(LinkGivenUp(self._hop(link), loss))

    # -- what the network is like --------------------------------------------------------------

    def receive(self, source: LinkPort, message: LinkMessage) -> None:
        self._perform(self._proposals.receive(message, source.hop.name))

    @property
    def own(self) -> tuple[LinkEnd, ...]:
        """The links of this broker, with their states."""
        return self._states.own.links

    @property
    def missing(self) -> list[MissingBroker]:
        """Brokers that are configured and not there, here or elsewhere in the network."""
        return self._states.missing()

    def status(self, number: int = 0) -> NetworkStatus:
        node, missing = self._node, tuple(self.missing)
        there = self._states.there()
        # A part that is linked again is back when all behind it have the tables (broker/parts.py).
        is_returning = any(part.broker in there for part in node.broker.parts.missing)
        is_complete = not missing and not is_returning and not node.is_recovering
        return NetworkStatus(
            number=number,
            is_complete=is_complete and node.broker.routing.is_complete,
            missing=missing,
        )

    def _perform(self, step: LinkStep) -> None:
        self._send(step.letters)
        ports = self._node.ports
        for name in step.up:
            port = ports[self._hop(name)]
            assert isinstance(port, LinkPort)
            port.is_pending = False
            self._node.stimulate(LinkUp(port.hop, port.kind))
            self._on_up(port)
            port.decided.set()
        for name, reason in step.refused:
            port = ports[self._hop(name)]
            assert isinstance(port, LinkPort)
            port.refusal = reason
            if port.connection is not None:
                port.connection.close(Goodbye(reason=reason, closes_cycle=True))
            port.detach()
            self._node.remove(port, reason)

    def _send(self, letters: Letters) -> None:
        for name, message in letters:
            port = self._node.ports.get(self._hop(name))
            if port is not None:  # Else it is being removed.
                port.put(encode(message))
                port.flush()
