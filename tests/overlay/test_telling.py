"""Brokers that fail and are back, by hand: seen from a neighbour, and from the broker itself."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.overlay.test_tree import adv, adv_in_effect, sub, sub_in_effect, unadv, unsub

from godwit.broker.effects import Send
from godwit.broker.routing import Confirm, Place
from godwit.broker.stimuli import LocalClient, Neighbour
from godwit.content.messages import ResyncDone, ResyncScope
from godwit.overlay.tree.resync import Resync
from godwit.overlay.tree.tree_routing import TreeRouting

B1, B2, B3 = Neighbour("B1"), Neighbour("B2"), Neighbour("B3")
ALICE, PAUL = LocalClient("alice"), LocalClient("paul")
ABOVE_1, ABOVE_5 = adv("paul/a1", "a > 1"), sub("alice/s1", "a > 5")
NOT_ALL, ADVERTISEMENTS, ALL = (ResyncDone(scope=telling) for telling in ResyncScope)


# -- a neighbour of the broker that failed ---------------------------------------------------------


def between() -> TreeRouting:
    """B2, which knows Paul at B1 and Alice at B3; both are in effect."""
    b2 = TreeRouting(Place.of("B2", ["B1", "B3"]))
    b2.handle(ABOVE_1, B1)
    b2.handle(adv_in_effect(ABOVE_1), B3)
    b2.handle(ABOVE_5, B3)
    b2.handle(sub_in_effect(ABOVE_5), B1)
    return b2


def test_a_neighbour_that_is_back_is_told_what_it_was_told() -> None:
    b2 = between()
    told = [Send(B3, ABOVE_1), Send(B3, ADVERTISEMENTS)]
    assert b2.link_restarted(B3) == told
    assert b2.link_restarted(B1) == [Send(B1, ABOVE_5)], "what B3 knows is open as well"
    b2.check()


def test_what_it_had_told_holds_until_it_has_told_all() -> None:
    b2 = between()
    b2.link_restarted(B3)
    assert b2.tables().subscriptions == {"alice/s1": B3}
    assert b2.handle(NOT_ALL, B3) == []
    assert b2.handle(ADVERTISEMENTS, B3) == [Send(B3, ALL)]
    assert b2.tables().subscriptions == {"alice/s1": B3}
    assert b2.handle(ALL, B3) == [Send(B1, unsub(ABOVE_5))]
    assert b2.tables().subscriptions == {}
    b2.check()


def test_what_it_repeats_stays() -> None:
    b2 = between()
    b2.link_restarted(B3)
    assert b2.handle(ABOVE_5, B3) == [Send(B3, sub_in_effect(ABOVE_5))], "it was in effect before"
    b2.handle(ADVERTISEMENTS, B3)
    assert b2.handle(ALL, B3) == []
    assert b2.tables().subscriptions == {"alice/s1": B3}


@pytest.mark.parametrize("is_repeated", [True, False])
def test_advertisements_are_in_doubt_for_a_shorter_time(is_repeated: bool) -> None:
    b2 = between()
    b2.link_restarted(B1)
    if is_repeated:
        assert b2.handle(ABOVE_1, B1) == [Send(B1, adv_in_effect(ABOVE_1))]
    withdrawn = [Send(B3, unadv(ABOVE_1)), Send(B1, unsub(ABOVE_5))]
    assert b2.handle(ADVERTISEMENTS, B1) == ([] if is_repeated else withdrawn) + [Send(B1, ALL)]


def test_a_publisher_that_has_turned_up_elsewhere_is_not_in_doubt() -> None:
    b2 = between()
    b2.link_restarted(B1)
    b2.handle(replace(ABOVE_1, edition=1), B3)
    b2.handle(ADVERTISEMENTS, B1)
    assert b2.tables().advertisements == {"paul/a1": B3}
    b2.check()


# -- the broker that failed ------------------------------------------------------------------------


def test_nothing_is_in_effect_before_all_is_known() -> None:
    b2 = TreeRouting(Place.of("B2", []))
    assert b2.recovering() == []
    assert b2.handle(ABOVE_1, PAUL) == []
    assert b2.handle(ABOVE_5, ALICE) == []
    assert b2.link_up(B1) == [Send(B1, ABOVE_1), Send(B1, NOT_ALL)]
    assert b2.handle(ALL, B1) == []
    assert b2.is_complete
    assert b2.clients_returned() == [Send(B1, ALL)]
    assert b2.recovered() == [
        Confirm(ALICE, sub_in_effect(ABOVE_5)),
        Confirm(PAUL, adv_in_effect(ABOVE_1)),
    ]


def test_a_confirmation_for_a_neighbour_that_has_gone_is_dropped() -> None:
    b2 = TreeRouting(Place.of("B2", []))
    b2.recovering()
    b2.link_up(B1)
    b2.link_up(B3)
    b2.handle(ABOVE_1, B1)
    b2.handle(adv_in_effect(ABOVE_1), B3)
    b2.link_down(B1)
    assert b2.recovered() == [Send(B3, ADVERTISEMENTS)]


# -- who tells whom --------------------------------------------------------------------------------


def tellings(*neighbours: Neighbour) -> Resync:
    """Of a broker whose neighbours are all new."""
    new = Resync([])
    for neighbour in neighbours:
        new.begin(neighbour)
    return new


def test_a_leaf_tells_at_once_what_does_not_depend_on_its_neighbour() -> None:
    leaf = tellings(B1)
    assert leaf.due() == [Send(B1, ADVERTISEMENTS)]
    assert leaf.due() == [], "once"
    leaf.hear(B1, ResyncScope.ADVERTISEMENTS)
    assert leaf.due() == [Send(B1, ALL)]
    assert not leaf.is_complete
    leaf.hear(B1, ResyncScope.SUBSCRIPTIONS_TOO)
    assert leaf.is_complete


def test_others_wait_for_their_other_neighbours() -> None:
    inner = tellings(B1, B2, B3)
    assert inner.due() == []
    inner.hear(B1, ResyncScope.SUBSCRIPTIONS_TOO)
    assert inner.due() == []
    inner.hear(B2, ResyncScope.ADVERTISEMENTS)
    assert inner.due() == [Send(B3, ADVERTISEMENTS)]
    inner.hear(B3, ResyncScope.ADVERTISEMENTS)
    assert inner.due() == [Send(B1, ADVERTISEMENTS), Send(B2, ADVERTISEMENTS)]
    inner.hear(B2, ResyncScope.SUBSCRIPTIONS_TOO)
    assert inner.due() == [Send(B3, ALL)]
    inner.hear(B3, ResyncScope.SUBSCRIPTIONS_TOO)
    assert inner.due() == [Send(B1, ALL), Send(B2, ALL)]


def test_who_has_failed_takes_back_that_it_had_told_all() -> None:
    leaf = tellings(B1)
    leaf.hear(B1, ResyncScope.SUBSCRIPTIONS_TOO)
    assert leaf.due() == [Send(B1, ALL)]
    assert leaf.begin_all() == [Send(B1, NOT_ALL)]
    assert leaf.due() == []
    leaf.clients_are_back = True
    assert leaf.due() == [Send(B1, ALL)]


def test_who_starts_together_has_nothing_to_tell() -> None:
    together = Resync([B1, B2])
    assert together.is_complete
    assert together.due() == []
    together.begin(B3)
    assert together.due() == [Send(B3, ADVERTISEMENTS)]
    together.end(B3)
    assert together.is_complete
