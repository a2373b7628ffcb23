"""Measures of a deployed plan: brokers, rates, utilisation, delays; and predictions that came true.

Words    broker message rate -> messages_in_per_s: the thesis compares it with the 46.7 publications
         a second that all publishers send (7.3.3), so it counts what comes in; `messages_per_s`
         counts what goes out as well; Ir, Or -> input_utilisation, output_utilisation.

Utilisations are those that the traffic asks for, whether or not the broker can do it: an overloaded
broker sends no more than its bandwidth, and its backlog grows.  A broker is overloaded if one is 1
or more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from godwit.experiments.allocation.setups import AllocationSetup, setup_of
from godwit.lab.declaration import Case, Measure, Trace
from godwit.lab.metrics.numbers import numbers
from godwit.lab.metrics.paths import delay, hop_count
from godwit.lab.metrics.stages import Span, stage

#: Traces begin with the joins of clients; publishers start in the first second of `begins_s`.
STARTING_S = 5.0

PLANNED: Mapping[str, Measure] = {
    "brokers": Measure("brokers", "that are allocated"),
    "available": Measure("brokers", "that there are"),
    "lower_bound_brokers": Measure("brokers", "that any plan needs"),
    "clusters": Measure("units", "that subscriptions were packed in"),
    "closeness_evaluations": Measure("", "pairs that were compared"),
    "moves": Measure("clients", "that the plan moves"),
    "planned_in_per_s_mean": Measure("messages/s", "incoming rate of a broker, as planned, mean"),
    "planned_in_per_s_max": Measure("messages/s", "... of the busiest broker"),
    "planned_overloaded": Measure("brokers", "above their usable capacity, as planned"),
    "longest_path": Measure("hops", "between two brokers of the tree"),
    "plan_s": Measure("s", "of CPU time to make the plan"),
}
MEASURES: Mapping[str, Measure] = {
    **PLANNED,
    "messages_in_per_s_mean": Measure("messages/s", "incoming rate of an allocated broker, mean"),
    "messages_in_per_s_stddev": Measure("messages/s", "... standard deviation"),
    "messages_in_per_s_max": Measure("messages/s", "... of the busiest broker"),
    "messages_per_s_mean": Measure("messages/s", "in and out, of an allocated broker, mean"),
    "messages_per_s_max": Measure("messages/s", "... of the busiest broker"),
    "system_in_per_s": Measure("messages/s", "incoming, of all brokers together"),
    "input_utilisation_mean": Measure("", "share of its time that a broker matches (Ir), mean"),
    "input_utilisation_max": Measure("", "... of the busiest broker"),
    "output_utilisation_mean": Measure("", "share of its bandwidth that a broker needs (Or), mean"),
    "output_utilisation_stddev": Measure("", "... standard deviation"),
    "output_utilisation_max": Measure("", "... of the busiest broker"),
    "overloaded": Measure("brokers", "with an Ir or Or of 1 or more"),
    "overloaded_unforeseen": Measure("brokers", "... that the plan says are not"),
    "deliveries": Measure("deliveries", "of publications to subscribers, of those recorded"),
    "hops_mean": Measure("hops", "links between publisher's and subscriber's broker, mean"),
    "hops_max": Measure("hops", "... the farthest"),
    "delay_s_mean": Measure("s", "from the publisher's broker to the subscriber, mean"),
    "delay_s_p50": Measure("s", "... median"),
    "delay_s_p99": Measure("s", "... 99th percentile"),
    "error_input_mean": Measure("", "of the predicted incoming rate of a broker, relative, mean"),
    "error_input_max": Measure("", "... the largest of any broker"),
    "error_output_mean": Measure("", "of the predicted output bandwidth, mean"),
    "error_output_max": Measure("", "... the largest of any broker"),
    "error_messages_mean": Measure("", "of the predicted message rate, in and out, mean"),
    "error_messages_max": Measure("", "... the largest of any broker"),
}


@dataclass(frozen=True, slots=True)
class BrokerReading:
    """What a broker did in the measured time."""

    input_per_s: float
    messages_per_s: float
    output_bytes_s: float
    busy: float


@dataclass(frozen=True, slots=True)
class ForeseenLoad:
    """What the plan says of a broker."""

    input_per_s: float
    messages_per_s: float
    output_bytes_s: float
    is_fine: bool


def measure(trace: Trace, case: Case) -> dict[str, float]:
    setup, over = setup_of(case), measured_span(case)
    predictions, planned = predicted(trace)
    found = {broker: BrokerReading(0.0, 0.0, 0.0, 0.0) for broker in predictions}
    for row in broker_work(trace, over).collect():
        found[row["broker"]] = BrokerReading(
            row["publications_in"] / over.length_s,
            (row["publications_in"] + row["publications_out"]) / over.length_s,
            row["bytes_out"] / over.length_s,
            row["matching_s"] / over.length_s,
        )
    values = {
        **planned,
        **_rates(found, setup),
        **_overloads(found, predictions, setup),
        **numbers(hop_count(trace, over), delay(trace, over)),
    }
    # Where GRAPE moves publishers later, the plan does not know it.
    return values if is_grape(case) else {**values, **_errors(found, predictions)}


def measured_span(case: Case) -> Span:
    """The measured time: after the moves of GRAPE, if there are any."""
    setup = setup_of(case)
    start_s = setup.begins_s + STARTING_S
    if is_grape(case):
        start_s += setup.moving_s
    return Span(start_s, start_s + setup.measured_s, bucket_s=setup.measured_s)


def is_grape(case: Case) -> bool:
    return case.get("publishers") == "grape"


def predicted(trace: Trace) -> tuple[dict[str, ForeseenLoad], dict[str, float]]:
    """The predictions for each broker, and the numbers of the plan."""
    predictions: dict[str, ForeseenLoad] = {}
    planned: dict[str, float] = {}
    for row in trace["decisions"].where(F.col("policy") == "allocation").collect():
        reason = msgspec.json.decode(row["reason"])
        if row["action"] == "planned":
            planned = reason
        else:
            predictions[row["broker"]] = msgspec.convert(reason, ForeseenLoad)
    return predictions, planned


@stage(
    "handled",
    columns="broker string, publications_in bigint, publications_out bigint, bytes_out bigint,"
    " matching_s double",
)
def broker_work(handled: DataFrame, over: Span) -> DataFrame:
    """The publications that each broker took in and put out, and the time that it matched."""
    sent_bytes = F.col("messages_out") * F.col("size_bytes")
    return (
        over.of(handled)
        .where(F.col("kind") == "Publication")
        .groupBy("broker")
        .agg(
            F.count("*").alias("publications_in"),
            F.sum(F.col("messages_out").cast("bigint")).alias("publications_out"),
            F.sum(sent_bytes.cast("bigint")).alias("bytes_out"),
            F.sum("matching_delay_s").alias("matching_s"),
        )
    )


def _rates(found: Mapping[str, BrokerReading], setup: AllocationSetup) -> dict[str, float]:
    of_each = found.values()
    incoming = [each.input_per_s for each in of_each]
    both = [each.messages_per_s for each in of_each]
    busy = [each.busy for each in of_each]
    used = [output_share(broker, each, setup) for broker, each in found.items()]
    return {
        "messages_in_per_s_mean": fmean(incoming),
        "messages_in_per_s_stddev": pstdev(incoming),
        "messages_in_per_s_max": max(incoming),
        "messages_per_s_mean": fmean(both),
        "messages_per_s_max": max(both),
        "system_in_per_s": sum(incoming),
        "input_utilisation_mean": fmean(busy),
        "input_utilisation_max": max(busy),
        "output_utilisation_mean": fmean(used),
        "output_utilisation_stddev": pstdev(used),
        "output_utilisation_max": max(used),
    }


def output_share(broker: str, reading: BrokerReading, setup: AllocationSetup) -> float:
    return reading.output_bytes_s / setup.resources[broker].output_bandwidth_bytes_s


def _overloads(
    found: Mapping[str, BrokerReading],
    predictions: Mapping[str, ForeseenLoad],
    setup: AllocationSetup,
) -> dict[str, float]:
    overloaded = [
        broker
        for broker, each in found.items()
        if max(each.busy, output_share(broker, each, setup)) >= 1.0
    ]
    unforeseen = [broker for broker in overloaded if predictions[broker].is_fine]
    return {"overloaded": len(overloaded), "overloaded_unforeseen": len(unforeseen)}


def _errors(
    found: Mapping[str, BrokerReading], predictions: Mapping[str, ForeseenLoad]
) -> dict[str, float]:
    values: dict[str, float] = {}
    for name, field in (
        ("input", "input_per_s"),
        ("output", "output_bytes_s"),
        ("messages", "messages_per_s"),
    ):
        pairs = [
            (getattr(prediction, field), getattr(found[broker], field))
            for broker, prediction in predictions.items()
        ]
        errors = relative_errors(pairs)
        values[f"error_{name}_mean"] = fmean(errors)
        values[f"error_{name}_max"] = max(errors)
    return values


def relative_errors(pairs: Sequence[tuple[float, float]]) -> list[float]:
    """Of predicted and measured values, relative to what was measured."""
    return [
        abs(predicted - measured) / measured if measured else float(predicted > 0)
        for predicted, measured in pairs
    ]
