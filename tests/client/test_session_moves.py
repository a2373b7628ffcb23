"""A session that moves, as a time-line: frames to the old and to the new broker."""

from __future__ import annotations

import pytest
from tests.client.test_session import A1, NAMES, PRICES, Bench, bench, decoded, news, price

from godwit.client.stream_endpoint import StreamEndpoint
from godwit.content.messages import (
    Advertisement,
    AdvertisementInEffect,
    Refusal,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Unadvertisement,
    Unsubscription,
)
from godwit.errors import PeerError
from godwit.migration.move import Move
from godwit.protocol.frames import Acknowledge, Dropped, Goodbye, Welcome, encode_body

S2, S3 = SubscriptionId("paul/s2"), SubscriptionId("paul/s3")


def moving() -> tuple[Bench, Move, StreamEndpoint]:
    """Paul has advertised prices and subscribed to names, and is about to move to B2."""
    b = bench()
    b.advertised()
    assert b.session.subscribe(NAMES) == S2
    b.sent()
    b.acknowledge()
    move = b.session.plan_move()
    move.start()
    endpoint = StreamEndpoint("paul")
    endpoint.welcome(Welcome(name="B2", stream="new", received=0))
    return b, move, endpoint


def arrive(b: Bench, move: Move, endpoint: StreamEndpoint) -> list[object]:
    """End the move; returns what the new broker is sent at once."""
    b.session.arrive(endpoint, move)
    b.session.settle()
    return b.sent()


def test_everything_is_asked_for_again_under_other_ids_or_the_next_edition() -> None:
    _, move, _ = moving()
    assert move.subscriptions == {S2: Subscription(id=S3, filter=NAMES)}
    assert move.advertisements == {A1: Advertisement(id=A1, filter=PRICES, edition=1)}


def test_what_is_published_while_it_pauses_goes_to_the_new_broker() -> None:
    b, move, endpoint = moving()
    b.session.publish({"price": 1})
    assert b.sent() == [price(1, 1)], "until it pauses"
    b.session.held.is_paused = True
    b.session.publish({"price": 2})
    assert b.sent() == []
    assert b.session.waiting_bytes > b.session.held.size_bytes > 0
    assert arrive(b, move, endpoint) == [price(2, 2)]
    assert b.session.broker == "B2"
    assert b.session.advertisements[A1].edition == 1


def test_a_subscription_is_called_what_it_was_called_at_first() -> None:
    b, move, endpoint = moving()
    arrive(b, move, endpoint)
    assert b.hear(SubscriptionInEffect(id=S3)) == SubscriptionInEffect(id=S2)
    assert b.hear(Refusal(about=S3, reason="because")) == Refusal(about=S2, reason="because")
    assert not b.session.subscriptions


def test_requests_wait_for_the_end_of_a_move() -> None:
    b, move, endpoint = moving()
    a4 = b.session.advertise(NAMES)
    s5 = b.session.subscribe(PRICES)
    s6 = b.session.subscribe(PRICES)
    b.session.unsubscribe(s6)  # It was not asked for.
    b.session.unsubscribe(S2)
    b.session.unadvertise(A1)
    assert b.sent() == []
    assert not b.session.is_idle
    assert arrive(b, move, endpoint) == [
        Unsubscription(id=S3),
        Unadvertisement(id=A1),
        Advertisement(id=a4, filter=NAMES),
        Subscription(id=s5, filter=PRICES),
    ]


def test_requests_wait_also_for_a_move_that_leads_nowhere() -> None:
    b, _, _ = moving()
    b.session.unsubscribe(S2)
    s4 = b.session.subscribe(PRICES)
    b.session.settle()
    assert b.sent() == [Unsubscription(id=S2), Subscription(id=s4, filter=PRICES)]


def test_a_broker_that_forgets_us_on_the_way_is_asked_again_only_if_we_stay() -> None:
    b, move, endpoint = moving()
    b.session.publish({"price": 1})
    b.sent()
    assert b.welcome("two") == []
    assert b.session.is_forgotten
    b.session.unsubscribe(S2)
    s4 = b.session.subscribe(PRICES)
    move.abort()
    b.session.settle()
    assert b.session.restarts == 1
    assert b.sent() == [
        Advertisement(id=A1, filter=PRICES, edition=1),
        Subscription(id=SubscriptionId("paul/s5"), filter=PRICES),
    ]
    assert b.hear(SubscriptionInEffect(id=SubscriptionId("paul/s5"))) == SubscriptionInEffect(id=s4)
    b.hear(AdvertisementInEffect(id=A1, edition=1))
    assert b.sent() == [price(1, 1)]

    b, move, endpoint = moving()
    b.welcome("two")
    assert arrive(b, move, endpoint) == []
    assert not b.session.is_forgotten


def test_who_returns_asks_for_one_more_edition() -> None:
    b, _, _ = moving()
    third = Advertisement(id=A1, filter=PRICES, edition=2)
    b.session.held.is_paused = True
    b.session.advertise_again(third)
    b.session.publish({"price": 1})
    assert b.sent() == [third]
    b.session.settle()
    assert b.sent() == [], "that is not in effect"
    b.hear(AdvertisementInEffect(id=A1, edition=2))
    assert b.sent() == [price(1, 1)]


# -- the end of a stream to a broker where we are not at home --------------------------------------


def test_a_stream_of_which_the_broker_has_heard_nothing_may_begin_anew() -> None:
    endpoint = StreamEndpoint("paul")
    endpoint.welcome(Welcome(name="B2", stream="one", received=0))
    endpoint.put(Unsubscription(id=S2))
    endpoint.stream.take()
    endpoint.put(Unsubscription(id=S3))
    assert endpoint.welcome(Welcome(name="B2", stream="two", received=0)) == b""
    assert decoded(endpoint.stream.take()) == [Unsubscription(id=S2), Unsubscription(id=S3)]
    assert not endpoint.is_forgotten


@pytest.mark.parametrize("heard", [Acknowledge(received=1), Dropped(count=1)])
def test_a_broker_that_has_heard_or_said_something_and_forgets_it_is_lost(
    heard: Acknowledge | Dropped,
) -> None:
    endpoint = StreamEndpoint("paul")
    endpoint.welcome(Welcome(name="B2", stream="one", received=0))
    endpoint.put(Unsubscription(id=S2))
    endpoint.stream.take()
    endpoint.receive(encode_body(heard))
    endpoint.welcome(Welcome(name="B2", stream="two", received=0))
    assert endpoint.is_forgotten


def test_a_stream_that_is_remembered_goes_on() -> None:
    endpoint = StreamEndpoint("paul")
    endpoint.welcome(Welcome(name="B2", stream="one", received=0))
    for id in (S2, S3):
        endpoint.put(Unsubscription(id=id))
        endpoint.stream.take()
    lacking = endpoint.welcome(Welcome(name="B2", stream="one", received=1))
    assert decoded(lacking) == [Unsubscription(id=S3)]


def test_everything_is_handed_on_and_signals_are_not_numbered() -> None:
    endpoint = StreamEndpoint("paul")
    for frame in (news(5), news(5), news(4, "paul"), Goodbye(reason="bye")):
        assert endpoint.receive(encode_body(frame)) == frame
    assert endpoint.stream.received == 3
    with pytest.raises(PeerError):
        endpoint.receive(encode_body(Unsubscription(id=S2)))
