"""One live broker: the real state machine between the ports of its peers.

    port --> receive --> Broker.handle --> effects --> outbox --> finish_read: flush, acknowledge

The shape is that of `simulation.node`; here the queues are real and time passes by itself.  All
messages of one read are handled, and only then every port that got something is written to, once.
Publications that follow each other are handled together, as a run (`Broker.handle_run`).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import length_hint
from typing import assert_never

from msgspec.structs import asdict

from godwit.broker.core import Broker
from godwit.broker.effects import (
    ModuleEffect,
    Notify,
    Ping,
    Report,
    SetTimer,
    Submit,
)
from godwit.broker.stimuli import (
    Client,
    ClientLeft,
    ClientsReturned,
    Hop,
    LinkDown,
    LinkRestarted,
    LinkUp,
    Module,
    Neighbour,
    Received,
    Recovered,
    Recovering,
    Started,
    Stimulus,
    TimerFired,
)
from godwit.content.channels import ChannelRequest
from godwit.content.messages import (
    MoveTo,
    OtherMessage,
    Publication,
    Refusal,
    Sweep,
    Telling,
    Told,
)
from godwit.errors import PeerError
from godwit.network.channels import Channels
from godwit.network.outbox import Outbox
from godwit.network.pinging import Pinging
from godwit.network.port import Arrived, ClientPort, LinkPort, Port
from godwit.network.recovery import Recovery
from godwit.network.settings import Limits
from godwit.wire.connection import Connection
from godwit.wire.frames import Hello, Welcome, encode
from godwit.wire.stamps import stamp_of

log = logging.getLogger("godwit.node")


class BrokerNode:
    def __init__(
        self,
        broker: Broker,
        *,
        limits: Limits,
        output_bandwidth_bytes_s: float,
        secret: str = "",
        neighbours: Iterable[str] = (),
    ) -> None:
        """`neighbours` are those that are known to belong here; others may link, too."""
        self.broker = broker
        self.name = broker.name
        self.limits = limits
        self.meters = broker.meters
        self.output_bandwidth_bytes_s = output_bandwidth_bytes_s
        self.ports: dict[Hop, Port] = {}
        self.handled: Counter[str] = Counter()
        """Messages taken in, by kind."""
        self.dropped: Counter[str] = Counter()
        """Publications that were not passed on, by reason; those of ports that are gone too."""
        self.outbox = Outbox(self.ports, self.dropped, self._arrange)
        self.decisions: Counter[tuple[str, str]] = Counter()
        """Of policies, by policy and action."""
        self.isolations = 0
        """Of ports that are gone."""
        self.refused = 0
        """Connections that broke the protocol before or after they said who they are."""
        self.callers: set[Connection] = set()
        """Connections that have not said yet who they are."""
        self.is_stopping = False
        self.pinging = Pinging(self._stimulate)
        self.channels: Channels | None = None
        """If there is a data cluster."""
        self.secret = secret
        self._neighbours = frozenset(map(Neighbour, neighbours))
        self._recovery: Recovery | None = None
        self._may_have_failed = True
        """Long enough ago, nobody remembers what was before."""
        # Of the read that is going on.
        self._messages = 0
        self._publications = 0
        self._bytes = 0
        self._read_start_s = 0.0
        # Wall-clock time that never goes back: comparable between processes, fit for intervals.
        self._clock_offset_s = time.time() - time.monotonic()

    def now_s(self) -> float:
        return time.monotonic() + self._clock_offset_s

    def start(self) -> None:
        self._stimulate(Started())
        asyncio.get_running_loop().call_later(self.limits.link_s, self._on_known)

    # -- after a failure -----------------------------------------------------------------------

    @property
    def is_recovering(self) -> bool:
        return self._recovery is not None

    def _recover(self) -> None:
        """Somebody remembers this broker, which does not remember anything."""
        if self._recovery is not None or not self._may_have_failed:
            return
        self._may_have_failed = False
        log.warning("recovering", extra={"broker": self.name})
        self._recovery = Recovery(self._neighbours, window_bytes=self.limits.window_bytes)
        asyncio.get_running_loop().call_later(self.limits.restart_s, self._on_clients_returned)
        self._stimulate(Recovering())

    def _on_clients_returned(self) -> None:
        if self._recovery is not None:
            self._recovery.clients_are_back = True
            self._stimulate(ClientsReturned())

    def _on_known(self) -> None:
        """The broker has been there for a while."""
        self._may_have_failed = False
        if self._recovery is not None:
            self._recovery.has_taken_too_long = True
            self._end_recovery_if_over(self._recovery)

    def _end_recovery_if_over(self, recovery: Recovery) -> None:
        linked = {hop for hop in self.ports if isinstance(hop, Neighbour)}
        if not recovery.is_over(linked, is_complete=self.broker.routing.is_complete):
            return
        self._recovery = None
        log.info("recovered", extra={"broker": self.name})
        self._stimulate(Recovered())
        for source, messages in recovery.all():
            for message, hops, body in messages:
                if isinstance(message, Publication):  # One by one: nobody can send them again.
                    self.receive_run(source, [(message, hops, body)])
                else:
                    self.receive(source, message, hops, body)
            self.finish_read(source)

    # -- peers come and go ---------------------------------------------------------------------

    def admit(self, hello: Hello, connection: Connection) -> None:
        """A peer has called and said who it is: go on with its stream, or start a new one."""
        hop = Client(hello.name) if hello.role == "client" else Neighbour(hello.name)
        self._check_caller(hello)
        port = self.ports.get(hop)
        is_resuming = port is not None and hello.stream == port.stream.id
        if self.is_stopping and (hello.role == "client" or not is_resuming):
            raise PeerError(f"broker {self.name} is stopping")
        was_known = False
        if port is not None and is_resuming:
            log.info("resumed", extra={"peer": hop.name, "stream": port.stream.id[:8]})
        else:
            if port is not None and port.is_connected:
                raise PeerError(f"{hello.role} {hello.name} is connected already")
            # Who was here before may come back, and brokers may always come.
            is_full = len(self.ports) >= self.limits.connections_max
            if is_full and port is None and hello.role == "client":
                raise PeerError("too many connections")
            if port is None and hello.stream and hello.has_holdings:
                self._recover()
            was_known = isinstance(port, LinkPort) and port.is_remembered
            port = self._open(hop, secrets.token_hex(16))
        if isinstance(port, ClientPort):
            port.is_durable = hello.is_durable
        stream = port.stream
        heartbeat_s = min(hello.heartbeat_s, self.limits.heartbeat_s)
        connection.beat_every(heartbeat_s)
        welcome = Welcome(
            name=self.name,
            stream=stream.id,
            received=stream.received,
            heartbeat_s=heartbeat_s,
            was_known=was_known and not hello.stream,
        )
        connection.write(encode(welcome))
        self._attach(port, connection, hello.received if hello.stream == stream.id else 0)

    def _check_caller(self, hello: Hello) -> None:
        if hello.role == "client":
            if hello.name.startswith("$"):
                raise PeerError("names that start with '$' are the brokers' own")
            if not hello.is_durable:
                return
        if not secrets.compare_digest(hello.secret.encode(), self.secret.encode()):
            raise PeerError(f"{hello.role} {hello.name} does not have our secret")
        if hello.role == "client":
            return
        if hello.name == self.name:
            raise PeerError(f"a broker {self.name} cannot link with itself")

    def link(self, welcome: Welcome, connection: Connection, known: LinkPort | None) -> LinkPort:
        """A neighbour that we called has answered; `known` is the stream we asked it for."""
        if known is not None and known.stream.id == welcome.stream:
            if self.ports.get(known.hop) is not known:
                raise PeerError("the stream was given up while we were calling")
            self._attach(known, connection, welcome.received)
            return known
        hop = Neighbour(welcome.name)
        present = self.ports.get(hop)
        if present is not None and present.is_connected:
            raise PeerError(f"broker {welcome.name} is linked already")
        if welcome.received:
            raise PeerError(f"has received {welcome.received} frames of a stream that is new")
        if known is not None and known.hop != hop:
            self.remove(known, "another broker answers in its place")
        if known is None and welcome.was_known:
            self._recover()
        port = self._open(hop, welcome.stream)
        assert isinstance(port, LinkPort)
        self._attach(port, connection, welcome.received)
        return port

    def _open(self, hop: Client | Neighbour, stream_id: str) -> Port:
        """A port with a new stream, in the place of the one there may have been."""
        old = self.ports.get(hop)
        if isinstance(old, LinkPort) and old.was_attached:
            log.info("restarted", extra={"peer": hop.name, "kind": "neighbour"})
            old.begin_again(stream_id)
            if self._recovery is not None:
                self._recovery.forget(old)
            return old
        if old is not None:
            self.remove(old, "started anew")
        port: Port
        if isinstance(hop, Client):
            port = self.ports[hop] = ClientPort(self, stream_id, hop.name)
        else:
            port = self.ports[hop] = LinkPort(self, stream_id, hop.name)
        log.info("opened", extra={"peer": hop.name, "kind": type(hop).__name__.lower()})
        return port

    def _attach(self, port: Port, connection: Connection, received: int) -> None:
        is_new = not port.was_attached
        port.attach(connection, received=received)
        if isinstance(port, LinkPort):
            if is_new:
                self._stimulate(LinkUp(port.hop))
            elif port.kept is not None:
                restarted = LinkRestarted(port.hop)
                self.outbox.perform(self.broker.handle(restarted, now_s=self.now_s()))
                port.put_kept()
                port.flush()
                self.outbox.flush()
        else:
            self.on_room(port)

    def on_room(self, port: Port) -> None:
        if self.channels is not None:
            self.channels.go_on(port.hop.name)

    def on_away(self, port: Port, reason: str) -> None:
        log.info("away", extra={"peer": port.hop.name, "reason": reason})
        if isinstance(port, ClientPort) and not self._holds(port.hop):
            self.remove(port, reason)  # Nothing is kept for it, so there is nothing to wait for.

    def _holds(self, client: Client) -> bool:
        """Does the client hold anything here that it may want to come back for?"""
        if self.channels is not None and self.channels.desk.holds(client.name):
            return True
        return self.broker.sessions.holds(client)

    def remove(self, port: Port, reason: str) -> None:
        if self.ports.get(port.hop) is not port:
            return
        log.info("removed", extra={"peer": port.hop.name, "reason": reason})
        del self.ports[port.hop]
        self.outbox.touched.pop(port, None)
        if self._recovery is not None:
            self._recovery.forget(port)
        port.close(reason)
        if isinstance(port.hop, Client):
            self.dropped["slow subscriber"] += port.traffic.dropped
            self.isolations += port.traffic.isolations
            if self.channels is not None:
                self.channels.leave(port.hop.name)
            self._stimulate(ClientLeft(port.hop))
        else:
            self.dropped["link lost"] += port.stream.outstanding
            if port.was_attached:
                self._stimulate(LinkDown(port.hop))

    # -- messages ------------------------------------------------------------------------------

    def ask_to_move(self, client: Client, request: MoveTo) -> None:
        self.ports[client].why_stayed = None
        self.outbox.perform([Notify(client, request)])
        self.outbox.flush()

    def on_channel_request(self, source: Port, request: ChannelRequest) -> None:
        if self.channels is not None:
            self.channels.on_request(source, request)
        else:
            reason = f"broker {self.name} has no data cluster, so there are no channels"
            source.put(encode(Refusal(about=request.id, reason=reason)))
            source.flush()

    def receive(self, source: Port, message: OtherMessage, hops: int, body: bytes) -> None:
        if self._recovery is not None and isinstance(message, Sweep):
            self._recovery.hold(source, (message, hops, body))
            return
        now_s = self._count(1, len(body))
        self.handled[type(message).__name__] += 1
        if isinstance(message, Told) and message.telling is Telling.NOT_ALL:
            assert isinstance(source, LinkPort)
            if not source.has_begun_again:  # We know nothing of it, either.
                self._recover()
        received = Received(message, source.hop, hops if source.is_link else 0)
        self.outbox.perform(self.broker.handle(received, now_s=now_s))

    def receive_run(self, source: Port, run: Sequence[Arrived]) -> None:
        if self._recovery is not None:
            for arrived in run:
                self._recovery.hold(source, arrived)
            return
        now_s = self._count(len(run), sum([len(body) for *_, body in run]))
        self._publications += len(run)
        stamp = None if source.is_link else stamp_of(now_s)
        left = iter(run)
        try:
            wanted = self.broker.handle_run(left, source.hop, now_s=now_s)
            self.outbox.perform_run(wanted, stamp)
        except Exception:
            # A fault of ours: those behind the one that met it can be sent again.
            source.stream.received -= length_hint(left)
            raise

    def _count(self, messages: int, size_bytes: int) -> float:
        """Messages have come in, at this time: that of the first of the read."""
        if not self._messages:
            self._read_start_s = self.now_s()
        self._messages += messages
        self._bytes += size_bytes
        return self._read_start_s

    def finish_read(self, source: Port) -> None:
        touched = self.outbox.touched
        positions: dict[Port, int] = {}
        while touched:
            port, _ = touched.popitem()
            port.flush()
            if port is not source:  # Two peers that wait for each other would do so for ever.
                positions[port] = port.stream.position
        recovery = self._recovery
        if recovery is None or not recovery.holds(source):
            source.passed_on(self._bytes, positions)
        if self._messages:
            self._meter()
        if recovery is not None:
            self._end_recovery_if_over(recovery)

    def _meter(self) -> None:
        """Count what one read amounted to."""
        now_s = self.now_s()
        serving_s = now_s - self._read_start_s
        self.meters.on_handled(self._publications, self._bytes, serving_s, now_s, self._messages)
        if self.broker.modules:
            self.broker.delays.on_matched(0.0, serving_s / self._messages)
        if self._publications:
            self.handled[Publication.__name__] += self._publications
        self._messages = self._publications = self._bytes = 0

    def _stimulate(self, stimulus: Stimulus) -> None:
        """Something other than a message of a peer; perhaps in the middle of a read."""
        touched, self.outbox.touched = self.outbox.touched, {}
        self.outbox.perform(self.broker.handle(stimulus, now_s=self.now_s()))
        self.outbox.flush()
        self.outbox.touched = touched
        if self._recovery is not None:
            self._end_recovery_if_over(self._recovery)

    def _arrange(self, effect: ModuleEffect) -> None:
        """What a module asks of the broker itself."""
        loop = asyncio.get_running_loop()
        match effect:
            case Submit(module=module, message=message):
                loop.call_soon(self._stimulate, Received(message, Module(module)))
            case SetTimer(module=module, name=name, at_s=at_s):
                delay_s = max(0.0, at_s - self.now_s())
                loop.call_later(delay_s, self._stimulate, TimerFired(module, name))
            case Ping(client=client):
                port = self.ports.get(Client(client))
                self.pinging.ask(effect, port)
                if port is not None:
                    self.outbox.touched[port] = None
            case Report(policy=policy, decision=decision):
                self.decisions[policy, decision.action] += 1
                log.info("decided", extra={"policy": policy, **asdict(decision)})
            case _:
                assert_never(effect)
