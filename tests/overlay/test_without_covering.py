"""The tree without covering: every subscription travels, and deliveries are the same."""

from __future__ import annotations

from functools import partial

from tests.overlay.test_tree import (  # fmt: skip
    ABOVE_1,
    ABOVE_5,
    ABOVE_9,
    ALICE,
    B1,
    B3,
    BOB,
    destinations,
    sub,
    sub_in_effect,
    unsub,
)

from godwit.broker.effects import Send
from godwit.broker.routing import Confirm, Place
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.testing.random_runs import random_run

WITHOUT_COVERING = partial(TreeRouting, covering=False)


def test_a_covered_subscription_is_sent_and_confirmed_like_any_other() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1", "B3"]), covering=False)
    b2.handle(ABOVE_1, B1)

    assert b2.handle(ABOVE_5, ALICE) == [Send(B1, ABOVE_5)]
    assert b2.handle(ABOVE_9, B3) == [Send(B1, ABOVE_9)]
    assert b2.handle(sub_in_effect(ABOVE_9), B1) == [Send(B3, sub_in_effect(ABOVE_9))]
    assert b2.handle(sub_in_effect(ABOVE_5), B1) == [Confirm(ALICE, sub_in_effect(ABOVE_5))]
    assert destinations(b2, {"a": 10}, B1) == [ALICE, B3]
    b2.check()


def test_of_equal_filters_each_is_sent_and_taken_back_by_itself() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1"]), covering=False)
    b2.handle(ABOVE_1, B1)
    same = sub("bob/s1", "a > 5")

    assert b2.handle(ABOVE_5, ALICE) == [Send(B1, ABOVE_5)]
    assert b2.handle(same, BOB) == [Send(B1, same)]
    assert b2.handle(unsub(ABOVE_5), ALICE) == [Send(B1, unsub(ABOVE_5))]
    assert b2.handle(unsub(same), BOB) == [Send(B1, unsub(same))]
    b2.check()


def test_a_link_that_comes_later_holds_nothing_back_either() -> None:
    b2 = TreeRouting(Place.of("B2", []), covering=False)
    b2.handle(ABOVE_5, ALICE)
    b2.handle(ABOVE_9, BOB)
    b2.link_up(B1)

    answers = b2.handle(ABOVE_1, B1)
    assert [Send(B1, ABOVE_5), Send(B1, ABOVE_9)] == [a for a in answers if isinstance(a, Send)][:2]
    b2.check()


def test_random_trees_deliver_what_they_should_and_send_more_subscriptions() -> None:
    sent_with = sent_without = 0
    for seed in range(12):
        covering, without = random_run(seed), random_run(seed, WITHOUT_COVERING)
        assert without.is_flawless, str(without)
        sent_with += covering.statistics.handled_by_kind["Subscription"]
        sent_without += without.statistics.handled_by_kind["Subscription"]
    assert sent_with < sent_without, "a switch that changes nothing"
