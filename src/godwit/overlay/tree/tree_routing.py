"""Routing in a tree of brokers, with advertisements and covering (PADRES).

Paper    Cheung, thesis 3.1 and 3.2: filter-based routing.
Words    SRT -> AdvertisementTable; PRT -> InterestTable; sentTo, suppressed -> Link: front, behind.
Claim    Once a subscription is in effect, every publication that matches it and that is
         published under an advertisement in effect reaches it exactly once, in publisher order.

    links            expected ones are waited for, until they have been up or are given up;
                     a new neighbour is sent all advertisements; what a lost one sent is withdrawn;
                     what a restarted one sent is kept until its resync is complete (resync.py)
    advertisements   flood; are confirmed from the leaves back to the publisher
    publishers       that move advertise the next edition: it travels to where the former edition
                     came from, turns the direction on its way, and is confirmed behind the last
                     publication; a broker that meets two editions keeps the higher one
    subscriptions    travel towards every advertisement that announces them, unless a covering one
                     was sent there before; are confirmed from the publishers back to the subscriber
    publications     travel towards every hop with a matching subscription

Departs  1. Confirmations are ours; the thesis does not say when a subscription is in effect.
            They rely on FIFO links only: a broker that confirms an advertisement has sent the
            subscriptions it announces first, so they are ahead of the confirmation everywhere.
            A subscription is confirmed only when all other neighbours have sent their
            advertisements: a broker that has just joined does not know yet where to send it.
         2. A subscription that came before its advertisement goes out when that arrives; the
            thesis shows only the other order.
         3. When an advertisement is withdrawn, the broker that sent a subscription towards it
            sends an unsubscription.  If both ends of the link forgot it by themselves, one that
            crosses the withdrawal and a new advertisement on the link would stay behind.
         4. A subscription that was sent stays sent when a wider one follows (R4 is optional).
         5. The thesis moves a publisher along a list of brokers, and does not say what happens when
            one of them fails (5.1.3).  Editions need no list: where two meet, the higher one wins.
Tested   tests/overlay/: figure 3.1, races by hand, random trees that change; tests/simulation/.

T1  A subscription was sent to a link, or is held back there, exactly if it came from another hop,
    may travel, and an advertisement from that link announces it.
T2  What is held back on a link is covered by something that was sent on it.  (CoveringSet)
T3  The index holds the front of every hop's covering set.  (InterestTable)
T4  What awaits a confirmation was sent.  (Link)
T5  An advertisement counts at its publisher's hop, and at the former hop until that side has
    confirmed the latest edition: publications may still come from there.  (AdvertisementTable)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from msgspec.structs import replace

from godwit.broker.effects import Send
from godwit.broker.routing import Answer, Confirm, Holding, MovedAway, MovedHere, Place, Tables
from godwit.broker.stimuli import Hop, LinkKind, Neighbour
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
from godwit.overlay.tree.names import Names
from godwit.overlay.tree.presence import Presence
from godwit.overlay.tree.resync import Resync
from godwit.overlay.tree.routing_tables import (
    AdvertisementEntry,
    AdvertisementTable,
    InterestTable,
    Link,
    SubscriptionEntry,
)
from godwit.overlay.tree.table_views import check_tables, local_holdings, tables_of

Answers = list[Answer]


class TreeRouting:
    """The router of one broker in an acyclic overlay with FIFO links."""

    def __init__(self, place: Place, *, covering: bool = True) -> None:
        """Without `covering` every subscription goes wherever it is announced: for comparison."""
        self._covering = covering
        self._links = {link: self._make_link(link, kind) for link, kind in place.links.items()}
        self._advertisements = AdvertisementTable()
        self._interests = InterestTable()
        self._presence = Presence()
        self.names = Names(place.broker, self._links, place.expected, place.lane)
        self._resync = Resync(self._links, place.expected)
        self._is_recovering = False
        self._unconfirmed: dict[tuple[AdvertisementId, Hop], None] = {}
        """Confirmations of advertisements that wait until this broker has recovered."""

    @property
    def neighbours(self) -> Mapping[Neighbour, LinkKind]:
        return {neighbour: link.kind for neighbour, link in self._links.items()}

    def sources(self, neighbour: Neighbour) -> list[Neighbour]:
        return [link for link in self._links if link != neighbour]

    @property
    def is_complete(self) -> bool:
        return self._resync.is_complete

    @property
    def subscription_count(self) -> int:
        return len(self._interests)

    @property
    def advertisement_count(self) -> int:
        return len(self._advertisements)

    def destinations(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float
    ) -> dict[Hop, None]:
        wanting = self._interests.hops_wanting(publication)
        wanting.pop(last_hop, None)
        if publication.ttl_hops is not None and hops >= publication.ttl_hops:
            return {hop: None for hop in wanting if not isinstance(hop, Neighbour)}
        return wanting

    def handle(self, message: RoutingMessage, last_hop: Hop) -> Answers:
        if isinstance(message, NameMessage):
            return self.names.handle(message, last_hop)
        match message:
            case Subscription():
                return self._on_subscription(message, last_hop)
            case SubscriptionInEffect():
                return self._on_subscription_in_effect(message, last_hop)
            case Unsubscription(id=id):
                return self._on_unsubscription(id, last_hop)
            case Advertisement():
                return self._on_advertisement(message, last_hop)
            case AdvertisementInEffect():
                return self._on_advertisement_in_effect(message, last_hop)
            case Unadvertisement(id=id):
                return self._on_unadvertisement(id, last_hop)
            case Present() | Absent() | Sweep():
                return self._presence.handle(message, last_hop, list(self._links))
            case ResyncDone(scope=scope):
                return self._on_resync_done(scope, last_hop)
            case Last() | ClusterNotice():
                return []  # Of an epoch that is over (overlay/epochs/).
            case _:
                assert_never(message)

    @property
    def sweeps(self) -> list[Sweep]:
        return self._presence.waiting

    def publisher(self, advertisement: AdvertisementId) -> Hop | None:
        entry = self._advertisements.get(advertisement)
        return None if entry is None else entry.last_hop

    def holdings(self) -> Iterator[Holding]:
        waiting = self._unconfirmed
        return local_holdings(self._advertisements, self._interests, self._presence, waiting)

    # -- links ---------------------------------------------------------------------------------

    def _make_link(self, neighbour: Neighbour, kind: LinkKind) -> Link:
        return Link(neighbour, kind, covering=self._covering)

    def link_up(self, neighbour: Neighbour, kind: LinkKind = LinkKind.PRIMARY) -> Answers:
        """Send a new neighbour every advertisement; subscriptions follow those it sends."""
        assert neighbour not in self._links, f"{neighbour.name} is linked already"
        self._links[neighbour] = self._make_link(neighbour, kind)
        answers: Answers = []
        for entry in self._advertisements:
            answers.append(Send(neighbour, entry.advertisement))
            # What is in effect stays in effect: that holds for the links that were up then.
            if entry.awaited:
                entry.awaited[neighbour] = entry.advertisement.edition
        answers += self._resync.begin(neighbour, is_recovering=self._is_recovering)
        answers += self.names.link_up(neighbour)
        return [*answers, *self._presence.link_up(neighbour), *self._resync.due()]

    def link_restarted(self, neighbour: Neighbour) -> Answers:
        """Repeat what was sent to a neighbour; keep, but doubt, what it sent before."""
        link = self._links[neighbour]
        answers: Answers = []
        for entry in self._advertisements:
            entry.is_in_doubt |= entry.last_hop == neighbour
            if entry.last_hop != neighbour:
                answers.append(Send(neighbour, entry.advertisement))
        for interest in self._interests:
            interest.is_in_doubt |= interest.last_hop == neighbour
            if link.was_sent(interest):
                answers.append(self._send(neighbour, interest))
        answers += self._resync.begin(neighbour, is_recovering=self._is_recovering)
        answers += self.names.link_restarted(neighbour)
        return [*answers, *self._presence.link_up(neighbour), *self._resync.due()]

    def recovering(self) -> Answers:
        self._is_recovering = True
        return [*self._resync.begin_all()]

    def clients_returned(self) -> Answers:
        self._resync.clients_are_back = True
        return [*self._resync.due()]

    def recovered(self) -> Answers:
        """Send the confirmations that waited: only now are the tables complete."""
        self._is_recovering = False
        answers = self.clients_returned()
        for interest in self._interests:
            answers += self._confirm_if_complete(interest)
        unconfirmed, self._unconfirmed = self._unconfirmed, {}
        for id, to in unconfirmed:
            entry = self._advertisements.get(id)
            is_there = not isinstance(to, Neighbour) or to in self._links
            if entry is not None and not entry.awaited and is_there:
                answers += self._confirm_advertisement(entry, to)
        return answers

    def _on_resync_done(self, scope: ResyncScope, last_hop: Hop) -> Answers:
        """A neighbour has sent all that `scope` names: what it did not repeat is withdrawn."""
        assert isinstance(last_hop, Neighbour), "clients do not resync"
        self._resync.hear(last_hop, scope)
        if scope is ResyncScope.NOT_ALL:
            return []
        answers: Answers = [*self.names.resynced(last_hop)]
        for entry in list(self._advertisements):
            if entry.is_in_doubt and entry.last_hop == last_hop:
                answers += self._withdraw(entry)
        if scope is ResyncScope.SUBSCRIPTIONS_TOO:
            interests = [each for each in self._interests if each.last_hop == last_hop]
            answers += self._withdraw_interests([each for each in interests if each.is_in_doubt])
        for interest in self._interests:
            answers += self._confirm_if_complete(interest)
        return [*answers, *self._resync.due()]

    def _withdraw_interests(self, gone: list[SubscriptionEntry]) -> Answers:
        for interest in gone:
            interest.in_effect = True  # Their hop is gone: there is no one to notify.
        return [answer for interest in gone for answer in self._forget(interest)]

    def link_down(self, neighbour: Neighbour) -> Answers:
        """Withdraw all that came from a neighbour, and stop waiting for its confirmations."""
        self._links.pop(neighbour, None)
        self._resync.end(neighbour)
        answers: Answers = []
        gone = [interest for interest in self._interests if interest.last_hop == neighbour]
        answers += self._withdraw_interests(gone)
        for entry in list(self._advertisements):
            if entry.last_hop == neighbour:
                answers += self._withdraw(entry)
            elif neighbour in entry.awaited:
                answers += self._await_no_longer(entry, neighbour)
        for interest in self._interests:
            interest.unconfirmed.discard(neighbour)
            answers += self._confirm_if_complete(interest)
        answers += self._presence.link_down(neighbour, list(self._links))
        return [*answers, *self.names.link_down(neighbour), *self._resync.due()]

    # -- advertisements ------------------------------------------------------------------------

    def _on_advertisement(self, advertisement: Advertisement, last_hop: Hop) -> Answers:
        known = self._advertisements.get(advertisement.id)
        if known is None:
            entry = AdvertisementEntry(advertisement, last_hop)
            self._advertisements.add(entry)
            return self._flood(entry)
        edition = known.advertisement.edition
        if advertisement.edition >= edition and last_hop == known.last_hop:
            known.is_in_doubt = False
        if advertisement.edition > edition:
            known.advertisement = replace(known.advertisement, edition=advertisement.edition)
            if last_hop == known.last_hop:
                return self._flood(known)  # Other brokers may have an older direction.
            answers = self._turn(known, last_hop)
            return answers if isinstance(last_hop, Neighbour) else [MovedHere(last_hop), *answers]
        if advertisement.edition < edition and isinstance(last_hop, Neighbour):
            return self._put_right(known, last_hop)
        # A repetition, or an id used twice: the first one stands.
        return [] if known.awaited else self._confirm_advertisement(known, last_hop)

    def _flood(self, entry: AdvertisementEntry) -> Answers:
        advertisement, last_hop = entry.advertisement, entry.last_hop
        others = [neighbour for neighbour in self._links if neighbour != last_hop]
        entry.awaited = dict.fromkeys(others + self._resync.expected, advertisement.edition)
        answers: Answers = [Send(neighbour, advertisement) for neighbour in others]
        answers += self._tell_announced(advertisement, last_hop)
        return answers if entry.awaited else answers + self._confirm_advertisement(entry, last_hop)

    def _turn(self, entry: AdvertisementEntry, new: Hop) -> Answers:
        """Turn an advertisement towards `new`, and send what it announces there."""
        old = entry.last_hop
        self._advertisements.turn(entry, new)
        entry.is_in_doubt = False
        if isinstance(new, Neighbour):
            entry.awaited.pop(new, None)
        answers = self._tell_announced(entry.advertisement, new)
        if isinstance(old, Neighbour):
            entry.awaited[old] = entry.advertisement.edition
            answers.append(Send(old, entry.advertisement))
        else:
            answers.append(MovedAway(old, entry.advertisement.id))
        return answers if entry.awaited else answers + self._confirm_advertisement(entry, new)

    def _put_right(self, entry: AdvertisementEntry, neighbour: Neighbour) -> Answers:
        """A neighbour has an older edition: send it the latest."""
        if entry.last_hop == neighbour:
            return []
        if entry.awaited:
            entry.awaited[neighbour] = entry.advertisement.edition
        return [Send(neighbour, entry.advertisement)]

    def _tell_announced(self, advertisement: Advertisement, last_hop: Hop) -> Answers:
        """Send what an advertisement announces to where it came from."""
        answers: Answers = []
        if isinstance(last_hop, Neighbour):
            for interest in self._interests:
                if self._may_travel(interest, last_hop) and advertisement.filter.announces(
                    interest.subscription.filter
                ):
                    answers += self._tell(last_hop, interest)
        return answers

    def _on_advertisement_in_effect(self, notice: AdvertisementInEffect, last_hop: Hop) -> Answers:
        entry = self._advertisements.get(notice.id)
        if entry is None or not isinstance(last_hop, Neighbour):
            return []  # It was withdrawn meanwhile.
        told = entry.awaited.get(last_hop)
        if told is None or notice.edition < told:
            return []  # That was an earlier edition.
        return self._await_no_longer(entry, last_hop)

    def _await_no_longer(self, entry: AdvertisementEntry, neighbour: Neighbour) -> Answers:
        """Behind the last publication from a former hop: only now withdraw (E10)."""
        del entry.awaited[neighbour]
        answers: Answers = []
        if self._advertisements.settle(entry, neighbour) and neighbour in self._links:
            answers += self._take_back(neighbour)
        if not entry.awaited:
            answers += self._confirm_advertisement(entry, entry.last_hop)
        return answers

    def _confirm_advertisement(self, entry: AdvertisementEntry, to: Hop) -> Answers:
        advertisement = entry.advertisement
        if self._is_recovering:
            self._unconfirmed[advertisement.id, to] = None
            return []
        notice = AdvertisementInEffect(id=advertisement.id, edition=advertisement.edition)
        return [_answer(to, notice)]

    def _on_unadvertisement(self, id: AdvertisementId, last_hop: Hop) -> Answers:
        entry = self._advertisements.get(id)
        # A link is FIFO: a later edition from this hop would have come later.
        if entry is None or entry.last_hop != last_hop:
            return []
        return self._withdraw(entry)

    def _withdraw(self, entry: AdvertisementEntry) -> Answers:
        self._advertisements.remove(entry)
        id, last_hop = entry.advertisement.id, entry.last_hop
        # Every neighbour that has it.  If the publisher has turned, that includes its last hop:
        # what was sent there before may arrive only now, and look like a new advertisement.
        told = [n for n in self._links if n != last_hop or entry.has_turned]
        answers: Answers = [Send(neighbour, Unadvertisement(id=id)) for neighbour in told]
        for neighbour in self._links:
            if neighbour == last_hop or neighbour in entry.leaving:
                answers += self._take_back(neighbour)
        return answers

    def _take_back(self, neighbour: Neighbour) -> Answers:
        """Withdraw from a link what its advertisements no longer announce."""
        link = self._links[neighbour]
        pointless = [
            entry
            for entry in map(self._interests.__getitem__, link)
            if not self._advertisements.is_announced(entry.subscription.filter, neighbour)
        ]
        answers: Answers = []
        # Those held back go first; otherwise each would be sent only to be withdrawn.
        for entry in sorted(pointless, key=link.was_sent):
            answers += self._untell(neighbour, entry)
        return answers

    # -- subscriptions -------------------------------------------------------------------------

    def _on_subscription(self, subscription: Subscription, last_hop: Hop) -> Answers:
        known = self._interests.get(subscription.id)
        answers: Answers = []
        if known is not None and known.is_in_doubt and known.last_hop == last_hop:
            known.is_in_doubt = False
            if known.subscription.edition != subscription.edition:  # Its id is in use again.
                answers, known = self._forget(known), None
        if known is not None:  # A repetition, or an id used twice: the first one stands.
            return self._confirm_subscription(known, last_hop) if known.in_effect else []
        entry = self._interests.add(subscription, last_hop, self._toward(subscription, last_hop))
        for neighbour in self._links:
            if self._may_travel(entry, neighbour) and self._advertisements.is_announced(
                subscription.filter, neighbour
            ):
                answers += self._tell(neighbour, entry)
        return answers + self._confirm_if_complete(entry)

    def _toward(self, subscription: Subscription, last_hop: Hop) -> Hop:
        return last_hop

    def _may_travel(self, entry: SubscriptionEntry, neighbour: Neighbour) -> bool:
        return entry.last_hop != neighbour and not entry.subscription.local_only

    def _tell(self, neighbour: Neighbour, entry: SubscriptionEntry) -> Answers:
        """Send a neighbour a subscription, unless it has it or a covering one."""
        link = self._links[neighbour]
        if entry in link or not link.add(entry):
            return []
        return [self._send(neighbour, entry)]

    def _send(self, neighbour: Neighbour, entry: SubscriptionEntry) -> Send:
        return Send(neighbour, entry.subscription)

    def _untell(self, neighbour: Neighbour, entry: SubscriptionEntry) -> Answers:
        """Withdraw a subscription.  Those that it held back are sent first: no gap in delivery."""
        link = self._links[neighbour]
        id = entry.subscription.id
        was_sent = link.was_sent(entry)
        waited = link.waiting.get(id, {})
        answers: Answers = []
        for stepped in link.remove(entry):
            link.rewait(self._interests[stepped])
            answers.append(self._send(neighbour, self._interests[stepped]))
        if was_sent:
            answers.append(Send(neighbour, Unsubscription(id=id)))
        for other in waited:
            if other != id and other not in link.waiting:
                link.rewait(self._interests[other])
                answers += self._confirm_if_complete(self._interests[other])
        return answers + self._confirm_if_complete(entry)

    def _on_unsubscription(self, id: SubscriptionId, last_hop: Hop) -> Answers:
        entry = self._interests.get(id)
        if entry is None or entry.last_hop != last_hop:
            return []
        if self._resync.lacks_subscriptions_of(last_hop):  # Even of what this one covers.
            entry.is_in_doubt = True
            return []
        return self._forget(entry)

    def _forget(self, entry: SubscriptionEntry) -> Answers:
        entry.in_effect = True  # The subscriber no longer waits for it.
        answers: Answers = []
        for neighbour, link in self._links.items():
            if entry in link:
                answers += self._untell(neighbour, entry)
        self._interests.remove(entry)
        return answers

    def _on_subscription_in_effect(self, notice: SubscriptionInEffect, last_hop: Hop) -> Answers:
        confirmed = self._interests.get(notice.id)
        if not isinstance(last_hop, Neighbour) or confirmed is None:
            return []
        if confirmed.subscription.edition != notice.edition:
            return []  # It was withdrawn meanwhile, and its id is in use again.
        answers: Answers = []
        for waiting in self._links[last_hop].waiting.pop(notice.id, {}):
            entry = self._interests[waiting]
            entry.unconfirmed.discard(last_hop)
            answers += self._confirm_if_complete(entry)
        return answers

    def _confirm_if_complete(self, entry: SubscriptionEntry) -> Answers:
        if entry.in_effect or entry.unconfirmed or self._is_recovering:
            return []
        if not self._resync.has_advertisements_beside(entry.last_hop):
            return []  # They may announce it, and then a neighbour has to have it.
        entry.in_effect = True
        return self._confirm_subscription(entry, entry.last_hop)

    def _confirm_subscription(self, entry: SubscriptionEntry, to: Hop) -> Answers:
        subscription = entry.subscription
        notice = SubscriptionInEffect(id=subscription.id, edition=subscription.edition)
        return [_answer(to, notice)]

    def tables(self) -> Tables:
        return tables_of(self._advertisements, self._interests, self._links)

    def check(self) -> None:
        """Assert T1 to T5, and what names.py says."""
        self.names.check()
        check_tables(self._advertisements, self._interests, self._links.values())


def _answer(to: Hop, notice: AdvertisementInEffect | SubscriptionInEffect) -> Send | Confirm:
    return Send(to, notice) if isinstance(to, Neighbour) else Confirm(to, notice)
