"""Which of a publisher's latest publications were received: a bit for each message id.

Paper    Cheung, thesis 6.1.2 (subscription profiles), 4.2.1 (PRESS), 5.2.1 (GRAPE).
Words    Lbv -> length; counter -> first, the message id of bit 0; |S| -> count.
Tested   tests/profile/test_bit_vector.py: test vectors 1, 4 and 5, and a set of ids as the model.

A bit vector stands for a set of message ids, all within the window [first, first + length).  The
bits are one Python integer, bit 0 lowest: AND, OR and counting take one operation each.

V1  bits < 2 ** length: a vector never holds more than `length` bits.
V2  Operators work on sets of ids; the windows of the operands may differ.  `&` and `-` are exact.
    The window of `|` and `^` begins with the earlier one, or later if the highest id of both would
    be beyond it: what recording the ids of both in order gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from godwit.errors import UsageError

#: The thesis's default.
LENGTH = 1_280
#: Longer vectors would not fit into a letter to a neighbour with room to spare.
LENGTH_MAX = 1_048_576
#: Bits in a word of `of_words`.
WORD_BITS = 64


class BitVector:
    __slots__ = ("bits", "first", "length")

    def __init__(self, first: int = 0, length: int = LENGTH, bits: int = 0) -> None:
        if length < 1:
            raise UsageError(f"a bit vector of {length} bits; it needs at least 1")
        self.first = first
        self.length = length
        self.bits = bits & ((1 << length) - 1)  # V1

    @classmethod
    def of(cls, message_ids: Iterable[int], first: int = 0, length: int = LENGTH) -> BitVector:
        """A vector that recorded these ids in this order."""
        vector = cls(first, length)
        for message_id in message_ids:
            vector.record(message_id)
        return vector

    @classmethod
    def of_bytes(cls, body: bytes, first: int = 0, length: int = LENGTH) -> BitVector:
        """The inverse of `to_bytes`; bits beyond `length` are dropped."""
        return cls(first, length, int.from_bytes(body, "little"))

    @classmethod
    def of_words(cls, words: Sequence[int], first: int = 0) -> BitVector:
        """From signed 64-bit words: bit i is bit i % 64 of word i // 64."""
        bits = 0
        for place, word in enumerate(words):
            bits |= (word & ((1 << WORD_BITS) - 1)) << place * WORD_BITS
        return cls(first, WORD_BITS * len(words), bits)

    def copy(self) -> BitVector:
        return _made(self.first, self.length, self.bits)

    def to_bytes(self) -> bytes:
        """Bit 0 in the lowest bit of the first byte; without zero bytes at the end."""
        return self.bits.to_bytes((self.bits.bit_length() + 7) // 8, "little")

    # -- recording -----------------------------------------------------------------------------

    def record(self, message_id: int) -> None:
        """Set the bit of an id.  If it is beyond the window, the window moves just far enough.

        An id before the window is too old to be recorded.
        """
        position = message_id - self.first
        if position >= self.length:
            shift = position - self.length + 1
            self.bits >>= shift
            self.first += shift
            position = self.length - 1
        elif position < 0:
            return
        self.bits |= 1 << position

    def within(self, window: range) -> BitVector:
        """The ids in `window`, where the new vector begins.  `window` has at most `length` ids."""
        mask = (1 << min(len(window), self.length)) - 1
        return _made(window.start, self.length, self._from(window.start) & mask)

    @property
    def window(self) -> range:
        """The message ids that have a bit."""
        return range(self.first, self.first + self.length)

    @property
    def last(self) -> int:
        """The highest id that is set; the one before the window if there is none."""
        return self.first + self.bits.bit_length() - 1

    # -- as a set of ids -----------------------------------------------------------------------

    @property
    def count(self) -> int:
        return self.bits.bit_count()

    def __bool__(self) -> bool:
        return self.bits != 0

    def __contains__(self, message_id: int) -> bool:
        position = message_id - self.first
        return position >= 0 and self.bits >> position & 1 == 1

    def __iter__(self) -> Iterator[int]:
        bits = self.bits
        while bits:
            lowest = bits & -bits
            yield self.first + lowest.bit_length() - 1
            bits ^= lowest

    def __eq__(self, other: object) -> bool:
        """The same ids in the same window."""
        if not isinstance(other, BitVector):
            return NotImplemented
        return (self.first, self.length, self.bits) == (other.first, other.length, other.bits)

    __hash__ = None  # type: ignore[assignment]  # It changes.

    def __or__(self, other: BitVector) -> BitVector:
        if self.first == other.first and self.length == other.length:
            return _made(self.first, self.length, self.bits | other.bits)
        first = self._joint_first(other)
        return _made(first, self.length, self._from(first) | other._from(first))

    def __xor__(self, other: BitVector) -> BitVector:
        first = self._joint_first(other)
        return _made(first, self.length, self._from(first) ^ other._from(first))

    def __and__(self, other: BitVector) -> BitVector:
        self._check(other)
        first = max(self.first, other.first)
        return _made(first, self.length, self._from(first) & other._from(first))

    def __sub__(self, other: BitVector) -> BitVector:
        """AND NOT: the ids of this vector that the other does not have."""
        self._check(other)
        return _made(self.first, self.length, self.bits & ~other._from(self.first))

    def intersection_count(self, other: BitVector) -> int:
        """How many ids both have."""
        if self.first == other.first:
            return (self.bits & other.bits).bit_count()
        first = max(self.first, other.first)
        return (self._from(first) & other._from(first)).bit_count()

    def _joint_first(self, other: BitVector) -> int:
        """Where the window of both together begins (V2)."""
        self._check(other)
        first = min(self.first, other.first)
        for vector in (self, other):
            if vector.bits:
                first = max(first, vector.last - self.length + 1)
        return first

    def _from(self, first: int) -> int:
        """The bits of a window that begins at `first`, and perhaps some beyond its end."""
        shift = first - self.first
        if shift >= 0:
            return self.bits >> shift
        return self.bits << -shift if -shift < self.length else 0

    def _check(self, other: BitVector) -> None:
        if self.length != other.length:
            raise UsageError(
                f"bit vectors of {self.length} and {other.length} bits; one length is needed"
            )

    def __repr__(self) -> str:
        return f"BitVector({list(self)}, first={self.first}, length={self.length})"


def _made(first: int, length: int, bits: int) -> BitVector:
    """Without the checks of the constructor: operators run often, and keep V1."""
    vector = BitVector.__new__(BitVector)
    vector.first = first
    vector.length = length
    vector.bits = bits
    return vector
