"""When a load is published, and what is known from it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.policies.offload.loads import pie

from godwit.content.messages import AdvertisementId, Publication
from godwit.policies.offload.load_status import LoadStatus
from godwit.policies.offload.pie import (
    LOCAL_PIE,
    KnownBrokers,
    Pie,
    PieRule,
    pie_advertisement,
    read_pie,
)
from godwit.policies.offload.settings import BalancingSettings

SETTINGS = BalancingSettings()


def publication(of: Pie) -> Publication:
    return Publication(
        publisher="$B1.offload",
        sequence=0,
        advertisement=AdvertisementId("$B1.offload/a"),
        content=of.content(LOCAL_PIE),
        payload=of.payload(),
    )


def test_a_pie_is_read_as_it_was_written_and_conforms_to_its_advertisement() -> None:
    sent = pie("B1", input=0.5, output=0.25, balanced=("B2", "B3"), moving_sessions=7)
    assert read_pie(publication(sent)) == sent
    advertised = pie_advertisement(LOCAL_PIE, "B0", "B1")
    assert advertised.permits_checked(sent.content(LOCAL_PIE))


def test_what_another_version_sends_is_ignored() -> None:
    good = publication(pie("B1"))
    assert read_pie(replace(good, payload=b"something else")) is None
    assert read_pie(replace(good, content={"class": LOCAL_PIE})) is None
    assert read_pie(replace(good, content={**good.content, "status": "FINE"})) is None


@pytest.mark.parametrize(
    ("now", "is_due"),
    [
        pytest.param(pie("B1", output=0.5), False, id="nothing has changed"),
        pytest.param(pie("B1", output=0.52), False, id="the output by 0.02"),
        pytest.param(pie("B1", output=0.53), True, id="the output by 0.03"),
        pytest.param(pie("B1", output=0.5, input=0.03), True, id="the input by 0.03"),
        pytest.param(pie("B1", output=0.5, match_s=0.012), False, id="the delay by 2% of Nf"),
        pytest.param(pie("B1", output=0.5, match_s=0.013), True, id="the delay by 3% of Nf"),
        pytest.param(
            pie("B1", output=0.5, status=LoadStatus.BUSY), True, id="the status has changed"
        ),
        pytest.param(pie("B1", output=0.5, balanced=("B2",)), False, id="the balanced set"),
    ],
)
def test_the_rule(now: Pie, is_due: bool) -> None:
    rule = PieRule(SETTINGS)
    rule.published(pie("B1", output=0.5))
    assert rule.is_due(now) is is_due
    assert rule.has_news(now) is (now.status is LoadStatus.BUSY)


def test_the_balanced_set_is_news_in_a_global_session() -> None:
    rule = PieRule(SETTINGS)
    rule.published(pie("B1", output=0.5))
    assert not rule.is_due(pie("B1", output=0.5), with_balanced_set=True)
    assert rule.is_due(pie("B1", output=0.5, balanced=("B2",)), with_balanced_set=True)


def test_a_constant_load_is_published_every_fifth_period() -> None:
    """E5."""
    rule, constant = PieRule(SETTINGS), pie("B1", output=0.5)
    due = []
    for period in range(12):
        if rule.is_due(constant):
            due.append(period)
            rule.published(constant)
    assert due == [0, 5, 10]


def test_a_broker_that_is_silent_is_forgotten() -> None:
    known = KnownBrokers(period_s=30.0, settings=SETTINGS)
    assert known.hear(pie("B2"), 0.0)
    assert not known.hear(pie("B2", output=0.5), 60.0)
    known.drop_expired(60.0 + 7 * 30.0)
    assert [each.values.output for each in known] == [0.5]
    known.drop_expired(60.0 + 7 * 30.0 + 1.0)
    assert len(known) == 0


def test_brokers_are_known_by_cluster() -> None:
    known = KnownBrokers(period_s=30.0, settings=SETTINGS)
    for each in (pie("B3"), pie("B2"), pie("B21", cluster="B20")):
        known.hear(each, 0.0)
    assert [each.broker for each in known.of_cluster("B0")] == ["B2", "B3"]
    known.forget_cluster("B0")
    assert [each.broker for each in known] == ["B21"]
