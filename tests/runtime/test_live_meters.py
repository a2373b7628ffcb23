"""Ir and Or of a live broker: from what waits in its sockets, and from what they take."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest
from tests.asynchronous import run, until
from tests.runtime.scenes import NUMBERS, line_of, numbers, publish

from godwit.broker.meters import IDLE
from godwit.client import Client, connect
from godwit.protocol.connection import WRITE_BUFFER_BYTES, Connection
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.live_meters import LiveMeters, LoadSample
from godwit.runtime.port import Port, Traffic
from godwit.runtime.server import BrokerServer
from godwit.runtime.settings import BrokerSettings, Limits, NetworkSettings
from godwit.testing import run_in_virtual_time
from godwit.testing.memory_network import MemoryNetwork

BANDWIDTH = 1_000.0
#: A message of 94 bytes, and its header.
BODY_BYTES, FRAME_BYTES = 94, 100
MEBIBYTE = 1024 * 1024
#: Of a publication of which a publisher sends two, and the system does not take both.
PAYLOAD_BYTES = 950_000


# -- windows, worked by hand -------------------------------------------------------------------


def handled(meters: LiveMeters, publications: int, serving_s: float) -> None:
    meters.on_handled(
        publications, publications * BODY_BYTES, serving_s, now_s=0.0, messages=publications
    )


def test_input_utilisation_exceeds_one_while_a_backlog_grows() -> None:
    """A broker that takes 0.1 s for each can handle ten in a second; thirty arrive."""
    meters = LiveMeters(output_bandwidth_bytes_s=BANDWIDTH, window_s=1.0, now_s=0.0)
    assert meters.load(5.0) == IDLE

    handled(meters, 10, serving_s=1.0)
    meters.close(LoadSample(waiting_bytes=20 * FRAME_BYTES), 1.0)
    assert meters.last.publications_per_s == pytest.approx(30.0)
    assert meters.last.matching_delay_s == pytest.approx(0.1)
    assert meters.last.input_utilisation == pytest.approx(3.0)

    handled(meters, 10, serving_s=1.0)
    meters.close(LoadSample(waiting_bytes=20 * FRAME_BYTES), 2.0)
    assert meters.last.input_utilisation == pytest.approx(1.0), "as much comes as is handled"

    handled(meters, 20, serving_s=2.0)
    meters.close(LoadSample(), 4.0)
    assert meters.last.publications_per_s == 0.0, "what was waiting arrived before"


def test_a_window_is_as_long_as_it_was() -> None:
    meters = LiveMeters(output_bandwidth_bytes_s=BANDWIDTH, window_s=1.0, now_s=100.0)
    handled(meters, 10, serving_s=1.0)
    meters.close(LoadSample(messages_out=5, bytes_out=1_000), 104.0)

    load = meters.last
    assert load.window_s == pytest.approx(4.0)
    assert load.publications_per_s == pytest.approx(2.5)
    assert load.bytes_in_per_s == pytest.approx(10 * BODY_BYTES / 4)
    assert load.messages_out_per_s == pytest.approx(1.25)
    assert load.bytes_out_per_s == pytest.approx(250.0)
    assert load.output_utilisation == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("before", "sample", "expected"),
    [
        pytest.param(0, LoadSample(bytes_out=400), 0.4, id="all is taken"),
        pytest.param(0, LoadSample(bytes_out=1_000, backlog_bytes=1_000), 2.0, id="twice too much"),
        pytest.param(900, LoadSample(bytes_out=900), 0.9, id="a backlog that drains (E3)"),
        pytest.param(0, LoadSample(backlog_bytes=500), 1.5, id="nothing is taken (E3)"),
        pytest.param(0, LoadSample(bytes_out=100, blocked=0.8), 0.8, id="sockets take nothing"),
        pytest.param(0, LoadSample(), 0.0, id="nothing to send"),
    ],
)
def test_output_utilisation(before: int, sample: LoadSample, expected: float) -> None:
    meters = LiveMeters(output_bandwidth_bytes_s=BANDWIDTH, window_s=1.0, now_s=0.0)
    meters.close(LoadSample(backlog_bytes=before), 1.0)
    meters.close(sample, 2.0)
    assert meters.last.output_utilisation == pytest.approx(expected)


def test_what_the_system_has_not_taken_is_sent_when_it_is_taken() -> None:
    traffic = Traffic(messages_out=3, bytes_out=1_000)
    assert traffic.take(unsent_bytes=400) == (3, 600)
    traffic.bytes_out += 100
    assert traffic.take(unsent_bytes=450) == (0, 50)
    assert traffic.take(unsent_bytes=0) == (0, 450)


# -- real sockets ------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def serving(
    settings: BrokerSettings | None = None, limits: Limits | None = None
) -> AsyncIterator[BrokerServer]:
    settings = settings or BrokerSettings(id="B1")
    network = NetworkSettings(broker=[settings], limits=limits or Limits(load_window_s=3_600))
    async with BrokerServer(network, settings) as server:
        yield server


@contextlib.asynccontextmanager
async def publisher(server: BrokerServer) -> AsyncIterator[Client]:
    async with connect(server.url, name="paul") as paul:
        await paul.advertise(NUMBERS)
        yield paul


def port_of(node: BrokerNode, name: str) -> Port:
    (port,) = (port for port in node.ports.values() if port.hop.name == name)
    return port


def test_publications_that_wait_in_the_socket_have_arrived() -> None:
    async def scenario() -> None:
        async with serving() as server, publisher(server) as paul:
            node = server.node
            await publish(paul, range(100))
            connection = port_of(node, "paul").connection
            assert connection is not None
            node.sampler.close_window()

            await publish(paul, range(100))
            connection.pause_reading()
            for x in range(300):
                await paul.publish({"x": x}, payload=bytes(200))
            sent = paul.session.stream
            await until(lambda: sent.outstanding == 300 and not sent.pending_bytes)
            await until(lambda: connection.unread_bytes >= sent.unacknowledged_bytes)
            node.sampler.close_window()
            load = node.meters.last
            arrived = load.publications_per_s * load.window_s
            assert arrived == pytest.approx(400, rel=0.02)
            assert load.messages_in_per_s * load.window_s == pytest.approx(100)
            of_arrivals = load.publications_per_s * load.matching_delay_s
            assert load.input_utilisation == pytest.approx(of_arrivals)
            waiting_s = node.broker.delays.input_queue_s.value
            assert waiting_s == pytest.approx(300 * load.matching_delay_s, rel=0.03)

            connection.resume_reading()
            await paul.flush()
            node.sampler.close_window()
            load = node.meters.last
            assert load.publications_per_s * load.window_s <= 8, "they arrived before"
            assert load.messages_in_per_s * load.window_s == pytest.approx(300)

    run(scenario())


def test_subscribers_that_send_nothing_are_not_asked_what_waits() -> None:
    async def scenario() -> None:
        async with (
            serving() as server,
            publisher(server) as paul,
            connect(server.url, name="alice") as alice,
            alice.subscribe(NUMBERS) as events,
        ):
            await events.in_effect()
            await publish(paul, range(10))
            assert await numbers(events, 10) == list(range(10))
            ports = server.node.ports.values()
            assert {port.hop.name for port in ports if port.traffic.has_published} == {"paul"}

    run(scenario())


def test_the_output_is_what_the_system_takes() -> None:
    """A subscriber does not read: its socket takes some, and the rest is a backlog."""

    async def scenario() -> None:
        limits = Limits(load_window_s=3_600, window_bytes=256 * MEBIBYTE, patience_s=60)
        async with (
            serving(limits=limits) as server,
            publisher(server) as paul,
            connect(server.url, name="alice") as alice,
            alice.subscribe(NUMBERS) as events,
        ):
            await events.in_effect()
            node = server.node
            port = port_of(node, "alice")
            connection = port.connection
            assert connection is not None
            _keep_little(connection)
            _keep_little(line_of(alice))
            node.sampler.close_window()
            line_of(alice).pause_reading()
            count = 2
            job = asyncio.create_task(publish(paul, range(count), payload_bytes=PAYLOAD_BYTES))
            await until(lambda: port.stream.position >= count and not connection.is_writable)
            node.sampler.close_window()
            load = node.meters.last
            written_bytes = load.bytes_out_per_s * load.window_s
            unsent_bytes = connection.unsent_bytes
            assert unsent_bytes >= WRITE_BUFFER_BYTES
            assert written_bytes > 0
            queued_bytes = port.backlog_bytes + written_bytes
            assert queued_bytes == pytest.approx(count * PAYLOAD_BYTES, rel=0.01)
            # The only socket with traffic was blocked for most of the time, and took only a part.
            assert load.output_utilisation > written_bytes / (
                load.window_s * node.meters.output_bandwidth_bytes_s
            )

            waits_s = node.broker.delays.to_clients_s.value
            assert waits_s == pytest.approx(port.backlog_bytes / load.bytes_out_per_s)

            line_of(alice).resume_reading()
            await numbers(events, count)
            await job
            node.sampler.close_window()
            load = node.meters.last
            rest_bytes = load.bytes_out_per_s * load.window_s
            assert written_bytes + rest_bytes == pytest.approx(count * PAYLOAD_BYTES, rel=0.01)

    run(scenario())


def _keep_little(connection: Connection) -> None:
    """Let the system keep little of what was sent and not read."""
    assert connection._transport is not None
    kept = connection._transport.get_extra_info("socket")
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)


def test_what_waits_for_a_peer_is_no_backlog_of_the_output() -> None:
    """It is away, or isolated: no bandwidth would help it."""

    async def scenario() -> None:
        limits = Limits(window_bytes=1024, patience_s=0.02)
        async with (
            MemoryNetwork(limits=limits) as network,
            network.connect(name="alice") as alice,
            alice.subscribe(NUMBERS) as events,
            network.connect(name="paul") as paul,
        ):
            await events.in_effect()
            await paul.advertise(NUMBERS)
            port = port_of(network.nodes["B1"], "alice")
            line_of(alice).pause_reading()
            await publish(paul, range(200))
            await publish(paul, range(200, 400))
            assert port.is_isolated
            assert port.stream.pending_bytes > 0
            assert port.backlog_bytes == 0
            line_of(alice).resume_reading()
            assert await numbers(events, 400) == list(range(400))

    run(scenario())


def test_the_time_of_acknowledgements_counts_with_the_publications() -> None:
    async def scenario() -> None:
        async with (
            serving() as server,
            publisher(server) as paul,
            connect(server.url, name="alice") as alice,
            alice.subscribe(NUMBERS) as events,
        ):
            await events.in_effect()
            node = server.node
            port = port_of(node, "alice")
            connection = port.connection
            assert connection is not None
            await publish(paul, range(10))
            await until(lambda: port.stream.is_idle)
            assert node.figures._answers_s > 0
            answers_s, serving_s = node.figures._answers_s, node.meters._serving_s
            await publish(paul, range(1))
            assert node.meters._serving_s > serving_s + answers_s
            await until(lambda: port.stream.is_idle)
            since_s = connection.read_start_s
            answers_s = node.figures._answers_s
            line_of(alice).receiver.on_heartbeat()
            await until(lambda: connection.read_start_s > since_s)
            assert node.figures._answers_s == answers_s, "a heartbeat answers nothing"

    run(scenario())


def test_windows_close_by_themselves() -> None:
    async def scenario() -> None:
        async with serving(limits=Limits(load_window_s=0.1)) as server, publisher(server) as paul:
            await publish(paul, range(10))
            await until(lambda: server.node.meters.last.publications_per_s > 0)
            await until(lambda: server.node.meters.last.publications_per_s == 0)

    run(scenario())


def test_a_loop_in_virtual_time_closes_no_windows_that_have_no_length() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(limits=Limits(load_window_s=3_600)) as network:
            await asyncio.sleep(36_000)
            assert network.nodes["B1"].meters.last == IDLE

    run_in_virtual_time(scenario())


def test_memory_is_measured_against_what_the_process_should_use() -> None:
    async def scenario() -> None:
        limited = BrokerSettings(id="B1", memory_bytes=64 * 1024 * MEBIBYTE)
        async with serving(limited) as server:
            assert 0 < server.node.broker.memory_utilisation() < 1
        async with serving() as server:
            assert server.node.broker.memory_utilisation() == 0.0

    run(scenario())
