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
    DropLane,
    Effect,
    EpochFlipped,
    LinkEffect,
    NameContested,
    NameGranted,
    NameLost,
    Notify,
    OpenLink,
    Ping,
    Report,
    Send,
    SetTimer,
    Submit,
)
from godwit.broker.stimuli import (
    ClientArrived,
    ClientLeft,
    Hop,
    LinkAway,
    LinkRestarted,
    LinkUp,
    LocalClient,
    Module,
    Neighbour,
    Received,
    Started,
    Stimulus,
    TimerFired,
)
from godwit.content.channel_messages import ChannelRequest
from godwit.content.link_messages import EpochNews, LinkMessage, StatusRequest
from godwit.content.messages import (
    Last,
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
from godwit.runtime.epoch_hold import EpochHold
from godwit.runtime.giving_up import SAID_GOODBYE
from godwit.runtime.live_meters import LiveMeters, LoadSampler, ReadFigures
from godwit.runtime.node_epochs import NodeEpochs, hello_hop
from godwit.runtime.node_links import AlreadyLinked, NodeLinks
from godwit.runtime.node_names import NodeNames, left
from godwit.runtime.node_recovery import NodeRecovery
from godwit.runtime.node_tracer import Tracer
from godwit.runtime.outbox import Outbox
from godwit.runtime.output_limiter import OutputLimiter
from godwit.runtime.path_hold import Passing, PathHold
from godwit.runtime.peer_reader import Arrived, PeerReader
from godwit.runtime.pings import Pinging
from godwit.runtime.port import ClientPort, LinkPort, Port
from godwit.runtime.port_outlet import ask_channels
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
        self.links: NodeLinks = NodeLinks(self, neighbours, addresses)
        """Of the epoch in use."""
        self.hold: EpochHold | None = None
        """What waits while the network changes its shape."""
        self.paths: PathHold | None = None
        """What waits because it would overtake what is on another path."""
        self.read_paths()
        self.recovery = NodeRecovery(self)
        self.epochs = NodeEpochs(self)
        # Wall-clock time that never goes back: comparable between processes, fit for intervals.
        self._clock_offset_s = time.time() - time.monotonic()
        delays = broker.delays if broker.modules else None
        self.figures = ReadFigures(self.meters, delays, self.now_s)

    def read_paths(self) -> None:
        """The router may have several paths now, or others: what waits may go on."""
        if self.paths is None and self.broker.paths is not None:
            self.paths = PathHold(self, self.broker.paths)
        elif self.paths is not None:
            self.paths.retry_soon()

    def now_s(self) -> float:
        return time.monotonic() + self._clock_offset_s

    def start(self) -> None:
        self.stimulate(Started())
        self.sampler.start()
        asyncio.get_running_loop().call_later(self.limits.link_s, self.recovery.on_known)

    # -- messages ------------------------------------------------------------------------------

    def receive_run(self, source: Port, run: Sequence[Arrived]) -> None:
        if source.is_pending:
            raise PeerError(EARLY)
        if self.recovery.held is not None:
            for arrived in run:
                self.recovery.held.hold(source, arrived)
            return
        if self.hold is not None and self.hold.takes_run(source, run):
            return
        figures = self.figures
        now_s = figures.count(len(run), sum([len(body) for *_, body in run]))
        figures.publications += len(run)
        source.traffic.has_published = True
        stamp = None if source.is_link else stamp_of(now_s)
        left = iter(run)
        if self.paths is not None:
            left = self.paths.passing(source, run, now_s)
        try:
            outcomes = self.broker.handle_run(left, source.hop, now_s=now_s)
            if self.tracer is not None:
                outcomes = self.tracer.watch(outcomes, run, source.hop, now_s)
            self.outbox.perform_run(outcomes, stamp)
        except Exception:
            # A fault of ours: the peer can send those behind the failed one again.
            source.stream.received -= length_hint(left)
            raise
        if isinstance(left, Passing) and left.held:  # They are counted when they are handled.
            figures.count(-len(left.held), -sum([len(body) for *_, body in left.held]))
            figures.publications -= len(left.held)

    def receive(self, source: Port, message: OtherMessage, hops: int, body: bytes) -> None:
        if source.is_pending:
            raise PeerError(EARLY)
        recovery = self.recovery.held
        if isinstance(message, Sweep) and self.recovery.outdates(message):
            return  # The client stays where it is.
        if recovery is not None and isinstance(message, Sweep | Last):
            recovery.hold(source, (message, hops, body))
            return
        if self.hold is not None and self.hold.takes(source, message, hops, body):
            return
        if self.paths is not None and self.paths.takes(source, message, hops, body):
            return
        now_s = self.figures.count(1, len(body))
        self.handled[type(message).__name__] += 1
        if isinstance(message, ResyncDone) and message.scope is ResyncScope.NOT_ALL:
            assert isinstance(source, LinkPort)
            if not source.has_restarted:  # Both sides have failed.
                self.recovery.begin()
        received = Received(message, source.hop, hops if source.is_link else 0)
        self.outbox.perform(self._handle(received, now_s))

    def finish_read(self, source: Port) -> None:
        """Write what the messages of this read caused, and acknowledge what can be."""
        positions = self.outbox.write()
        recovery, hold = self.recovery.held, self.hold
        is_held = hold is not None and hold.holds(source)
        if not is_held and (recovery is None or not recovery.holds(source)):
            held = 0 if self.paths is None else self.paths.count(source)
            self.outbox.on_handled(source, self.figures.size_bytes, positions, held=held)
        figures, connection = self.figures, source.connection
        if figures.messages or figures.has_answers:
            if figures.publications:
                self.handled[Publication.__name__] += figures.publications
            figures.finish(time.monotonic() if connection is None else connection.read_start_s)
        if recovery is not None:
            self.recovery.end_if_over()

    def _handle(self, stimulus: Stimulus, now_s: float) -> list[Effect]:
        if self.tracer is None:
            return self.broker.handle(stimulus, now_s=now_s)
        return self.tracer.handle(self.broker, stimulus, now_s)

    def stimulate(self, stimulus: Stimulus) -> None:
        """Handle anything but a message of a peer; perhaps in the middle of a read."""
        self.outbox.perform_now(self._handle(stimulus, self.now_s()))
        if self.recovery.held is not None:
            self.recovery.end_if_over()

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
            case EpochFlipped():
                self.epochs.on_flipped()
            case DropLane(lane=lane):
                loop.call_soon(self.epochs.drop_lane, lane)
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
        if self.paths is not None and isinstance(source, LinkPort):
            self.paths.on_acknowledged(source)
        if self.channels is not None:
            self._resume_channels(source)

    def excuse(self, port: Port) -> None:
        self.outbox.excuse(port)

    def on_round_trips(self, source: Port, answer: RoundTrips) -> None:
        self.pinging.on_round_trips(source.hop.name, answer)

    def on_link_message(self, source: Port, message: LinkMessage) -> None:
        if isinstance(message, EpochNews):
            self.epochs.on_news(message, source.hop if isinstance(source, LinkPort) else None)
        elif isinstance(source, LinkPort):
            self.epochs.links_of(source.hop).receive(source, message)

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
        hop = hello_hop(hello)
        port = self.ports.get(hop)
        was_known, turn, is_late = False, 0, self.epochs.is_late_for(hello)
        if port is not None and hello.stream == port.stream.id:
            log.info("resumed", extra={"peer": hop.name, "stream": port.stream.id[:8]})
        else:
            is_own = isinstance(port, ClientPort) and port.incarnation == hello.incarnation != ""
            if port is not None and port.is_connected and not is_own:
                if port.is_link:
                    raise AlreadyLinked(hello.name)
                raise PeerError(f"client {hello.name} is connected already")
            if port is None and self.recovery.has_lost(hello):
                self.recovery.begin()
            elif isinstance(hop, Neighbour) and (port is None or hello.has_given_up):
                turn = 0 if is_late else self.epochs.links_of(hop).turn_of(hello)
            was_known = isinstance(port, LinkPort) and port.is_remembered and not turn
            port = self.open(hop, secrets.token_hex(16))
            if isinstance(port, ClientPort) and hello.incarnation:
                port.claim = left(hello)
        if isinstance(port, ClientPort):
            port.is_durable = hello.is_durable
        elif isinstance(port, LinkPort):
            port.kind, port.awaits_news = hello.link, is_late
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
            kept_all=self.recovery.keeps_all_for(hello),
        )
        connection.write(encode(welcome))
        self.callers.discard(connection)
        received = hello.received if hello.stream == stream.id else 0
        self.attach(port, connection, received, is_pending=turn > 0 or is_late)
        if isinstance(port, LinkPort) and turn:
            self.epochs.links_of(port.hop).answered(port, turn)

    def open(self, hop: LocalClient | Neighbour, stream_id: str) -> Port:
        """A port with a new stream; it replaces the one that may be there."""
        old = self.ports.get(hop)
        if isinstance(old, LinkPort) and old.was_attached:
            log.info("restarted", extra={"peer": hop.name, "kind": "neighbour"})
            old.restart(stream_id)
            self.outbox.restart(old)
            self._forget_held(old)
            return old
        if old is not None:
            self.remove(old, "opened a new session")
        port: Port
        if isinstance(hop, LocalClient):
            port = self.ports[hop] = ClientPort(self, stream_id, hop.name)
        else:
            port = self.ports[hop] = LinkPort(self, stream_id, hop)
        self.outbox.open(port)
        log.info("opened", extra={"peer": hop.name, "kind": hop.kind})
        return port

    def attach(
        self, port: Port, connection: Connection, received: int, *, is_pending: bool = False
    ) -> None:
        """Continue with a peer over this connection; a link that is pending is not up yet."""
        is_new = not port.was_attached
        is_resuming = not is_new and not (isinstance(port, LinkPort) and port.kept is not None)
        port.attach(connection, received=received)
        PeerReader(port, self).read_from(connection)
        port.is_pending = is_pending
        if isinstance(port, LinkPort) and not is_resuming:
            self.epochs.tell(port)
        if port.is_pending:
            return
        if isinstance(port, LinkPort):
            if is_new:
                self.stimulate(LinkUp(port.hop, port.kind))
            elif port.kept is not None:
                self._resend(port)
            else:
                self.stimulate(LinkAway(port.hop, is_away=False))
            self.epochs.links_of(port.hop).on_attached(port, knows_us=is_resuming)
        else:
            for notice in self.broker.parts.notices(port.hop.name) if is_new else ():
                port.put_ahead(encode(notice))
            self._resume_channels(port)

    def _resend(self, port: LinkPort) -> None:
        """A neighbour has restarted: it gets the tables, what it had not acknowledged, and Last."""
        effects = self._handle(LinkRestarted(port.hop), self.now_s())
        last = [each for each in effects if isinstance(each, Send) and type(each.message) is Last]
        self.outbox.perform([each for each in effects if each not in last])
        port.put_kept()
        self.outbox.perform(last)
        port.flush()
        self.outbox.write()

    def on_lost(self, source: Port, reason: str) -> None:
        log.info("away", extra={"peer": source.hop.name, "reason": reason})
        if source.is_pending or (isinstance(source, ClientPort) and not self._holds(source.hop)):
            self.remove(source, reason)  # Nothing is held for it, so it need not come back.
        else:
            source.await_return()
            if isinstance(source, LinkPort):
                self.epochs.links_of(source.hop).on_away(source)
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
        self._forget_held(port)
        port.close(reason)
        self.sampler.on_removed(port)
        if isinstance(port, LinkPort):
            self.epochs.on_removed(port, reason, for_good=for_good)
            if self.paths is not None:
                self.paths.on_removed(port)
        self.outbox.close(port)
        self.recovery.on_removed(port)
        if isinstance(port.hop, LocalClient):
            self.dropped["slow subscriber"] += port.traffic.dropped
            self.isolations += port.traffic.isolations
            if self.channels is not None:
                self.channels.leave(port.hop.name)
            self.stimulate(ClientLeft(port.hop))
            if isinstance(port, ClientPort) and port.claim is not None:
                self.stimulate(port.claim)

    def _forget_held(self, port: Port) -> None:
        """The peer is gone, or will send again what is held."""
        for held in (self.recovery.held, self.hold, self.paths):
            if held is not None:
                held.forget(port)

    @property
    def is_recovering(self) -> bool:
        return self.recovery.held is not None


def _cannot_change_links(effect: LinkEffect) -> None:
    log.error("links are fixed", extra={"effect": str(effect)})
