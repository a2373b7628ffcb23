"""The client's side of a move, message by message."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Depart,
    Pause,
    Paused,
    Publication,
    Refusal,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Sweep,
    Swept,
    Unsubscription,
)
from godwit.migration.move import Hand, Move, Order, Phase, ToNew, ToOld

EVERYTHING = Filter.parse("x is present")
OLD, NEW = SubscriptionId("c/s1"), SubscriptionId("c/s2")
ANNOUNCED = AdvertisementId("c/a1")
AGAIN = Subscription(id=NEW, filter=EVERYTHING)
TURNED = Advertisement(id=ANNOUNCED, filter=EVERYTHING, edition=1)


def move_of(*, subscribes: bool = True, publishes: bool = True, in_effect: bool = True) -> Move:
    return Move(
        7,
        client="c",
        source="B1",
        subscriptions={OLD: AGAIN} if subscribes else {},
        advertisements={ANNOUNCED: TURNED} if publishes else {},
        unconfirmed=set() if in_effect else {ANNOUNCED},
    )


def publication(sequence: int) -> Publication:
    return Publication(
        publisher="p", sequence=sequence, advertisement=AdvertisementId("p/a"), content={"x": 1}
    )


def test_a_client_moves_its_subscriptions_and_then_its_advertisements() -> None:
    move = move_of()
    assert move.start() == [ToOld(Depart(move=7)), ToNew(AGAIN)]
    assert move.on_new(SubscriptionInEffect(id=NEW)) == [ToNew(Sweep(client="c", to="B1", move=7))]
    assert move.on_old(Swept(move=7)) == [ToOld(Pause(move=7))]
    assert move.holds_publications
    assert move.on_old(Paused(move=7)) == [ToNew(TURNED)]
    in_effect = AdvertisementInEffect(id=ANNOUNCED, edition=1)
    assert move.on_new(in_effect) == [ToOld(Unsubscription(id=OLD))]
    assert move.phase is Phase.MOVED
    assert not move.holds_publications


def test_a_publisher_pauses_at_once_and_only_for_its_own_move() -> None:
    move = move_of(subscribes=False)
    assert move.start() == [ToOld(Pause(move=7))]
    assert move.on_old(Paused(move=6)) == []
    assert move.on_old(Paused(move=7)) == [ToNew(TURNED)]
    move.on_new(AdvertisementInEffect(id=ANNOUNCED, edition=0))
    assert move.phase is Phase.TURNING, "that was an earlier edition"


def test_an_advertisement_is_turned_when_it_is_in_effect() -> None:
    move = move_of(subscribes=False, in_effect=False)
    assert move.start() == []
    assert move.holds_publications
    in_effect = AdvertisementInEffect(id=ANNOUNCED)
    assert move.on_old(in_effect) == [ToOld(Pause(move=7))]


def test_a_client_with_nothing_has_moved_at_once() -> None:
    move = move_of(subscribes=False, publishes=False)
    assert move.start() == []
    assert move.phase is Phase.MOVED


def test_what_the_new_broker_sends_waits_for_the_sweep() -> None:
    move = move_of(publishes=False)
    move.start()
    early, late = publication(1), publication(2)
    assert move.publication_from_new(late, 3) == []
    assert move.publication_from_old(early, 1) == [Hand(early, 1)]
    move.on_new(SubscriptionInEffect(id=NEW))
    assert move.on_old(Swept(move=7)) == [Hand(late, 3), ToOld(Unsubscription(id=OLD))]
    assert move.publication_from_new(publication(3), 1) == [Hand(publication(3), 1)]
    assert move.publication_from_old(publication(3), 1) == [], "it has been left"


def test_from_the_sweep_on_both_brokers_count() -> None:
    move = in_phase(Phase.PAUSING)
    for take in (move.publication_from_old, move.publication_from_new):
        assert take(publication(1), 1) == [Hand(publication(1), 1)]


def test_a_client_that_is_refused_stays() -> None:
    move = move_of()
    move.start()
    waiting = publication(1)
    assert move.publication_from_new(waiting, 0) == []
    assert move.on_new(Refusal(about=NEW, reason="full")) == [ToNew(Unsubscription(id=NEW))]
    assert move.phase is Phase.STAYED
    assert move.publication_from_new(waiting, 0) == []
    assert move.publication_from_old(waiting, 0) == [Hand(waiting, 0)], "M1"
    assert move.on_old(Swept(move=7)) == []


# -- what goes wrong -------------------------------------------------------------------------------

RETURNED = replace(TURNED, edition=2)
ASKED_ONCE_MORE = replace(TURNED, edition=3)


def in_phase(phase: Phase) -> Move:
    """A move that has come so far, with a publication of the new broker that waits."""
    move = move_of()
    steps: dict[Phase, Callable[[], object]] = {
        Phase.SUBSCRIBING: move.start,
        Phase.SWEEPING: lambda: move.on_new(SubscriptionInEffect(id=NEW)),
        Phase.PAUSING: lambda: move.on_old(Swept(move=7)),
        Phase.TURNING: lambda: move.on_old(Paused(move=7)),
        Phase.RETURNING: move.abort,
    }
    for reached, step in steps.items():
        step()
        assert move.phase is reached
        if reached is phase:
            break
    if not move.new_broker_counts:
        assert move.publication_from_new(publication(1), 1) == []
    return move


@pytest.mark.parametrize("phase", [Phase.SUBSCRIBING, Phase.SWEEPING, Phase.PAUSING])
def test_a_move_that_is_given_up_leaves_the_client_where_it_was(phase: Phase) -> None:
    move = in_phase(phase)
    assert move.abort() == [ToNew(Unsubscription(id=NEW))]
    assert move.phase is Phase.STAYED
    assert not move.holds_publications


def test_advertisements_that_may_have_turned_are_turned_back() -> None:
    move = in_phase(Phase.TURNING)
    assert move.abort() == [ToOld(RETURNED)]
    assert move.holds_publications
    assert move.on_new(AdvertisementInEffect(id=ANNOUNCED, edition=1)) == [], "too late"
    assert move.on_old(AdvertisementInEffect(id=ANNOUNCED, edition=0)) == [], "too early"
    in_effect = AdvertisementInEffect(id=ANNOUNCED, edition=2)
    assert move.on_old(in_effect) == [ToNew(Unsubscription(id=NEW))]
    assert move.phase is Phase.STAYED


def test_who_returns_from_a_broker_that_is_lost_need_not_wait_for_it() -> None:
    move = in_phase(Phase.RETURNING)
    assert move.abort() == [ToNew(Unsubscription(id=NEW))]
    assert move.phase is Phase.STAYED
    assert move.unconfirmed == {ANNOUNCED}


@pytest.mark.parametrize("phase", [Phase.SUBSCRIBING, Phase.SWEEPING, Phase.PAUSING])
def test_a_client_that_may_have_something_at_its_old_broker_stays_there(phase: Phase) -> None:
    move = in_phase(phase)
    assert move.lose_source() == [ToNew(Unsubscription(id=NEW))]
    assert move.phase is Phase.STAYED


@pytest.mark.parametrize(
    ("phase", "asked"),
    [(Phase.TURNING, []), (Phase.RETURNING, [ToNew(ASKED_ONCE_MORE)])],
)
def test_a_client_whose_old_broker_is_lost_is_at_the_new_one(
    phase: Phase, asked: list[Order]
) -> None:
    move = in_phase(phase)
    assert move.lose_source() == [*asked, ToOld(Unsubscription(id=OLD))]
    assert move.phase is Phase.MOVED
    assert move.unconfirmed == {ANNOUNCED}
