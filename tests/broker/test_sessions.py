"""The client door against everything that is not quite a message.  No trace, no crash, a reason."""

from __future__ import annotations

from typing import Any

import pytest

from godwit.broker.sessions import Refused, Sessions
from godwit.broker.stimuli import LocalClient, Module
from godwit.content.filters import Filter
from godwit.content.messages import (
    NO_MARKS,
    Advertisement,
    AdvertisementId,
    Mark,
    Message,
    Publication,
    Subscription,
    SubscriptionId,
    Unadvertisement,
    Unsubscription,
)

PAUL = LocalClient("paul")
X = Filter.parse("x is present")
ANYTHING: Any = object()


def door() -> Sessions:
    sessions = Sessions("B1")
    advertisement = Advertisement(id=AdvertisementId("paul/a1"), filter=X)
    sessions.admit(advertisement, PAUL, 0.0)
    sessions.confirm(advertisement.id, PAUL)
    return sessions


def publication(**changed: Any) -> Publication:
    fields: dict[str, Any] = {
        "publisher": "paul",
        "sequence": 1,
        "advertisement": "paul/a1",
        "content": {"x": 1},
    }
    return Publication(**{**fields, **changed})


def subscription(id: Any, filter: Any = X) -> Subscription:
    return Subscription(id=id, filter=filter)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        pytest.param(publication(content=[1]), "a record maps", id="content that is no record"),
        pytest.param(publication(content=None), "a record maps", id="no content"),
        pytest.param(
            publication(content={1: 2}), "not an attribute name", id="a number for a name"
        ),
        pytest.param(publication(content={"x": "\ud800"}), "surrogate", id="half a character"),
        pytest.param(publication(content={"x": None}), "None is not a value", id="no value"),
        pytest.param(publication(sequence="1"), "sequence number", id="a sequence string"),
        pytest.param(publication(sequence=True), "sequence number", id="a sequence boolean"),
        pytest.param(publication(sequence=2**70), "sequence number", id="a huge sequence"),
        pytest.param(publication(ttl_hops="1"), "time to live", id="a string to live"),
        pytest.param(publication(ttl_hops=-1), "time to live", id="less than no time to live"),
        pytest.param(publication(ttl_hops=3), "only control", id="a client's time to live"),
        pytest.param(publication(payload="abc"), "a payload is", id="a payload of text"),
        pytest.param(publication(payload=bytes(2**20 + 1)), "a payload is", id="a huge payload"),
        pytest.param(publication(advertisement=[]), "an id is", id="a list for an id"),
        pytest.param(publication(publisher="mary"), "cannot publish as mary", id="another name"),
        pytest.param(subscription(5), "an id is", id="a number for an id"),
        pytest.param(subscription("paul/" + "s" * 256), "an id is", id="a long id"),
        pytest.param(subscription("paul/"), "and a word", id="half an id"),
        pytest.param(subscription("paul/a/s"), "and a word", id="an id of client paul/a"),
        pytest.param(subscription("paul/s1", "x > 1"), "has no filter", id="text for a filter"),
        pytest.param(
            Subscription(id=SubscriptionId("paul/s1"), filter=X, edition=ANYTHING),
            "an edition is",
            id="no edition",
        ),
        pytest.param(Unsubscription(id=ANYTHING), "an id is", id="no id to unsubscribe"),
        pytest.param(Unadvertisement(id=ANYTHING), "an id is", id="no id to unadvertise"),
    ],
)
def test_what_is_no_message_is_refused_and_leaves_no_trace(message: Message, reason: str) -> None:
    sessions = door()

    with pytest.raises(Refused, match=reason):
        sessions.admit(message, PAUL, 1.0)
    assert sessions.of(PAUL).last_sequence == -1
    assert not sessions.of(PAUL).subscriptions
    assert sessions.admit(publication(), PAUL, 2.0)


def test_what_was_admitted_does_not_change_with_the_callers_record() -> None:
    content = {"x": 1}
    admitted = door().admit(publication(content=content), PAUL, 1.0)
    content["x"] = -5

    assert isinstance(admitted, Publication)
    assert admitted.content == {"x": 1}


def test_a_module_does_not_mix_classes_because_control_overtakes() -> None:
    sessions, gossip = door(), Module("gossip")
    owner = sessions.owner(gossip)
    advertisement = Advertisement(id=AdvertisementId(f"{owner}/a1"), filter=X)
    sessions.admit(advertisement, gossip, 0.0)
    sessions.confirm(advertisement.id, gossip)

    with pytest.raises(Refused, match="a module speaks in control classes"):
        sessions.admit(publication(publisher=owner, advertisement=advertisement.id), gossip, 0.0)


def test_no_client_can_take_the_name_of_a_module() -> None:
    sessions = door()
    owner = sessions.owner(Module("gossip"))

    with pytest.raises(Refused, match="client names must not start with '\\$'"):
        sessions.admit(subscription(f"{owner}/s1"), LocalClient(owner), 0.0)


def test_whoever_holds_something_may_want_to_come_back_for_it() -> None:
    sessions, alice = door(), LocalClient("alice")
    assert sessions.holds(PAUL)
    assert not sessions.holds(alice)

    sessions.admit(subscription("alice/s1"), alice, 0.0)
    assert sessions.holds(alice)
    sessions.admit(Unsubscription(id=SubscriptionId("alice/s1")), alice, 0.0)
    assert not sessions.holds(alice)


def test_whoever_leaves_withdraws_all_it_held_and_nothing_else() -> None:
    sessions, alice = door(), LocalClient("alice")
    sessions.admit(subscription("alice/s1"), alice, 0.0)
    for id in ("paul/s2", "paul/s1"):
        sessions.admit(subscription(id), PAUL, 0.0)

    assert sessions.leave(PAUL) == [
        Unsubscription(id=SubscriptionId("paul/s1")),
        Unsubscription(id=SubscriptionId("paul/s2")),
        Unadvertisement(id=AdvertisementId("paul/a1")),
    ]
    assert sessions.leave(PAUL) == []
    assert not sessions.holds(PAUL)
    assert sessions.holds(alice)


def test_a_late_confirmation_for_somebody_who_left_is_nothing() -> None:
    sessions = door()
    sessions.leave(PAUL)
    sessions.confirm(AdvertisementId("paul/a1"), PAUL)

    assert not sessions.holds(PAUL)
    with pytest.raises(Refused, match="has no advertisement"):
        sessions.admit(publication(), PAUL, 0.0)


def test_an_advertisement_may_be_made_again_with_a_higher_edition_only() -> None:
    """By a client that wanted to move away and did not."""
    sessions = door()
    first = Advertisement(id=AdvertisementId("paul/a1"), filter=X)
    with pytest.raises(Refused, match="exists already"):
        sessions.admit(first, PAUL, 0.0)
    again = Advertisement(id=first.id, filter=X, edition=2)
    assert sessions.admit(again, PAUL, 0.0) == again
    with pytest.raises(Refused, match="is not in effect yet"):
        sessions.admit(publication(), PAUL, 0.0)
    sessions.release(first.id, PAUL)
    assert sessions.admit(first, PAUL, 0.0) == first, "it was elsewhere meanwhile"


def test_a_mark_is_the_brokers_to_make() -> None:
    marked = publication(marks=(Mark("grape", 7),))
    plain = door().admit(marked, PAUL, 0.0)
    assert isinstance(plain, Publication)
    assert plain.marks == NO_MARKS


def test_a_module_marks_what_clients_publish_and_nothing_that_is_refused() -> None:
    asked: list[tuple[int, float]] = []

    def tag(publication: Publication, now_s: float) -> int:
        asked.append((publication.sequence, now_s))
        return 5

    sessions = Sessions("B1")
    sessions.taggers = {"grape": tag}
    advertisement = Advertisement(id=AdvertisementId("paul/a1"), filter=X)
    sessions.admit(advertisement, PAUL, 0.0)
    with pytest.raises(Refused, match="not in effect yet"):
        sessions.admit(publication(), PAUL, 1.0)
    sessions.confirm(advertisement.id, PAUL)
    admitted = sessions.admit(publication(), PAUL, 2.0)

    assert isinstance(admitted, Publication)
    assert admitted.marks == (Mark("grape", 5),)
    assert asked == [(1, 2.0)]
