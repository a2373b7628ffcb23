"""The broker as a time-line: stimulus, then the whole list of effects."""

from __future__ import annotations

import pytest

from godwit.broker.core import Broker
from godwit.broker.effects import Deliver, Effect, Notify, Send
from godwit.broker.invariants import check_step
from godwit.broker.routing import Place
from godwit.broker.stimuli import (
    ClientLeft,
    Hop,
    LinkDown,
    LinkUp,
    LocalClient,
    Neighbour,
    Received,
    Stimulus,
)
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Message,
    Publication,
    Refusal,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Unadvertisement,
    Unsubscription,
)
from godwit.content.values import Value
from godwit.overlay.tree.tree_routing import TreeRouting

ALICE, PAUL, B2 = LocalClient("alice"), LocalClient("paul"), Neighbour("B2")

CHEAP = Subscription(id=SubscriptionId("alice/s1"), filter=Filter.parse("price < 100"))
PRICES = Advertisement(id=AdvertisementId("paul/a1"), filter=Filter.parse("price is a number"))


def price(value: Value, sequence: int = 1, **more: Value) -> Publication:
    return Publication(
        publisher="paul",
        sequence=sequence,
        advertisement=PRICES.id,
        content={"price": value, **more},
    )


class Bench:
    """A broker whose every step is checked."""

    def __init__(self, *neighbours: str) -> None:
        self.broker = Broker("B1", routing=TreeRouting(Place.of("B1", neighbours)))

    def receive(
        self, message: Message, hop: Hop, *, now_s: float = 0.0, hops: int = 0
    ) -> list[Effect]:
        return self.stimulate(Received(message, hop, hops), now_s=now_s)

    def stimulate(self, stimulus: Stimulus, *, now_s: float = 0.0) -> list[Effect]:
        effects = self.broker.handle(stimulus, now_s=now_s)
        check_step(self.broker, stimulus, effects)
        return effects


def refusal(effects: list[Effect]) -> str:
    (effect,) = effects
    assert isinstance(effect, Notify)
    assert isinstance(effect.notice, Refusal)
    return effect.notice.reason


def test_a_publication_goes_from_its_publisher_to_a_subscriber_at_the_same_broker() -> None:
    b1 = Bench()

    # t=0  Alice subscribes, Paul advertises: with one broker both are in effect at once.
    assert b1.receive(CHEAP, ALICE) == [Notify(ALICE, SubscriptionInEffect(id=CHEAP.id))]
    assert b1.receive(PRICES, PAUL) == [Notify(PAUL, AdvertisementInEffect(id=PRICES.id))]

    # t=7  A matching publication is stamped and delivered, having crossed no link.
    (deliver,) = b1.receive(price(90), PAUL, now_s=7.0)
    assert isinstance(deliver, Deliver)
    assert deliver.to == (ALICE,)
    assert deliver.hops == 0
    assert deliver.publication.accepted_s == 7.0
    assert deliver.publication.size_bytes > 40

    # t=8  One that does not match goes nowhere.
    assert b1.receive(price(100, 2), PAUL, now_s=8.0) == []


def test_a_publication_from_a_neighbour_is_passed_on_untouched_and_counted_as_a_hop() -> None:
    b1 = Bench("B2", "B3")
    b1.receive(PRICES, B2)
    b1.receive(CHEAP, ALICE)
    b1.receive(Subscription(id=SubscriptionId("bob/s1"), filter=CHEAP.filter), Neighbour("B3"))

    assert b1.receive(price(90), B2, hops=3) == [
        Send(Neighbour("B3"), price(90), 4),
        Deliver((ALICE,), price(90), 3),
    ]


def test_a_client_with_two_matching_subscriptions_gets_one_copy() -> None:
    b1 = Bench()
    b1.receive(PRICES, PAUL)
    b1.receive(CHEAP, ALICE)
    b1.receive(
        Subscription(id=SubscriptionId("alice/s2"), filter=Filter.parse("price > 10")), ALICE
    )

    (deliver,) = b1.receive(price(50), PAUL)
    assert isinstance(deliver, Deliver)
    assert deliver.to == (ALICE,)


def test_a_client_does_not_receive_its_own_publications() -> None:
    b1 = Bench()
    b1.receive(PRICES, PAUL)
    b1.receive(Subscription(id=SubscriptionId("paul/s2"), filter=CHEAP.filter), PAUL)

    assert b1.receive(price(50), PAUL) == []


@pytest.mark.parametrize(
    ("publication", "reason"),
    [
        pytest.param(price(50, 3), "numbers rise: 3 was used", id="a used number"),
        pytest.param(price(50, -1), "an integer from 0 to", id="a negative number"),
        pytest.param(price("dear", 4), "price is a number fails: price is 'dear'", id="no number"),
        pytest.param(price(1, 4, colour="red"), "not name the attribute colour", id="an extra"),
        pytest.param(
            price(float("nan"), 4), "nan is not allowed; use a finite number", id="not a number"
        ),
    ],
)
def test_a_publication_that_breaks_a_rule_is_refused_with_the_rule(
    publication: Publication, reason: str
) -> None:
    b1 = Bench()
    b1.receive(PRICES, PAUL)
    b1.receive(CHEAP, ALICE)
    b1.receive(price(60, 3), PAUL)

    assert reason in refusal(b1.receive(publication, PAUL))
    assert b1.receive(price(50, 4), PAUL), "and the broker carries on"


def test_a_publication_waits_for_its_advertisement_to_be_in_effect() -> None:
    b1 = Bench("B2")
    b1.receive(CHEAP, ALICE)
    b1.receive(PRICES, PAUL)

    assert "not in effect yet" in refusal(b1.receive(price(50), PAUL))
    b1.receive(AdvertisementInEffect(id=PRICES.id), B2)
    assert [type(effect) for effect in b1.receive(price(50), PAUL)] == [Deliver]


def test_nobody_publishes_under_an_advertisement_of_somebody_else_or_of_the_past() -> None:
    b1 = Bench()
    b1.receive(PRICES, PAUL)

    assert "cannot publish as paul" in refusal(b1.receive(price(50), ALICE))
    b1.receive(Unadvertisement(id=PRICES.id), PAUL)
    assert "has no advertisement paul/a1" in refusal(b1.receive(price(50), PAUL))


IMPOSSIBLE = Filter.parse("x > 5 and x < 3")
CONTROL = Filter.parse("class = '$LOAD'")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        pytest.param(CHEAP, "exists already", id="the same subscription again"),
        pytest.param(
            Subscription(id=SubscriptionId("bob/s1"), filter=CHEAP.filter),
            "an id of alice is 'alice/' and a word",
            id="an id of somebody else",
        ),
        pytest.param(
            Subscription(id=SubscriptionId("alice/s2"), filter=IMPOSSIBLE),
            "nothing can match x > 5 and x < 3",
            id="a filter that nothing matches",
        ),
        pytest.param(
            Advertisement(id=AdvertisementId("alice/a1"), filter=CONTROL),
            "control classes",
            id="an advertisement of control publications",
        ),
        pytest.param(
            Unsubscription(id=SubscriptionId("alice/s9")), "has no subscription", id="no such sub"
        ),
        pytest.param(
            Unadvertisement(id=AdvertisementId("alice/a9")),
            "has no advertisement",
            id="no such adv",
        ),
        pytest.param(
            SubscriptionInEffect(id=CHEAP.id), "only brokers confirm", id="a forged confirmation"
        ),
    ],
)
def test_a_request_that_breaks_a_rule_is_refused_with_the_rule(
    message: Message, reason: str
) -> None:
    b1 = Bench()
    b1.receive(CHEAP, ALICE)

    assert reason in refusal(b1.receive(message, ALICE))
    assert b1.broker.routing.subscription_count == 1


def test_a_control_publication_of_a_client_is_refused_even_under_a_wide_advertisement() -> None:
    b1 = Bench()
    anything = Advertisement(id=AdvertisementId("paul/a2"), filter=Filter.parse("class is present"))
    b1.receive(anything, PAUL)
    forged = Publication(
        publisher="paul", sequence=1, advertisement=anything.id, content={"class": "$LOAD"}
    )

    assert "control classes" in refusal(b1.receive(forged, PAUL))


def test_a_client_that_left_has_withdrawn_everything() -> None:
    b1 = Bench("B2")
    b1.receive(PRICES, PAUL)
    b1.receive(AdvertisementInEffect(id=PRICES.id), B2)
    b1.receive(CHEAP, ALICE)
    b1.receive(Subscription(id=SubscriptionId("paul/s1"), filter=CHEAP.filter), PAUL)
    b1.receive(price(50), PAUL)

    assert b1.stimulate(ClientLeft(PAUL)) == [Send(B2, Unadvertisement(id=PRICES.id))]
    assert b1.stimulate(ClientLeft(PAUL)) == [], "once"
    assert list(b1.broker.routing.tables().subscriptions) == [CHEAP.id]
    assert "has no advertisement" in refusal(b1.receive(price(50, 2), PAUL))

    # A new client of that name starts from nothing: also with its numbers.
    b1.receive(PRICES, PAUL)
    b1.receive(AdvertisementInEffect(id=PRICES.id), B2)
    assert [type(effect) for effect in b1.receive(price(50, 1), PAUL)] == [Deliver]


def test_a_subscriber_that_left_is_taken_back_from_the_neighbours() -> None:
    b1 = Bench("B2")
    b1.receive(PRICES, B2)
    assert Send(B2, CHEAP) in b1.receive(CHEAP, ALICE)

    assert b1.stimulate(ClientLeft(ALICE)) == [Send(B2, Unsubscription(id=CHEAP.id))]
    assert b1.receive(price(50), B2) == []


def test_a_client_that_nobody_knows_may_leave() -> None:
    assert Bench("B2").stimulate(ClientLeft(ALICE)) == []


def test_a_new_link_is_told_what_is_advertised_here() -> None:
    b1 = Bench()
    b1.receive(PRICES, PAUL)
    b1.receive(CHEAP, ALICE)

    assert b1.stimulate(LinkUp(B2))[0] == Send(B2, PRICES)
    narrow = Subscription(id=SubscriptionId("bob/s1"), filter=Filter.parse("price < 10"))
    assert b1.receive(narrow, B2) == [Send(B2, SubscriptionInEffect(id=narrow.id))]
    deliver, send = sorted(b1.receive(price(5), PAUL), key=lambda effect: type(effect).__name__)
    assert isinstance(deliver, Deliver)
    assert isinstance(send, Send)
    assert (deliver.to, send.to) == ((ALICE,), B2)


def test_a_lost_link_confirms_what_waited_for_it() -> None:
    """To the publisher, and to the door: what it publishes from now on is accepted."""
    b1 = Bench("B2")
    b1.receive(CHEAP, ALICE)
    b1.receive(PRICES, PAUL)
    assert "not in effect yet" in refusal(b1.receive(price(50), PAUL))

    assert b1.stimulate(LinkDown(B2)) == [Notify(PAUL, AdvertisementInEffect(id=PRICES.id))]
    assert [type(effect) for effect in b1.receive(price(50), PAUL)] == [Deliver]
