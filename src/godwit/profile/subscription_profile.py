"""Which publications a subscription received: a bit vector for each publisher.

Paper    Cheung, thesis 6.1.2; relations and cardinality in 6.2.3; short vectors in 7.3.8.
Words    Lbv -> length; |S| -> count; S1 and S2 in closeness metrics -> the two operands.
Departs  1. Cardinality counts bits, whatever the rates of the publishers are (open in the thesis).
         2. Compensation for short vectors scales first, then takes the floor (E15).
         3. Two profiles without a common publication are EMPTY, even if one has none at all: only
            two such profiles are EQUAL.
Tested   tests/profile/test_subscription_profile.py: the thesis's example, test vectors 1 and 6, and
         sets of (publisher, id) as the model.

The profile of a cluster of subscriptions, or of a broker, is the OR of theirs.  `synchronized`
brings all vectors of a publisher to one window; do so once before comparing many profiles.

    |S1 OR S2| = |S1| + |S2| - |S1 AND S2|      |S1 XOR S2| = |S1| + |S2| - 2 |S1 AND S2|
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from godwit.errors import UsageError
from godwit.profile.bit_vector import LENGTH, BitVector
from godwit.profile.publisher_profile import PublisherProfile


class ProfileRelation(Enum):
    """Of one profile to another, as sets of publications."""

    EQUAL = "equal"
    SUPERSET = "superset"
    SUBSET = "subset"
    INTERSECT = "intersect"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class ExpectedLoad:
    """The traffic that a subscription attracts."""

    publications_per_s: float
    bytes_per_s: float


class SubscriptionProfile:
    __slots__ = ("_vectors", "length")

    def __init__(
        self, length: int = LENGTH, vectors: Mapping[str, BitVector] | None = None
    ) -> None:
        self.length = length
        self._vectors = dict(vectors or {})
        for publisher, vector in self._vectors.items():
            if vector.length != length:
                raise UsageError(
                    f"the vector for publisher {publisher!r} has {vector.length} bits; "
                    f"this profile's have {length}"
                )

    # -- recording -----------------------------------------------------------------------------

    def record(self, publisher: str, message_id: int) -> None:
        """A publication was delivered to the subscription."""
        vector = self._vectors.get(publisher)
        if vector is None:
            vector = self._vectors[publisher] = BitVector(message_id, self.length)
        vector.record(message_id)

    def forget(self, publisher: str) -> None:
        """The publisher has left."""
        self._vectors.pop(publisher, None)

    def synchronized(self, publishers: Mapping[str, PublisherProfile]) -> SubscriptionProfile:
        """The same over the common window of each publisher; without publishers that left."""
        vectors = {
            name: vector.within(publishers[name].window(self.length))
            for name, vector in self._vectors.items()
            if name in publishers
        }
        return SubscriptionProfile(self.length, {n: v for n, v in vectors.items() if v})

    # -- as a set of publications --------------------------------------------------------------

    @property
    def vectors(self) -> Mapping[str, BitVector]:
        return self._vectors

    @property
    def count(self) -> int:
        """|S|."""
        return sum(vector.count for vector in self._vectors.values())

    @property
    def key(self) -> frozenset[tuple[str, int, int]]:
        """Equal for profiles of the same publications: for groups of identical filters (GIF)."""
        return frozenset(
            (publisher, lowest, vector.bits >> lowest - vector.first)
            for publisher, vector in self._vectors.items()
            if (lowest := next(iter(vector), None)) is not None
        )

    def __or__(self, other: SubscriptionProfile) -> SubscriptionProfile:
        return union((self, other), self.length)

    def intersection_count(self, other: SubscriptionProfile) -> int:
        """|S1 AND S2|."""
        one, two = self._vectors, other._vectors
        if len(one) > len(two):
            one, two = two, one
        return sum(
            vector.intersection_count(two[publisher])
            for publisher, vector in one.items()
            if publisher in two
        )

    def union_count(self, other: SubscriptionProfile) -> int:
        """|S1 OR S2|."""
        return self.count + other.count - self.intersection_count(other)

    def xor_count(self, other: SubscriptionProfile) -> int:
        """|S1 XOR S2|."""
        return self.count + other.count - 2 * self.intersection_count(other)

    def missing_count(self, other: SubscriptionProfile) -> int:
        """|S1 AND NOT S2|: publications that the other did not receive (4.7, as read in E1)."""
        return self.count - self.intersection_count(other)

    def relation(self, other: SubscriptionProfile) -> ProfileRelation:
        """What this profile is to the other."""
        one, two, both = self.count, other.count, self.intersection_count(other)
        if one == two == both:
            return ProfileRelation.EQUAL
        if both == 0:
            return ProfileRelation.EMPTY
        if both == two:
            return ProfileRelation.SUPERSET
        return ProfileRelation.SUBSET if both == one else ProfileRelation.INTERSECT

    # -- load ----------------------------------------------------------------------------------

    def load(
        self, publishers: Mapping[str, PublisherProfile], *, compensate: bool = False
    ) -> ExpectedLoad:
        """Each publisher's rate and bandwidth, by the share of its publications received.

        With `compensate`, shares are raised as the thesis does for short vectors.
        """
        publications_per_s = bytes_per_s = 0.0
        for name, vector in self._vectors.items():
            publisher = publishers.get(name)
            if publisher is not None:
                window = publisher.window(self.length)
                share = vector.within(window).count / len(window) if window else 0.0
                if compensate:
                    share = compensated(share, self.length)
                publications_per_s += publisher.publications_per_s * share
                bytes_per_s += publisher.bytes_per_s * share
        return ExpectedLoad(publications_per_s, bytes_per_s)

    def __repr__(self) -> str:
        return f"SubscriptionProfile({self.length}, {self._vectors})"


def union(profiles: Iterable[SubscriptionProfile], length: int = LENGTH) -> SubscriptionProfile:
    """The profile of all of them together."""
    vectors: dict[str, BitVector] = {}
    for profile in profiles:
        for publisher, vector in profile.vectors.items():
            known = vectors.get(publisher)
            vectors[publisher] = vector.copy() if known is None else known | vector
    return SubscriptionProfile(length, vectors)


#: Up to a length: the least share, and by what to multiply shares below a limit (thesis 7.3.8).
COMPENSATION = (
    (512, 0.35, ((0.25, 1.30), (0.40, 1.45))),
    (LENGTH - 1, 0.20, ((0.40, 1.25),)),
)


def compensated(share: float, length: int) -> float:
    """A share of a short vector, raised so that the load is not underestimated.

    A publisher that the subscription received nothing from stays at 0.
    """
    for longest, least, scaling in COMPENSATION:
        if share and length <= longest:
            factor = next((factor for limit, factor in scaling if share < limit), 1.0)
            return max(least, share * factor)
    return share
