"""Who is known, who is there, and where a newcomer goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.coordinator.scenes import QUICK, broker_at, coordinator, report

from godwit.api import coordinator_api
from godwit.content.geography import GeoPoint
from godwit.coordinator.broker_records import Memory
from godwit.coordinator.coordinator_core import Coordinator
from godwit.errors import UsageError
from godwit.http.errors import RestError
from godwit.policies.staged.initial import Placement

HELSINKI = GeoPoint(60.17, 24.94)
TURKU = GeoPoint(60.45, 22.27)
ESPOO = GeoPoint(60.21, 24.66)
SYDNEY = GeoPoint(-33.87, 151.21)


def placing(placement: Placement, **brokers: dict[str, Any]) -> Coordinator:
    """A coordinator with some brokers, B1 and so on."""
    core = coordinator(0, msgspec.structs.replace(QUICK, placement=placement))
    for name, fields in brokers.items():
        core.register_broker(broker_at(int(name[1:]), **fields), 0.0)
    return core


def ask(
    core: Coordinator,
    user: str = "u",
    location: GeoPoint | None = None,
    now_s: float = 1.0,
) -> str:
    core.register_user(coordinator_api.RegisterUser(user))
    return core.request_broker(coordinator_api.RequestBroker(user, location), now_s).broker


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        pytest.param(ESPOO, "B1", id="Helsinki is nearer to Espoo"),
        pytest.param(TURKU, "B2", id="Turku is nearest to itself"),
        pytest.param(SYDNEY, "B3", id="a broker without a location is nobody's nearest"),
    ],
)
def test_nearest(user: GeoPoint, expected: str) -> None:
    core = placing(
        Placement.NEAREST,
        B1={"location": HELSINKI},
        B2={"location": TURKU},
        B3={"location": GeoPoint(-30.0, 140.0)},
        B4={},
    )
    assert ask(core, location=user) == expected


def test_where_nobody_knows_what_is_near_they_take_turns() -> None:
    core = placing(Placement.NEAREST, B1={"location": HELSINKI}, B2={})
    assert [ask(core, f"u{n}") for n in range(4)] == ["B1", "B2", "B1", "B2"]


def test_the_location_of_a_registration_is_remembered() -> None:
    core = placing(Placement.NEAREST, B1={"location": HELSINKI}, B2={"location": SYDNEY})
    core.register_user(coordinator_api.RegisterUser("u", SYDNEY))
    assert core.request_broker(coordinator_api.RequestBroker("u"), 1.0).broker == "B2"
    assert core.request_broker(coordinator_api.RequestBroker("u", ESPOO), 1.0).broker == "B1"
    assert core.request_broker(coordinator_api.RequestBroker("u"), 1.0).broker == "B1"


def test_round_robin_goes_on_after_a_restart() -> None:
    core = placing(Placement.ROUND_ROBIN, B1={}, B2={}, B3={})
    assert [ask(core, f"u{n}") for n in range(4)] == ["B1", "B2", "B3", "B1"]
    again = coordinator(0, core.settings, core.memory)
    assert [ask(again, f"v{n}") for n in range(2)] == ["B2", "B3"]


def test_at_random_everybody_gets_some() -> None:
    core = placing(Placement.RANDOM, B1={}, B2={}, B3={})
    counts = Counter(ask(core, f"u{n}") for n in range(300))
    assert set(counts) == {"B1", "B2", "B3"}
    assert min(counts.values()) > 60


def test_a_burst_of_newcomers_all_get_the_least_loaded_broker() -> None:
    """B12 of the paper: nobody of them has subscribed yet, so the loads do not change."""
    core = placing(Placement.LEAST_LOADED, B1={}, B2={})
    core.report(report("B1", ["s1", "s2"]), 0.5)
    core.report(report("B2", ["s3"]), 0.5)
    assert {ask(core, f"u{n}") for n in range(20)} == {"B2"}


def test_who_is_at_a_broker_is_sent_back_there() -> None:
    core = placing(Placement.ROUND_ROBIN, B1={}, B2={})
    core.report(report("B2", ["s1"]), 0.5)
    assert [ask(core, "s1") for _ in range(3)] == ["B2"] * 3
    assert ask(core, "u") == "B1", "that was nobody's turn"
    core.report(report("B2", []), 0.6)
    assert ask(core, "s1") == "B2", "its turn"
    assert ask(core, "s1") == "B1"


def test_a_silent_broker_is_nobodys_answer() -> None:
    core = placing(Placement.ROUND_ROBIN, B1={}, B2={})
    core.report(report("B2"), 29.0)
    assert {ask(core, f"u{n}", now_s=29.9) for n in range(4)} == {"B1", "B2"}
    assert {ask(core, f"v{n}", now_s=30.0) for n in range(4)} == {"B2"}
    with pytest.raises(RestError, match="there is no live broker") as refused:
        ask(core, now_s=59.0)
    assert (refused.value.status, refused.value.retry_after_s) == (503, 10.0)
    core.register_broker(broker_at(1), 60.0)
    assert ask(core, now_s=60.0) == "B1"


def test_after_a_restart_brokers_have_time_to_report() -> None:
    core = placing(Placement.ROUND_ROBIN, B1={})
    again = coordinator(0, core.settings, core.memory, now_s=1000.0)
    assert ask(again, now_s=1029.0) == "B1"
    with pytest.raises(RestError):
        ask(again, now_s=1030.0)


@pytest.mark.parametrize(
    ("ask_for", "status"),
    [
        pytest.param(
            lambda core: core.request_broker(coordinator_api.RequestBroker("nobody"), 1.0), 404,
            id="a user that is not registered",
        ),
        pytest.param(
            lambda core: core.report(report("B9"), 1.0), 404, id="a broker that is not registered"
        ),
        pytest.param(
            lambda core: core.register_broker(
                coordinator_api.RegisterBroker("B9", "godwit://127.0.0.1:1"), 1.0
            ),
            409,
            id="a place that is taken",
        ),
    ],
)  # fmt: skip
def test_refusals(ask_for: Callable[[Coordinator], object], status: int) -> None:
    core = coordinator(1)
    with pytest.raises(RestError) as refused:
        ask_for(core)
    assert refused.value.status == status
    assert refused.value.where


@pytest.mark.parametrize(
    "fields", [{"url": "http://a:1"}, {"url": "godwit://a"}, {"http": "a:1"}, {"http": "godwit://a:1"}]
)  # fmt: skip
def test_addresses_are_checked(fields: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"is not (an|the) address.*: write"):
        coordinator(0).register_broker(msgspec.structs.replace(broker_at(1), **fields), 0.0)


def test_the_place_of_a_broker_that_is_gone_can_be_taken() -> None:
    core = coordinator(1)
    core.register_broker(coordinator_api.RegisterBroker("B9", "godwit://127.0.0.1:1"), 31.0)
    assert core.registry.live(31.0) == ["B9"]


def test_registering_again_changes_nothing_but_what_has_changed() -> None:
    core = coordinator(1)
    core.register_user(coordinator_api.RegisterUser("u", TURKU))
    core.take_changes()
    core.register_broker(broker_at(1), 1.0)
    core.register_user(coordinator_api.RegisterUser("u"))
    core.register_user(coordinator_api.RegisterUser("u", TURKU))
    assert core.take_changes() == []
    core.register_broker(broker_at(1, http=None), 1.0)
    core.register_user(coordinator_api.RegisterUser("u", ESPOO))
    changes = core.take_changes()
    assert len(changes) == 2
    memory = Memory()
    for change in changes:
        memory.apply(change)
    assert memory.brokers["B1"].http is None
    assert memory.users["u"].location == ESPOO
