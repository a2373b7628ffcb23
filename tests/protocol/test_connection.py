"""One connection: whole frames from any pieces, and one call of `on_lost`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import pytest
from tests.asynchronous import run
from tests.protocol.transports import FakeTransport, Recorder

from godwit.protocol import connection as connection_module
from godwit.protocol.connection import SILENT_HEARTBEATS_MAX, Connection
from godwit.protocol.frames import HELLO_BYTES_MAX, Goodbye, decode_welcome, encode_body, framed

FRAMES = [(0, b"one"), (7, b""), (65_535, b"three"), (1, b"x" * 3_000)]
BYTES = b"".join(framed(body, hops) for hops, body in FRAMES)

Scene = Callable[[Connection, Recorder, FakeTransport], None]


def on_stage(scene: Scene, *, heartbeat_s: float = 60.0) -> None:
    """Run `scene` with a new connection."""

    async def play() -> None:
        recorder, transport = Recorder(), FakeTransport()
        connection = Connection(recorder, heartbeat_s=heartbeat_s)
        connection.connection_made(transport)
        scene(connection, recorder, transport)
        connection.abort()

    run(play())


def farewell(transport: FakeTransport) -> str:
    """The reason in the Goodbye that was sent."""
    said = decode_welcome(transport.bodies()[-1])
    assert isinstance(said, Goodbye)
    return said.reason


def test_frames_that_come_together_are_one_read() -> None:
    def scene(connection: Connection, recorder: Recorder, _: FakeTransport) -> None:
        connection.data_received(BYTES)
        assert recorder.frames == FRAMES
        assert recorder.reads == [4]

    on_stage(scene)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7, 10, 1_000])
def test_frames_come_whole_out_of_pieces_of_any_size(size: int) -> None:
    def scene(connection: Connection, recorder: Recorder, _: FakeTransport) -> None:
        for start in range(0, len(BYTES), size):
            connection.data_received(BYTES[start : start + size])
        assert recorder.frames == FRAMES

    on_stage(scene)


@pytest.mark.parametrize("seed", range(20))
def test_frames_come_whole_out_of_pieces_cut_anywhere(seed: int) -> None:
    random = Random(seed)
    cuts = sorted(random.sample(range(1, len(BYTES)), random.randint(1, 12)))

    def scene(connection: Connection, recorder: Recorder, _: FakeTransport) -> None:
        for start, end in zip([0, *cuts], [*cuts, len(BYTES)], strict=True):
            connection.data_received(BYTES[start:end])
        assert recorder.frames == FRAMES

    on_stage(scene)


class CountingConnection(Connection):
    """Counts how often bytes are read, and how many."""

    looks = 0
    looked_bytes = 0

    def _read_frames(self, data: bytes) -> int:
        self.looks += 1
        self.looked_bytes += len(data)
        return super()._read_frames(data)


def test_a_large_frame_that_dribbles_in_is_not_looked_at_until_it_is_whole() -> None:
    """Otherwise a megabyte in pieces of a hundred bytes would be copied ten thousand times."""

    async def play() -> None:
        recorder = Recorder()
        connection = CountingConnection(recorder)
        connection.connection_made(FakeTransport())
        connection.frame_bytes_max = 2_000_000
        frame = framed(bytes(1_000_000))
        for start in range(0, len(frame), 100):
            connection.data_received(frame[start : start + 100])
        assert [len(body) for _, body in recorder.frames] == [1_000_000]
        assert connection.looks == 2, "for its length, and when all of it had come"
        assert connection.looked_bytes == 100 + len(frame)
        connection.data_received(framed(b"next"))
        assert recorder.frames[-1] == (0, b"next")
        connection.abort()

    run(play())


def test_a_large_frame_does_not_delay_the_small_one_behind_it() -> None:
    def scene(connection: Connection, recorder: Recorder, _: FakeTransport) -> None:
        both = framed(bytes(4_000)) + framed(b"next")
        for start, end in ((0, 1_000), (1_000, 4_009), (4_009, len(both))):
            connection.data_received(both[start:end])
        assert [len(body) for _, body in recorder.frames] == [4_000, 4]

    on_stage(scene)


def test_a_frame_that_is_too_long_ends_the_connection_before_it_has_come() -> None:
    def scene(connection: Connection, recorder: Recorder, transport: FakeTransport) -> None:
        connection.data_received(framed(bytes(HELLO_BYTES_MAX)))
        assert len(recorder.frames) == 1
        connection.data_received(framed(bytes(HELLO_BYTES_MAX + 1))[:6])
        assert recorder.lost == [("a frame of 4097 bytes; at most 4096", True)]
        assert farewell(transport) == "a frame of 4097 bytes; at most 4096"
        assert transport.was_closed

    on_stage(scene)


def test_a_receiver_may_raise_the_limit_between_two_frames_of_one_read() -> None:
    class Raising(Recorder):
        def on_frame(self, hops: int, body: bytes) -> None:
            super().on_frame(hops, body)
            connection.frame_bytes_max = 10_000

    async def play() -> None:
        connection.connection_made(FakeTransport())
        connection.data_received(framed(b"hello") + framed(bytes(9_999)))
        assert [len(body) for _, body in receiver.frames] == [5, 9_999]
        connection.abort()

    receiver = Raising()
    connection = Connection(receiver)
    run(play())


def test_a_peer_that_breaks_the_rules_loses_its_connection_and_hears_why() -> None:
    def scene(connection: Connection, recorder: Recorder, transport: FakeTransport) -> None:
        connection.data_received(framed(b"good") + framed(Recorder.POISON) + framed(b"more"))
        assert recorder.frames == [(0, b"good")]
        assert recorder.lost == [("that was poison", True)]
        assert farewell(transport) == "that was poison"
        # Later bytes, and the end of the transport, are ignored.
        connection.data_received(framed(b"late"))
        connection.connection_lost(ConnectionResetError("gone"))
        assert recorder.frames == [(0, b"good")]
        assert len(recorder.lost) == 1

    on_stage(scene)


def test_a_connection_that_is_lost_says_so_once() -> None:
    def scene(connection: Connection, recorder: Recorder, _: FakeTransport) -> None:
        connection.connection_lost(ConnectionResetError("reset by peer"))
        connection.connection_lost(None)
        assert recorder.lost == [("connection lost: reset by peer", False)]
        assert not connection.is_writable
        connection.write(b"to nobody")

    on_stage(scene)


def test_whoever_ends_a_connection_is_not_told_that_it_ended() -> None:
    def scene(connection: Connection, recorder: Recorder, transport: FakeTransport) -> None:
        connection.close(Goodbye(reason="enough"))
        connection.close(Goodbye(reason="twice"))
        assert transport.bodies() == [encode_body(Goodbye(reason="enough"))]
        assert transport.was_closed
        assert not transport.was_aborted.is_set()
        connection.connection_lost(None)
        connection.data_received(BYTES)
        connection.resume_writing()
        assert (recorder.lost, recorder.frames, recorder.writable) == ([], [], 0)

    on_stage(scene)


def test_writing_stops_and_goes_on_with_the_transport() -> None:
    def scene(connection: Connection, recorder: Recorder, _: FakeTransport) -> None:
        assert connection.is_writable
        connection.pause_writing()
        assert not connection.is_writable
        connection.resume_writing()
        assert connection.is_writable
        assert recorder.writable == 1

    on_stage(scene)


def test_a_peer_that_does_not_read_its_farewell_is_not_waited_for_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_module, "LINGER_S", 0.01)

    async def play() -> None:
        transport = FakeTransport()
        transport.unsent_bytes = 1
        connection = Connection(Recorder())
        connection.connection_made(transport)
        connection.close()
        assert not transport.was_aborted.is_set()
        await transport.was_aborted.wait()

    run(play())


async def silence(recorder: Recorder, said: Iterable[bytes]) -> Connection:
    """A connection with quick heartbeats, and a peer that sends one piece at each of them."""
    connection = Connection(recorder, heartbeat_s=0.005)
    connection.connection_made(FakeTransport())
    for data in said:
        recorder.beaten.clear()
        await recorder.beaten.wait()
        connection.data_received(data)
    return connection


def test_a_peer_that_is_silent_for_long_is_taken_for_dead() -> None:
    async def play() -> None:
        recorder = Recorder()
        await silence(recorder, [])
        await recorder.gone.wait()
        assert recorder.lost == [("silent for 0.015 s", False)]
        assert recorder.heartbeats == SILENT_HEARTBEATS_MAX, "while we said that we are alive"

    run(play())


def test_a_peer_that_says_anything_is_alive() -> None:
    async def play() -> None:
        recorder = Recorder()
        connection = await silence(recorder, [b"\x00"] * 5)  # Not even a whole frame.
        assert recorder.lost == []
        assert recorder.heartbeats >= 5
        connection.abort()

    run(play())


def test_a_peer_that_we_do_not_read_from_is_not_taken_for_silent() -> None:
    async def play() -> None:
        recorder, transport = Recorder(), FakeTransport()
        connection = Connection(recorder, heartbeat_s=0.002)
        connection.connection_made(transport)
        connection.pause_reading()
        assert not transport.is_reading_now
        for _ in range(3 * SILENT_HEARTBEATS_MAX):
            recorder.beaten.clear()
            await recorder.beaten.wait()
        assert recorder.lost == []
        connection.resume_reading()
        assert transport.is_reading_now
        await recorder.gone.wait()
        assert recorder.lost[0][0].startswith("silent for")

    run(play())


def test_no_heartbeat_follows_the_end() -> None:
    async def play() -> None:
        ended, going_on = Recorder(), Recorder()
        for recorder in (ended, going_on):
            connection = Connection(recorder, heartbeat_s=0.002)
            connection.connection_made(FakeTransport())
            if recorder is ended:
                connection.close()
        await going_on.gone.wait()
        assert ended.heartbeats == 0
        assert ended.lost == []

    run(play())
