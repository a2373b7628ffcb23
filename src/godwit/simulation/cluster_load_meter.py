"""How many clusters are best for the traffic of a simulation: p, s and r as brokers see them.

Paper    Cluster-based pub/sub (document 003), section 3.2: m* from publications, subscriptions and
         the matching ratio (overlay/clusters/cluster_traffic.py), for the whole event space or for
         a part of it.

    meter = ClusterLoadMeter(brokers)                   # or ClusterLoadMeter(brokers, part=filter)
    Simulator(..., observers=[meter])                   # any overlay, for some time
    cluster_settings(brokers, meter.load.best_clusters) # the next run

p   publications that brokers take from clients
s   subscriptions of clients that were not withdrawn
r   of all brokers, those that deliver a publication to a client, mean over the publications

Departs  The paper says that statistics are available, not how.  A subscription is counted whole,
         also one that its broker would not send because another one covers it: s is an upper bound.
         Live brokers count for themselves (coordinator/cluster_tuning.py).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from godwit.broker.effects import Deliver, Effect
from godwit.broker.stimuli import LocalClient, Received
from godwit.content.filters import Filter
from godwit.content.messages import Publication, Subscription, Unsubscription
from godwit.errors import UsageError
from godwit.overlay.clusters.cluster_traffic import ClusterLoad
from godwit.simulation.observers import Observer


class ClusterLoadMeter(Observer):
    def __init__(self, brokers: Collection[str], part: Filter | None = None) -> None:
        """`part` of the event space: only publications that match it count, and subscriptions
        that may match one of them.
        """
        self._brokers = len(brokers)
        self._part = part
        self._publications = 0
        self._deliveries = 0
        """Brokers that delivered a publication, over all publications."""
        self._subscriptions: set[str] = set()

    def on_matched(
        self, broker: str, received: Received, effects: Sequence[Effect], *_: float
    ) -> None:
        message = received.message
        is_local = isinstance(received.last_hop, LocalClient)
        if isinstance(message, Publication):
            if message.is_control or not self._has(message):
                return
            self._publications += is_local
            self._deliveries += any(isinstance(effect, Deliver) for effect in effects)
        elif is_local and isinstance(message, Subscription):
            if self._part is None or self._part.intersects(message.filter):
                self._subscriptions.add(message.id)
        elif is_local and isinstance(message, Unsubscription):
            self._subscriptions.discard(message.id)

    def _has(self, publication: Publication) -> bool:
        return self._part is None or self._part.matches_checked(publication.content)

    @property
    def load(self) -> ClusterLoad:
        """What was measured so far; its `best_clusters` is the number to use."""
        if not self._publications:
            raise UsageError("no publication was measured yet: let the simulation run for longer")
        ratio = self._deliveries / (self._publications * self._brokers)
        return ClusterLoad(
            self._brokers, float(self._publications), float(len(self._subscriptions)), ratio
        )
