"""The router of a distributed hash table, message by message.

Sizes from 0 to 9 on a line: A owns 0 to 4, B owns 5 to 9; C has a replica of B's zone.
"""

from __future__ import annotations

import pytest

from godwit.broker.effects import OpenLink, Send
from godwit.broker.routing import Confirm, Multipath, Place
from godwit.broker.stimuli import LinkKind, LocalClient, Neighbour
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Paused,
    Publication,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Sweep,
    Unsubscription,
)
from godwit.errors import UsageError
from godwit.overlay.dht.content_space import ContentSpace, Dimension
from godwit.overlay.dht.dht_routing import HOP_LANES, DhtRouting
from godwit.overlay.dht.zones import Zone, ZoneMap, dht_settings

ZONES = ZoneMap(
    ContentSpace((Dimension("size", low=0, high=10),)),
    [Zone(((0, 0.5),), ("A",)), Zone(((0.5, 1),), ("B", "C"))],
    is_direct=False,
)
ALICE, BOB = LocalClient("alice"), LocalClient("bob")
A, B, C = (Neighbour(name) for name in "ABC")
#: The first link of a way.
TO_B, TO_C = (Neighbour(name, HOP_LANES + 1) for name in "BC")


def router(name: str, *, is_linked: bool = True) -> DhtRouting:
    others = ZONES.topology.neighbours(name)
    made = DhtRouting(Place.of(name, others, settings=dht_settings(ZONES)))
    if is_linked:
        for other in others:
            made.link_up(Neighbour(other, HOP_LANES + 1), LinkKind.SOFT)
    return made


def wanting(text: str, name: str = "alice/1") -> Subscription:
    return Subscription(id=SubscriptionId(name), filter=Filter.parse(text))


def in_effect(subscription: Subscription) -> SubscriptionInEffect:
    return SubscriptionInEffect(id=subscription.id)


def published(size: int, sequence: int = 1, publisher: str = "bob") -> Publication:
    return Publication(
        publisher=publisher,
        sequence=sequence,
        advertisement=AdvertisementId(f"{publisher}/1"),
        content={"size": size},
    )


def test_a_subscription_is_in_effect_when_all_owners_have_it() -> None:
    broker, subscription = router("A"), wanting("size > 3")
    answers = broker.handle(subscription, ALICE)
    assert answers == [Send(B, subscription), Send(C, subscription)]
    assert broker.handle(in_effect(subscription), B) == []
    broker.check()
    confirmed = Confirm(ALICE, in_effect(subscription))
    assert broker.handle(in_effect(subscription), C) == [confirmed]
    assert broker.handle(subscription, ALICE) == [confirmed], "a repetition"
    withdrawal = Unsubscription(id=subscription.id)
    assert broker.handle(withdrawal, ALICE) == [Send(B, withdrawal), Send(C, withdrawal)]
    assert broker.subscription_count == 0


def test_a_subscription_to_its_own_zone_is_in_effect_at_once() -> None:
    broker, subscription = router("A"), wanting("size < 3")
    assert broker.handle(subscription, ALICE) == [Confirm(ALICE, in_effect(subscription))]


def test_an_owner_matches_and_the_home_delivers() -> None:
    owner, home = router("A"), router("B")
    subscription = wanting("size < 3")
    assert home.handle(subscription, ALICE) == [Send(A, subscription)]
    assert owner.handle(subscription, B) == [Send(B, in_effect(subscription))]
    came_over = Neighbour("C", HOP_LANES + 1)
    assert owner.destinations(published(2), came_over, 1, 0.0) == {B: None}
    assert owner.destinations(published(4), came_over, 1, 0.0) == {}
    assert home.destinations(published(2), A, 2, 0.0) == {ALICE: None}
    assert home.destinations(published(2, publisher="alice"), A, 2, 0.0) == {}, "its own"
    owner.check()


def test_the_next_publication_waits_for_one_with_another_owner() -> None:
    broker = router("A")
    broker.handle(wanting("size > 0"), ALICE)
    there = broker.destinations(published(7, 1), BOB, 0, 0.0)
    assert set(there) <= {TO_B, TO_C}, "to the owner, and not to clients before"
    assert len(there) == 1
    assert not broker.has_to_wait(published(8, 2), BOB, 0.0), "the same owner"
    assert broker.has_to_wait(published(2, 2), BOB, 0.0)
    assert broker.pause(BOB, 1) == []
    (link,) = there
    assert isinstance(link, Neighbour)
    assert broker.acknowledged(link, 1) == [Confirm(BOB, Paused(move=1))]
    assert not broker.has_to_wait(published(2, 2), BOB, 0.0)


def test_an_advertisement_is_in_effect_when_the_links_are_up() -> None:
    broker = router("A", is_linked=False)
    assert isinstance(broker, Multipath)
    advertisement = Advertisement(
        id=AdvertisementId("bob/1"), filter=Filter.parse("size is present")
    )
    assert broker.start("") == [
        OpenLink(name, "", LinkKind.SOFT, HOP_LANES + 1) for name in ("B", "C")
    ]
    assert broker.handle(advertisement, BOB) == []
    assert broker.link_up(TO_B, LinkKind.SOFT) == []
    told = AdvertisementInEffect(id=advertisement.id)
    assert broker.link_up(TO_C, LinkKind.SOFT) == [Confirm(BOB, told)]
    assert broker.is_complete
    assert broker.tables().advertisements == {"bob/1": BOB}


def test_failures_and_moves_are_refused() -> None:
    broker = router("A")
    with pytest.raises(UsageError, match="links that go down: not in the overlay `dht`"):
        broker.link_down(B)
    with pytest.raises(UsageError, match="clients that move"):
        broker.handle(Sweep(client="alice", to="B", move=1), ALICE)
    with pytest.raises(UsageError, match="brokers that join"):
        broker.link_up(Neighbour("D"))
