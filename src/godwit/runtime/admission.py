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
    Hello,
    ProbeReply,
    ProbeRequest,
    decode_hello,
    hello_version,
    malformed,
)
from godwit.protocol.versions import check_version
from godwit.runtime.broker_node import BrokerNode

log = logging.getLogger("godwit.admission")

HEARTBEATS_MAX = 2


class Admission:
    """Receives the first frame of a caller, and hands the connection to the node."""

    def __init__(self, node: BrokerNode) -> None:
        self.connection = Connection(self, heartbeat_s=node.limits.heartbeat_s)
        self._node = node
        self._is_one_too_many = len(node.callers) >= node.limits.connections_max
        self._heartbeats = 0
        node.callers.add(self.connection)

    def on_frame(self, hops: int, body: bytes) -> None:
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
        _check_caller(hello, self._node)
        self._node.admit(hello, self.connection)
        self._node.callers.discard(self.connection)

    def on_read(self) -> None:
        pass

    def on_writable(self) -> None:
        pass

    def on_heartbeat(self) -> None:
        self._heartbeats += 1
        if self._heartbeats > HEARTBEATS_MAX:
            self._node.callers.discard(self.connection)
            self.connection.abort()

    def on_lost(self, reason: str, *, broke_rules: bool) -> None:
        self._node.callers.discard(self.connection)
        if broke_rules:
            self._node.refused += 1
            log.warning("refused", extra={"peer": self.connection.peer_address, "reason": reason})


def _check_caller(hello: Hello, node: BrokerNode) -> None:
    if hello.role == "client":
        if hello.name.startswith("$"):
            raise PeerError("names that start with '$' are reserved for brokers")
        if not hello.is_durable:
            return
    if not secrets.compare_digest(hello.secret.encode(), node.secret.encode()):
        raise PeerError(f"{hello.role} {hello.name} has another secret than this broker")
    if hello.role == "broker" and hello.name == node.name:
        raise PeerError(f"a broker {node.name} cannot link with itself")
