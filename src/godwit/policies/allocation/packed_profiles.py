"""Profiles as packed words: which publications of each publisher a set of subscriptions received.

Paper    Cheung, thesis 6.1.2 and 6.2.3.
Words    |S| -> count; S1 OR S2 -> union; load requirements -> rate_per_s, bandwidth_bytes_s.
Departs  1. A publisher has a block only if something was received from it: most subscriptions
            receive from one publisher of many.
         2. Cardinality counts bits, whatever the rates of the publishers are (open in the thesis).
Tested   tests/policies/allocation/test_reading.py: against sets of (publisher, id).

All blocks of a publisher have the same window (gathered_reading.py), so bit i of a block is the
same publication in every profile.

P1  No block is zero.
P2  The bits of a block beyond the publisher's window are 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from godwit.profile.subscription_profile import compensated

Words: TypeAlias = npt.NDArray[np.uint64]
WORD_BITS = 64


class PackedProfile:
    """Blocks of words by the publisher's index."""

    __slots__ = ("blocks", "count", "counts")

    def __init__(
        self, blocks: Mapping[int, Words], counts: Mapping[int, int] | None = None
    ) -> None:
        if counts is None:
            counts = {p: int(np.bitwise_count(words).sum()) for p, words in blocks.items()}
            blocks = {p: words for p, words in blocks.items() if counts[p]}  # P1
            counts = {p: count for p, count in counts.items() if count}
        self.blocks = blocks
        self.counts = counts
        self.count = sum(counts.values())

    @property
    def key(self) -> tuple[tuple[int, bytes], ...]:
        """Equal for profiles of the same publications: for groups of identical filters (GIF)."""
        return tuple((p, self.blocks[p].tobytes()) for p in sorted(self.blocks))

    def __or__(self, other: PackedProfile) -> PackedProfile:
        return union((self, other))

    def intersection_count(self, other: PackedProfile) -> int:
        """|S1 AND S2|."""
        one, two = self.blocks, other.blocks
        if len(one) > len(two):
            one, two = two, one
        return sum(
            int(np.bitwise_count(words & two[p]).sum()) for p, words in one.items() if p in two
        )

    def covers(self, other: PackedProfile) -> bool:
        return other.count <= self.count and self.intersection_count(other) == other.count


EMPTY = PackedProfile({})


def union(profiles: Iterable[PackedProfile]) -> PackedProfile:
    """The profile of all of them together."""
    blocks: dict[int, Words] = {}
    owned: set[int] = set()
    for profile in profiles:
        for p, words in profile.blocks.items():
            if p not in blocks:
                blocks[p] = words
            elif p in owned:
                np.bitwise_or(blocks[p], words, out=blocks[p])
            else:
                blocks[p] = blocks[p] | words
                owned.add(p)
    return PackedProfile(blocks)


@dataclass(frozen=True)
class PublisherTable:
    """The publishers of a plan, by index, and the load that a share of their traffic causes."""

    ids: tuple[str, ...]
    rates_per_s: tuple[float, ...]
    bandwidths_bytes_s: tuple[float, ...]
    lengths: tuple[int, ...]
    """Publications in the common window."""

    vector_length: int
    compensate: bool = False
    brokers: tuple[str | None, ...] = ()
    """Where they are now."""

    clients: tuple[str | None, ...] = ()

    @cached_property
    def words(self) -> tuple[int, ...]:
        """Words in a block."""
        return tuple(-(-length // WORD_BITS) for length in self.lengths)

    @cached_property
    def plain(self) -> PublisherTable:
        """The same without compensation: for what is expected, not for what must have room."""
        if not self.compensate:
            return self
        return PublisherTable(
            self.ids, self.rates_per_s, self.bandwidths_bytes_s, self.lengths,
            self.vector_length, brokers=self.brokers, clients=self.clients,
        )  # fmt: skip

    def share(self, p: int, count: int) -> float:
        share = count / self.lengths[p] if count else 0.0
        return compensated(share, self.vector_length) if self.compensate else share

    def rate_per_s(self, profile: PackedProfile) -> float:
        """Publications per second that a broker receives for this profile."""
        return sum(self.rates_per_s[p] * self.share(p, n) for p, n in profile.counts.items())

    def bandwidth_bytes_s(self, profile: PackedProfile) -> float:
        """Bytes per second that one receiver of this profile is sent."""
        return sum(self.bandwidths_bytes_s[p] * self.share(p, n) for p, n in profile.counts.items())

    def rate_max_per_s(self, profile: PackedProfile) -> float:
        """No part of the profile has a higher rate.

        Compensation may fall where the share grows, so with it only the whole rate of a publisher
        is such a limit.
        """
        if self.compensate:
            return sum(self.rates_per_s[p] for p in profile.counts)
        return self.rate_per_s(profile)
