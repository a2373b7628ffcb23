"""What each group still draws at the offloader, and what the acceptor lacks of it.

Paper    Cheung, thesis 4.2.1: merging a chosen subscription into lcssBV; 4.3.1: fields 3 and 4 of
         the report card.
Words    sBV -> bits; lcssBV -> lcss; input rate saved -> saved_bits; extra rate -> added_bits.
Claim    Both counts are exact with the moves so far, without sampling again.
Departs  The rate saved is not defined in the thesis: it is what the group alone receives, that is
         sBV AND NOT the OR of all other groups that remain.

Whether a sample is received by exactly one group is read from a counter for each sample.  The
counters are stored by binary digit: one integer has the lowest digit of all of them, one the next,
and so on.  Adding or removing a group is then a few operations on integers.

R1  lcss only gains bits: a group that is covered stays covered.
R2  A bit enters `single` at most once, and leaves it with its last group: so all groups together
    change at most three times for each sample.  The offload algorithms look for changed groups
    after each of these, and nowhere else.
"""

from __future__ import annotations

from godwit.policies.offload.press import Sampled


class RemainingTraffic:
    __slots__ = ("_digits", "_stay", "bits", "bytes_of", "clients", "lcss", "single")

    def __init__(self, sampled: Sampled) -> None:
        self.bits = [profile.received.bits for profile in sampled.groups]
        self.bytes_of = [profile.size_bytes for profile in sampled.groups]
        """The size of all samples that a client of the group received."""

        self.clients = [len(profile.group.clients) for profile in sampled.groups]
        """How many of a group could still be moved."""

        self._stay = [bool(profile.group.staying) for profile in sampled.groups]
        self.lcss = sampled.lcss.bits
        self._digits: list[int] = []
        for bits in self.bits:
            self._count(bits)
        self.single = self._ones()
        """The samples that exactly one group receives."""

    def added_bits(self, group: int) -> int:
        """Samples that the acceptor would receive only because of this group."""
        return (self.bits[group] & ~self.lcss).bit_count()

    def saved_bits(self, group: int) -> int:
        """Samples that the offloader would no longer receive if the whole group left.

        A group with a client that stays does not leave as a whole.
        """
        if self._stay[group]:
            return 0
        return (self.bits[group] & self.single).bit_count()

    def move(self, group: int, clients: int) -> int:
        """Move some clients of a group; returns the samples for which something changed (R2)."""
        bits = self.bits[group]
        changed = bits & ~self.lcss
        self.lcss |= bits
        self.clients[group] -= clients
        if not self.clients[group] and not self._stay[group]:
            before = self.single
            self._uncount(bits)
            self.single = self._ones()
            changed |= before ^ self.single
        return changed

    def has_left(self, group: int) -> bool:
        return not self.clients[group] and not self._stay[group]

    def _count(self, bits: int) -> None:
        for place, digit in enumerate(self._digits):
            if not bits:
                return
            self._digits[place] = digit ^ bits
            bits &= digit
        if bits:
            self._digits.append(bits)

    def _uncount(self, bits: int) -> None:
        for place, digit in enumerate(self._digits):
            if not bits:
                return
            self._digits[place] = digit ^ bits
            bits &= ~digit
        assert not bits, "a group leaves that was never counted"

    def _ones(self) -> int:
        """The samples whose counter is 1."""
        lowest, *higher = self._digits or [0]
        for digit in higher:
            lowest &= ~digit
        return lowest
