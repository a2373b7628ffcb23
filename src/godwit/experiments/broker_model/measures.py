"""Measures: waits, queues and utilisation; each wait against Lindley's recursion."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from godwit.experiments.broker_model.runs import WARM_S, Setting
from godwit.lab.declaration import Case, Measure, Trace
from godwit.lab.metrics.broker_rates import utilisation_over_time
from godwit.lab.metrics.numbers import numbers
from godwit.lab.metrics.queueing import queue_growth, queueing
from godwit.lab.metrics.stages import Span

MEASURES: Mapping[str, Measure] = {
    "input_wait_s": Measure("s", "mean wait for the matching engine"),
    "input_wait_s_p99": Measure("s", "wait for the engine that one in a hundred exceeds"),
    "output_wait_s": Measure("s", "mean wait for the output"),
    "queued": Measure("messages", "in the queues, read every 10 ms"),
    "queued_growth_per_s": Measure("messages/s", "slope of a line through the same readings"),
    "handled_per_s": Measure("publications/s", "handled by the engine"),
    "input_utilisation": Measure("", "Ir, by the broker's meters"),
    "output_utilisation": Measure("", "Or, by the broker's meters"),
    "recursion_off": Measure(
        "service times", "largest difference of a wait from Lindley's recursion"
    ),
}


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
    """The wait of each publication for the engine, and the expected wait."""
    waited_s = F.col("queue_delay_s")
    came_s = F.col("time_s") - F.col("matching_delay_s") - waited_s
    publications = handled.where("kind = 'Publication'")
    return _waits(publications, came_s, waited_s, setting.matching_s)


def output_waits(delivered: DataFrame, setting: Setting) -> DataFrame:
    """The same for the output, which serves both copies: it is free again with the last one."""
    came_s = F.col("time_s") - F.col("delay_s")  # Accepted, which is when it left the engine.
    waited_s = F.col("delay_s") - setting.output_s
    last = (F.max(name).alias(name) for name in ("time_s", "delay_s"))
    copies = delivered.groupBy("publisher", "sequence").agg(*last)
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
    """The mean wait, and the largest error of a wait, including the first ones."""
    is_within = (F.col("time_s") >= over.start_s) & (F.col("time_s") < over.end_s)
    return waits.agg(
        F.avg(F.when(is_within, F.col("waited_s"))).alias(f"{name}_wait_s"),
        F.max(F.abs(F.col("waited_s") - F.col("expected_s"))).alias(f"{name}_off_s"),
    )
