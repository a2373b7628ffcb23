"""Other work on the brokers' machines: CPU speed and bandwidth vary around what they should be.

    disturb(simulator, Disturbance(cpu_sd=0.05, output_sd=0.05), seed=1)

Every few seconds each broker gets another factor for its CPU and another for its bandwidth, drawn
independently, log-normal with a mean of 1.  A broker does not know: its meters and modules keep
the nominal bandwidth, and measure the rest.  The thesis (7.1.2) has such disturbances on its
cluster (garbage collection, other processes) and more of them on PlanetLab.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from godwit.errors import UsageError
from godwit.simulation.resources import BrokerResources
from godwit.simulation.simulator import Simulator


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    cpu_sd: float
    """Standard deviation of the logarithm of the factor for the CPU."""

    output_sd: float
    """... of the factor for the bandwidth."""

    every_s: float = 10.0

    def __post_init__(self) -> None:
        if self.cpu_sd < 0 or self.output_sd < 0 or self.every_s <= 0:
            raise UsageError(f"{self}: deviations must not be below 0, and every_s above 0")


def disturb(simulator: Simulator, disturbance: Disturbance, *, seed: int) -> None:
    """Disturb all brokers from now on."""
    nominal = {name: node.resources for name, node in simulator.brokers.items()}
    _change(simulator, disturbance, nominal, Random(f"disturbance {seed}"))


def _change(
    simulator: Simulator,
    disturbance: Disturbance,
    nominal: dict[str, BrokerResources],
    random: Random,
) -> None:
    for name, resources in nominal.items():
        simulator.brokers[name].vary(
            replace(
                resources,
                cpu_speed=resources.cpu_speed * _factor(random, disturbance.cpu_sd),
                output_bandwidth_bytes_s=resources.output_bandwidth_bytes_s
                * _factor(random, disturbance.output_sd),
            )
        )
    then_s = simulator.now_s + disturbance.every_s
    simulator.at(then_s, _change, simulator, disturbance, nominal, random)


def _factor(random: Random, sd: float) -> float:
    return random.lognormvariate(-sd * sd / 2, sd)
