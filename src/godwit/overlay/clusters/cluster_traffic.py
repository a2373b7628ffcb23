"""How many clusters: the traffic of a number of clusters, and the number with the least.

Paper    Cluster-based pub/sub (document 003), section 3.2, equation (1) and the clustering rule.
Words    n brokers, m clusters; p publications and s subscriptions in the same time; r is the
         matching ratio, the fraction of brokers with a subscription that matches a publication.

    Traffic(m) = p * [(m - 1) + r * (n - m)] + s * (n / m - 1)
    m*         = sqrt(s * n / (p * (1 - r)))

The first part is the ring phase and the cluster phase, the second one the subscriptions, each of
which goes to the mates.

Departs  The formula for m* is damaged in the text that we have: it was derived again from the
         equation, which is convex in m (E21).  It knows clusters of the same size only; if m does
         not divide n, a broker has more mates on average than n / m - 1, and as the traffic hardly
         changes near m*, a number beside it that divides n can be better (`messages`).  How p, s
         and r are found out is ours, too: brokers count (ClusterCounts).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

from godwit.errors import UsageError


@dataclass(frozen=True, slots=True)
class ClusterLoad:
    """What is published and subscribed to in a network, or in a partition of its event space."""

    brokers: int
    publications: float
    subscriptions: float
    matching_ratio: float

    def __post_init__(self) -> None:
        if self.brokers < 1 or self.publications < 0 or self.subscriptions < 0:
            raise UsageError("a load has a broker or more, and no negative numbers of messages")
        if not 0 <= self.matching_ratio <= 1:
            raise UsageError(f"a matching ratio is between 0 and 1, not {self.matching_ratio:g}")

    def traffic(self, clusters: float) -> float:
        """Messages between brokers: equation (1)."""
        n, m = self.brokers, clusters
        ring, cluster = m - 1, self.matching_ratio * (n - m)
        return self.publications * (ring + cluster) + self.subscriptions * (n / m - 1)

    @property
    def optimum(self) -> float:
        """m*, between 1 and n."""
        n = self.brokers
        slope = self.publications * (1 - self.matching_ratio)
        if not slope:  # A further cluster costs nothing: all brokers get everything anyway.
            return float(n)
        return min(max(sqrt(self.subscriptions * n / slope), 1.0), float(n))

    def messages(self, clusters: int) -> float:
        """Messages between brokers in so many clusters, whose sizes differ by one or not at all."""
        n, (size, larger) = self.brokers, divmod(self.brokers, clusters)
        pairs = larger * (size + 1) * size + (clusters - larger) * size * (size - 1)
        even = self.traffic(clusters) - self.subscriptions * (n / clusters - 1)
        return even + self.subscriptions * pairs / n

    @property
    def best_clusters(self) -> int:
        """The number with the fewest messages: m*, or one near it that divides n better."""
        return min(range(1, self.brokers + 1), key=self.messages)


@dataclass(slots=True)
class ClusterCounts:
    """What one broker counts for `measured`, since it has its place in the clusters."""

    published: int = 0
    """Publications of its clients."""

    reached: int = 0
    """Publications of all brokers that a client of this one wanted."""

    sent: int = 0
    """Subscriptions that its mates were sent: those that no other one of its clients covers."""

    standing: int = 0
    """... and that they have."""

    def since(self, before: ClusterCounts | None) -> ClusterCounts:
        """What came after an earlier look; all of it, if the broker has begun anew meanwhile."""
        if before is None or before.published > self.published or before.reached > self.reached:
            return self
        return ClusterCounts(
            self.published - before.published,
            self.reached - before.reached,
            max(0, self.sent - before.sent),
            self.standing,
        )


def measured(counts: Iterable[ClusterCounts]) -> ClusterLoad:
    """p, s and r of a network, from what each of its brokers has counted in the same time.

    Clusters that are formed anew exchange what subscriptions there are, so those that stand count
    as one message each, beside those that were made.
    """
    brokers = list(counts)
    published = sum(each.published for each in brokers)
    ways = published * len(brokers)
    return ClusterLoad(
        brokers=len(brokers),
        publications=float(published),
        subscriptions=float(sum(each.standing + each.sent for each in brokers)),
        matching_ratio=min(1.0, sum(each.reached for each in brokers) / ways) if ways else 0.0,
    )
