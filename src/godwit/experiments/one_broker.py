"""One broker under a load: played from a seed, and measured.  The runs of broker_model.py.

A case says which of its two servers is the slower one (`bottleneck`), how publications arrive
(`arrivals`: poisson or even), and the load of the slower server (`rho`).

Everything is there that makes a server's time constant: the tables do not change while it is
measured, and all publications have one size and go to the same two clients.  Links take no time;
they would shift all arrivals and change no wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from godwit.broker.meters import WINDOW_S
from godwit.content.filters import Filter
from godwit.content.messages import HEADER_BYTES, body_bytes
from godwit.content.values import Value
from godwit.experiments.watched import run_watched
from godwit.lab.experiment import Case, Trace
from godwit.lab.numbers import numbers
from godwit.lab.queueing import queue_growth, queueing
from godwit.lab.rates import utilisation_over_time
from godwit.lab.stages import Span
from godwit.overlay.topology import chain
from godwit.simulation.clients import SimulatedClient
from godwit.simulation.observers import Observer
from godwit.simulation.resources import BrokerResources, LinkOptions
from godwit.simulation.simulator import Simulator

#: Of the slower server.
SERVICE_S = 0.001
#: Of matching engine and output, as parts of that.
SERVICES = {"matching": (1.0, 0.5), "both": (0.5, 1.0), "output": (0.001, 1.0)}

SUBSCRIPTIONS = 100
CLIENTS = ("wants-1", "wants-2")
CONTENT: dict[str, Value] = {"class": "QUOTE", "price": 1.0}
ANNOUNCED = Filter.parse("class = 'QUOTE' and price is present")
ELSEWHERE = Filter.parse("class = 'OTHER'")

#: Publishing starts when the subscriptions are in place, with a window of the meters.
PUBLISH_FROM_S = WINDOW_S
#: Ten thousand service times more: a queue at 0.95 forgets how it began in less than a tenth.
WARM_S = PUBLISH_FROM_S + WINDOW_S
GAUGES_EVERY_S = 10 * SERVICE_S


@dataclass(frozen=True, slots=True)
class Setting:
    """What a case means, in seconds."""

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
        # Another load, other arrivals: else one lucky seed would be lucky everywhere.
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
    """At equal distances; the first at a random point of the first."""
    phase = random.random()
    number = 0
    while (at_s := PUBLISH_FROM_S + (number + phase) / setting.rate_per_s) < setting.end_s:
        yield at_s
        number += 1


# -- the numbers -------------------------------------------------------------------------------


def measure(trace: Trace, case: Case) -> dict[str, float]:
    setting = Setting.of(case)
    over = Span(WARM_S, setting.end_s, bucket_s=setting.end_s - WARM_S)
    found = numbers(
        queueing(trace, over),
        queue_growth(trace, over),
        utilisation_over_time(trace, over),
        summed("input", engine_waits(trace["handled"], setting), over),
        summed("output", output_waits(trace["delivered"], setting), over),
    )
    off_s = max(found["input_off_s"], found["output_off_s"])
    return {
        "input_wait_s": found["queue_delay_s_mean"],
        "input_wait_s_p99": found["queue_delay_s_p99"],
        "output_wait_s": found["output_wait_s"],
        "queued": found["queued_mean"],
        "queued_growth_per_s": found["queued_growth_per_s"],
        "handled_per_s": found["messages"] / over.length_s,
        "input_utilisation": found["input_utilisation_mean"],
        "output_utilisation": found["output_utilisation_mean"],
        "recursion_off": off_s / setting.slower_s,
    }


def engine_waits(handled: DataFrame, setting: Setting) -> DataFrame:
    """Of each publication: when it came to the engine, how long it waited, and should have."""
    waited_s = F.col("queue_delay_s")
    came_s = F.col("time_s") - F.col("matching_delay_s") - waited_s
    publications = handled.where("kind = 'Publication'")
    return _waits(publications, came_s, waited_s, setting.matching_s)


def output_waits(delivered: DataFrame, setting: Setting) -> DataFrame:
    """The same for the output.  The clients get their copies at the same time: one will do."""
    came_s = F.col("time_s") - F.col("delay_s")  # Accepted, which is when it left the engine.
    waited_s = F.col("delay_s") - setting.output_s
    copies = delivered.where(F.col("client") == CLIENTS[0])
    return _waits(copies, came_s, waited_s, setting.output_s)


def _waits(frame: DataFrame, came_s: Column, waited_s: Column, service_s: float) -> DataFrame:
    """With Lindley's recursion, W(n) = max(0, W(n-1) + s - (A(n) - A(n-1))).

    Written out, W(n) is how far n s - A(n) stands above its lowest value so far.
    """
    ahead_s = F.col("sequence") * service_s - came_s
    so_far = Window.partitionBy("publisher").orderBy("sequence")
    lowest_s = F.min(ahead_s).over(so_far.rowsBetween(Window.unboundedPreceding, 0))
    return frame.select(
        "time_s", waited_s.alias("waited_s"), (ahead_s - lowest_s).alias("expected_s")
    )


def summed(name: str, waits: DataFrame, over: Span) -> DataFrame:
    """The mean wait, and how far any wait, from the very start, is from what was expected."""
    is_within = (F.col("time_s") >= over.start_s) & (F.col("time_s") < over.end_s)
    return waits.agg(
        F.avg(F.when(is_within, F.col("waited_s"))).alias(f"{name}_wait_s"),
        F.max(F.abs(F.col("waited_s") - F.col("expected_s"))).alias(f"{name}_off_s"),
    )
