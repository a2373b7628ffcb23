"""The client's side of a move, message by message."""

from __future__ import annotations

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
from godwit.migration.moving import Hand, Move, Phase, ToNew, ToOld

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
    assert move.on_old(Swept(move=7)) == [ToOld(Unsubscription(id=OLD)), ToOld(Pause(move=7))]
    assert move.holds_publications
    assert move.on_old(Paused(move=7)) == [ToNew(TURNED)]
    assert move.on_new(AdvertisementInEffect(id=ANNOUNCED, edition=1)) == []
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
    assert move.publication_from_old(publication(3), 1) == [], "M1"
    assert move.publication_from_new(publication(3), 1) == [Hand(publication(3), 1)]


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
