"""The small parts: alarms, the post, holds, blocked pairs, averages, outcomes, messages."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.policies.offload.by_hand import FixedMeters
from tests.policies.offload.loads import info

from godwit.broker.core import Broker
from godwit.broker.meters import Load, Meters
from godwit.broker.modules import BrokerView, Request
from godwit.broker.routing import Place
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementInEffect,
    Publication,
    Subscription,
    Unsubscription,
)
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.policies.offload.alarms import Alarms
from godwit.policies.offload.broker_load import OffloadAction
from godwit.policies.offload.control_post import ControlPost
from godwit.policies.offload.detection import Candidate
from godwit.policies.offload.holds import BLOCKED_MAX, BlockedPairs, Holds
from godwit.policies.offload.load_averages import LoadAverages
from godwit.policies.offload.load_status import LoadStatus
from godwit.policies.offload.mediation_messages import (
    PART_BYTES,
    WORD,
    LbReply,
    MediationReader,
    css_filters,
    css_texts,
    lb_advertisement,
    lb_subscription,
    send,
)
from godwit.policies.offload.outcomes import Prediction, achieved, error_of

OUTPUT = OffloadAction.OUTPUT


# -- alarms --------------------------------------------------------------------------------------


def test_an_alarm_that_was_set_again_or_cancelled_means_nothing() -> None:
    alarms = Alarms()
    first, second = alarms.set("period", 1.0), alarms.set("period", 2.0)
    assert alarms.due(first.name) is None
    assert alarms.due(second.name) == "period"
    assert alarms.due(second.name) is None, "once"
    third = alarms.set("period", 3.0)
    alarms.cancel("period")
    assert alarms.due(third.name) is None


# -- the post ------------------------------------------------------------------------------------


def in_effect(post: ControlPost, requests: list[Request]) -> None:
    for request in requests:
        if isinstance(request, Advertisement):
            post.on_in_effect(AdvertisementInEffect(id=request.id))


def test_nothing_is_published_before_it_may_be() -> None:
    post = ControlPost("$B1.offload", "i1")
    requests = post.advertise("pie", Filter.parse("class = '$PIE'"))
    assert post.publish("pie", {"class": "$PIE"}) == []
    in_effect(post, requests)
    (publication,) = post.numbered(post.publish("pie", {"class": "$PIE"}))
    assert isinstance(publication, Publication)
    assert publication.publisher == "$B1.offload"
    assert publication.advertisement == "$B1.offload/i1~pie-1"
    post.unadvertise("pie")
    assert post.publish("pie", {"class": "$PIE"}) == []


def test_a_new_subscription_comes_before_the_end_of_the_old_one() -> None:
    post = ControlPost("$B1.offload", "i1")
    (old,) = post.subscribe("pie", Filter.parse("class = '$PIE' and input < 0.5"))
    assert isinstance(old, Subscription)
    new, withdrawn = post.subscribe("pie", Filter.parse("class = '$PIE' and input < 0.4"))
    assert isinstance(new, Subscription)
    assert withdrawn == Unsubscription(id=old.id)
    assert new.id != old.id


# -- messages ------------------------------------------------------------------------------------


def sent(message: LbReply) -> list[Publication]:
    post = ControlPost("$B2.offload", "i1")
    in_effect(post, post.advertise(WORD, lb_advertisement("B2")))
    found = post.numbered(send(post, "B2", "B1", message))
    return [each for each in found if isinstance(each, Publication)]


def test_a_message_is_for_one_broker_and_conforms_to_its_advertisement() -> None:
    (publication,) = sent(LbReply(session="s", status=LoadStatus.OK, info=info("B2")))
    assert lb_subscription("B1").matches(publication.content)
    assert not lb_subscription("B3").matches(publication.content)
    assert lb_advertisement("B2").permits_checked(publication.content)
    sender, read = MediationReader().read(publication)
    assert (sender, read) == ("B2", LbReply(session="s", status=LoadStatus.OK, info=info("B2")))


def long_reply() -> LbReply:
    """With a covering subscription set that does not fit one publication."""
    filters = [
        Filter.parse(f"class = 'STOCK' and symbol = 'S{n * 7919 % 99991}{n}' and high > {n / 7}")
        for n in range(20_000)
    ]
    return LbReply(session="s", status=LoadStatus.OK, info=info("B2"), css=css_texts(filters))


def test_a_long_message_travels_in_parts() -> None:
    reply = long_reply()
    parts = sent(reply)
    assert len(parts) > 1
    assert all(len(part.payload) <= PART_BYTES for part in parts)
    reader = MediationReader()
    assert [reader.read(part)[1] for part in parts[:-1]] == [None] * (len(parts) - 1)
    _, read = reader.read(parts[-1])
    assert read == reply
    assert css_filters(reply.css[:3])[2] == Filter.parse(reply.css[2])


def test_a_message_of_which_a_part_is_missing_is_dropped_and_the_next_is_read() -> None:
    parts = sent(long_reply())
    reader = MediationReader()
    assert [reader.read(part)[1] for part in (parts[0], *parts[2:])] == [None] * (len(parts) - 1)
    for part in parts[:-1]:
        reader.read(part)
    assert reader.read(parts[-1])[1] is not None


# -- holds ---------------------------------------------------------------------------------------


def test_a_hold_ends_with_its_time() -> None:
    holds = Holds()
    holds.hold(["c1"], 100.0, 60.0)
    assert holds.held(159.0) == {"c1"}
    assert holds.held(160.0) == frozenset()
    holds.hold(["c1", "c2"], 100.0, 60.0)
    holds.drop("c2")
    assert holds.held(120.0) == {"c1"}


def test_a_pair_is_blocked_for_twice_as_long_each_time() -> None:
    pairs = BlockedPairs()
    candidate = Candidate("B2", OUTPUT, 0.3)
    tried = []
    for detection in range(100):
        if pairs.next_detection([candidate]):
            tried.append(detection)
            pairs.block("B2", OUTPUT)
    gaps = [after - before for before, after in pairwise(tried)]
    assert gaps == [2, 3, 5, 9, 17, 17, 17, 17]
    assert max(gaps) == BLOCKED_MAX + 1


def test_a_blocked_pair_is_free_after_a_success_and_when_the_difference_has_gone() -> None:
    pairs = BlockedPairs()
    candidate, other = Candidate("B2", OUTPUT, 0.3), Candidate("B2", OffloadAction.INPUT, 0.2)
    pairs.block("B2", OUTPUT)
    assert pairs.next_detection([candidate, other]) == [other], "only this action"
    pairs.block("B2", OUTPUT)
    pairs.free("B2")
    assert pairs.next_detection([candidate]) == [candidate]
    pairs.block("B2", OUTPUT)
    for _ in range(3):
        pairs.next_detection([])
    pairs.block("B2", OUTPUT)
    pairs.next_detection([candidate])
    assert pairs.next_detection([candidate]) == [candidate], "its failures are forgotten"


# -- averages ------------------------------------------------------------------------------------


class Metered:
    """Averages over three windows of a broker whose loads a test sets."""

    def __init__(self) -> None:
        self.meters = FixedMeters()
        broker = Broker("B1", routing=TreeRouting(Place.of("B1", ["B0"])), meters=self.meters)
        self.averages = LoadAverages(BrokerView(broker, "$B1.offload"), over_s=30.0)

    def window(self, output: float, *, per_s: float = 10.0, delay_s: float = 0.01) -> None:
        self.meters.now = Load(10.0, per_s, per_s, 0.0, 0.0, 0.0, delay_s, per_s * delay_s, output)
        self.averages.read(0.0)


def test_a_load_is_the_mean_of_the_last_windows() -> None:
    metered = Metered()
    for output in (0.9, 0.1, 0.2, 0.3):
        metered.window(output)
    load = metered.averages.info()
    assert load.output_utilisation == pytest.approx(0.2), "the first has left"
    assert load.input_per_s == 10.0
    assert load.matching_delay_s == pytest.approx(0.01)
    assert load.input_utilisation == pytest.approx(0.1)


def test_after_a_session_what_was_measured_before_does_not_count() -> None:
    metered = Metered()
    for output in (0.9, 0.9, 0.9):
        metered.window(output)
    metered.averages.forget()
    assert metered.averages.info().output_utilisation == pytest.approx(0.9), "nothing else yet"
    metered.window(0.5)
    assert metered.averages.info().output_utilisation == pytest.approx(0.9), "it had begun before"
    metered.window(0.2)
    assert metered.averages.info().output_utilisation == pytest.approx(0.2)
    assert metered.averages.first_and_last() == (None, None)
    metered.window(0.3)
    first, last = metered.averages.first_and_last()
    assert first is not None
    assert last is not None
    assert (first.output, last.output) == (0.2, 0.3)


def test_what_was_measured_has_the_delay_of_the_windows_and_not_of_the_line() -> None:
    metered = Metered()
    for _ in range(5):
        metered.window(0.5)
    metered.averages.forget()
    assert metered.averages.measured() == metered.averages.info(), "nothing else yet"
    for delay_s in (0.01, 0.04):  # The first window had begun before.
        metered.window(0.5, delay_s=delay_s)
    assert metered.averages.info().matching_delay_s == pytest.approx(0.01), "one is an outlier"
    measured = metered.averages.measured()
    assert measured.matching_delay_s == pytest.approx(0.04)
    assert measured.input_utilisation == pytest.approx(0.4)


def test_a_window_is_read_once() -> None:
    """The meters have the same window until the next is complete."""
    meters = Meters(output_bandwidth_bytes_s=1000.0)
    broker = Broker("B1", routing=TreeRouting(Place.of("B1", ["B0"])), meters=meters)
    averages = LoadAverages(BrokerView(broker, "$B1.offload"), over_s=30.0)
    for now_s, windows in ((5.0, 0), (11.0, 1), (12.0, 1), (19.0, 1), (21.0, 2)):
        averages.read(now_s)
        assert len(averages._windows) == windows


# -- outcomes ------------------------------------------------------------------------------------


def test_predicted_against_achieved() -> None:
    prediction = Prediction(
        session="s",
        source="B1",
        target="B2",
        planned=10,
        moved=9,
        before=info("B1", output=0.6),
        predicted=info("B1", output=0.4),
    )
    decision = achieved(prediction, info("B1", output=0.5))
    assert (decision.action, decision.source, decision.target) == ("achieved", "B1", "B2")
    assert decision.reason["output_before"] == pytest.approx(0.6)
    assert decision.reason["output_predicted"] == pytest.approx(0.4)
    assert decision.reason["output_achieved"] == pytest.approx(0.5)
    assert decision.reason["output_error"] == pytest.approx(0.2)
    assert (decision.reason["planned"], decision.reason["moved"]) == (10, 9)


@pytest.mark.parametrize(
    ("predicted", "found", "error"),
    [(0.4, 0.5, 0.2), (0.5, 0.4, 0.25), (0.0, 0.0, 0.0), (0.1, 0.0, 1.0)],
)
def test_the_error_is_a_part_of_what_was_achieved(
    predicted: float, found: float, error: float
) -> None:
    assert error_of(predicted, found) == pytest.approx(error)
