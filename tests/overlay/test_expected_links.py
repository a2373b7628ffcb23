"""Configured links that have not been up yet: what waits for them, and until when."""

from __future__ import annotations

from tests.overlay.test_tree import adv, adv_in_effect, sub, sub_in_effect

from godwit.broker.effects import Send
from godwit.broker.routing import Confirm, Place
from godwit.broker.stimuli import LocalClient, Neighbour
from godwit.content.messages import ResyncDone, ResyncScope
from godwit.overlay.tree.tree_routing import TreeRouting

B1, B3 = Neighbour("B1"), Neighbour("B3")
ALICE = LocalClient("alice")
ABOVE_1 = adv("alice/a1", "a > 1")
ABOVE_5 = sub("alice/s1", "a > 5")
NOT_ALL, ADVERTISEMENTS, ALL = (ResyncDone(scope=scope) for scope in ResyncScope)


def expecting(*neighbours: Neighbour) -> TreeRouting:
    return TreeRouting(Place("B2", expected=neighbours))


def test_nothing_is_in_effect_before_a_configured_link_is_up() -> None:
    b2 = expecting(B3)
    assert b2.handle(ABOVE_1, ALICE) == []
    assert b2.handle(ABOVE_5, ALICE) == []
    assert not b2.is_complete
    b2.check()


def test_an_advertisement_waits_for_the_confirmation_of_a_neighbour_that_comes_late() -> None:
    b2 = expecting(B3)
    b2.handle(ABOVE_1, ALICE)
    assert Send(B3, ABOVE_1) in b2.link_up(B3)
    assert b2.handle(adv_in_effect(ABOVE_1), B3) == [Confirm(ALICE, adv_in_effect(ABOVE_1))]


def test_a_subscription_waits_for_the_advertisements_of_a_neighbour_that_comes_late() -> None:
    b2 = expecting(B3)
    b2.handle(ABOVE_5, ALICE)
    b2.link_up(B3)
    assert Confirm(ALICE, sub_in_effect(ABOVE_5)) in b2.handle(ADVERTISEMENTS, B3)


def test_a_broker_has_not_told_all_while_it_expects_another_neighbour() -> None:
    b2 = expecting(B1, B3)
    assert b2.link_up(B1) == [], "B3 may have advertisements, and subscriptions"
    assert b2.handle(ADVERTISEMENTS, B1) == []
    assert Send(B3, ADVERTISEMENTS) in b2.link_up(B3)
    assert Send(B1, ALL) not in b2.handle(ADVERTISEMENTS, B3), "B3 has not sent subscriptions"
    assert Send(B1, ALL) in b2.handle(ALL, B3)


def test_an_advertisement_of_a_neighbour_is_confirmed_when_all_links_have_been_up() -> None:
    b2 = expecting(B1, B3)
    b2.link_up(B1)
    assert b2.handle(ABOVE_1, B1) == []
    assert Send(B3, ABOVE_1) in b2.link_up(B3)
    assert b2.handle(adv_in_effect(ABOVE_1), B3) == [Send(B1, adv_in_effect(ABOVE_1))]


def test_things_come_into_effect_without_a_neighbour_that_is_given_up() -> None:
    b2 = expecting(B1, B3)
    b2.link_up(B1)
    b2.handle(ABOVE_1, B1)
    b2.handle(ADVERTISEMENTS, B1)
    b2.handle(ABOVE_5, ALICE)
    answers = b2.link_down(B3)
    assert Send(B1, adv_in_effect(ABOVE_1)) in answers
    assert Send(B1, ALL) in answers
    b2.handle(sub_in_effect(ABOVE_5), B1)
    b2.check()


def test_a_neighbour_that_was_given_up_joins_as_a_new_one() -> None:
    b2 = expecting(B3)
    b2.handle(ABOVE_1, ALICE)
    assert Confirm(ALICE, adv_in_effect(ABOVE_1)) in b2.link_down(B3)
    assert Send(B3, ABOVE_1) in b2.link_up(B3)
    assert b2.handle(adv_in_effect(ABOVE_1), B3) == [], "it was in effect already"
    b2.check()
