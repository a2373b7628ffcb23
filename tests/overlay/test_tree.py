"""Tree routing at one broker: message in, the whole list of answers out."""

from __future__ import annotations

from msgspec import structs

from godwit.broker.effects import Send
from godwit.broker.routing import Confirm, Place
from godwit.broker.stimuli import Hop, LocalClient, Neighbour
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Publication,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Unadvertisement,
    Unsubscription,
    is_control_content,
)
from godwit.content.values import Value
from godwit.overlay.tree.tree_routing import TreeRouting

B1, B3, B4 = Neighbour("B1"), Neighbour("B3"), Neighbour("B4")
ALICE, BOB, PAUL = LocalClient("alice"), LocalClient("bob"), LocalClient("paul")


def adv(name: str, filter: str) -> Advertisement:
    return Advertisement(id=AdvertisementId(name), filter=Filter.parse(filter))


def sub(name: str, filter: str, *, local_only: bool = False) -> Subscription:
    return Subscription(id=SubscriptionId(name), filter=Filter.parse(filter), local_only=local_only)


def unsub(subscription: Subscription) -> Unsubscription:
    return Unsubscription(id=subscription.id)


def unadv(advertisement: Advertisement) -> Unadvertisement:
    return Unadvertisement(id=advertisement.id)


def adv_in_effect(advertisement: Advertisement) -> AdvertisementInEffect:
    return AdvertisementInEffect(id=advertisement.id)


def sub_in_effect(subscription: Subscription) -> SubscriptionInEffect:
    return SubscriptionInEffect(id=subscription.id)


def destinations(
    routing: TreeRouting, content: dict[str, Value], last_hop: Hop, *, ttl_hops: int | None = None
) -> list[Hop]:
    publication = Publication(
        publisher="paul",
        sequence=1,
        advertisement=AdvertisementId("paul/a1"),
        content=content,
        ttl_hops=ttl_hops,
        is_control=is_control_content(content),
    )
    return list(routing.destinations(publication, last_hop, hops=2, now_s=0.0))


ABOVE_1 = adv("paul/a1", "a > 1")
ABOVE_5, ABOVE_9 = sub("s5/s1", "a > 5"), sub("s9/s1", "a > 9")


def test_figure_3_1_of_the_thesis_seen_from_b2() -> None:
    """Covered by sub1, sub2 stops at B2; when sub1 leaves, sub2 goes to B1 before sub1's unsub."""
    b2 = TreeRouting(Place.of("B2", ["B1", "B3", "B4"]))

    assert b2.handle(ABOVE_1, B1) == [Send(B3, ABOVE_1), Send(B4, ABOVE_1)]
    assert b2.handle(ABOVE_5, B4) == [Send(B1, ABOVE_5)]
    assert b2.handle(sub_in_effect(ABOVE_5), B1) == [Send(B4, sub_in_effect(ABOVE_5))]
    assert b2.handle(ABOVE_9, B3) == [Send(B3, sub_in_effect(ABOVE_9))]
    assert destinations(b2, {"a": 7}, B1) == [B4]
    assert destinations(b2, {"a": 10}, B1) == [B4, B3]

    assert b2.handle(unsub(ABOVE_5), B4) == [Send(B1, ABOVE_9), Send(B1, unsub(ABOVE_5))]
    assert destinations(b2, {"a": 10}, B1) == [B3]
    b2.check()


def test_a_subscription_that_came_before_its_advertisement_follows_it() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1", "B3"]))

    assert b2.handle(ABOVE_5, ALICE) == [Confirm(ALICE, sub_in_effect(ABOVE_5))]
    assert b2.handle(ABOVE_1, B1) == [Send(B3, ABOVE_1), Send(B1, ABOVE_5)]
    # Only now may the publisher's side hear that the advertisement is in effect.
    assert b2.handle(adv_in_effect(ABOVE_1), B3) == [Send(B1, adv_in_effect(ABOVE_1))]


def test_a_subscription_never_goes_back_where_it_came_from() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1"]))
    b2.handle(ABOVE_1, B1)

    assert b2.handle(ABOVE_5, B1) == [Send(B1, sub_in_effect(ABOVE_5))]


def test_an_advertisement_is_in_effect_when_every_neighbour_has_confirmed() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1", "B3"]))

    assert b2.handle(ABOVE_1, PAUL) == [Send(B1, ABOVE_1), Send(B3, ABOVE_1)]
    assert b2.handle(adv_in_effect(ABOVE_1), B1) == []
    assert b2.handle(adv_in_effect(ABOVE_1), B3) == [Confirm(PAUL, adv_in_effect(ABOVE_1))]


def test_a_covered_subscription_waits_for_the_confirmation_of_its_cover() -> None:
    """The cover is still under way to B1: nothing it covers can be in effect before it is."""
    b2 = TreeRouting(Place.of("B2", ["B1"]))
    b2.handle(ABOVE_1, B1)

    assert b2.handle(ABOVE_5, ALICE) == [Send(B1, ABOVE_5)]
    assert b2.handle(ABOVE_9, BOB) == []
    assert b2.handle(sub_in_effect(ABOVE_5), B1) == [
        Confirm(ALICE, sub_in_effect(ABOVE_5)),
        Confirm(BOB, sub_in_effect(ABOVE_9)),
    ]


def test_a_cover_that_leaves_unconfirmed_hands_the_waiting_on() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1"]))
    b2.handle(ABOVE_1, B1)
    b2.handle(ABOVE_5, ALICE)
    b2.handle(ABOVE_9, BOB)

    assert b2.handle(unsub(ABOVE_5), ALICE) == [Send(B1, ABOVE_9), Send(B1, unsub(ABOVE_5))]
    assert b2.handle(sub_in_effect(ABOVE_5), B1) == []  # Too late: it is gone.
    assert b2.handle(sub_in_effect(ABOVE_9), B1) == [Confirm(BOB, sub_in_effect(ABOVE_9))]
    b2.check()


def test_when_a_cover_leaves_only_the_widest_of_the_covered_step_forward() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1"]))
    b2.handle(ABOVE_1, B1)
    narrow, middle, wide = sub("c/1", "a > 30"), sub("c/2", "a > 20"), sub("c/3", "a > 10")
    b2.handle(ABOVE_5, ALICE)
    for held_back in (narrow, middle, wide):
        assert not [a for a in b2.handle(held_back, BOB) if isinstance(a, Send)]

    assert b2.handle(unsub(ABOVE_5), ALICE) == [Send(B1, wide), Send(B1, unsub(ABOVE_5))]
    b2.check()


def test_a_second_cover_keeps_the_covered_back() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1"]))
    b2.handle(ABOVE_1, B1)
    above_4 = sub("s4/s1", "a > 4")
    b2.handle(ABOVE_5, ALICE)
    b2.handle(above_4, BOB)
    b2.handle(ABOVE_9, BOB)

    assert b2.handle(unsub(ABOVE_5), ALICE) == [Send(B1, unsub(ABOVE_5))]
    b2.check()


def test_withdrawing_an_advertisement_takes_subscriptions_back() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1", "B3"]))
    b2.handle(ABOVE_1, B1)
    b2.handle(ABOVE_5, ALICE)
    b2.handle(ABOVE_9, ALICE)

    assert b2.handle(unadv(ABOVE_1), B1) == [
        Send(B3, unadv(ABOVE_1)),
        Confirm(ALICE, sub_in_effect(ABOVE_9)),
        Send(B1, unsub(ABOVE_5)),
        Confirm(ALICE, sub_in_effect(ABOVE_5)),
    ]
    b2.check()
    assert b2.subscription_count == 2, "the client's subscriptions stay"


def test_a_subscription_stays_on_a_link_while_another_advertisement_announces_it() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1"]))
    other = adv("paula/a1", "a > 7")
    b2.handle(ABOVE_1, B1)
    b2.handle(other, B1)
    b2.handle(ABOVE_5, ALICE)

    assert b2.handle(unadv(ABOVE_1), B1) == []
    assert b2.handle(unadv(other), B1) == [
        Send(B1, unsub(ABOVE_5)),
        Confirm(ALICE, sub_in_effect(ABOVE_5)),
    ]


def test_a_local_subscription_does_not_travel() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1"]))
    b2.handle(ABOVE_1, B1)
    local = sub("alice/s1", "a > 5", local_only=True)

    assert b2.handle(local, ALICE) == [Confirm(ALICE, sub_in_effect(local))]
    assert destinations(b2, {"a": 6}, PAUL) == [ALICE]
    b2.check()


def test_an_interest_in_an_attribute_that_is_not_advertised_does_not_travel() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1"]))
    b2.handle(ABOVE_1, B1)
    elsewhere = sub("alice/s1", "a > 5 and b > 5")

    assert b2.handle(elsewhere, ALICE) == [Confirm(ALICE, sub_in_effect(elsewhere))]


def test_control_publications_reach_only_those_who_name_their_class() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1"]))
    b2.handle(sub("alice/s1", "load > 0"), ALICE)
    b2.handle(sub("bob/s1", "class = '$LOAD' and load > 0"), BOB)

    assert destinations(b2, {"class": "$LOAD", "load": 1}, B1) == [BOB]
    assert destinations(b2, {"class": "LOAD", "load": 1}, B1) == [ALICE]


def test_a_publication_out_of_hops_is_delivered_but_sent_no_further() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1", "B3"]))
    b2.handle(ABOVE_1, B1)
    b2.handle(ABOVE_5, B3)
    b2.handle(ABOVE_5, ALICE)  # The same id from elsewhere is ignored: the first one stands.
    b2.handle(sub("alice/s1", "a > 5"), ALICE)

    assert destinations(b2, {"a": 6}, B1, ttl_hops=3) == [B3, ALICE]
    assert destinations(b2, {"a": 6}, B1, ttl_hops=2) == [ALICE]


def test_what_is_unknown_is_ignored() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1"]))

    assert b2.handle(unsub(ABOVE_5), B1) == []
    assert b2.handle(unadv(ABOVE_1), B1) == []
    assert b2.handle(sub_in_effect(ABOVE_5), B1) == []
    assert b2.handle(adv_in_effect(ABOVE_1), B1) == []


def test_only_the_hop_that_brought_something_can_take_it_away() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1", "B3"]))
    b2.handle(ABOVE_1, B1)
    b2.handle(ABOVE_5, B3)

    assert b2.handle(unsub(ABOVE_5), B1) == []
    assert b2.handle(unadv(ABOVE_1), B3) == []
    assert b2.subscription_count == 1


def test_repeating_a_subscription_in_effect_confirms_it_again() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1"]))
    b2.handle(ABOVE_5, B1)

    assert b2.handle(ABOVE_5, B1) == [Send(B1, sub_in_effect(ABOVE_5))]
    assert b2.subscription_count == 1


def test_a_late_confirmation_does_not_count_for_an_id_that_is_used_again() -> None:
    b1 = TreeRouting(Place.of("B1", ["B2"]))
    b2 = Neighbour("B2")
    b1.handle(adv("paul/a1", "x is present"), b2)
    first = structs.replace(sub("alice/s1", "x > 5"), edition=1)
    second = structs.replace(sub("alice/s1", "x < 0"), edition=2)
    b1.handle(first, ALICE)
    b1.handle(unsub(first), ALICE)
    b1.handle(second, ALICE)

    assert b1.handle(SubscriptionInEffect(id=first.id, edition=1), b2) == []
    in_effect = SubscriptionInEffect(id=first.id, edition=2)
    assert b1.handle(in_effect, b2) == [Confirm(ALICE, in_effect)]


def test_a_late_confirmation_of_an_earlier_advertisement_does_not_count_either() -> None:
    b1 = TreeRouting(Place.of("B1", ["B2"]))
    b2 = Neighbour("B2")
    first = structs.replace(adv("paul/a1", "x is present"), edition=1)
    second = structs.replace(adv("paul/a1", "y is present"), edition=2)
    b1.handle(first, PAUL)
    b1.handle(unadv(first), PAUL)
    b1.handle(second, PAUL)

    assert b1.handle(AdvertisementInEffect(id=first.id, edition=1), b2) == []
    in_effect = AdvertisementInEffect(id=first.id, edition=2)
    assert b1.handle(in_effect, b2) == [Confirm(PAUL, in_effect)]


def test_the_tables_show_who_told_what_and_who_was_told() -> None:
    """Told are those in front; who is held back behind them is in the table all the same."""
    b2 = TreeRouting(Place.of("B2", ["B1", "B3"]))
    b2.handle(ABOVE_1, B1)
    b2.handle(ABOVE_5, ALICE)
    b2.handle(ABOVE_9, B3)

    tables = b2.tables()
    assert tables.advertisements == {"paul/a1": B1}
    assert tables.subscriptions == {"s5/s1": ALICE, "s9/s1": B3}
    assert tables.told == {"B1": ["s5/s1"], "B3": []}
    assert b2.advertisement_count == 1
    b2.handle(unsub(ABOVE_5), ALICE)
    assert b2.tables().told == {"B1": ["s9/s1"], "B3": []}
    assert tables.told == {"B1": ["s5/s1"], "B3": []}, "a copy"
