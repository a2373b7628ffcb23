"""When a plan is carried out without being asked for: autoscale_rule.py, autoscaling.py."""

from __future__ import annotations

import asyncio
from random import Random

import msgspec
import pytest

from godwit.api.network_api import ChangeRequest, ChangeState, ChangeStep, NetworkChange, StepKind
from godwit.api.plan_requests import PlanToApply
from godwit.coordinator import autoscaling
from godwit.coordinator.autoscale_rule import (
    AutoscaleSettings,
    ScaleNow,
    ScalePlan,
    verdict,
)
from godwit.coordinator.autoscaling import Autoscaler, at_least, loaded, with_spare
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.settings import CoordinatorSettings
from godwit.errors import UnreachableError, UsageError
from godwit.policies.allocation.gathered import Gathered, GatheredBroker

SETTINGS = AutoscaleSettings(fewest=2, most=8, hold_s=100.0, gain=0.25)
NOW = ScaleNow(brokers=4, input_per_s=1_000.0, unchanged_s=200.0)
YOUNG = ScaleNow(brokers=4, input_per_s=1_000.0, unchanged_s=40.0)


@pytest.mark.parametrize(
    ("now", "plan", "applies", "why"),
    [
        (NOW, ScalePlan(3, 1_000.0), True, "25% of 4 brokers can be saved"),
        (YOUNG, ScalePlan(2, 1.0), False, "in 60 s"),
        (YOUNG, ScalePlan(5, 9_000.0), True, "the load needs 5 brokers, and 4 run"),
        (NOW, ScalePlan(9, 9_000.0), False, "needs 9 brokers, and 8 are allowed"),
        (NOW, ScalePlan(4, 700.0), True, "30% of the traffic can be saved"),
        (NOW, ScalePlan(4, 800.0), False, "only 20% of the traffic"),
        (NOW, ScalePlan(4, 2_000.0), False, "only 0% of the traffic"),
        (NOW, ScalePlan(3, 1.0, changes=False), False, "the network is as planned"),
        (ScaleNow(4, 0.0, 200.0), ScalePlan(4, 0.0), False, "only 0%"),
        (ScaleNow(6, 1.0, 200.0), ScalePlan(5, 1.0), False, "only 17% of 6 brokers"),
    ],
)
def test_the_rule(now: ScaleNow, plan: ScalePlan, applies: bool, why: str) -> None:
    found = verdict(now, plan, SETTINGS)
    assert found.applies is applies
    assert why in found.why


def test_settings_that_cannot_be_met_are_refused() -> None:
    with pytest.raises(UsageError, match="fewest"):
        AutoscaleSettings(fewest=3, most=2)
    with pytest.raises(UsageError, match="algorithm"):
        AutoscaleSettings(algorithm="best")


def test_as_many_brokers_run_as_must() -> None:
    plan = PlanToApply(links=[("B2", "B1")], root="B1")
    settings = AutoscaleSettings(fewest=3)
    assert at_least(plan, ["B1", "B2", "B3", "B4"], settings).used == ["B1", "B2", "B3"]
    assert at_least(plan, ["B1", "B2"], settings).used == ["B1", "B2"], "none is started for that"


def gathered_broker(id: str, bandwidth: float) -> GatheredBroker:
    return GatheredBroker(
        id=id,
        output_bandwidth_bytes_s=bandwidth,
        matching_delay_base_s=1e-4,
        matching_delay_per_subscription_s=1e-6,
    )


GATHERED = Gathered(
    publishers=(),
    brokers=(gathered_broker("B1", 100.0), gathered_broker("B2", 300.0)),
    subscriptions=(),
)


def test_brokers_that_can_be_started_are_planned_with() -> None:
    known = {"B3": gathered_broker("B3", 7.0)}
    found = with_spare(GATHERED, known, ["B2", "B3", "B4"])
    bandwidths = {each.id: each.output_bandwidth_bytes_s for each in found.brokers}
    assert bandwidths == {"B1": 100.0, "B2": 300.0, "B3": 7.0, "B4": 200.0}
    halved = loaded(found, 0.5)
    assert [each.output_bandwidth_bytes_s for each in halved.brokers] == [50.0, 150.0, 3.5, 100.0]


def test_without_an_answer_nothing_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(*_args: object, **_options: object) -> None:
        raise UnreachableError("no answer")

    async def refuses(_request: ChangeRequest) -> NetworkChange:
        raise AssertionError("nothing is asked for")

    monkeypatch.setattr(autoscaling, "gather", silent)
    settings = CoordinatorSettings(autoscale=AutoscaleSettings())
    core = Coordinator(settings, random=Random(1), now_s=0.0)
    assert core.says["autoscale"] == "no decision yet"
    scaler = Autoscaler(core, refuses, AutoscaleSettings())
    asyncio.run(scaler.look())
    assert core.says["autoscale"] == "no decision: no broker that runs has `http`"
    assert core.network(1.0).autoscale == core.says["autoscale"]


def test_a_plan_changes_nothing_if_no_client_would_move() -> None:
    core = Coordinator(CoordinatorSettings(), random=Random(1), now_s=0.0)
    assert core.says["autoscale"] == ""
    step = ChangeStep(kind=StepKind.MOVE, broker="the network")
    proposed = NetworkChange(
        number=0,
        request=ChangeRequest(kind="allocate", brokers=["B1"]),  # type: ignore[arg-type]
        state=ChangeState.PROPOSED,
        authority=core.authority,
        asked_s=0.0,
        steps=[step],
    )
    assert not autoscaling.changes_something(proposed)
    moves = msgspec.structs.replace(proposed, steps=[msgspec.structs.replace(step, clients=1)])
    assert autoscaling.changes_something(moves)
