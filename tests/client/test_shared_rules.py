"""The rules that live and simulated clients share, without streams or brokers."""

from __future__ import annotations

import pytest

from godwit.client import deliveries
from godwit.client.client_requests import ClientRequests, Request
from godwit.client.deliveries import DeliveryMarks
from godwit.client.held_publications import HeldPublication, HeldPublications
from godwit.client.holdings import HeldAdvertisement, Holdings
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    Publication,
    Subscription,
    SubscriptionId,
    Unsubscription,
)

PRICES = Filter.parse("price is a number")
A1, A2 = AdvertisementId("paul/a1"), AdvertisementId("paul/a2")


def publication(publisher: str, sequence: int, word: str = "a1") -> Publication:
    id = AdvertisementId(f"{publisher}/{word}")
    return Publication(publisher=publisher, sequence=sequence, advertisement=id, content={})


# -- deliveries ------------------------------------------------------------------------------------


def test_a_sequence_number_that_does_not_rise_is_a_duplicate() -> None:
    received = DeliveryMarks("alice")
    history = [("paul", 0), ("paul", 2), ("mary", 1), ("paul", 2), ("paul", 1), ("paul", 3)]
    new = [received.is_new(publication(*each)) for each in history]
    assert new == [True, True, True, False, False, True]
    assert received.duplicates == 2


def test_the_advertisements_of_one_incarnation_share_their_numbers() -> None:
    received = DeliveryMarks("alice", {"paul/i1": 3})
    history = [(3, "i1~a1"), (5, "i1~a1"), (4, "i1~a2"), (6, "i1~a2"), (6, "i1~a1")]
    new = [received.is_new(publication("paul", *each)) for each in history]
    assert new == [False, True, False, True, False]


def test_a_publisher_that_was_started_again_is_news() -> None:
    received = DeliveryMarks("alice")
    assert received.is_new(publication("paul", 1_700_000_000_000_000, "i1~a1"))
    assert received.is_new(publication("paul", 1, "i2~a1"))
    assert not received.is_new(publication("paul", 1, "i2~a1"))
    assert not received.is_new(publication("paul", 2, "i1~a1")), "the first one is still known"


def test_a_client_is_not_delivered_its_own_publications() -> None:
    received = DeliveryMarks("alice")
    assert not received.is_new(publication("alice", 7))
    assert not received.duplicates


def test_the_publisher_known_longest_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "PUBLISHERS_KNOWN_MAX", 2)
    received = DeliveryMarks("alice")
    for publisher in ("paul", "mary", "peter"):
        received.is_new(publication(publisher, 5))
    assert [received.is_new(publication(name, 5)) for name in ("mary", "peter")] == [False, False]
    assert received.is_new(publication("paul", 5))


# -- held publications -----------------------------------------------------------------------------


def hold(held: HeldPublications[str], id: AdvertisementId, text: str) -> None:
    held.hold(HeldPublication(id, text, len(text)))


def test_publications_wait_for_their_advertisement_and_for_those_before_them() -> None:
    advertised = {id: HeldAdvertisement(id, PRICES) for id in (A1, A2)}
    advertised[A2].in_effect = True
    held: HeldPublications[str] = HeldPublications()
    assert held.must_wait(advertised[A1])
    assert not held.must_wait(advertised[A2])
    hold(held, A1, "first")
    assert held.must_wait(advertised[A2])
    hold(held, A2, "second")
    held.hold_first([HeldPublication(A2, "a", 1), HeldPublication(A2, "b", 1)])
    assert list(held.release(advertised)) == ["a", "b"]
    assert (len(held), held.size_bytes) == (2, len("firstsecond"))
    advertised[A1].in_effect = True
    assert list(held.release(advertised)) == ["first", "second"]
    assert (len(held), held.size_bytes) == (0, 0)


def test_all_publications_wait_while_a_move_pauses_them() -> None:
    advertised = {A1: HeldAdvertisement(A1, PRICES, in_effect=True)}
    held: HeldPublications[str] = HeldPublications()
    held.is_paused = True
    assert held.must_wait(advertised[A1])
    hold(held, A1, "first")
    assert list(held.release(advertised)) == []
    held.is_paused = False
    assert list(held.release(advertised)) == ["first"]


def test_publications_under_a_withdrawn_advertisement_are_dropped() -> None:
    held: HeldPublications[str] = HeldPublications()
    hold(held, A1, "first")
    hold(held, A2, "second")
    advertised = {A2: HeldAdvertisement(A2, PRICES, in_effect=True)}
    assert list(held.release(advertised)) == ["second"]
    assert held.size_bytes == 0


# -- requests --------------------------------------------------------------------------------------


def test_requests_of_a_client_that_moves_wait_and_concern_the_broker_where_it_ends() -> None:
    sent: list[Request] = []
    holdings = Holdings("paul")
    requests = ClientRequests(holdings, sent.append)
    subscribed = holdings.subscribe(PRICES, local_only=True)
    requests.ask(subscribed)
    s1, s2 = SubscriptionId("paul/s1"), SubscriptionId("paul/s2")
    assert sent == [Subscription(id=s1, filter=PRICES, local_only=True)]

    sent.clear()
    move = requests.plan_move("B1")
    assert move.subscriptions == {s1: Subscription(id=s2, filter=PRICES, local_only=True)}
    advertised = holdings.advertise(PRICES)
    requests.ask(advertised)
    held = holdings.unsubscribe(s1)
    assert held is subscribed
    requests.withdraw(held)
    assert (sent, requests.is_moving, requests.are_waiting) == ([], True, True)

    requests.arrive(move)
    requests.settle()
    assert sent == [Unsubscription(id=s2), Advertisement(id=advertised.id, filter=PRICES)]
    assert (requests.is_moving, requests.are_waiting) == (False, False)


def test_a_broker_that_has_forgotten_the_client_is_sent_no_withdrawals() -> None:
    sent: list[Request] = []
    holdings = Holdings("paul")
    requests = ClientRequests(holdings, sent.append)
    withdrawn = holdings.subscribe(PRICES)
    kept = holdings.subscribe(PRICES)
    advertised = holdings.advertise(PRICES)
    requests.ask_for_all()
    requests.plan_move("B1")
    holdings.unsubscribe(withdrawn.id)
    requests.withdraw(withdrawn)
    sent.clear()
    requests.settle(is_forgotten=True)
    assert sent == []
    holdings.renew(new_ids=True)
    requests.ask_for_all()
    assert sent == [
        Advertisement(id=advertised.id, filter=PRICES, edition=1),
        Subscription(id=kept.id, filter=PRICES),
    ]
    assert holdings.known_as(kept.id) == SubscriptionId("paul/s2")
