"""A broker that has just joined: what it confirms, and when."""

from __future__ import annotations

from tests.overlay.test_tree import adv, adv_in_effect, sub, sub_in_effect

from godwit.broker.effects import Send
from godwit.broker.routing import Confirm, Place
from godwit.broker.stimuli import LinkKind, LocalClient, Neighbour
from godwit.content.messages import ResyncDone, ResyncScope
from godwit.overlay.tree.tree_routing import TreeRouting

B1, B3 = Neighbour("B1"), Neighbour("B3")
ALICE = LocalClient("alice")
ABOVE_1 = adv("paul/a1", "a > 1")
ABOVE_5 = sub("alice/s1", "a > 5")
NOT_ALL, ADVERTISEMENTS, ALL = (ResyncDone(scope=scope) for scope in ResyncScope)


def joined(*neighbours: Neighbour) -> TreeRouting:
    b2 = TreeRouting(Place("B2"))
    for neighbour in neighbours:
        b2.link_up(neighbour)
    return b2


def test_a_subscription_waits_for_the_advertisements_of_a_new_neighbour() -> None:
    b2 = joined(B1)
    assert b2.handle(ABOVE_5, ALICE) == [], "B1 may have advertisements that announce it"
    assert b2.handle(ABOVE_1, B1) == [Send(B1, ABOVE_5), Send(B1, adv_in_effect(ABOVE_1))]
    assert b2.handle(ADVERTISEMENTS, B1) == [
        Send(B1, ResyncDone(scope=ResyncScope.SUBSCRIPTIONS_TOO))
    ]
    assert b2.handle(sub_in_effect(ABOVE_5), B1) == [Confirm(ALICE, sub_in_effect(ABOVE_5))]


def test_a_subscription_that_nothing_announces_is_confirmed_with_the_last_advertisement() -> None:
    b2 = joined(B1, B3)
    assert b2.handle(ABOVE_5, ALICE) == []
    assert Confirm(ALICE, sub_in_effect(ABOVE_5)) not in b2.handle(ADVERTISEMENTS, B1)
    assert Confirm(ALICE, sub_in_effect(ABOVE_5)) in b2.handle(ADVERTISEMENTS, B3)


def test_a_subscription_does_not_wait_for_the_neighbour_that_sent_it() -> None:
    b2 = joined(B1)
    assert b2.handle(ABOVE_5, B1) == [Send(B1, sub_in_effect(ABOVE_5))]


def test_a_neighbour_that_is_gone_is_not_waited_for() -> None:
    b2 = joined(B1)
    assert b2.handle(ABOVE_5, ALICE) == []
    assert b2.link_down(B1) == [Confirm(ALICE, sub_in_effect(ABOVE_5))]


def test_links_have_kinds() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1"]))
    b2.link_up(B3, LinkKind.SOFT)
    assert b2.neighbours == {B1: LinkKind.PRIMARY, B3: LinkKind.SOFT}
    b2.link_down(B1)
    assert b2.neighbours == {B3: LinkKind.SOFT}
