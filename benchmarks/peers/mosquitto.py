"""Mosquitto, an MQTT broker in C: topics only, no conditions on content.

MQTT 3.1.1, quality of service 0, no limits on queues, so that nothing is dropped.  A record is the
payload of a PUBLISH packet, as JSON that the broker does not read; its topic is the packet's.
Each filter must be an equality on `topic`, and is a subscription to that topic.
"""

from __future__ import annotations

import re
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

from benchmarks.forwarding_workloads import ForwardingWorkload, encoded
from benchmarks.peers.clients import Delivery, Wire, exchange
from benchmarks.peers.harness import measure
from benchmarks.peers.processes import LOOPBACK, PeerError, free_port, running
from godwit.content.filters import Filter
from godwit.content.predicates import Operator
from godwit.content.values import Record

#: Where Debian's package puts it, which may not be on the path.
EXECUTABLE = Path("/usr/sbin/mosquitto")

CONFIGURATION = """\
listener {port} {address}
allow_anonymous true
persistence false
set_tcp_nodelay true
max_queued_messages 0
max_queued_bytes 0
max_inflight_messages 0
log_type error
log_dest stderr
"""

CONNECT, PUBLISH, SUBSCRIBE = 0x10, 0x30, 0x82
#: Protocol MQTT, level 4 (3.1.1), clean session, keep-alive of an hour, client name by the broker.
CONNECT_BODY = b"\x00\x04MQTT\x04\x02\x0e\x10\x00\x00"
CONNECTED = b"\x20\x02\x00\x00"
SUBSCRIBED = 0x90
PACKET_NUMBER = b"\x00\x01"
QUALITY_OF_SERVICE = b"\x00"


def is_installed() -> str | None:
    """What is missing; None if it is installed."""
    if _executable() is None:
        return f"there is no {EXECUTABLE}: install Debian's package mosquitto"
    return None


def published_per_s(workload: ForwardingWorkload) -> float:
    """Records published per second; a PeerError if the workload is not one of topics."""
    executable = _executable()
    if executable is None:
        raise PeerError(f"mosquitto cannot be measured: {is_installed()}")
    wire = Mqtt(tuple(map(_topic, workload.filters)))
    port = free_port()
    with TemporaryDirectory(prefix="mosquitto-") as name:
        configuration = Path(name, "mosquitto.conf")
        configuration.write_text(CONFIGURATION.format(port=port, address=LOOPBACK))
        command = [executable, "-c", str(configuration)]
        with running(command, port=port, log=Path(name, "log")):
            return measure(wire, workload, port)


@dataclass(frozen=True, slots=True)
class Mqtt(Wire):
    """Subscriptions to `topics`; the index of a topic is the number of its filter."""

    #: Closes the JSON object; the two lengths in front of topic and payload never have this byte.
    end_of_delivery: ClassVar[bytes] = b"}"

    topics: tuple[str, ...]

    def log_in(self, connection: socket.socket) -> None:
        exchange(connection, packet(CONNECT, CONNECT_BODY), answer_end=CONNECTED)

    def subscribe(self, connection: socket.socket) -> None:
        wanted = b"".join(text(topic) + QUALITY_OF_SERVICE for topic in self.topics)
        granted = QUALITY_OF_SERVICE * len(self.topics)
        exchange(
            connection,
            packet(SUBSCRIBE, PACKET_NUMBER + wanted),
            answer_end=packet(SUBSCRIBED, PACKET_NUMBER + granted),
        )

    def encode(self, record: Record) -> bytes:
        return packet(PUBLISH, text(str(record["topic"])) + encoded(record))

    def deliveries(self, stream: bytes) -> Iterator[Delivery]:
        filter_by_topic = {topic.encode(): number for number, topic in enumerate(self.topics)}
        for topic, payload in _publications(stream):
            number = re.search(rb'"number":(\d+)', payload)
            assert number, payload
            yield filter_by_topic[topic], int(number[1])


def packet(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + _length(len(body)) + body


def text(string: str) -> bytes:
    data = string.encode()
    return len(data).to_bytes(2) + data


def _length(size: int) -> bytes:
    """Seven bits in each byte, the low ones first; the eighth bit is set if more follow."""
    low, rest = size & 0x7F, size >> 7
    return bytes([low | 0x80]) + _length(rest) if rest else bytes([low])


def _publications(stream: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Topic and payload of each packet."""
    place = 0
    while place < len(stream):
        assert stream[place] == PUBLISH, f"not a PUBLISH packet: {stream[place : place + 20]!r}"
        size = shift = 0
        more = True
        while more:
            place += 1
            size |= (stream[place] & 0x7F) << shift
            shift += 7
            more = bool(stream[place] & 0x80)
        body = stream[place + 1 : place + 1 + size]
        place += 1 + size
        topic_end = 2 + int.from_bytes(body[:2])
        yield body[2:topic_end], body[topic_end:]


def _topic(filter: Filter) -> str:
    match filter.predicates:
        case [predicate] if predicate.attribute == "topic" and predicate.operator is Operator.EQUAL:
            return str(predicate.operand)
        case _:
            raise PeerError(f"mosquitto has topics only, it cannot subscribe to: {filter}")


def _executable() -> str | None:
    return shutil.which("mosquitto") or shutil.which(EXECUTABLE)
