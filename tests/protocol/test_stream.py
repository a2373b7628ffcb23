"""A stream by hand, and over connections that break at random: every frame once, in order."""

from __future__ import annotations

from random import Random

import pytest

from godwit.errors import PeerError
from godwit.protocol import stream as stream_module
from godwit.protocol.frames import HEADER, framed
from godwit.protocol.stream import CHUNK_BYTES, Stream

A, B, C, D = (framed(body) for body in (b"a", b"bb", b"ccc", b"dddd"))


def stream_of(*frames: bytes) -> Stream:
    stream = Stream("one")
    for frame in frames:
        stream.put(frame)
    return stream


def numbers(frames: bytes) -> list[int]:
    """The frames of a piece of a stream, if each holds its number."""
    found, start = [], 0
    while start < len(frames):
        length, _ = HEADER.unpack_from(frames, start)
        start += HEADER.size + length
        found.append(int(frames[start - length : start].rstrip(b".")))
    return found


def test_frames_are_taken_in_the_order_in_which_they_were_put() -> None:
    stream = stream_of(A, B)

    assert stream.take() == A + B
    assert (stream.taken, stream.pending_bytes) == (2, 0)
    assert stream.unacknowledged_bytes == len(A + B)
    stream.put(C)
    assert stream.take() == C
    assert stream.taken == 3
    assert stream.take() == b""


def test_control_frames_are_taken_first_and_in_order_among_themselves() -> None:
    stream = stream_of(A)
    stream.put_first(B)
    stream.put_first(C)
    assert list(stream.frames()) == [B, C, A]

    assert stream.take() + stream.take() == B + C + A
    stream.put(A)
    stream.put_first(D)
    assert stream.take() + stream.take() == D + A, "and after what was taken before"
    assert stream.take_again(1) == C + A + D + A


def test_control_frames_keep_their_order_when_they_are_too_many_for_one_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_module, "CHUNK_BYTES", len(A) + len(B))
    stream = stream_of()
    for frame in (A, B, C):
        stream.put_first(frame)
    assert stream.take() == A + B
    stream.put_first(D)
    assert stream.take() == C + D


@pytest.mark.parametrize(
    "received",
    [
        pytest.param([1, 2, 3, 4], id="one by one"),
        pytest.param([4], id="all at once"),
        pytest.param([2, 4], id="two and two"),
        pytest.param([3, 1, 4], id="old news in between"),
    ],
)
def test_what_is_acknowledged_is_forgotten_however_it_is_grouped(received: list[int]) -> None:
    stream = stream_of(A, B)
    stream.take()
    stream.put(C)
    stream.take()
    stream.put(D)
    stream.take()

    for count in received:
        assert not stream.is_idle
        stream.acknowledge(count)
    assert stream.is_idle
    assert (stream.outstanding, stream.unacknowledged_bytes) == (0, 0)
    assert list(stream.frames()) == []


def test_what_is_outstanding_is_pending_or_not_acknowledged() -> None:
    stream = stream_of(A, B, C)
    assert stream.outstanding == 3
    stream.take()
    stream.put(D)
    stream.put_first(D)
    stream.acknowledge(2)
    stream.acknowledge(1)  # Late: changes nothing.
    assert stream.outstanding == 3
    assert not stream.is_idle


@pytest.mark.parametrize("received", range(5))
def test_what_was_taken_can_be_taken_again_from_any_number_on(received: int) -> None:
    stream = stream_of(A, B)
    stream.take()
    stream.put(C)
    stream.put(D)
    stream.take()

    assert stream.take_again(received) == b"".join((A, B, C, D)[received:])
    assert stream.take_again(received) == b"".join((A, B, C, D)[received:]), "and once more"
    assert stream.take() == b"", "but it is not pending"
    assert stream.acknowledged == 0, "to have received it is not to answer for it"
    assert stream.taken == 4


def test_nobody_acknowledges_what_was_not_sent() -> None:
    stream = stream_of(A, B, C)
    stream.take()
    stream.put(D)

    with pytest.raises(PeerError, match="acknowledged 4 frames; only 3 were sent"):
        stream.acknowledge(4)
    with pytest.raises(PeerError, match="received 4 frames; only 3 were sent"):
        stream.take_again(4)
    assert stream.take_again(0) == A + B + C, "and nothing was forgotten"


@pytest.mark.parametrize("unacknowledged", [0, 1])
def test_nobody_asks_again_for_what_it_has_acknowledged(unacknowledged: int) -> None:
    """It was discarded: a peer that needs it has lost count, and the stream cannot continue."""
    stream = stream_of(A, B)
    stream.take()
    if unacknowledged:
        stream.put(C)
        stream.take()
    stream.acknowledge(2)

    with pytest.raises(PeerError, match="received 1 frames, but acknowledged 2"):
        stream.take_again(1)


def test_many_frames_are_taken_in_chunks() -> None:
    """So that a megabyte is acknowledged, and discarded, piece by piece."""
    frame = framed(bytes(CHUNK_BYTES // 4))
    stream = stream_of(*[frame] * 10)

    sizes = []
    while stream.pending_bytes:
        sizes.append(len(stream.take()) // len(frame))
    assert sizes == [4, 4, 2]
    stream.acknowledge(7)
    assert stream.unacknowledged_bytes == 6 * len(frame), "a chunk counts until all of it has come"
    assert stream.take_again(7) == frame * 3


def test_a_frame_larger_than_a_chunk_is_taken_whole() -> None:
    large = framed(bytes(3 * CHUNK_BYTES))
    stream = stream_of(A, large, B)

    assert stream.take() == A + large
    assert stream.take() == B


class CutLine:
    """Two streams over connections that break again and again, at any moment."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._ends = (Stream("one"), Stream("one"))
        self._received: tuple[list[int], list[int]] = ([], [])
        self._put = [0, 0]
        self._under_way = [bytearray(), bytearray()]
        """Bytes from each end to the other."""

    def put(self, end: int) -> None:
        self._put[end] += 1
        length = self._random.choice((4, 10, 100, 900))
        self._ends[end].put(framed(str(self._put[end]).encode().ljust(length, b".")))

    def write(self, end: int) -> None:
        self._under_way[end] += self._ends[end].take()

    def read(self, end: int) -> None:
        """Receive the complete frames in some bytes of the other end."""
        wire = self._under_way[1 - end]
        readable, start = self._random.randint(0, len(wire)), 0
        while start + HEADER.size <= readable:
            following = start + HEADER.size + HEADER.unpack_from(wire, start)[0]
            if following > readable:
                break
            self._received[end].extend(numbers(bytes(wire[start:following])))
            self._ends[end].received += 1
            start = following
        del wire[:start]

    def acknowledge(self, end: int) -> None:
        """An acknowledgement may be delayed: any number up to the true one."""
        heard = self._ends[1 - end].received
        self._ends[end].acknowledge(self._random.randint(0, heard))

    def cut(self) -> None:
        """Bytes in transit are lost; on a new connection each end sends how much it received."""
        for end, stream in enumerate(self._ends):
            self._under_way[end][:] = stream.take_again(self._ends[1 - end].received)

    def step(self) -> None:
        actions = (self.put, self.write, self.read, self.acknowledge)
        if self._random.random() < 0.1:
            self.cut()
        else:
            self._random.choice(actions)(self._random.randrange(2))

    def finish(self) -> None:
        self.cut()
        for end, stream in enumerate(self._ends):
            while stream.pending_bytes:
                self.write(end)
        while any(self._under_way):
            self.read(0)
            self.read(1)

    def check(self) -> None:
        for end, stream in enumerate(self._ends):
            assert self._received[end] == list(range(1, self._put[1 - end] + 1))
            stream.acknowledge(self._ends[1 - end].received)
            assert stream.is_idle
            assert (stream.pending_bytes, stream.unacknowledged_bytes) == (0, 0)


@pytest.mark.parametrize("seed", range(60))
def test_a_stream_that_is_cut_anywhere_brings_every_frame_once_and_in_order(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "CHUNK_BYTES", 500)
    line = CutLine(seed)
    for _ in range(400):
        line.step()
    line.finish()
    line.check()
