"""How `broker-model` is run: one broker under a load.

A case has the slower one of the two servers (`bottleneck`), how publications arrive (`arrivals`:
poisson or even), and the load of the slower server (`rho`).

Service times are constant: the tables do not change during the measurement, and all publications
have one size and go to the same two clients.  Links take no time; they would shift all arrivals and
change no wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from godwit.broker.meters import WINDOW_S
from godwit.content.filters import Filter
from godwit.content.messages import HEADER_BYTES, body_bytes
from godwit.content.values import Value
from godwit.experiments.watched import run_watched
from godwit.lab.declaration import Case
from godwit.overlay.topology import chain
from godwit.simulation.observers import Observer
from godwit.simulation.resources import BrokerResources, LinkOptions
from godwit.simulation.simulated_client import SimulatedClient
from godwit.simulation.simulator import Simulator

#: Service time of the slower server.
SERVICE_S = 0.001
#: Service times of matching engine and output, as parts of SERVICE_S.
SERVICES = {"matching": (1.0, 0.5), "both": (0.5, 1.0), "output": (0.001, 1.0)}

SUBSCRIPTIONS = 100
CLIENTS = ("wants-1", "wants-2")
CONTENT: dict[str, Value] = {"class": "QUOTE", "price": 1.0}
ANNOUNCED = Filter.parse("class = 'QUOTE' and price is present")
ELSEWHERE = Filter.parse("class = 'OTHER'")

#: Publishing starts after the subscriptions, with a window of the meters.
PUBLISH_FROM_S = WINDOW_S
#: Ten thousand service times more; a queue at 0.95 needs less than a tenth to become stationary.
WARM_S = PUBLISH_FROM_S + WINDOW_S
GAUGES_EVERY_S = 10 * SERVICE_S


@dataclass(frozen=True, slots=True)
class Setting:
    """A case in seconds."""

    rate_per_s: float
    matching_s: float
    output_s: float
    end_s: float

    @classmethod
    def of(cls, case: Case) -> Setting:
        matching, output = SERVICES[str(case["bottleneck"])]
        rate_per_s = float(case["rho"]) / SERVICE_S
        end_s = WARM_S + float(case["publications"]) / rate_per_s
        return cls(rate_per_s, matching * SERVICE_S, output * SERVICE_S, end_s)

    @property
    def slower_s(self) -> float:
        return max(self.matching_s, self.output_s)

    def resources(self) -> BrokerResources:
        """A CPU and a bandwidth that take these times for one publication."""
        plain = BrokerResources()
        work_s = plain.matching_delay_s(SUBSCRIPTIONS) * plain.cpu_speed
        size_bytes = len(CLIENTS) * (HEADER_BYTES + body_bytes(CONTENT, b""))
        return BrokerResources(
            cpu_speed=work_s / self.matching_s, output_bandwidth_bytes_s=size_bytes / self.output_s
        )


def run(case: Case, seed: int, folder: Path) -> None:
    setting = Setting.of(case)
    arrivals = poisson if case["arrivals"] == "poisson" else even

    def build(observers: tuple[Observer, ...]) -> Simulator:
        simulator = Simulator(
            chain(1),
            seed=seed,
            resources=setting.resources(),
            link=LinkOptions(latency_s_min=0.0, latency_s_mean=0.0),
            observers=observers,
            check=False,
        )
        for name in CLIENTS:
            simulator.client(name, at="B1").subscribe(ANNOUNCED)
        others = simulator.client("wants-other", at="B1")
        for _ in range(SUBSCRIPTIONS - len(CLIENTS)):
            others.subscribe(ELSEWHERE)
        publisher = simulator.client("publisher", at="B1")
        # Arrivals differ between loads, so that the errors of a seed are independent.
        _publish(publisher, arrivals(setting, Random(f"{seed} {case['rho']}")))
        return simulator

    run_watched(build, folder, until_s=setting.end_s, gauges_every_s=GAUGES_EVERY_S)


def _publish(publisher: SimulatedClient, times_s: Iterator[float]) -> None:
    publisher.publish_all(publisher.advertise(ANNOUNCED), ((at_s, CONTENT) for at_s in times_s))


def poisson(setting: Setting, random: Random) -> Iterator[float]:
    at_s = PUBLISH_FROM_S + random.expovariate(setting.rate_per_s)
    while at_s < setting.end_s:
        yield at_s
        at_s += random.expovariate(setting.rate_per_s)


def even(setting: Setting, random: Random) -> Iterator[float]:
    """At equal intervals; the first at a random point of the first interval."""
    phase = random.random()
    number = 0
    while (at_s := PUBLISH_FROM_S + (number + phase) / setting.rate_per_s) < setting.end_s:
        yield at_s
        number += 1
