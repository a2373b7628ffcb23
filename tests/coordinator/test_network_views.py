"""The network as it is shown, from what brokers say: network_views.py, coordinator_core.py."""

from __future__ import annotations

import msgspec
import pytest
from tests.coordinator.scenes import coordinator, report
from tests.coordinator.test_change_rules import account

from godwit.api.network_api import (
    Authority,
    BrokerAccount,
    ChangeKind,
    ChangeRequest,
    LinkView,
    NetworkLink,
)
from godwit.api.network_views import Known, network_view, state_of
from godwit.coordinator.coordinator_core import Coordinator


def linked(broker: str, **links: str) -> BrokerAccount:
    shown = [LinkView(name, status) for name, status in links.items()]
    return msgspec.structs.replace(account(broker), links=shown)


@pytest.mark.parametrize(
    ("one", "other", "status"),
    [
        ("up", "up", "up"),
        ("up", "away", "away"),
        ("pending", "up", "pending"),
        ("expected", "given up", "given up"),
        ("something new", "up", "something new"),
    ],
)
def test_of_two_ends_the_one_that_is_further_from_up_counts(
    one: str, other: str, status: str
) -> None:
    known = {"B1": Known(linked("B1", B2=one)), "B2": Known(linked("B2", B1=other))}
    assert network_view(known).links == [NetworkLink("B1", "B2", status)]


def test_a_silent_broker_has_no_say() -> None:
    known = {
        "B1": Known(linked("B1", B2="away")),
        "B2": Known(linked("B2", B1="up"), age_s=99.0, is_live=False),
    }
    view = network_view(known)
    assert view.links == [NetworkLink("B1", "B2", "away")]
    assert view.missing == ["B2 (silent)"]


@pytest.mark.parametrize(
    ("known", "is_joining", "state"),
    [
        (Known(account("B1")), False, "serving"),
        (Known(account("B1", is_draining=True)), False, "draining"),
        (Known(account("B1", is_ready=False)), False, "not ready"),
        (Known(account("B1")), True, "joining"),
        (Known(account("B1"), is_live=False), False, "silent"),
        (Known(None), False, "unknown"),
    ],
)
def test_the_state_of_a_broker(known: Known, is_joining: bool, state: str) -> None:
    assert state_of(known, is_joining=is_joining) == state


def heard(core: Coordinator, *accounts: BrokerAccount, now_s: float) -> None:
    for each in accounts:
        core.report(msgspec.structs.replace(report(each.broker), account=each), now_s)


def test_the_coordinator_knows_what_brokers_report() -> None:
    core = coordinator(2)
    heard(core, linked("B1", B2="up"), linked("B2", B1="up"), now_s=1.0)
    view = core.network(3.0)
    assert [(b.broker, b.state, b.age_s) for b in view.brokers] == [
        ("B1", "serving", 2.0), ("B2", "serving", 2.0),
    ]  # fmt: skip
    assert view.links == [NetworkLink("B1", "B2", "up")]
    assert view.authority == core.authority


def test_newcomers_and_plans_avoid_brokers_that_are_drained_or_join() -> None:
    core = coordinator(3)
    heard(core, account("B1", is_draining=True), account("B2"), account("B3"), now_s=1.0)
    assert core.registry.open(2.0) == ["B2", "B3"]
    request = ChangeRequest(kind=ChangeKind.JOIN, brokers=["B3"], link="B2")
    core.changes.begin(request, core.authority, 2.0, before={}, expected={})
    assert core.registry.open(2.0) == ["B2"]
    assert core.due(100.0) is None, "no plan while the network changes"
    assert "change 1 of the network is running" in core.plan().says


def test_a_restart_is_another_run_and_a_take_over_another_number() -> None:
    first = coordinator(1)
    second = coordinator(1, memory=first.memory)
    assert first.authority.yields_to(second.authority)
    assert second.authority == msgspec.structs.replace(first.authority, run=2)
    seen = msgspec.structs.replace(second.authority, number=17)
    heard(second, account("B1", authority=seen), now_s=1.0)
    second.take_over()
    assert second.authority.number == 18
    third = coordinator(1, memory=second.memory).authority
    assert (third.number, third.run) == (18, 3), "it is persistent"
    assert not third.yields_to(seen)
    assert second.authority.yields_to(third)


@pytest.mark.parametrize(
    ("own", "seen", "yields"),
    [
        pytest.param(Authority(1, "a"), None, False, id="nothing was seen"),
        pytest.param(Authority(1, "a"), Authority(1, "a"), False, id="itself"),
        pytest.param(Authority(1, "a", 9), Authority(2, "b", 1), True, id="a lower number"),
        pytest.param(Authority(2, "b", 1), Authority(1, "a", 9), False, id="a higher number"),
        pytest.param(Authority(1, "b", 9), Authority(1, "a", 1), True, id="the same, another one"),
        pytest.param(Authority(1, "a", 1), Authority(1, "a", 2), True, id="an earlier run"),
        pytest.param(Authority(1, "a", 3), Authority(1, "a", 2), False, id="a later run"),
    ],
)
def test_who_yields_to_whom(own: Authority, seen: Authority | None, yields: bool) -> None:
    assert own.yields_to(seen) is yields
