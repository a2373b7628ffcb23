"""A broker that keeps to its bandwidth: how much leaves, who comes first, and who is not slow."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.asynchronous import run
from tests.runtime.scenes import NUMBERS, line_of, numbers, publish

from godwit.client import connect
from godwit.protocol.stream import Stream
from godwit.runtime.output_limiter import BURST_S, TURN_BYTES_MIN, OutputLimiter
from godwit.runtime.port import ClientPort
from godwit.runtime.server import BrokerServer
from godwit.runtime.settings import BrokerSettings, Limits, NetworkSettings
from godwit.testing import run_in_virtual_time

RATE = 100_000.0
FRAME = bytes(1_000)


class FakePort:
    """Takes all it gets, while it is open."""

    def __init__(self, limiter: OutputLimiter, log: list[tuple[str, int]], name: str) -> None:
        self.stream = Stream(name)
        self.is_open = True
        self._limiter = limiter
        self._log = log

    def put(self, frames: int) -> None:
        for _ in range(frames):
            self.stream.put(FRAME)
        self.flush()

    def write_some(self, chunk_bytes: int) -> int:
        if not self.is_open:
            return 0
        written_bytes = len(self.stream.take(chunk_bytes))
        self._log.append((self.stream.id, written_bytes))
        return written_bytes

    def flush(self) -> None:
        self._limiter.flush(self)


class Scene:
    """A limiter in virtual time, with a log of what was written."""

    def __init__(self) -> None:
        self.log: list[tuple[str, int]] = []
        self.limiter = OutputLimiter(RATE, asyncio.get_running_loop().time)

    def port(self, name: str) -> FakePort:
        return FakePort(self.limiter, self.log, name)

    def written_bytes(self, name: str | None = None) -> int:
        return sum(size for port, size in self.log if name in (None, port))


@pytest.mark.parametrize("seconds", [0.0, 0.5, 3.0])
def test_no_more_than_the_rate_leaves_and_no_less(seconds: float) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.port("a").put(1_000)
        await asyncio.sleep(seconds)
        allowed_bytes = RATE * (seconds + BURST_S)
        assert allowed_bytes - TURN_BYTES_MIN < scene.written_bytes()
        assert scene.written_bytes() <= allowed_bytes + TURN_BYTES_MIN + len(FRAME)

    run_in_virtual_time(scenario())


def test_after_a_pause_one_burst_may_leave_and_not_what_was_saved() -> None:
    async def scenario() -> None:
        scene = Scene()
        await asyncio.sleep(60)
        scene.port("a").put(1_000)
        assert scene.written_bytes() <= RATE * BURST_S + TURN_BYTES_MIN + len(FRAME)

    run_in_virtual_time(scenario())


def test_ports_share_in_turn_however_much_one_has() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.port("greedy").put(10_000)
        for name in ("b", "c"):
            scene.port(name).put(100)
        await asyncio.sleep(1.5)
        shares = [scene.written_bytes(name) for name in ("b", "c")]
        assert max(shares) - min(shares) <= 2 * (TURN_BYTES_MIN + len(FRAME))
        await asyncio.sleep(5)
        assert scene.written_bytes("b") == scene.written_bytes("c") == 100 * len(FRAME)

    run_in_virtual_time(scenario())


def test_control_publications_of_any_port_go_first() -> None:
    async def scenario() -> None:
        scene = Scene()
        ports = [scene.port(name) for name in "abc"]
        for port in ports:
            port.put(100)
        await asyncio.sleep(0.2)
        for port in ports:
            port.stream.put_first(FRAME)
            port.flush()
            scene.log.clear()
            await asyncio.sleep(0.1)
            assert scene.log[0] == (port.stream.id, len(FRAME))

    run_in_virtual_time(scenario())


def test_what_is_written_at_once_is_paid_for_afterwards() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.limiter.charge(int(2 * RATE))
        scene.port("a").put(10)
        await asyncio.sleep(1.5)
        assert not scene.log
        await asyncio.sleep(1.0)
        assert scene.written_bytes() == 10 * len(FRAME)

    run_in_virtual_time(scenario())


def test_a_port_that_takes_nothing_does_not_hold_up_the_others() -> None:
    async def scenario() -> None:
        scene = Scene()
        blocked, other = scene.port("blocked"), scene.port("other")
        blocked.is_open = False
        blocked.put(100)
        other.put(50)
        await asyncio.sleep(2)
        assert not scene.limiter.holds(blocked)
        assert scene.written_bytes("other") == 50 * len(FRAME)
        blocked.is_open = True
        blocked.flush()
        await asyncio.sleep(2)
        assert scene.written_bytes("blocked") == 100 * len(FRAME)

    run_in_virtual_time(scenario())


def test_a_port_that_left_is_not_written_to() -> None:
    async def scenario() -> None:
        scene = Scene()
        port = scene.port("a")
        port.put(100)
        scene.limiter.leave(port)
        scene.log.clear()
        await asyncio.sleep(2)
        assert not scene.log

    run_in_virtual_time(scenario())


# -- in a broker -------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def limited(limits: Limits) -> AsyncIterator[BrokerServer]:
    settings = BrokerSettings(id="B1", output_bandwidth_bytes_s=200_000.0, limit_output=True)
    network = NetworkSettings(broker=[settings], limits=limits)
    async with BrokerServer(network, settings) as server:
        yield server


def test_a_subscriber_that_waits_for_the_bandwidth_is_not_slow() -> None:
    """What is queued takes many times longer than `patience_s`, and nothing is dropped."""

    async def scenario() -> None:
        limits = Limits(window_bytes=65_536, patience_s=0.02, client_queue_bytes=4_096)
        async with (
            limited(limits) as server,
            connect(server.url, name="alice") as alice,
            connect(server.url, name="bob") as bob,
            connect(server.url, name="paul") as paul,
            alice.subscribe(NUMBERS) as to_alice,
            bob.subscribe(NUMBERS) as to_bob,
        ):
            await paul.advertise(NUMBERS)
            await to_alice.in_effect()
            await to_bob.in_effect()
            await publish(paul, range(500), payload_bytes=100)
            assert await numbers(to_alice, 500) == list(range(500))
            assert await numbers(to_bob, 500) == list(range(500))
            ports = [p for p in server.node.ports.values() if isinstance(p, ClientPort)]
            assert len(ports) == 3
            assert not any(port.traffic.isolations or port.traffic.dropped for port in ports)

    run(scenario())


def test_a_subscriber_that_does_not_read_is_still_isolated() -> None:
    async def scenario() -> None:
        limits = Limits(window_bytes=8_192, patience_s=0.02)
        async with (
            limited(limits) as server,
            connect(server.url, name="alice") as alice,
            connect(server.url, name="paul") as paul,
            alice.subscribe(NUMBERS) as events,
        ):
            await paul.advertise(NUMBERS)
            await events.in_effect()
            line_of(alice).pause_reading()
            await publish(paul, range(200), payload_bytes=100)
            (port,) = (p for p in server.node.ports.values() if p.hop.name == "alice")
            assert port.traffic.isolations == 1
            line_of(alice).resume_reading()
            assert await numbers(events, 200) == list(range(200))

    run(scenario())
