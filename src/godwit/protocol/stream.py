"""A stream: numbered frames in both directions between two peers, which outlives its connections.

    put --> [pending] --> take: numbered, written --> [unacknowledged] --> acknowledge: discarded

When a connection is lost, both sides keep what the other has not acknowledged.  When they connect
again, each sends the number of frames that it has received, and the other continues from there:
nothing is lost or duplicated.  To receive a frame is less than to acknowledge it: with an
acknowledgement the peer takes responsibility for it.  If a peer has forgotten the stream (it
restarted, or gave up waiting), both start from nothing.

A caller may need to know when the peer has acknowledged a frame: `position` counts the frames that
were put, except for those put first and those put uncounted, and `answered` follows it.

S1  Frames are numbered 1, 2, 3 ... in the order in which they are taken.
S2  What was taken and not acknowledged can be taken again, from any number on.
S3  When `answered` has reached a position, the peer has acknowledged all that was counted up to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import pairwise

from godwit.errors import PeerError
from godwit.protocol.frames import HEADER

#: Taken, written and discarded together.  Larger chunks are not faster, smaller ones no leaner.
CHUNK_BYTES = 262_144


class Stream:
    __slots__ = (
        "_base", "_control", "_pending", "_taken_in_turn", "_unacknowledged", "_uncounted",
        "acknowledged", "answered", "id", "pending_bytes", "received", "taken",
        "unacknowledged_bytes",
    )  # fmt: skip

    def __init__(self, id: str) -> None:
        self.id = id
        self.received = 0
        """Numbered frames of the peer that were received."""
        self.taken = 0
        self.acknowledged = 0
        self.pending_bytes = 0
        self.unacknowledged_bytes = 0
        self.answered = 0
        self._pending: list[bytes] = []
        self._control: list[bytes] = []
        # (number of its last frame, position then, the frames), oldest first.
        self._unacknowledged: deque[tuple[int, int, bytes]] = deque()
        # Frames that were taken in the order of putting; the numbers of uncounted frames among
        # those and the pending ones; and the offset from such a number to a position.
        self._taken_in_turn = 0
        self._uncounted: deque[int] = deque()
        self._base = 0

    def put(self, frame: bytes) -> None:
        self._pending.append(frame)
        self.pending_bytes += len(frame)

    def put_all(self, frames: list[bytes]) -> None:
        self._pending += frames
        self.pending_bytes += sum(map(len, frames))

    def put_uncounted(self, frame: bytes) -> None:
        """Put a frame without a position: its acknowledgement does not matter to the caller."""
        self.put(frame)
        self._uncounted.append(self._taken_in_turn + len(self._pending))

    @property
    def position(self) -> int:
        """The position of the last frame that was put."""
        return self._base + self._taken_in_turn + len(self._pending) - len(self._uncounted)

    def begin_at(self, position: int) -> None:
        """Continue counting from here; nothing has been taken yet."""
        self._base += position - self.position
        self.answered = position

    def take_over(self, received: int) -> None:
        """Continue another process's stream; the peer has received so many frames of it."""
        assert not self.taken, "frames were taken already"
        self.taken = self.acknowledged = received

    def put_first(self, frame: bytes) -> None:
        """Put a frame before everything that is pending, except others that were put first."""
        self._control.append(frame)
        self.pending_bytes += len(frame)

    @property
    def has_first(self) -> bool:
        """Whether frames that were put first are pending: `take` takes them."""
        return bool(self._control)

    @property
    def outstanding(self) -> int:
        """Frames that the peer has not acknowledged."""
        return self.taken - self.acknowledged + len(self._pending) + len(self._control)

    @property
    def is_idle(self) -> bool:
        """Whether the peer has acknowledged everything that was put."""
        return not self.pending_bytes and not self._unacknowledged

    def take(self, chunk_bytes: int = 0) -> bytes:
        """Pending frames, to be written now; they are kept until they are acknowledged.

        They are about `chunk_bytes`, or CHUNK_BYTES.
        """
        lane = self._control or self._pending
        count = self._chunk_size(lane, chunk_bytes or CHUNK_BYTES)
        frames = b"".join(lane[:count])
        del lane[:count]
        self.taken += count
        self.pending_bytes -= len(frames)
        if lane is self._pending:
            self._taken_in_turn += count
            while self._uncounted and self._uncounted[0] <= self._taken_in_turn:
                self._uncounted.popleft()
                self._base -= 1
        if frames:
            position = self._base + self._taken_in_turn
            self._unacknowledged.append((self.taken, position, frames))
            self.unacknowledged_bytes += len(frames)
        return frames

    def _chunk_size(self, lane: list[bytes], chunk_bytes: int) -> int:
        """How many pending frames to take: all of them, or about as many bytes as these."""
        if self.pending_bytes <= chunk_bytes:
            return len(lane)
        size_bytes = 0
        for count, frame in enumerate(lane):
            size_bytes += len(frame)
            if size_bytes >= chunk_bytes:
                return count + 1
        return len(lane)

    def acknowledge(self, received: int) -> None:
        """The peer has received so many frames."""
        if received > self.taken:
            raise PeerError(f"acknowledged {received} frames; only {self.taken} were sent")
        self.acknowledged = max(self.acknowledged, received)
        waiting = self._unacknowledged
        while waiting and waiting[0][0] <= received:
            _, self.answered, frames = waiting.popleft()
            self.unacknowledged_bytes -= len(frames)

    def take_again(self, received: int) -> bytes:
        """Frames that were taken and that a peer lacks which has received so many."""
        if received < self.acknowledged:  # The frames that it lacks were discarded.
            raise PeerError(f"received {received} frames, but acknowledged {self.acknowledged}")
        if received > self.taken:
            raise PeerError(f"received {received} frames; only {self.taken} were sent")
        frames = b"".join(chunk for *_, chunk in self._unacknowledged)
        missing = self.taken - received
        starts = list(_frame_starts(frames))
        return frames[starts[len(starts) - missing] :] if missing else b""

    def frames(self) -> Iterator[bytes]:
        """Everything that the peer has not acknowledged, frame by frame, oldest first."""
        chunks = [chunk for *_, chunk in self._unacknowledged]
        frames = b"".join(chunks) + b"".join(self._control) + b"".join(self._pending)
        starts = [*_frame_starts(frames), len(frames)]
        for start, end in pairwise(starts):
            yield frames[start:end]


def _frame_starts(frames: bytes) -> Iterator[int]:
    start = 0
    while start < len(frames):
        yield start
        length, _ = HEADER.unpack_from(frames, start)
        start += HEADER.size + length
