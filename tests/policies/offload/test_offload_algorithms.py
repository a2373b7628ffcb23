"""What holds for every plan: it improves, it respects limits, it comes from traffic."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from random import Random

import pytest
from tests.policies.offload.scenes import (
    Instance,
    info,
    plan,
    publication,
    random_instance,
    sample,
    sampled,
    subscriptions,
)

from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.press import Press
from godwit.policies.offload.report_cards import NOTHING_SAMPLED, OffloadPlan
from godwit.policies.offload.settings import BalancingSettings

EVERY_ACTION = pytest.mark.parametrize("action", OffloadAction, ids=lambda action: action.value)

LOADED = info("B1", ir=9, n=90, m=1e-3, b=0.001, ou=8000, ot=10_000)
IDLE = info("B2", ir=0, n=0, m=1e-3, b=0.001, ou=0, ot=10_000)


def rough(case: Instance, seed: int) -> Instance:
    """The same with figures that need rounding."""
    random = Random(seed)

    def shaken(broker: BrokerInfo) -> BrokerInfo:
        return replace(
            broker,
            input_per_s=broker.input_per_s * random.uniform(0.8, 1.2),
            output_used_bytes_s=broker.output_used_bytes_s * random.uniform(0.8, 1.2),
            memory_per_subscription=broker.memory_per_subscription * random.uniform(0.8, 1.2),
        )

    return replace(case, local=shaken(case.local), remote=shaken(case.remote))


def metric(case: Instance, broker: BrokerInfo) -> float:
    match case.action:
        case OffloadAction.INPUT:
            return broker.input_utilisation
        case OffloadAction.MATCH:
            return broker.matching_delay_s / case.settings.delay_normalization_s
        case OffloadAction.OUTPUT:
            return broker.output_utilisation


def check(case: Instance, found: OffloadPlan) -> None:
    before = metric(case, case.local) - metric(case, case.remote)
    after = metric(case, found.local_after) - metric(case, found.remote_after)
    assert found.difference_before == pytest.approx(before)
    assert found.difference_after == pytest.approx(after)
    movable = [c for profile in case.sampled.groups for c in profile.group.clients]
    assert len(set(found.clients)) == len(found.clients)
    assert set(found.clients) <= set(movable)
    if found.clients:
        assert abs(found.difference_after) < abs(found.difference_before), "L39"
        assert found.remote_after.input_utilisation <= 0.9
        assert found.remote_after.output_utilisation <= 0.9
        assert found.remote_after.memory_utilisation <= 0.9
    else:
        assert (found.local_after, found.remote_after) == (case.local, case.remote)


@EVERY_ACTION
def test_each_plan_improves_and_respects_the_limits(action: OffloadAction) -> None:
    moved = 0
    for seed in range(150):
        case = rough(random_instance(seed, action), seed)
        found = case.plan()
        try:
            check(case, found)
        except AssertionError as problem:
            raise AssertionError(f"seed {seed}: {problem}") from problem
        moved += bool(found.clients)
    assert moved > 50


@EVERY_ACTION
def test_the_same_arguments_give_the_same_plan(action: OffloadAction) -> None:
    for seed in range(20):
        assert random_instance(seed, action).plan() == random_instance(seed, action).plan()


@EVERY_ACTION
def test_nothing_sampled(action: OffloadAction) -> None:
    press = Press(subscriptions({"a": "x > 1"}), (), samples_max=50, now_s=0.0)

    found = plan(action, LOADED, IDLE, press.result(30.0))

    assert found.clients == ()
    assert found.reason == NOTHING_SAMPLED
    assert (found.local_after, found.remote_after) == (LOADED, IDLE)


@EVERY_ACTION
def test_without_clients_there_is_nothing_to_move(action: OffloadAction) -> None:
    found = plan(action, LOADED, IDLE, sampled({"a": (2, "0001")}, staying=["a0", "a1"]))

    assert found.clients == ()
    assert found.reason == "no step improves the balance"


@EVERY_ACTION
def test_balanced_brokers_are_left_alone(action: OffloadAction) -> None:
    found = plan(action, LOADED, replace(LOADED, broker="B2"), sampled({"a": (9, "0001")}))

    assert found.clients == ()
    assert found.reason == "balanced"


def test_plans_follow_the_traffic_and_not_the_filters() -> None:
    """The same filters; the stream shifts from low to high volumes, and so does the choice."""
    held = subscriptions({"low": "volume < 50", "high": "volume >= 50"})
    css = ()
    local = info("B1", ir=10, n=2, ou=1000, ot=2000)
    remote = info("B2", ir=0, n=0, ou=600, ot=2000)
    chosen = []
    for volumes in ([1, 2, 3, 4, 5, 6, 7, 8, 60, 70], [1, 2, 60, 61, 62, 63, 64, 65, 66, 67]):
        stream = [publication({"volume": v}, n) for n, v in enumerate(volumes)]
        samples = sample(held, css, stream, seconds=1.0)
        chosen.append(plan(OffloadAction.OUTPUT, local, remote, samples).clients)

    assert chosen == [("high",), ("low",)]


def test_what_the_acceptor_has_follows_the_traffic_too() -> None:
    """Its filter covers neither group, but matches all samples of one of them."""
    held = subscriptions({"x": "x > 5", "y": "y > 5"})
    (css,) = [s.filter for s in subscriptions({"css": "x > 5 and z > 0"})]
    stream = [publication({"x": 9, "y": 0, "z": 1}, 0), publication({"x": 0, "y": 9, "z": 1}, 1)]
    samples = sample(held, [css], stream, seconds=1.0)
    # Inputs are balanced, so that only phase I may move something.
    local = info("B1", ir=2, n=2, b=0.2, ou=1000, ot=2000)
    remote = info("B2", ir=2, n=2, b=0.2, ou=0, ot=2000)

    assert plan(OffloadAction.OUTPUT, local, remote, samples, css=[css]).clients == ("x",)


def test_the_offloaders_average_input_is_what_samples_are_parts_of() -> None:
    """Half of 20/s, although only 2/s came during the sampling."""
    samples = sampled({"a": (1, "01"), "b": (1, "10")}, seconds=1.0)
    local, remote = info("B1", ir=20, n=2, b=0.01), info("B2", b=0.01)

    found = plan(OffloadAction.INPUT, local, remote, samples)

    assert found.local_after.input_per_s == 10.0
    assert found.remote_after.input_per_s == 10.0


def test_an_unlimited_output_never_needs_an_offload() -> None:
    local, remote = replace(LOADED, output_total_bytes_s=inf), IDLE

    found = plan(OffloadAction.OUTPUT, local, remote, sampled({"a": (9, "0001")}))

    assert found.reason == "balanced"


def test_a_larger_balance_threshold_moves_less() -> None:
    samples = sampled({chr(97 + n): (1, format(1 << n, "016b")) for n in range(16)})
    local = info("B1", ir=16, n=16, ou=1600, ot=2000)
    remote = info("B2", ou=0, ot=2000)
    moved = [
        len(
            plan(
                OffloadAction.OUTPUT,
                local,
                remote,
                samples,
                settings=BalancingSettings(balance_threshold=threshold),
            ).clients
        )
        for threshold in (0.005, 0.31, 0.9)
    ]

    assert moved == [8, 5, 0]
