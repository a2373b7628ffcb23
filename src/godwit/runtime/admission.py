"""The handshake on an incoming connection: its first frame.

Before the handshake a peer may send one small frame, within a few seconds.
"""

from __future__ import annotations

import logging
import secrets

from godwit.errors import PeerError
from godwit.protocol.connection import Connection
from godwit.protocol.frames import (
    DECODE_ERRORS,
    Goodbye,
    Hello,
    ProbeReply,
    ProbeRequest,
    decode_hello,
    hello_version,
    malformed,
)
from godwit.protocol.versions import check_version
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.node_epochs import LaneOver, hello_hop
from godwit.runtime.node_links import AlreadyLinked, ClosesCycle

log = logging.getLogger("godwit.admission")

HEARTBEATS_MAX = 2


class Admission:
    """Receives the first frame of a caller, checks it, and hands the connection to the node."""

    def __init__(self, node: BrokerNode) -> None:
        self.connection = Connection(self, heartbeat_s=node.limits.heartbeat_s)
        self._node = node
        self._is_one_too_many = len(node.callers) >= node.limits.connections_max
        self._heartbeats = 0
        self._has_called = False
        node.callers.add(self.connection)

    def on_frame(self, hops: int, body: bytes) -> None:
        if self._has_called:
            raise PeerError("a caller waits for the welcome before it sends anything")
        self._has_called = True
        try:
            hello = decode_hello(body)
        except DECODE_ERRORS as error:
            version = hello_version(body)
            if version is not None:  # Of another major version, the rest may be different.
                check_version(version)
            raise malformed(error) from None
        if isinstance(hello, ProbeRequest):
            self._node.callers.discard(self.connection)
            self.connection.close(
                None if self._node.is_stopping else ProbeReply(name=self._node.name)
            )
            return
        if not isinstance(hello, Hello):
            raise PeerError("the first frame says hello")
        check_version(hello.protocol)
        self.connection.peer_version = hello.protocol
        if self._is_one_too_many:
            raise PeerError("too many connections")
        self._admit(hello)

    def _admit(self, hello: Hello) -> None:
        """A peer has called: resume its stream, or open a new one."""
        node, is_client = self._node, hello.role == "client"
        self._check_caller(hello)
        port = node.ports.get(hello_hop(hello))
        is_resuming = port is not None and hello.stream == port.stream.id
        if node.is_stopping and (is_client or not is_resuming):
            raise PeerError(f"broker {node.name} is stopping")
        if node.is_draining and is_client and port is None and not node.recovery.has_lost(hello):
            raise PeerError(f"broker {node.name} is being drained; connect to another broker")
        # Clients with a port may come back, and brokers may always connect.
        is_full = len(node.ports) >= node.limits.connections_max
        if is_full and is_client and port is None:
            raise PeerError("too many connections")
        if is_client and hello.incarnation and not is_resuming:
            node.names.ask(hello, self.connection)
            return
        if is_client and not hello.stream:
            node.names.check_unclaimed(hello.name)
        try:
            node.welcome(hello, self.connection)
        except (AlreadyLinked, ClosesCycle, LaneOver) as refused:  # It has not broken any rule.
            log.debug("link refused", extra={"peer": hello.name, "reason": str(refused)})
            self.connection.close(
                Goodbye(
                    reason=str(refused),
                    closes_cycle=isinstance(refused, ClosesCycle),
                    linked_as="" if isinstance(refused, LaneOver) else node.name,
                    news=refused.news if isinstance(refused, LaneOver) else None,
                )
            )
            node.callers.discard(self.connection)

    def _check_caller(self, hello: Hello) -> None:
        node = self._node
        if hello.role == "client":
            if hello.name.startswith("$"):
                raise PeerError("names that start with '$' are reserved for brokers")
            if not hello.is_durable:
                return
        if not secrets.compare_digest(hello.secret.encode(), node.secret.encode()):
            raise PeerError(f"{hello.role} {hello.name} has another secret than this broker")
        if hello.role == "client":
            return
        if hello.name == node.name:
            raise PeerError(f"a broker {node.name} cannot link with itself")

    def on_read(self) -> None:
        pass

    def on_writable(self) -> None:
        pass

    def on_heartbeat(self) -> None:
        self._heartbeats += 1
        if self._heartbeats > HEARTBEATS_MAX:
            self._node.callers.discard(self.connection)
            self._node.names.hang_up(self.connection)
            self.connection.abort()

    def on_lost(self, reason: str, *, broke_rules: bool) -> None:
        self._node.callers.discard(self.connection)
        self._node.names.hang_up(self.connection)
        if broke_rules:
            self._node.refused += 1
            # A broker that stops refuses all callers, which then try another one: as expected.
            level = logging.INFO if self._node.is_stopping else logging.WARNING
            extra = {"peer": self.connection.peer_address, "reason": reason}
            log.log(level, "refused", extra=extra)
