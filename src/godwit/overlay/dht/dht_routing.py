"""Routing over a distributed hash table (Meghdoot): a baseline to compare the others with.

Paper    Baseline of cluster-based pub/sub (document 003, sections 4 and 5); ALGORITHMS.md 9A.6.
Claim    As in a tree: once a subscription is in effect, every publication that matches it and that
         is published under an advertisement in effect reaches it exactly once, in publisher order.

    subscriptions    go to the owners of all zones that they meet (zones.py), and are in effect when
                     all owners have confirmed; no covering: an owner has each of them
    advertisements   stay at their broker
    publications     go from zone to zone to the owner of their point, which matches them and sends
                     a copy to each broker with a matching subscription; that delivers

Publications of one publisher have different owners, and a short way would overtake a long one.  So
the next publication waits at its first broker if it has another owner than those under way, until
these are acknowledged end to end (mesh/unsettled_copies.py).

A link has a lane for each number of links crossed before, and one for copies to subscribers.  The
lane of the last hop says what a copy is for; and acknowledgements, which are given in the order of
each link, wait in no cycle: for a higher lane, then for that of the copies.

Departs  1. Order, in effect and acknowledgement are ours; Meghdoot has none of them.
         2. Subscriptions and copies to subscribers take one link: every broker knows the map, and
            an owner has the address of the subscriber.  Publications take the way of CAN, unless
            the map says `is_direct`.
Missing  Simulator only, without failures: brokers and links that fail, join or leave, clients that
         move, and zones that change while the network runs are refused.
Tested   tests/overlay/dht/, tests/simulation/test_random_dht.py.

H1  A broker has the subscriptions of its own clients, and of others those that meet its zone.
H2  What is on the lane of copies goes to clients only.
H3  The publications of one publisher that are under way from its broker have one owner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import assert_never

from godwit.broker.effects import OpenLink, Send
from godwit.broker.routing import Answer, Confirm, Holding, Place, Tables
from godwit.broker.stimuli import Hop, LinkKind, LocalClient, Module, Neighbour
from godwit.content.mesh_messages import MeshMessage
from godwit.content.messages import (
    Absent,
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    ClusterNotice,
    Last,
    NameMessage,
    Paused,
    Present,
    Publication,
    ResyncDone,
    RoutingMessage,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Sweep,
    Unadvertisement,
    Unsubscription,
)
from godwit.errors import UsageError
from godwit.overlay.clusters.subscription_lists import ClusterSubscriptionList
from godwit.overlay.dht.zones import zones_of
from godwit.overlay.mesh.unsettled_copies import Positions, UnsettledCopies
from godwit.overlay.tree.names import Names
from godwit.overlay.tree.routing_tables import AdvertisementEntry, InterestTable, SubscriptionEntry
from godwit.overlay.tree.table_views import pending_of

Answers = list[Answer]

#: Added to the lane of the copies, with the number of links that a publication has crossed.
HOP_LANES = 2**42


class DhtRouting:
    """The router of one broker that owns a zone, with FIFO links."""

    def __init__(self, place: Place) -> None:
        """`place.settings` have the map of all zones: see `dht_settings`."""
        self.zones = zones_of(place.settings)
        self.output_utilisation: Callable[[float], float] = _idle
        self._broker = place.broker
        self._lane = place.lane
        self._zone = self.zones.zone_of(place.broker)
        backbone = {
            Neighbour(each, place.lane) for each in self.zones.backbone.neighbours(place.broker)
        }
        self._links = {
            link: LinkKind.PRIMARY if link in backbone else LinkKind.CROSS for link in place.links
        }
        self._hop_links: dict[Neighbour, None] = {}
        """Links for publications that are up."""
        self._missing = {
            Neighbour(other, self._hop_lane(crossed))
            for other, crossed in self.zones.hop_links[place.broker]
        }
        """... and those that are not."""
        self._local = InterestTable()
        self._stored = ClusterSubscriptionList()
        """Subscriptions of other brokers that meet the zone."""
        self._awaited: dict[SubscriptionId, set[Neighbour]] = {}
        """Owners that have not confirmed a subscription."""
        self._advertisements: dict[AdvertisementId, AdvertisementEntry] = {}
        self._unconfirmed: dict[AdvertisementId, None] = {}
        self._copies = UnsettledCopies()
        self._sent_to: dict[str, str] = {}
        """The owner that publishers with unsettled copies publish to."""
        self._pausing: list[tuple[Positions, Confirm]] = []
        spine = {link: None for link in place.links if link in backbone}
        self.names = Names(place.broker, spine, (), place.lane)

    @property
    def neighbours(self) -> Mapping[Neighbour, LinkKind]:
        return {**self._links, **dict.fromkeys(self._hop_links, LinkKind.SOFT)}

    def sources(self, neighbour: Neighbour) -> list[Neighbour]:
        if neighbour.lane == self._lane:
            return list(self._hop_links)
        return [link for link in self._hop_links if link.lane == neighbour.lane - 1]

    def counts(self, neighbour: Neighbour) -> bool:
        return True

    @property
    def uses_soft_links(self) -> bool:
        return bool(self._hop_links)

    @property
    def is_complete(self) -> bool:
        return not self._missing

    @property
    def subscription_count(self) -> int:
        return len(self._local) + len(self._stored)

    @property
    def advertisement_count(self) -> int:
        return len(self._advertisements)

    def _hop_lane(self, crossed: int) -> int:
        return self._lane + HOP_LANES + crossed

    # -- publications --------------------------------------------------------------------------

    def destinations(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float
    ) -> dict[Hop, None]:
        owner = self._owner_of(publication)
        found = self._where(publication, last_hop, hops, owner)
        if publication.is_control:
            return found  # Not acknowledged, and not counted.
        is_first = type(last_hop) is not Neighbour
        for hop in found:
            if type(hop) is not Neighbour:
                continue
            if is_first:
                self._copies.send(publication.publisher, (hop,))
                self._sent_to[publication.publisher] = owner
            else:
                self._copies.count(hop)
        return found

    def preview(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float
    ) -> dict[Hop, None]:
        """As `destinations`, of a publication that is not sent."""
        return self._where(publication, last_hop, hops, self._owner_of(publication))

    def _owner_of(self, publication: Publication) -> str:
        return self.zones.owner_of(publication.content, publication.publisher)

    def _where(
        self, publication: Publication, last_hop: Hop, hops: int, owner: str
    ) -> dict[Hop, None]:
        is_copy = type(last_hop) is Neighbour and last_hop.lane == self._lane
        may_cross = publication.ttl_hops is None or hops < publication.ttl_hops
        if owner != self._broker and not is_copy:
            if not may_cross:
                return {}
            following = self.zones.next_hop(self._broker, owner)
            return {Neighbour(following, self._hop_lane(hops + 1)): None}
        found = self._local.hops_wanting(publication)
        found.pop(LocalClient(publication.publisher), None)  # It comes back to its first broker.
        found.pop(last_hop, None)
        if not is_copy and may_cross:  # H2
            found |= self._stored.brokers_wanting(publication)
        return found

    def has_to_wait(self, publication: Publication, last_hop: Hop, now_s: float) -> bool:
        """Whether an earlier one of its publisher is under way to another owner (H3)."""
        if publication.is_control or type(last_hop) is Neighbour:
            return False
        owner = self._owner_of(publication)
        publisher = publication.publisher
        if not self._copies.of(publisher):
            self._sent_to.pop(publisher, None)
            return False
        return self._sent_to[publisher] != owner

    def acknowledged(self, neighbour: Neighbour, position: int) -> Answers:
        self._copies.acknowledge(neighbour, position)
        settled = [each for each in self._pausing if self._copies.has_settled(each[0])]
        self._pausing = [each for each in self._pausing if each not in settled]
        return [confirm for _, confirm in settled]

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
                return self._on_confirmed(message, last_hop)
            case Advertisement():
                return self._on_advertisement(message, last_hop)
            case Unadvertisement(id=id):
                entry = self._advertisements.get(id)
                if entry is not None and entry.last_hop == last_hop:
                    del self._advertisements[id]
                    self._unconfirmed.pop(id, None)
                return []
            case Sweep():
                raise _refusal("clients that move")
            case (
                AdvertisementInEffect()
                | Present()
                | Absent()
                | Last()
                | ClusterNotice()
                | ResyncDone()
            ):
                return []  # Sent in other overlays.
            case _:
                assert_never(message)

    def _owners(self, subscription: Subscription) -> list[Neighbour]:
        """The other brokers that have to have a subscription (H1)."""
        if subscription.local_only:
            return []
        owners = self.zones.owners_of(subscription.filter)
        return [Neighbour(each, self._lane) for each in owners if each != self._broker]

    def _on_subscription(self, subscription: Subscription, last_hop: Hop) -> Answers:
        if isinstance(last_hop, Neighbour):
            self._stored.add(subscription, last_hop)
            return [Send(last_hop, _in_effect(subscription))]
        known = self._local.get(subscription.id)
        if known is not None:  # A repetition.
            return [Confirm(last_hop, _in_effect(known.subscription))] if known.in_effect else []
        entry = self._local.add(subscription, last_hop)
        owners = self._owners(subscription)
        if not owners:
            return [self._confirm(entry)]
        self._awaited[subscription.id] = set(owners)
        return [Send(owner, subscription) for owner in owners]

    def _on_unsubscription(self, id: SubscriptionId, last_hop: Hop) -> Answers:
        if isinstance(last_hop, Neighbour):
            self._stored.remove(id, last_hop)
            return []
        entry = self._local.get(id)
        if entry is None or entry.last_hop != last_hop:
            return []
        self._local.remove(entry)
        self._awaited.pop(id, None)
        return [Send(each, Unsubscription(id=id)) for each in self._owners(entry.subscription)]

    def _on_confirmed(self, notice: SubscriptionInEffect, last_hop: Hop) -> Answers:
        entry, awaited = self._local.get(notice.id), self._awaited.get(notice.id)
        if entry is None or awaited is None or entry.subscription.edition != notice.edition:
            return []  # It was withdrawn meanwhile, and its id may be in use again.
        assert isinstance(last_hop, Neighbour), "clients confirm nothing"
        awaited.discard(last_hop)
        if awaited:
            return []
        del self._awaited[notice.id]
        return [self._confirm(entry)]

    def _confirm(self, entry: SubscriptionEntry) -> Confirm:
        entry.in_effect = True
        assert not isinstance(entry.last_hop, Neighbour)
        return Confirm(entry.last_hop, _in_effect(entry.subscription))

    def _on_advertisement(self, advertisement: Advertisement, last_hop: Hop) -> Answers:
        if isinstance(last_hop, Neighbour):
            return []
        self._advertisements[advertisement.id] = AdvertisementEntry(advertisement, last_hop)
        self._unconfirmed[advertisement.id] = None
        return self._confirm_advertisements()

    def _confirm_advertisements(self) -> Answers:
        """They are in effect when all links for publications are up."""
        if self._missing:
            return []
        unconfirmed, self._unconfirmed = self._unconfirmed, {}
        entries = [self._advertisements[id] for id in unconfirmed]
        return [Confirm(_local(each.last_hop), _advertised(each)) for each in entries]

    def pause(self, client: LocalClient, move: int) -> Answers:
        """Confirm when what the client has published is with all subscribers."""
        confirm = Confirm(client, Paused(move=move))
        positions = self._copies.positions()
        if self._copies.has_settled(positions):
            return [confirm]
        self._pausing.append((positions, confirm))
        return []

    # -- links ---------------------------------------------------------------------------------

    def start(self, address: str) -> Answers:
        """Open the links for publications; of the two ends, one does."""
        opened = sorted(link for link in self._missing if self._broker < link.name)
        return [OpenLink(link.name, "", LinkKind.SOFT, link.lane) for link in opened]

    def link_up(self, neighbour: Neighbour, kind: LinkKind = LinkKind.PRIMARY) -> Answers:
        if neighbour not in self._missing:
            raise _refusal("brokers that join")
        self._missing.remove(neighbour)
        self._hop_links[neighbour] = None
        return self._confirm_advertisements()

    def link_down(self, neighbour: Neighbour) -> Answers:
        raise _refusal("links that go down")

    def link_restarted(self, neighbour: Neighbour) -> Answers:
        raise _refusal("brokers that restart")

    def recovering(self) -> Answers:
        raise _refusal("brokers that restart")

    def clients_returned(self) -> Answers:
        return []

    def recovered(self) -> Answers:
        return []

    def receive(self, message: MeshMessage, neighbour: Neighbour) -> Answers:
        return []

    def link_away(self, neighbour: Neighbour, *, is_away: bool) -> None:
        """Connections are not lost in a simulation."""

    def detour(self, publication: Publication, lost: Neighbour) -> list[Neighbour]:
        return []

    def want_soft_links(self, brokers: Iterable[str]) -> Answers:
        raise _refusal("soft links")

    # -- what others may see -------------------------------------------------------------------

    @property
    def sweeps(self) -> list[Sweep]:
        return []

    def publisher(self, advertisement: AdvertisementId) -> Hop | None:
        entry = self._advertisements.get(advertisement)
        return None if entry is None else entry.last_hop

    def holdings(self) -> Iterator[Holding]:
        for id, entry in self._advertisements.items():
            notice = None if id in self._unconfirmed else _advertised(entry)
            yield Holding(_local(entry.last_hop), entry.advertisement, notice)
        for interest in self._local:
            told = _in_effect(interest.subscription) if interest.in_effect else None
            yield Holding(_local(interest.last_hop), interest.subscription, told)

    def tables(self) -> Tables:
        sent: dict[str, list[str]] = {link.name: [] for link in self._links}
        for entry in self._local:
            for owner in self._owners(entry.subscription):
                sent[owner.name].append(str(entry.subscription.id))
        own = {str(entry.subscription.id): entry for entry in self._local}
        return Tables(
            advertisements={str(id): each.last_hop for id, each in self._advertisements.items()},
            subscriptions=self._stored.hops() | {id: each.last_hop for id, each in own.items()},
            told={name: sorted(ids) for name, ids in sent.items()},
            advertised={str(id): e.advertisement.filter for id, e in self._advertisements.items()},
            wanted=self._stored.filters()
            | {id: each.subscription.filter for id, each in own.items()},
            pending=pending_of(self._local),
            announcing=frozenset(map(str, self._unconfirmed)),
        )

    def check(self) -> None:
        """Assert H1, and what the tables and names.py say."""
        for id, filter in self._stored.filters().items():
            assert self._zone.meets(self.zones.space.part(filter)), f"H1: {id} is of another zone"
        for id, awaited in self._awaited.items():
            entry = self._local.get(id)
            assert entry is not None, f"H1: {id} is awaited and gone"
            assert awaited, f"H1: {id} awaits no owner"
            assert not entry.in_effect, f"H1: {id} is in effect and awaits an owner"
        self._local.check()
        self._stored.check()
        self.names.check()


def _in_effect(subscription: Subscription) -> SubscriptionInEffect:
    return SubscriptionInEffect(id=subscription.id, edition=subscription.edition)


def _advertised(entry: AdvertisementEntry) -> AdvertisementInEffect:
    advertisement = entry.advertisement
    return AdvertisementInEffect(id=advertisement.id, edition=advertisement.edition)


def _local(hop: Hop) -> LocalClient | Module:
    assert not isinstance(hop, Neighbour), f"{hop.name} is a broker"
    return hop


def _refusal(what: str) -> UsageError:
    return UsageError(
        f"{what}: not in the overlay `dht`, which is for simulations without failures"
    )


def _idle(_now_s: float) -> float:
    return 0.0
