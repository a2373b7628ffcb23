"""A disturbed broker is slower or faster from period to period, and does not know why."""

from __future__ import annotations

from statistics import mean, stdev

import pytest

from godwit.content.filters import Filter
from godwit.errors import UsageError
from godwit.overlay.topology import chain
from godwit.simulation.disturbance import Disturbance, disturb
from godwit.simulation.resources import BrokerResources
from godwit.simulation.simulator import Simulator

RESOURCES = BrokerResources(
    cpu_speed=100.0, matching_work_base=1.0, output_bandwidth_bytes_s=10_000.0
)


def readings(
    *, seed: int, cpu_sd: float, output_sd: float, periods: int
) -> list[tuple[float, ...]]:
    simulator = Simulator(chain(2), seed=1, resources=RESOURCES)
    disturb(simulator, Disturbance(cpu_sd=cpu_sd, output_sd=output_sd), seed=seed)
    found = []
    for period in range(periods):
        simulator.run(until_s=10.0 * period + 5.0)
        nodes = [simulator.brokers[name].resources for name in simulator.topology.brokers]
        found.append(
            tuple(x for each in nodes for x in (each.cpu_speed, each.output_bandwidth_bytes_s))
        )
    return found


def test_factors_have_the_mean_and_the_spread_that_were_asked_for() -> None:
    found = readings(seed=1, cpu_sd=0.1, output_sd=0.2, periods=4000)

    cpu, output = [row[0] for row in found], [row[1] for row in found]
    assert mean(cpu) == pytest.approx(100.0, rel=0.01)
    assert mean(output) == pytest.approx(10_000.0, rel=0.01)
    assert stdev(cpu) == pytest.approx(10.0, rel=0.05)
    assert stdev(output) == pytest.approx(2_000.0, rel=0.05)


def test_brokers_are_disturbed_independently_and_the_seed_decides() -> None:
    one = readings(seed=1, cpu_sd=0.1, output_sd=0.1, periods=3)

    assert len({value / 100 for row in one for value in row}) == 12
    assert readings(seed=1, cpu_sd=0.1, output_sd=0.1, periods=3) == one
    assert readings(seed=2, cpu_sd=0.1, output_sd=0.1, periods=3) != one


def test_nothing_varies_without_deviation() -> None:
    assert set(readings(seed=1, cpu_sd=0.0, output_sd=0.0, periods=3)) == {
        (100.0, 10_000.0, 100.0, 10_000.0)
    }


def test_the_meters_see_a_longer_busy_time_and_the_nominal_bandwidth() -> None:
    def load(factor: float) -> tuple[float, float, float]:
        simulator = Simulator(chain(1), seed=1, resources=RESOURCES)
        node = simulator.brokers["B1"]
        node.vary(
            BrokerResources(
                cpu_speed=100.0 * factor,
                matching_work_base=1.0,
                output_bandwidth_bytes_s=10_000.0 * factor,
            )
        )
        alice, bob = (simulator.client(name, at="B1") for name in ("alice", "bob"))
        advertisement = alice.advertise(Filter.parse("x is present"))
        bob.subscribe(Filter.parse("x > 0"))
        for second in range(1, 9):
            simulator.at(float(second), alice.publish, advertisement, {"x": second})
        simulator.run(until_s=10.5)
        found = node.broker.meters.load(10.5)
        assert node.broker.meters.output_bandwidth_bytes_s == 10_000.0
        return found.output_utilisation, found.matching_delay_s, found.bytes_out_per_s

    half, full = load(0.5), load(1.0)

    assert half[0] == pytest.approx(2 * full[0])
    assert half[1] == pytest.approx(2 * full[1])
    assert half[2] == full[2] > 0


@pytest.mark.parametrize(("cpu_sd", "output_sd", "every_s"), [(-1, 0, 1), (0, -1, 1), (0, 0, 0)])
def test_impossible_disturbances_are_refused(
    cpu_sd: float, output_sd: float, every_s: float
) -> None:
    with pytest.raises(UsageError, match="deviations must not be below 0"):
        Disturbance(cpu_sd=cpu_sd, output_sd=output_sd, every_s=every_s)
