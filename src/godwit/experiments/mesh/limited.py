"""Runs in which brokers can do less than is asked of them, and what is delivered then.

A case has a `limit`, the name of resources that brokers have in the measured time:

none        more than enough: what there is to deliver
engine      an engine takes 20 ms for a publication
uplink      an output takes 150 publications a second (setup PS4)
10 KB/s     an output takes 10,000 bytes a second (setup PS5), of publications of 300 bytes

Soft links are opened before, without a limit.  Publications of one publisher may overtake each
other (`order = "none"`): the paper does not keep their order, and what waits would add to queues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from godwit.experiments.mesh.prepared import RESOURCES, prepared
from godwit.experiments.mesh.runs import (
    MEASURED_S,
    WARM_UP_S,
    apply_settings,
    settings_of,
    span_of,
)
from godwit.lab.declaration import Case, Measure, Results, Trace
from godwit.lab.metrics.numbers import numbers
from godwit.lab.metrics.paths import delay, forwarding
from godwit.lab.metrics.stages import Span, stage
from godwit.simulation.resources import BrokerResources
from godwit.simulation.simulator import Simulator

#: Of a publication in the workloads of these experiments, about.
PUBLICATION_BYTES = 85
#: The paper does not say it for PlanetLab.  With this size the busiest broker of S0 in DT4 is asked
#: for a fifth more than its uplink takes: the paper has it congested.
PLANETLAB_BYTES = 300
LIMITS: Mapping[str, BrokerResources] = {
    "none": RESOURCES,
    "engine": replace(RESOURCES, matching_work_base=20.0),
    "uplink": replace(RESOURCES, output_bandwidth_bytes_s=150.0 * PUBLICATION_BYTES),
    "10 KB/s": replace(
        RESOURCES, output_bandwidth_bytes_s=10_000.0 * PUBLICATION_BYTES / PLANETLAB_BYTES
    ),
}

MEASURES: Mapping[str, Measure] = {
    "publications": Measure("publications", "of all publishers"),
    "delivered": Measure("publications", "handled by brokers with a subscriber for them"),
    "pure_forwards": Measure("publications", "handled by brokers that only sent them on"),
    "delay_s_mean": Measure("s", "from the publisher's broker to a subscriber, mean"),
}


def run(case: Case, seed: int, folder: Path) -> None:
    network = prepared(case, seed, publishing_s=WARM_UP_S + MEASURED_S)
    settings = msgspec.structs.replace(settings_of(case), order="none")
    over = span_of(case)

    def change(simulator: Simulator) -> None:
        apply_settings(simulator, settings)
        simulator.at(over.start_s, limit, simulator, LIMITS[str(case["limit"])])

    network.go_on(change, folder, until_s=over.end_s, checked=False)


def limit(simulator: Simulator, resources: BrokerResources) -> None:
    for node in simulator.brokers.values():
        node.vary(resources)
        node.broker.meters.output_bandwidth_bytes_s = resources.output_bandwidth_bytes_s


@stage("handled", columns="publications bigint")
def published(handled: DataFrame, over: Span) -> DataFrame:
    is_new = (F.col("kind") == "Publication") & ~F.col("is_control") & ~F.col("from_broker")
    return over.of(handled).agg(F.count(F.when(is_new, True)).alias("publications"))


def measure(trace: Trace, case: Case) -> dict[str, float]:
    over = span_of(case)
    return numbers(
        published(trace, over),
        forwarding(trace, over).select("delivered", "pure_forwards"),
        delay(trace, over).select("delay_s_mean"),
    )


# -- terms of claims ---------------------------------------------------------------------------


def delivered(results: Results, **where: str | float) -> float:
    return results.where(**where).mean("delivered")


def gained(strategy: str, **where: str | float) -> Callable[[Results], float]:
    """The share by which a strategy delivers more than S0; of several cases, the most."""

    def share(results: Results) -> float:
        of_strategy = results.where(strategy=strategy, **where)
        return max(
            runs.mean("delivered") / delivered(results, strategy="S0", dataset=dataset, **where) - 1
            for dataset, of_dataset in of_strategy.by("dataset")
            for _, runs in of_dataset.by("fanout")
        )

    return share


def share_of_all(results: Results, dataset: str, strategy: str, limited_by: str) -> float:
    """What is delivered of what would be without a limit."""
    there = delivered(results, dataset=dataset, strategy="S0", limit="none")
    return delivered(results, dataset=dataset, strategy=strategy, limit=limited_by) / there
