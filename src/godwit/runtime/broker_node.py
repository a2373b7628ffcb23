"""One live broker: its state machine between the ports of its peers.

    reader --> receive, receive_run --> Broker --> effects --> outbox: frames are put
           --> finish_read ------------------------------------> outbox: written, acknowledged

The shape is that of `simulation.simulated_broker`, with real queues and real time.  All messages
of one read are handled, and then every port that got something is written to, once.  Publications
that follow each other are handled together, as a run (`Broker.handle_run`).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import length_hint
from typing import assert_never

from godwit.broker.core import Broker
from godwit.broker.effects import (
    CloseLink,
    DriverEffect,
    Effect,
    LinkEffect,
    NameContested,
    NameGranted,
    NameLost,
    Notify,
    OpenLink,
    Ping,
    Report,
    SetTimer,
    Submit,
)
from godwit.broker.stimuli import (
    ClientArrived,
    ClientLeft,
    ClientsReturned,
    Hop,
    LinkAway,
    LinkRestarted,
    LinkUp,
    LocalClient,
    Loss,
    Module,
    Neighbour,
    Received,
    Recovered,
    Recovering,
    Started,
    Stimulus,
    TimerFired,
)
from godwit.content.channel_messages import ChannelRequest
from godwit.content.link_messages import LinkMessage, StatusRequest
from godwit.content.messages import (
    MoveTo,
    OtherMessage,
    Publication,
    Refusal,
    ResyncDone,
    ResyncScope,
    Sweep,
)
from godwit.errors import PeerError
from godwit.protocol.connection import Connection
from godwit.protocol.frames import Goodbye, Hello, MoveCompleted, RoundTrips, Welcome, encode
from godwit.protocol.stamps import stamp_of
from godwit.runtime.decision_log import Decisions
from godwit.runtime.giving_up import SAID_GOODBYE
from godwit.runtime.live_meters import LiveMeters, LoadSampler, ReadFigures
from godwit.runtime.node_links import AlreadyLinked, NodeLinks
from godwit.runtime.node_names import NodeNames, left
from godwit.runtime.node_tracer import Tracer
from godwit.runtime.outbox import Outbox
from godwit.runtime.output_limiter import OutputLimiter
from godwit.runtime.peer_reader import Arrived, PeerReader
from godwit.runtime.pings import Pinging
from godwit.runtime.port import ClientPort, LinkPort, Port
from godwit.runtime.port_outlet import ask_channels
from godwit.runtime.recovery import Recovery
from godwit.runtime.settings import Limits
from godwit.sharing.live_channels import LiveChannels

log = logging.getLogger("godwit.node")

#: Why a link is ended.
EARLY = "sends messages before the link is in use"


class BrokerNode:
    def __init__(
        self,
        broker: Broker,
        *,
        limits: Limits,
        limiter: OutputLimiter | None = None,
        secret: str = "",
        neighbours: Iterable[str] = (),
        addresses: Iterable[str] = (),
    ) -> None:
        """`neighbours` are configured, and those at `addresses`; others may link, too."""
        self.broker = broker
        self.name = broker.name
        self.limits = limits
        self.limiter = limiter
        assert isinstance(broker.meters, LiveMeters), "the driver closes their windows"
        self.meters = broker.meters
        self.tracer: Tracer | None = None
        self.ports: dict[Hop, Port] = {}
        self.handled: Counter[str] = Counter()
        """Messages handled, by kind."""
        self.dropped: Counter[str] = Counter()
        """Publications that were not passed on, by reason; of present ports only those dropped
        before their queues."""
        self.outbox = Outbox(self.ports, self.dropped, self._arrange)
        self.sampler = LoadSampler(self, self.meters, broker.delays)
        self.decisions = Decisions()
        """Decisions of policies, by policy and action."""
        self.control: Counter[tuple[str, str]] = Counter()
        """Control publications of policies, by policy and class."""
        self.isolations = 0
        """Isolations of clients whose ports are closed."""
        self.refused = 0
        """Connections that broke the protocol, before or after the handshake."""
        self.on_link_effect: Callable[[LinkEffect], None] = _cannot_change_links
        """Opens and closes links for the router; the server sets it."""
        self.callers: set[Connection] = set()
        """Connections whose handshake is not complete."""
        self.is_stopping = False
        self.is_draining = False
        """New clients are refused."""
        self.pinging = Pinging(self.stimulate)
        self.channels: LiveChannels | None = None
        """None without a data cluster."""
        self.names = NodeNames(self)
        self.secret = secret
        self.links = NodeLinks(self, neighbours, addresses)
        self._recovery: Recovery | None = None
        self._may_have_failed = True
        """Cleared after `link_s`: by then peers have given up an earlier run of this broker."""
        self._has_failed = False
        """A peer remembers an earlier run."""
        self._ended: set[str] = set()
        """Streams that have ended meanwhile: they are not of an earlier run."""
        # Wall-clock time that never goes back: comparable between processes, fit for intervals.
        self._clock_offset_s = time.time() - time.monotonic()
        delays = broker.delays if broker.modules else None
        self.figures = ReadFigures(self.meters, delays, self.now_s)

    def now_s(self) -> float:
        return time.monotonic() + self._clock_offset_s

    def start(self) -> None:
        self.stimulate(Started())
        self.sampler.start()
        asyncio.get_running_loop().call_later(self.limits.link_s, self._on_known)

    # -- messages ------------------------------------------------------------------------------

    def receive_run(self, source: Port, run: Sequence[Arrived]) -> None:
        if source.is_pending:
            raise PeerError(EARLY)
        if self._recovery is not None:
            for arrived in run:
                self._recovery.hold(source, arrived)
            return
        figures = self.figures
        now_s = figures.count(len(run), sum([len(body) for *_, body in run]))
        figures.publications += len(run)
        source.traffic.has_published = True
        stamp = None if source.is_link else stamp_of(now_s)
        left = iter(run)
        try:
            outcomes = self.broker.handle_run(left, source.hop, now_s=now_s)
            if self.tracer is not None:
                outcomes = self.tracer.watch(outcomes, run, source.hop, now_s)
            self.outbox.perform_run(outcomes, stamp)
        except Exception:
            # A fault of ours: the peer can send those behind the failed one again.
            source.stream.received -= length_hint(left)
            raise

    def receive(self, source: Port, message: OtherMessage, hops: int, body: bytes) -> None:
        if source.is_pending:
            raise PeerError(EARLY)
        if self._recovery is not None and isinstance(message, Sweep):
            self._recovery.hold(source, (message, hops, body))
            return
        now_s = self.figures.count(1, len(body))
        self.handled[type(message).__name__] += 1
        if isinstance(message, ResyncDone) and message.scope is ResyncScope.NOT_ALL:
            assert isinstance(source, LinkPort)
            if not source.has_restarted:  # Both sides have failed.
                self.recover()
        received = Received(message, source.hop, hops if source.is_link else 0)
        self.outbox.perform(self._handle(received, now_s))

    def finish_read(self, source: Port) -> None:
        """Write what the messages of this read caused, and acknowledge what can be."""
        positions = self.outbox.write()
        recovery = self._recovery
        if recovery is None or not recovery.holds(source):
            self.outbox.on_handled(source, self.figures.size_bytes, positions)
        figures, connection = self.figures, source.connection
        if figures.messages or figures.has_answers:
            if figures.publications:
                self.handled[Publication.__name__] += figures.publications
            figures.finish(time.monotonic() if connection is None else connection.read_start_s)
        if recovery is not None:
            self._end_recovery_if_over(recovery)

    def _handle(self, stimulus: Stimulus, now_s: float) -> list[Effect]:
        if self.tracer is None:
            return self.broker.handle(stimulus, now_s=now_s)
        return self.tracer.handle(self.broker, stimulus, now_s)

    def stimulate(self, stimulus: Stimulus) -> None:
        """Handle anything but a message of a peer; perhaps in the middle of a read."""
        self.outbox.perform_now(self._handle(stimulus, self.now_s()))
        if self._recovery is not None:
            self._end_recovery_if_over(self._recovery)

    def _arrange(self, effect: DriverEffect) -> None:
        """Perform what a module asks of its own broker."""
        loop = asyncio.get_running_loop()
        match effect:
            case Submit(module=module, message=message):
                if isinstance(message, Publication):
                    self.control[module, str(message.content.get("class"))] += 1
                loop.call_soon(self.stimulate, Received(message, Module(module)))
            case SetTimer(module=module, name=name, at_s=at_s):
                delay_s = max(0.0, at_s - self.now_s())
                loop.call_later(delay_s, self.stimulate, TimerFired(module, name))
            case Ping(client=client):
                port = self.ports.get(LocalClient(client))
                self.pinging.ask(effect, port)
                if port is not None:
                    self.outbox.touch(port)
            case Report(policy=policy, decision=decision):
                self.decisions.record(policy, decision)
            case OpenLink() | CloseLink():
                loop.call_soon(self.on_link_effect, effect)
            case NameGranted() | NameLost() | NameContested():
                loop.call_soon(self.names.perform, effect)
            case _:
                assert_never(effect)

    # -- other frames --------------------------------------------------------------------------

    def on_acknowledged(self, source: Port, received: int) -> None:
        if received != source.stream.acknowledged:  # Else it is a heartbeat.
            self.figures.has_answers = True
        source.stream.acknowledge(received)
        self.outbox.on_acknowledged(source)
        if self.channels is not None:
            self._resume_channels(source)

    def excuse(self, port: Port) -> None:
        self.outbox.excuse(port)

    def on_round_trips(self, source: Port, answer: RoundTrips) -> None:
        self.pinging.on_round_trips(source.hop.name, answer)

    def on_link_message(self, source: Port, message: LinkMessage) -> None:
        if isinstance(source, LinkPort):
            self.links.receive(source, message)

    def on_status_request(self, source: Port, request: StatusRequest) -> None:
        source.put(encode(self.links.status(request.number)))
        source.flush()

    def on_move_completed(self, source: Port, completed: MoveCompleted) -> None:
        if isinstance(source.hop, LocalClient):
            arrived = ClientArrived(source.hop, completed.source, completed.session)
            self.stimulate(arrived)

    def ask_to_move(self, client: LocalClient, request: MoveTo) -> None:
        self.ports[client].stayed_reason = None
        self.outbox.perform_now([Notify(client, request)])

    def on_channel_request(self, source: Port, request: ChannelRequest) -> None:
        if self.channels is not None:
            ask_channels(self.channels, source, request, self.limits.window_bytes)
        else:
            reason = f"broker {self.name} has no data cluster, so there are no channels"
            source.put(encode(Refusal(about=request.id, reason=reason)))
            source.flush()

    def _resume_channels(self, port: Port) -> None:
        """A client is back, or has acknowledged something: there may be room for results."""
        if self.channels is not None and not port.is_link:
            self.channels.go_on(port.hop.name)

    # -- peers connect and leave ---------------------------------------------------------------

    def welcome(self, hello: Hello, connection: Connection, generation: int = 0) -> None:
        """Answer a caller that is admitted, and continue or begin its stream."""
        hop = LocalClient(hello.name) if hello.role == "client" else Neighbour(hello.name)
        port = self.ports.get(hop)
        was_known, turn = False, 0
        if port is not None and hello.stream == port.stream.id:
            log.info("resumed", extra={"peer": hop.name, "stream": port.stream.id[:8]})
        else:
            is_own = isinstance(port, ClientPort) and port.incarnation == hello.incarnation != ""
            if port is not None and port.is_connected and not is_own:
                if port.is_link:
                    raise AlreadyLinked(hello.name)
                raise PeerError(f"client {hello.name} is connected already")
            if port is None and self.has_lost(hello):
                self.recover()
            elif hello.role == "broker" and (port is None or hello.has_given_up):
                turn = self.links.turn_of(hello)
            was_known = isinstance(port, LinkPort) and port.is_remembered and not turn
            port = self.open(hop, secrets.token_hex(16))
            if isinstance(port, ClientPort) and hello.incarnation:
                port.claim = left(hello)
        if isinstance(port, ClientPort):
            port.is_durable = hello.is_durable
        elif isinstance(port, LinkPort):
            port.kind = hello.link
        stream = port.stream
        heartbeat_s = min(hello.heartbeat_s, self.limits.heartbeat_s)
        connection.beat_every(heartbeat_s)
        welcome = Welcome(
            name=self.name,
            stream=stream.id,
            received=stream.received,
            heartbeat_s=heartbeat_s,
            was_known=was_known and not hello.stream,
            generation=generation,
            turn=turn,
            kept_all=self._keeps_all_for(hello),
        )
        connection.write(encode(welcome))
        self.callers.discard(connection)
        self.attach(port, connection, hello.received if hello.stream == stream.id else 0, turn)
        if isinstance(port, LinkPort) and turn:
            self.links.answered(port, turn)

    def has_lost(self, hello: Hello) -> bool:
        """Whether the caller's stream is one of an earlier run of this broker."""
        return self._is_new and hello.has_holdings and hello.stream not in ("", *self._ended)

    @property
    def _is_new(self) -> bool:
        """Whether peers may still remember an earlier run."""
        return self._may_have_failed or self._recovery is not None

    def open(self, hop: LocalClient | Neighbour, stream_id: str) -> Port:
        """A port with a new stream; it replaces the one that may be there."""
        old = self.ports.get(hop)
        if isinstance(old, LinkPort) and old.was_attached:
            log.info("restarted", extra={"peer": hop.name, "kind": "neighbour"})
            old.restart(stream_id)
            self.outbox.restart(old)
            if self._recovery is not None:
                self._recovery.forget(old)
            return old
        if old is not None:
            self.remove(old, "opened a new session")
        port: Port
        if isinstance(hop, LocalClient):
            port = self.ports[hop] = ClientPort(self, stream_id, hop.name)
        else:
            port = self.ports[hop] = LinkPort(self, stream_id, hop.name)
        self.outbox.open(port)
        log.info("opened", extra={"peer": hop.name, "kind": hop.kind})
        return port

    def attach(self, port: Port, connection: Connection, received: int, turn: int = 0) -> None:
        """Continue with a peer over this connection; with a `turn`, its link is pending."""
        is_new = not port.was_attached
        is_resuming = not is_new and not (isinstance(port, LinkPort) and port.kept is not None)
        port.attach(connection, received=received)
        PeerReader(port, self).read_from(connection)
        port.is_pending = turn > 0
        if port.is_pending:
            return
        if isinstance(port, LinkPort):
            if is_new:
                self.stimulate(LinkUp(port.hop, port.kind))
            elif port.kept is not None:
                self.outbox.perform(self._handle(LinkRestarted(port.hop), self.now_s()))
                port.put_kept()
                port.flush()
                self.outbox.write()
            else:
                self.stimulate(LinkAway(port.hop, is_away=False))
            self.links.on_attached(port, knows_us=is_resuming)
        else:
            for notice in self.broker.parts.notices(port.hop.name) if is_new else ():
                port.put_ahead(encode(notice))
            self._resume_channels(port)

    def on_lost(self, source: Port, reason: str) -> None:
        log.info("away", extra={"peer": source.hop.name, "reason": reason})
        if source.is_pending or (isinstance(source, ClientPort) and not self._holds(source.hop)):
            self.remove(source, reason)  # Nothing is held for it, so it need not come back.
        else:
            source.await_return()
            if isinstance(source, LinkPort):
                self.links.on_away(source)
                self.stimulate(LinkAway(source.hop, is_away=True))

    def _holds(self, client: LocalClient) -> bool:
        """Does the client hold anything at this broker?"""
        if self.channels is not None and self.channels.desk.holds(client.name):
            return True
        return self.broker.sessions.holds(client)

    def on_goodbye(self, source: Port, goodbye: Goodbye) -> None:
        source.hang_up()  # The peer does not wait for our goodbye.
        if isinstance(source, LinkPort) and goodbye.closes_cycle:
            source.refusal = goodbye.reason
        reason = f"{SAID_GOODBYE}: {goodbye.reason[:200]}"
        self.remove(source, reason, for_good=goodbye.for_good)

    def on_refused(self, source: Port, reason: str) -> None:
        self.refused += 1
        self.remove(source, reason)

    def remove(self, port: Port, reason: str, *, for_good: bool = False) -> None:
        if self.ports.get(port.hop) is not port:
            return
        log.info("removed", extra={"peer": port.hop.name, "reason": reason})
        del self.ports[port.hop]
        if self._recovery is not None:
            self._recovery.forget(port)
        port.close(reason)
        self.sampler.on_removed(port)
        if isinstance(port, LinkPort):
            self.links.on_removed(port, reason, for_good=for_good)
        self.outbox.close(port)
        if self._is_new:
            self._ended.add(port.stream.id)
        if isinstance(port.hop, LocalClient):
            self.dropped["slow subscriber"] += port.traffic.dropped
            self.isolations += port.traffic.isolations
            if self.channels is not None:
                self.channels.leave(port.hop.name)
            self.stimulate(ClientLeft(port.hop))
            if isinstance(port, ClientPort) and port.claim is not None:
                self.stimulate(port.claim)

    # -- recovery ------------------------------------------------------------------------------

    @property
    def is_recovering(self) -> bool:
        return self._recovery is not None

    def _keeps_all_for(self, hello: Hello) -> bool:
        """Do neighbours keep what a client lacks that is back after a failure of this broker?"""
        recovery = self._recovery
        if recovery is None or recovery.clients_are_back or hello.stream in self._ended:
            return False
        return hello.away_s < self.limits.link_s and not self.broker.parts.gaps

    def recover(self) -> None:
        """A peer remembers this broker, which has lost its state: it has failed."""
        if self._has_failed or not self._may_have_failed:
            return
        self._has_failed = True
        log.warning("recovering", extra={"broker": self.name})
        self._recovery = Recovery(self.links.expected, window_bytes=self.limits.window_bytes)
        asyncio.get_running_loop().call_later(self.limits.restart_s, self._on_clients_returned)
        self.stimulate(Recovering())

    def _on_clients_returned(self) -> None:
        if self._recovery is not None:
            self._recovery.clients_are_back = True
            self.stimulate(ClientsReturned())

    def _on_known(self) -> None:
        """Peers of an earlier run would have called by now."""
        self._may_have_failed = False
        self.links.give_up_expected()
        if self._recovery is not None:
            self._recovery.has_taken_too_long = True
            self._end_recovery_if_over(self._recovery)

    def _end_recovery_if_over(self, recovery: Recovery) -> None:
        links = [port for port in self.ports.values() if isinstance(port, LinkPort)]
        linked = {port.hop for port in links if not port.is_pending}
        if not recovery.is_over(linked, is_complete=self.broker.routing.is_complete):
            return
        self._recovery = None
        log.info("recovered", extra={"broker": self.name})
        loss = Loss(self.now_s() - self.limits.link_s, "did not send all its tables in time")
        is_complete = self.broker.routing.is_complete
        self.stimulate(Recovered({} if is_complete else dict.fromkeys(linked, loss)))
        recovery.hand_over(self)


def _cannot_change_links(effect: LinkEffect) -> None:
    log.error("links are fixed", extra={"effect": str(effect)})
