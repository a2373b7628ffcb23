"""A hundred thousand hostile frames: the broker stays, and its clients do not notice."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random

import msgspec
import pytest
import uvloop
from tests.live.hostile import (
    BEFORE_HELLO,
    FATAL,
    HARMLESS,
    REFUSED,
    Phrase,
    flipped,
    hello,
    publication,
)
from tests.live.tick_clients import tick_publisher, tick_subscriber
from tests.live.watching import is_healthy, metric, tables, until

from godwit.overlay.topology import chain
from godwit.protocol.addresses import url_address
from godwit.protocol.frames import HEADER, encode
from godwit.runtime.processes import Processes
from godwit.runtime.settings import Limits, network_of
from godwit.testing.table_checks import table_errors

FRAMES = 100_000
CALLERS_AT_A_TIME = 50
HALF_OPEN = 150
#: What the broker may have grown by when it is over.
GROWTH_BYTES_MAX = 64 * 1024 * 1024
SECRET = "tell nobody"  # noqa: S105

LIMITS = Limits(heartbeat_s=1.0, session_s=1.0)


@contextlib.contextmanager
def hung_up() -> Iterator[None]:
    """The broker may hang up at any moment; but it must not keep us waiting."""
    try:
        yield
    except TimeoutError:
        raise
    except OSError:
        pass


class Attackers:
    """Connect many at a time, and send frames of the catalogue."""

    def __init__(self, url: str, random: Random) -> None:
        self.frames = 0
        self.calls = 0
        self.answered: Counter[bool] = Counter()
        self._address = url_address(url)
        self._random = random

    async def attack(self, frames: int) -> None:
        async with asyncio.TaskGroup() as callers:
            for _ in range(CALLERS_AT_A_TIME):
                callers.create_task(self._call_again(frames))

    async def _call_again(self, frames: int) -> None:
        while self.frames < frames:
            self.calls += 1
            await self._call(f"evil-{self.calls}")

    async def _call(self, name: str) -> None:
        """One connection: before or after a hello, up to a frame that ends it."""
        draw = self._random
        if draw.random() < 0.3:
            await self._say([self._draw(BEFORE_HELLO, name)], is_dribbled=False)
            return
        phrases = [hello(name)]
        said = draw.choice((REFUSED, {**REFUSED, **HARMLESS}))
        phrases += [self._draw(said, name) for _ in range(draw.randint(0, 100))]
        if draw.random() < 0.1:
            frame = encode(publication(name, draw))
            phrases += [flipped(frame, draw) for _ in range(10)]
        if draw.random() < 0.9:
            phrases.append(self._draw(FATAL, name))
        await self._say(phrases, is_dribbled=len(phrases) < 8)

    def _draw(self, phrases: Mapping[str, Phrase], name: str) -> bytes:
        return self._random.choice(list(phrases.values()))(name, self._random)

    async def _say(self, phrases: Sequence[bytes], *, is_dribbled: bool) -> None:
        reader, writer = await asyncio.open_connection(*self._address)
        self.frames += len(phrases)
        try:
            with hung_up():
                if is_dribbled:
                    for byte in b"".join(phrases)[:2_000]:
                        writer.write(bytes([byte]))
                        await writer.drain()
                else:
                    writer.writelines(phrases)
                if self._random.random() < 0.5:
                    writer.write_eof()
                    async with asyncio.timeout(30):
                        self.answered[bool(await reader.read())] += 1
        finally:
            writer.transport.abort()

    async def stay_half_open(self, count: int) -> None:
        """Connect, begin a frame or a hello, and send nothing more until the broker closes."""
        async with asyncio.TaskGroup() as callers:
            for number in range(count):
                callers.create_task(self._stay(number))

    async def _stay(self, number: int) -> None:
        reader, writer = await asyncio.open_connection(*self._address)
        begun = HEADER.pack(4_000, 0)
        said = (b"", b"\x00\x00", begun, hello(f"silent-{number}"))[number % 4]
        writer.write(said)
        dripping = asyncio.create_task(_drip(writer) if number % 8 == 2 else asyncio.sleep(0))
        try:
            with hung_up():
                async with asyncio.timeout(30):
                    while await reader.read(4_096):
                        pass
        finally:
            dripping.cancel()
            writer.transport.abort()


async def _drip(writer: asyncio.StreamWriter) -> None:
    """Go on with a hello, so slowly that it would take minutes."""
    for byte in bytes(1_000):
        await asyncio.sleep(0.3)
        writer.write(bytes([byte]))


def test_a_broker_survives_a_hundred_thousand_hostile_frames(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Nor does it log an error: what peers do wrong is no fault of ours."""
    uvloop.run(_survives(seed=1))

    assert capfd.readouterr().err == ""


async def _survives(seed: int) -> None:
    topology = chain(1)
    network = msgspec.structs.replace(
        network_of(topology, http_port=0), limits=LIMITS, secret=SECRET
    )
    async with (
        asyncio.timeout(120),
        Processes(network, log_level="error") as running,
        tick_publisher(running.url("B1"), "paul") as paul,
        tick_subscriber(running.url("B1"), "alice") as alice,
    ):
        open_files = await metric(running, "B1", "process_open_fds")
        memory_bytes = await metric(running, "B1", "process_resident_memory_bytes")
        pid = running.pid("B1")
        attackers = Attackers(running.url("B1"), Random(seed))
        async with paul.publishing(per_s=100, burst=1):
            await asyncio.gather(attackers.attack(FRAMES), attackers.stay_half_open(HALF_OPEN))
        said = f"seed {seed}: {attackers.calls} calls, {attackers.frames} frames"

        await alice.has_received(paul)
        assert alice.has_received_all(paul), said
        assert (paul.client.restarts, alice.client.restarts) == (0, 0), said
        assert attackers.frames >= FRAMES
        assert attackers.calls > 2_000, said
        assert attackers.answered[True] > 100, "they are told why"

        async def are_gone() -> bool:
            clients = await metric(running, "B1", "godwit_peers")
            return clients == 2.0 and await metric(running, "B1", "process_open_fds") <= open_files

        await until(are_gone)
        assert running.pid("B1") == pid
        assert await is_healthy(running, "B1")
        assert await metric(running, "B1", "godwit_connections_refused_total") > 1_000, said
        sessions = [paul.client.session, alice.client.session]
        assert table_errors(topology, await tables(running), sessions) == []
        grown_bytes = await metric(running, "B1", "process_resident_memory_bytes") - memory_bytes
        assert grown_bytes < GROWTH_BYTES_MAX, said


def test_each_hostile_frame_ends_its_connection_or_is_refused() -> None:
    uvloop.run(_each_by_itself())


async def _each_by_itself() -> None:
    network = msgspec.structs.replace(network_of(chain(1)), secret=SECRET)
    async with (
        asyncio.timeout(60),
        Processes(network, log_level="error") as running,
        tick_publisher(running.url("B1"), "paul"),
        tick_subscriber(running.url("B1"), "alice"),
    ):
        answers = {
            **{f"at first {k}": await _answers(running, p) for k, p in BEFORE_HELLO.items()},
            **{k: await _answers(running, p, has_name=True) for k, p in FATAL.items()},
        }
        silent = {"half a header", "half a hello"}
        unended = [what for what, said in answers.items() if not said.endswith("Goodbye")]
        assert {what.removeprefix("at first ") for what in unended} == silent, answers

        for what, phrase in {**REFUSED, **HARMLESS}.items():
            said = await _answers(running, phrase, has_name=True)
            assert "Goodbye" not in said, f"{what}: {said}"
            assert ("Refusal" in said) == (what in REFUSED), f"{what}: {said}"


async def _answers(running: Processes, phrase: Phrase, *, has_name: bool = False) -> str:
    """The kinds of frames that the broker answers, up to the end."""
    reader, writer = await asyncio.open_connection(*url_address(running.url("B1")))
    greeting = hello("mallory") if has_name else b""
    writer.write(greeting + phrase("mallory", Random(1)))
    writer.write_eof()
    answered = b""
    with contextlib.suppress(ConnectionResetError):
        while data := await reader.read(65_536):
            answered += data
    writer.transport.abort()
    return " ".join(_kinds(answered))


def _kinds(frames: bytes) -> Iterator[str]:
    while frames:
        length, _ = HEADER.unpack_from(frames)
        kind = msgspec.msgpack.decode(frames[HEADER.size : HEADER.size + length])[0]
        yield {8: "Refusal", 21: "Welcome", 22: "Acknowledge", 23: "Goodbye"}.get(kind, str(kind))
        frames = frames[HEADER.size + length :]
