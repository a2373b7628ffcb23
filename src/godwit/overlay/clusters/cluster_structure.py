"""Clusters and rings: which broker is linked with which, from n brokers and m clusters.

Paper    Cluster-based pub/sub (document 003), section 2.
Words    ClusterBrokerList -> mates; RingBrokerList -> ring.

    cluster 1   B1  B2  B3      brokers of a cluster (a row) are all linked with each other
    cluster 2   B4  B5  B6      a ring (a column) has one broker of every cluster, all linked
    cluster 3   B7  B8  B7      the last ring uses a broker of the smaller cluster twice

Every broker is reached from every other over two links at most: along the sender's ring, then
within the cluster.

Departs  1. The paper leaves the forming of clusters to another paper.  Here they follow from the
            order of the brokers; their sizes differ by one where m does not divide n.
         2. The backbone is ours: the links of the first ring with its first broker, and those of
            the first broker of each cluster with its mates.  They are a tree, on which travels what
            has to reach every broker exactly once: the names of clients, and gaps.

S1  A broker is in one cluster, and in one ring or more; it publishes in the first of them.
S2  The links of the backbone are links of rings and clusters, and form a tree of all brokers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from math import isqrt
from typing import Any, Literal, TypeAlias

from godwit.errors import UsageError
from godwit.overlay.topology import Topology, topology

#: A number of clusters, or the one that is best for what is published and subscribed to.
ClusterNumber: TypeAlias = int | Literal["auto"]
AUTO: Literal["auto"] = "auto"


@dataclass(frozen=True)
class ClusterStructure:
    clusters: tuple[tuple[str, ...], ...]
    """The brokers of each cluster; the larger clusters come first."""

    @cached_property
    def _place_of(self) -> dict[str, tuple[int, int]]:
        """The cluster of each broker, and its number there."""
        return {
            broker: (cluster, number)
            for cluster, brokers in enumerate(self.clusters)
            for number, broker in enumerate(brokers)
        }

    @property
    def brokers(self) -> tuple[str, ...]:
        return tuple(broker for brokers in self.clusters for broker in brokers)

    def cluster_of(self, broker: str) -> int:
        """The number of its cluster, from 0."""
        return self._place(broker)[0]

    def _place(self, broker: str) -> tuple[int, int]:
        try:
            return self._place_of[broker]
        except KeyError:
            raise UsageError(
                f"broker {broker} is in no cluster; there are {', '.join(self.brokers)}"
            ) from None

    def mates(self, broker: str) -> tuple[str, ...]:
        """The other brokers of its cluster (ClusterBrokerList)."""
        cluster = self.clusters[self.cluster_of(broker)]
        return tuple(other for other in cluster if other != broker)

    @cached_property
    def rings(self) -> tuple[tuple[str, ...], ...]:
        """One broker of each cluster; every broker is in one of them at least."""
        return tuple(
            tuple(brokers[number % len(brokers)] for brokers in self.clusters)
            for number in range(len(self.clusters[0]))
        )

    def ring(self, broker: str) -> tuple[str, ...]:
        """Where it publishes: one broker of every other cluster (RingBrokerList, S1)."""
        cluster, number = self._place(broker)
        ring = self.rings[number]
        return (*ring[:cluster], *ring[cluster + 1 :])

    def links(self, broker: str) -> tuple[str, ...]:
        """All brokers that it is linked with: its mates, and those of all its rings."""
        return self.topology.neighbours(broker)

    @cached_property
    def topology(self) -> Topology:
        groups = (*self.clusters, *self.rings)
        links = (pair for group in groups for pair in combinations(group, 2))
        return topology(self.brokers, links)

    def dialled(self, broker: str) -> list[str]:
        """Of its links those that it makes; the other ends make the others."""
        return [other for other in self.links(broker) if other < broker]

    @cached_property
    def backbone(self) -> Topology:
        """The tree for what has to reach every broker exactly once (S2)."""
        heads = [brokers[0] for brokers in self.clusters]
        links = [(heads[0], head) for head in heads[1:]]
        links += [(brokers[0], other) for brokers in self.clusters for other in brokers[1:]]
        return topology(self.brokers, links)


def arrange(brokers: Sequence[str], clusters: int) -> ClusterStructure:
    """Divide brokers into clusters, in their order, of sizes that differ by one at most."""
    if not 1 <= clusters <= len(brokers):
        raise UsageError(
            f"{clusters} clusters of {len(brokers)} brokers: there is at least one cluster, and no"
            " more clusters than brokers"
        )
    size, larger = divmod(len(brokers), clusters)
    ends = [(size + 1) * min(c, larger) + size * max(c - larger, 0) for c in range(clusters + 1)]
    return ClusterStructure(tuple(tuple(brokers[a:b]) for a, b in pairwise(ends)))


def first_number(clusters: ClusterNumber, brokers: int) -> int:
    """How many clusters there are at the start: with "auto" as many as brokers in each, or nearly.

    That is m* for as many subscriptions as there are publications that do not interest a broker.
    """
    return isqrt(brokers) if clusters == AUTO else clusters


def dialled_links(links: Mapping[str, Sequence[str]], clusters: int) -> dict[str, list[str]]:
    """For each broker the links that it makes; `links` are those that were given, or none."""
    structure = arrange(list(links), clusters)
    for broker, given in links.items():
        if given and sorted(given) != structure.dialled(broker):
            raise UsageError(
                f"broker {broker!r}: the links follow from `clusters`; leave `links` out"
            )
    return {broker: structure.dialled(broker) for broker in links}


def cluster_settings(brokers: Sequence[str], clusters: int, *, leaving: str = "") -> dict[str, Any]:
    """The settings from which each broker finds its place (`Place.settings`).

    A broker that is `leaving` is in a cluster of its own, beside those of the others: nothing goes
    on from there, so that it can go without a change for them.
    """
    settings: dict[str, Any] = {"brokers": tuple(brokers), "clusters": clusters}
    return settings | {"leaving": leaving} if leaving else settings


def without_broker(settings: Mapping[str, Any], broker: str) -> dict[str, Any]:
    """The settings when a broker has left; those of another overlay are as they were.

    One that was not leaving in these clusters was in them, and has left in later ones: its place
    is empty.
    """
    if broker not in settings.get("brokers", ()):
        return dict(settings)
    if settings.get("leaving") != broker:
        return {**settings, "gone": (*settings.get("gone", ()), broker)}
    rest = [each for each in settings["brokers"] if each != broker]
    kept = cluster_settings(rest, settings["clusters"])
    return {**kept, "gone": settings["gone"]} if "gone" in settings else kept


def links_left(settings: Mapping[str, Any]) -> set[tuple[str, str]]:
    """The links of these clusters, without those of brokers that have left since."""
    gone, links = set(settings.get("gone", ())), structure_of(settings).topology.links
    return {link for link in links if gone.isdisjoint(link)}


def structure_of(settings: Mapping[str, Any]) -> ClusterStructure:
    """The structure that these settings say."""
    if "brokers" not in settings or "clusters" not in settings:
        raise UsageError(
            "the overlay `clusters` needs the names of all brokers and the number of clusters"
        )
    leaving = settings.get("leaving", "")
    rest = [broker for broker in settings["brokers"] if broker != leaving]
    structure = arrange(rest, settings["clusters"])
    if leaving not in settings["brokers"]:
        return structure
    return ClusterStructure((*structure.clusters, (leaving,)))
