"""Routing in clusters and rings of brokers (cluster-based publish/subscribe).

Paper    Load balancing in cluster-based content publish/subscribe (document 003), section 2.
Words    ClusterBrokerList -> mates; RingBrokerList -> ring; ring_pub is a publication that comes
         from a broker of another cluster, cluster_pub one that comes from a mate.
Claim    Once a subscription is in effect, every publication that matches it and that is published
         under an advertisement in effect reaches it exactly once, in publisher order, over two
         links between brokers at most.

    subscriptions    go to the mates, unless another one of this broker covers them; are in effect
                     when every mate has confirmed (subscription_lists.py)
    advertisements   stay at their broker; are in effect when all its links are up and resynced:
                     then its ring reaches every cluster, and it knows what the mates want
    publications     of a client --> ring phase: to every broker of the ring --+
                                                                              |
                     each of them and the publisher's broker --> cluster phase: to the mates with a
                     matching subscription, which deliver
    moves            wait until all brokers have answered that what was before has arrived
                     (settling.py)
    names, gaps      travel on the backbone, a tree of some of the links (cluster_structure.py)

The last hop says the phase, so a publication looks as in a tree.  Copies go from rings to clusters
and never back: acknowledgements, which wait for those of the next hop, wait in no cycle.

Departs  1. In effect, withdrawals, recovery and links that come and go are ours; see
            subscription_lists.py and cluster_resync.py.
         2. Publications need an advertisement, as everywhere in Godwit; it is not sent to others.
         3. A broker in several rings publishes in the first one only: once is enough.
Missing  Partitions of the event space (section 3.2).  Dynamic balancing is in steered_routing.py.
Tested   tests/overlay/test_cluster_routing.py: orders and races by hand;
         tests/simulation/test_random_clusters.py: the random runs of trees;
         tests/runtime/test_clusters.py, tests/testing/storms/: live, with failures.

K1  Every link is with a broker of the structure: with all mates, with the brokers of its rings, and
    with others in the place of lost ones.
K2  A broker has subscriptions of its own clients and of its mates, of no others.
K3  What comes from a mate goes to clients only; what comes over a ring goes to clients and mates.
K4  The ring has one broker of every other cluster, as long as there is a link with one.  If it is
    lost, another one takes its place, and keeps it: two at the same time would be two ways to the
    same subscriber, on which publications overtake each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from msgspec.structs import replace

from godwit.broker.effects import OpenLink, Send
from godwit.broker.routing import Answer, Confirm, Holding, Place, Tables
from godwit.broker.stimuli import Hop, LinkKind, LocalClient, Neighbour
from godwit.content.messages import (
    Absent,
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    ClusterNotice,
    Last,
    NameMessage,
    Present,
    Publication,
    ResyncDone,
    ResyncScope,
    RoutingMessage,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Sweep,
    Unadvertisement,
    Unsubscription,
)
from godwit.overlay.clusters.cluster_resync import ClusterResync
from godwit.overlay.clusters.cluster_structure import structure_of, without_broker
from godwit.overlay.clusters.cluster_traffic import ClusterCounts
from godwit.overlay.clusters.settling import Settling
from godwit.overlay.clusters.subscription_lists import (
    ClusterSubscriptionList,
    LocalSubscriptionList,
)
from godwit.overlay.tree.names import Names
from godwit.overlay.tree.routing_tables import AdvertisementEntry, SubscriptionEntry
from godwit.overlay.tree.table_views import pending_of

Answers = list[Answer]


class ClusterRouting:
    """The router of one broker in a cluster and its rings, with FIFO links."""

    def __init__(self, place: Place) -> None:
        """`place.settings` say who is in which cluster: see `cluster_settings`."""
        self._settings = place.settings
        self.structure = structure_of(place.settings)
        self._broker = place.broker
        mates = {Neighbour(name, place.lane) for name in self.structure.mates(place.broker)}
        self._cluster_broker_list = mates
        """The mates, linked or not."""
        self._ring_broker_list = {
            Neighbour(name, place.lane) for name in self.structure.ring(place.broker)
        }
        """The other brokers of the ring in which this one publishes, linked or not."""
        self._backbone = {
            Neighbour(name, place.lane) for name in self.structure.backbone.neighbours(place.broker)
        }
        self._lane = place.lane
        for neighbour in (*place.links, *place.expected):
            self._check_neighbour(neighbour)
        self._links = dict.fromkeys(place.links)
        self._ring: dict[Hop, None] = {
            link: None for link in self._links if link in self._ring_broker_list
        }
        """Where publications of clients go: one broker of every other cluster, all linked (K4)."""
        self._lost: set[int] = set()
        """Clusters whose broker in this ring is lost."""
        self._spine = {link: None for link in self._links if link in self._backbone}
        """Links of the backbone."""
        self._local = LocalSubscriptionList(
            [link for link in self._links if link in mates],
            [link for link in place.expected if link in mates],
        )
        self._cluster = ClusterSubscriptionList()
        self._advertisements: dict[AdvertisementId, AdvertisementEntry] = {}
        self._unconfirmed: dict[AdvertisementId, None] = {}
        """Advertisements that are not in effect."""
        self._complete: dict[SubscriptionId, None] = {}
        """Subscriptions that all mates have, and that wait until this broker has recovered."""
        self._resync = ClusterResync(self._links, place.expected, self._backbone)
        self._is_recovering = False
        self._published = self._reached = 0
        """Publications of clients here, and publications that clients here wanted."""
        self._settling = Settling(place.broker, self.structure.brokers, self._way_to)
        expected = [link for link in place.expected if link in self._backbone]
        self.names = Names(place.broker, self._spine, expected, place.lane)

    @property
    def neighbours(self) -> Mapping[Neighbour, LinkKind]:
        return {
            link: LinkKind.PRIMARY if link in self._backbone else LinkKind.CROSS
            for link in self._links
        }

    def sources(self, neighbour: Neighbour) -> list[Neighbour]:
        """Of a mate those of other clusters; of another broker none (K3)."""
        if neighbour not in self._cluster_broker_list:
            return []
        return [link for link in self._links if link not in self._cluster_broker_list]

    def why_not_linked(self, broker: str) -> str | None:
        """Why a link with this broker is refused (K1); None if it is a part of the structure."""
        if broker in self.structure.brokers:
            return None
        return f"{broker} is in no cluster: use the same network file for all brokers"

    def is_leaving(self, broker: str) -> bool:
        return bool(broker) and self._settings.get("leaving") == broker

    def forget(self, broker: str) -> None:
        """A broker has left for good: clients that move do not wait for its answer."""
        self._settings = without_broker(self._settings, broker)
        self.structure = structure_of(self._settings)
        self._settling.await_only(self.structure.brokers)

    def _check_neighbour(self, neighbour: Neighbour) -> None:
        reason = self.why_not_linked(neighbour.name)
        assert reason is None, f"K1: {reason}"

    @property
    def is_complete(self) -> bool:
        return self._resync.is_complete

    @property
    def subscription_count(self) -> int:
        return len(self._local) + len(self._cluster)

    @property
    def advertisement_count(self) -> int:
        return len(self._advertisements)

    @property
    def cluster_counts(self) -> ClusterCounts:
        """What shows how many clusters are best (cluster_traffic.py)."""
        sent, standing = self._local.fronts_sent, len(self._local.sent())
        return ClusterCounts(self._published, self._reached, sent, standing)

    # -- publications --------------------------------------------------------------------------

    def destinations(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float
    ) -> dict[Hop, None]:
        found = self._local.hops_wanting(publication)
        is_neighbour = type(last_hop) is Neighbour
        if not publication.is_control:
            self._published += not is_neighbour
            self._reached += len(found) > (last_hop in found)
        if is_neighbour and last_hop in self._cluster_broker_list:
            return found  # K3: a cluster_pub.
        if publication.ttl_hops is None or hops < publication.ttl_hops:
            found |= self._cluster.brokers_wanting(publication)  # The cluster phase.
            if not is_neighbour:
                found |= self._ring  # The ring phase.
        found.pop(last_hop, None)
        return found

    # -- messages ------------------------------------------------------------------------------

    def handle(self, message: RoutingMessage, last_hop: Hop) -> Answers:
        if isinstance(message, NameMessage):
            return self.names.handle(message, last_hop)
        match message:
            case Subscription():
                return self._on_subscription(message, last_hop)
            case Unsubscription(id=id):
                return self._on_unsubscription(id, last_hop)
            case SubscriptionInEffect():
                if isinstance(last_hop, Neighbour):
                    self._local.confirmed(message, last_hop)
                return self._confirm_completed()
            case Advertisement():
                return self._on_advertisement(message, last_hop)
            case Unadvertisement(id=id):
                return self._on_unadvertisement(id, last_hop)
            case ResyncDone(scope=scope):
                return self._on_resync_done(scope, last_hop)
            case Sweep():
                return self._on_sweep(message, last_hop)
            case AdvertisementInEffect() | Present() | Absent() | Last() | ClusterNotice():
                return []  # Sent in a tree, or by brokers that balance (steered_routing.py).
            case _:
                assert_never(message)

    def _on_subscription(self, subscription: Subscription, last_hop: Hop) -> Answers:
        if isinstance(last_hop, Neighbour):
            if last_hop not in self._cluster_broker_list:
                return []  # K2
            self._cluster.add(subscription, last_hop)
            return [Send(last_hop, _in_effect(subscription))]
        known = self._local.get(subscription.id)
        if known is not None:  # A repetition.
            return [Confirm(last_hop, _in_effect(known.subscription))] if known.in_effect else []
        return [*self._local.add(subscription, last_hop), *self._confirm_completed()]

    def _on_unsubscription(self, id: SubscriptionId, last_hop: Hop) -> Answers:
        if isinstance(last_hop, Neighbour):
            self._cluster.remove(id, last_hop)
            return []
        entry = self._local.get(id)
        if entry is None or entry.last_hop != last_hop:
            return []
        return [*self._local.remove(entry), *self._confirm_completed()]

    def _confirm_completed(self) -> Answers:
        """Tell clients which subscriptions are in effect now."""
        completed, self._local.completed = self._local.completed, []
        if self._is_recovering:
            self._complete |= {entry.subscription.id: None for entry in completed}
            return []
        return [self._confirm(entry) for entry in completed if not entry.in_effect]

    def _confirm(self, entry: SubscriptionEntry) -> Confirm:
        entry.in_effect = True
        assert not isinstance(entry.last_hop, Neighbour)
        return Confirm(entry.last_hop, _in_effect(entry.subscription))

    def _on_advertisement(self, advertisement: Advertisement, last_hop: Hop) -> Answers:
        if isinstance(last_hop, Neighbour):
            return []
        id, known = advertisement.id, self._advertisements.get(advertisement.id)
        if known is None or advertisement.edition > known.advertisement.edition:
            self._advertisements[id] = AdvertisementEntry(advertisement, last_hop)
        self._unconfirmed[id] = None
        return self._confirm_advertisements()

    def _on_unadvertisement(self, id: AdvertisementId, last_hop: Hop) -> Answers:
        entry = self._advertisements.get(id)
        if entry is not None and entry.last_hop == last_hop:
            del self._advertisements[id]
            self._unconfirmed.pop(id, None)
        return []

    def _confirm_advertisements(self) -> Answers:
        """They are in effect if every link is up, and every mate has sent what it wants."""
        if not self._unconfirmed or self._is_recovering or not self._resync.has_all:
            return []
        unconfirmed, self._unconfirmed = self._unconfirmed, {}
        answers: Answers = []
        for id in unconfirmed:
            entry = self._advertisements[id]
            assert not isinstance(entry.last_hop, Neighbour)
            edition = entry.advertisement.edition
            answers.append(Confirm(entry.last_hop, AdvertisementInEffect(id=id, edition=edition)))
        return answers

    # -- clients that move ---------------------------------------------------------------------

    def pause(self, client: LocalClient, move: int) -> Answers:
        """Ask all brokers whether they have what the client has published (settling.py)."""
        return self._on_sweep(Sweep(client=client.name, to=self._broker, move=move), client)

    def _on_sweep(self, sweep: Sweep, last_hop: Hop) -> Answers:
        mates = [link for link in self._links if link in self._cluster_broker_list]
        if not isinstance(last_hop, Neighbour):  # A question begins; it goes as a publication.
            ring = [link for link in self._links if link in self._ring]
            question = replace(sweep, by=self._broker, origin="")
            return self._settling.asked(question, [*ring, *mates])
        if sweep.origin:
            return self._settling.answered(sweep)
        return self._settling.asked(sweep, () if last_hop in mates else mates)

    def _way_to(self, broker: str) -> Neighbour | None:
        """Where publications for a broker go from here."""
        neighbour = Neighbour(broker, self._lane)
        if neighbour in self._cluster_broker_list:
            return neighbour if neighbour in self._links else None
        cluster = self.structure.cluster_of(broker)
        ring = (link for link in self._links if link in self._ring)
        return next((link for link in ring if self._cluster_of(link) == cluster), None)

    # -- links ---------------------------------------------------------------------------------

    def link_up(self, neighbour: Neighbour, kind: LinkKind = LinkKind.PRIMARY) -> Answers:
        """A new link; its kind follows from the structure."""
        assert neighbour not in self._links, f"{neighbour.name} is linked already"
        self._check_neighbour(neighbour)
        self._links[neighbour] = None
        answers: Answers = []
        if neighbour in self._cluster_broker_list:
            answers += self._local.link_up(neighbour)
        else:
            self._join_ring(neighbour)
        answers += self._resync.begin(neighbour, is_recovering=self._is_recovering)
        if neighbour in self._backbone:
            self._spine[neighbour] = None
            answers += self.names.link_up(neighbour)
        return [*answers, *self._resync.due()]

    def link_restarted(self, neighbour: Neighbour) -> Answers:
        """Repeat what a mate had; keep, but doubt, what it sent before."""
        answers: Answers = []
        if neighbour in self._cluster_broker_list:
            self._cluster.doubt(neighbour)
            answers += self._local.repeat(neighbour)
        answers += self._resync.begin(neighbour, is_recovering=self._is_recovering)
        if neighbour in self._backbone:
            answers += self.names.link_restarted(neighbour)
        return [*answers, *self._resync.due()]

    def link_down(self, neighbour: Neighbour) -> Answers:
        """Withdraw all that came from a neighbour, and stop waiting for it."""
        self._links.pop(neighbour, None)
        self._resync.end(neighbour)
        self._local.link_down(neighbour)
        self._cluster.remove_all(neighbour)
        answers = [*self._confirm_completed(), *self._confirm_advertisements()]
        answers += self._repair_ring(neighbour)
        if neighbour in self._backbone:
            self._spine.pop(neighbour, None)
            answers += self.names.link_down(neighbour)
        return [*answers, *self._resync.due()]

    def _cluster_of(self, neighbour: Hop) -> int:
        return self.structure.cluster_of(neighbour.name)

    def _is_reached(self, cluster: int) -> bool:
        return any(self._cluster_of(link) == cluster for link in self._ring)

    def _join_ring(self, neighbour: Neighbour) -> None:
        """A broker of another cluster is linked: publish to it, if it is needed (K4)."""
        cluster = self._cluster_of(neighbour)
        is_own = neighbour in self._ring_broker_list
        if not self._is_reached(cluster) and (is_own or cluster in self._lost):
            self._ring[neighbour] = None
        if is_own:
            self._lost.discard(cluster)

    def _repair_ring(self, lost: Neighbour) -> Answers:
        """Let another broker of its cluster take the place of a lost one in the ring (K4)."""
        if lost.name not in self.structure.brokers:  # It has left for good.
            self._ring.pop(lost, None)
            return []
        cluster = self._cluster_of(lost)
        was_used = lost in self._ring
        self._ring.pop(lost, None)
        if lost in self._ring_broker_list:
            self._lost.add(cluster)
        if self._is_reached(cluster) or not (was_used or cluster in self._lost):
            return []
        linked = [link for link in self._links if self._cluster_of(link) == cluster]
        if linked:
            own_first = sorted(linked, key=lambda link: link not in self._ring_broker_list)
            self._ring[own_first[0]] = None
            return []
        others = (name for name in self.structure.clusters[cluster] if name != lost.name)
        return [OpenLink(name, "", LinkKind.PRIMARY, self._lane) for name in others]

    def _on_resync_done(self, scope: ResyncScope, last_hop: Hop) -> Answers:
        assert isinstance(last_hop, Neighbour), "clients do not resync"
        self._resync.hear(last_hop, scope)
        if scope is ResyncScope.NOT_ALL:
            return []
        self._cluster.remove_all(last_hop, only_in_doubt=True)
        answers = self._confirm_advertisements()
        if last_hop in self._backbone:
            answers += self.names.resynced(last_hop)
        return [*answers, *self._resync.due()]

    def recovering(self) -> Answers:
        self._is_recovering = True
        return [*self._resync.begin_all()]

    def clients_returned(self) -> Answers:
        self._resync.clients_are_back = True
        return [*self._resync.due()]

    def recovered(self) -> Answers:
        """Send the confirmations that waited: only now are the lists complete."""
        self._is_recovering = False
        complete, self._complete = self._complete, {}
        entries = (self._local.get(id) for id in complete)
        answers: Answers = [*self.clients_returned()]
        answers += [self._confirm(each) for each in entries if each and not each.in_effect]
        return answers + self._confirm_advertisements()

    # -- what others may see -------------------------------------------------------------------

    @property
    def sweeps(self) -> list[Sweep]:
        return []  # None waits for a direction.

    def publisher(self, advertisement: AdvertisementId) -> Hop | None:
        entry = self._advertisements.get(advertisement)
        return None if entry is None else entry.last_hop

    def holdings(self) -> Iterator[Holding]:
        for id, entry in self._advertisements.items():
            assert not isinstance(entry.last_hop, Neighbour)
            edition = entry.advertisement.edition
            told = AdvertisementInEffect(id=id, edition=edition)
            is_told = id not in self._unconfirmed
            yield Holding(entry.last_hop, entry.advertisement, told if is_told else None)
        for interest in self._local:
            assert not isinstance(interest.last_hop, Neighbour)
            notice = _in_effect(interest.subscription) if interest.in_effect else None
            yield Holding(interest.last_hop, interest.subscription, notice)

    def tables(self) -> Tables:
        sent = [str(id) for id in sorted(self._local.sent())]
        local = {str(entry.subscription.id): entry.last_hop for entry in self._local}
        own = {str(entry.subscription.id): entry.subscription.filter for entry in self._local}
        return Tables(
            advertisements={str(id): each.last_hop for id, each in self._advertisements.items()},
            subscriptions=self._cluster.hops() | local,
            told={
                link.name: sent if link in self._cluster_broker_list else [] for link in self._links
            },
            advertised={str(id): e.advertisement.filter for id, e in self._advertisements.items()},
            wanted=self._cluster.filters() | own,
            pending=pending_of(self._local),
            announcing=frozenset(map(str, self._unconfirmed)),
        )

    def check(self) -> None:
        """Assert K1, K2 and K4, and what the lists and names.py say."""
        reached = [self._cluster_of(link) for link in self._ring]
        assert len(reached) == len(set(reached)), f"K4: two ways to a cluster: {self._ring}"
        for link in self._links:
            self._check_neighbour(link)
        for id, hop in self._cluster.hops().items():
            assert hop in self._cluster_broker_list, f"K2: {id} is not of a mate"
        self._local.check()
        self._cluster.check()
        self.names.check()


def _in_effect(subscription: Subscription) -> SubscriptionInEffect:
    return SubscriptionInEffect(id=subscription.id, edition=subscription.edition)
