"""The load of one broker in a cluster: messages in and out, and which publishers cause them.

Paper    Cluster-based pub/sub (document 003), section 3.3.
Words    ring publish load -> `own`; cluster publish load -> `own` and `over_ring`;
         cluster subscription load -> `subscriptions`.

Counted is what brokers send each other, not what clients do: their load cannot be handed over.
A publication that this broker handles for a mate is in `helped`, what a mate sent here for local
clients in nothing but the total.

C1  The total is the sum of all messages in and out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class PublisherLoad:
    """Of one publisher, in a time unit."""

    publications: float = 0.0
    ring_sends: float = 0.0
    cluster_sends: float = 0.0

    def per_unit(self, units: float) -> PublisherLoad:
        return PublisherLoad(
            self.publications / units, self.ring_sends / units, self.cluster_sends / units
        )


@dataclass(frozen=True, slots=True)
class Helped:
    """Work for another broker."""

    owner: str
    publisher: str
    is_ring: bool


@dataclass(slots=True)
class ClusterLoads:
    """Averages in a time unit."""

    total: float = 0.0
    own: Mapping[str, PublisherLoad] = field(default_factory=dict)
    """Of local publishers."""

    over_ring: Mapping[str, PublisherLoad] = field(default_factory=dict)
    """Of publishers of other clusters, whose publications come over a ring."""

    helped: Mapping[Helped, float] = field(default_factory=dict)
    subscriptions: float = 0.0


class MessageCounts:
    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._total = 0
        self._own: dict[str, PublisherLoad] = {}
        self._over_ring: dict[str, PublisherLoad] = {}
        self._helped: dict[Helped, float] = {}

    def own(self, publisher: str, ring_sends: int, cluster_sends: int) -> None:
        """A local publisher has published."""
        _add(self._own, publisher, ring_sends, cluster_sends)
        self._total += ring_sends + cluster_sends

    def over_ring(self, publisher: str, cluster_sends: int) -> None:
        _add(self._over_ring, publisher, 0, cluster_sends)
        self._total += 1 + cluster_sends

    def helped(self, work: Helped, sends: int) -> None:
        self._helped[work] = self._helped.get(work, 0.0) + 1 + sends
        self._total += 1 + sends

    def from_mate(self) -> None:
        self._total += 1

    def close(self, units: float, subscriptions: int) -> ClusterLoads:
        """The averages since the last call, which was so many time units ago."""
        loads = ClusterLoads(
            total=(self._total + subscriptions) / units,
            own={name: load.per_unit(units) for name, load in self._own.items()},
            over_ring={name: load.per_unit(units) for name, load in self._over_ring.items()},
            helped={work: count / units for work, count in self._helped.items()},
            subscriptions=subscriptions / units,
        )
        self._clear()
        return loads


def _add(
    loads: dict[str, PublisherLoad], publisher: str, ring_sends: int, cluster_sends: int
) -> None:
    load = loads.get(publisher)
    if load is None:
        load = loads[publisher] = PublisherLoad()
    load.publications += 1
    load.ring_sends += ring_sends
    load.cluster_sends += cluster_sends
