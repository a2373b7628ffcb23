"""ActiveMQ, a JMS broker in Java: subscriptions with SQL-92 selectors on the headers of a message.

STOMP 1.2 on one topic, not persistent.  Attributes are headers, the padding is the body.  A filter
that only compares reads the same as a selector.  Headers are strings; for clients on STOMP the
broker puts `convert_string_expressions:` in front of each selector, and then `volume > 300000`
compares numbers.

Each filter is a separate subscription, because a subscription has one selector.  The broker sends
one copy for each subscription that matches, also to the same client: where many filters match a
record (W1), the figure includes writing all these copies.  One selector that joins all filters with
`or` does not avoid that: 1,000 filters exceed the longest header that the broker accepts.
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

from benchmarks.forwarding_workloads import ForwardingWorkload
from benchmarks.peers.clients import Delivery, Wire, exchange
from benchmarks.peers.harness import measure
from benchmarks.peers.processes import LOOPBACK, PeerError, free_port, running
from godwit.content.filters import Filter
from godwit.content.predicates import ORDERINGS, Operator
from godwit.content.values import Record

#: Where Debian's package puts it.
HOME = Path("/usr/share/activemq")
LAUNCHER = HOME / "bin" / "activemq.jar"

#: Producers wait when 256 of the 512 MB are full of messages; nothing is dropped.
CONFIGURATION = """\
<beans xmlns="http://www.springframework.org/schema/beans"
       xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
       xsi:schemaLocation="http://www.springframework.org/schema/beans
                           http://www.springframework.org/schema/beans/spring-beans.xsd
                           http://activemq.apache.org/schema/core
                           http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="peer" persistent="false"
          useJmx="false" advisorySupport="false" schedulerSupport="false"
          dataDirectory="{directory}">
    <destinationPolicy>
      <policyMap>
        <policyEntries>
          <policyEntry topic="&gt;" producerFlowControl="true"/>
        </policyEntries>
      </policyMap>
    </destinationPolicy>
    <systemUsage>
      <systemUsage>
        <memoryUsage><memoryUsage limit="256 mb"/></memoryUsage>
      </systemUsage>
    </systemUsage>
    <transportConnectors>
      <transportConnector name="stomp" uri="stomp://{address}:{port}"/>
    </transportConnectors>
  </broker>
</beans>
"""
#: As in the package.
JAVA_OPTIONS = ("-Xms512M", "-Xmx512M", "-Dorg.apache.activemq.UseDedicatedTaskRunner=true")
#: Its speed grows for about so long, while Java compiles hot code.
WARM_UP_S = 8.0

DESTINATION = "/topic/records"
END_OF_FRAME = b"\x00"
END_OF_ANSWER = b"\x00\n"
COMPARISONS = {Operator.EQUAL, *ORDERINGS}


def is_installed() -> str | None:
    """What is missing; None if it is installed."""
    if not LAUNCHER.exists():
        return f"there is no {LAUNCHER}: install Debian's package activemq"
    if shutil.which("java") is None:
        return "there is no java on the path: install Debian's package default-jre-headless"
    return None


def published_per_s(workload: ForwardingWorkload, *, warm_up_s: float = WARM_UP_S) -> float:
    """Records published per second, after `warm_up_s` of work."""
    reason = is_installed()
    if reason is not None:
        raise PeerError(f"activemq cannot be measured: {reason}")
    wire = Stomp(tuple(map(_selector, workload.filters)))
    port = free_port()
    with TemporaryDirectory(prefix="activemq-") as name:
        configuration = Path(name, "activemq.xml")
        configuration.write_text(
            CONFIGURATION.format(port=port, address=LOOPBACK, directory=Path(name, "data"))
        )
        command = _command(Path(name), configuration)
        with running(command, port=port, log=Path(name, "log")):
            return measure(wire, workload, port, warm_up_s=warm_up_s)


@dataclass(frozen=True, slots=True)
class Stomp(Wire):
    """A subscription for each selector; its index is its id and the number of its filter."""

    end_of_delivery: ClassVar[bytes] = END_OF_FRAME

    selectors: tuple[str, ...]

    def log_in(self, connection: socket.socket) -> None:
        request = frame("CONNECT", {"accept-version": "1.2", "host": "peer", "heart-beat": "0,0"})
        _expect("CONNECTED", exchange(connection, request, answer_end=END_OF_ANSWER))

    def subscribe(self, connection: socket.socket) -> None:
        frames = [
            frame("SUBSCRIBE", {"id": number, "destination": DESTINATION, "selector": selector})
            for number, selector in enumerate(self.selectors)
        ]
        # Frames are handled in order: when this one is confirmed, so are those before it.
        frames.append(
            frame("SUBSCRIBE", {"id": "last", "destination": "/topic/nothing", "receipt": "all"})
        )
        _expect("RECEIPT", exchange(connection, b"".join(frames), answer_end=END_OF_ANSWER))

    def encode(self, record: Record) -> bytes:
        headers = {name: value for name, value in record.items() if name != "padding"}
        return frame("SEND", {"destination": DESTINATION, **headers}, str(record["padding"]))

    def deliveries(self, stream: bytes) -> Iterator[Delivery]:
        for message in stream.split(END_OF_FRAME)[:-1]:
            subscription = re.search(rb"\nsubscription:(\d+)\n", message)
            number = re.search(rb"\nnumber:(\d+)\n", message)
            assert subscription, message
            assert number, message
            yield int(subscription[1]), int(number[1])


def frame(command: str, headers: Record, body: str = "") -> bytes:
    lines = [command, *(f"{name}:{value}" for name, value in headers.items()), "", body]
    return "\n".join(lines).encode() + END_OF_FRAME


def _selector(filter: Filter) -> str:
    for predicate in filter.predicates:
        if predicate.operator not in COMPARISONS:
            raise PeerError(f"there is no selector for {filter}")
    return str(filter)


def _expect(command: str, answer: bytes) -> None:
    if not answer.startswith(command.encode()):
        raise PeerError(f"the broker answered {answer.decode()}, not {command}")


def _command(directory: Path, configuration: Path) -> list[str]:
    places = {"home": HOME, "base": directory, "conf": directory, "data": directory / "data"}
    return [
        "java",
        *JAVA_OPTIONS,
        *(f"-Dactivemq.{name}={place}" for name, place in places.items()),
        "-jar",
        str(LAUNCHER),
        "start",
        f"xbean:{configuration.as_uri()}",
    ]
