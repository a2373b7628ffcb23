"""What a simulation takes from measurements."""

from __future__ import annotations

import msgspec
import pytest
from tests.rehearsal.scenes import MEASURED, PER_S, SAMPLE_S, publisher, snapshot

from godwit.policies.allocation.gathered import Gathered, GatheredPublisher
from godwit.rehearsal.calibration import (
    copy_costs,
    latency,
    measured_delays,
    profile_rates,
)
from godwit.rehearsal.network_snapshot import DelayFigures, LoadReading

WEIGHTS = {"B1": 10.0, "B2": 10.0, "B3": 10.0}


def test_the_cost_of_a_copy_is_the_slope_of_a_line() -> None:
    copies = {"B1": 1.0, "B2": 2.0, "B3": 5.0}
    delays_s = {name: 0.001 + 0.0002 * count for name, count in copies.items()}
    found = copy_costs(delays_s, copies, WEIGHTS)
    assert found.base_s == pytest.approx(0.001)
    assert found.per_copy_s == pytest.approx(0.0002)
    assert found.matching_delay_s("B1", 10.0) == pytest.approx(0.003)


def test_a_broker_keeps_its_factor() -> None:
    copies = {"B1": 1.0, "B2": 2.0, "B3": 5.0, "B4": 2.0}
    delays_s = {name: 0.001 + 0.0002 * count for name, count in copies.items()}
    delays_s["B4"] *= 3.0
    found = copy_costs(delays_s, copies, {**WEIGHTS, "B4": 1e-9})  # A slow machine.
    assert found.matching_delay_s("B4", 2.0) == pytest.approx(delays_s["B4"])
    assert found.matching_delay_s("B4", 7.0) == pytest.approx(3.0 * (0.001 + 0.0014), rel=1e-6)


@pytest.mark.parametrize(
    ("copies", "delays_s"),
    [
        ({"B1": 1.0, "B2": 9.0}, {"B1": 0.001, "B2": 0.002}),
        ({"B1": 1.0, "B2": 2.0, "B3": 3.0}, {"B1": 0.003, "B2": 0.002, "B3": 0.001}),
        ({"B1": 2.0, "B2": 2.0, "B3": 2.0}, {"B1": 0.003, "B2": 0.002, "B3": 0.001}),
    ],
    ids=["too few brokers", "a falling line", "equal copies"],
)
def test_otherwise_the_measured_delay_stays(
    copies: dict[str, float], delays_s: dict[str, float]
) -> None:
    found = copy_costs(delays_s, copies, WEIGHTS)
    for name, delay_s in delays_s.items():
        assert found.matching_delay_s(name, 100.0) == pytest.approx(delay_s)


def test_the_latency_is_what_is_left_for_each_link_and_connection() -> None:
    measured = DelayFigures(mean=0.011, p10=0.007, p50=0.010, p99=0.1)
    simulated = DelayFigures(mean=0.002, p10=0.001, p50=0.002, p99=0.003)
    found = latency(measured, simulated, hops=2.0)
    assert found.latency_s_mean == pytest.approx(0.003)
    assert found.latency_s_min == pytest.approx(0.002)


def test_brokers_that_take_longer_than_measured_leave_no_latency() -> None:
    found = latency(DelayFigures(mean=0.001), DelayFigures(mean=0.002), hops=1.0)
    assert (found.latency_s_min, found.latency_s_mean) == (0.0, 0.0)


def test_a_broker_without_messages_is_as_fast_as_the_others() -> None:
    brokers = {**MEASURED.brokers, "B3": LoadReading()}
    first = msgspec.structs.replace(MEASURED, brokers=brokers)
    assert measured_delays(snapshot(first=first)) == {"B1": 0.001, "B2": 0.001, "B3": 0.001}


@pytest.mark.parametrize(("per_s", "is_used"), [(2.0, True), (PER_S, False)])
def test_a_profile_gives_the_rate_of_publishers_with_few_publications(
    per_s: float, is_used: bool
) -> None:
    gathered = Gathered(
        publishers=(
            GatheredPublisher(
                id="paul/17", client="paul", rate_per_s=3.0, bandwidth_bytes_s=1.0, last_id=9
            ),
        ),
        brokers=(),
        subscriptions=(),
    )
    scene = snapshot([publisher("paul", "B1", per_s=per_s)])
    scene = msgspec.structs.replace(scene, profiles=gathered)
    sampled = round(per_s * SAMPLE_S)
    expected = {"paul": pytest.approx(3.0 * SAMPLE_S / sampled)} if is_used else {}
    assert profile_rates(scene) == expected
