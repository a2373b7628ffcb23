"""Measures of `bad-simulation`: loads, their imbalance, moves."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from godwit.experiments.bad_simulation.runs import BROKERS, END_S, MB
from godwit.lab.declaration import Case, Measure, Trace
from godwit.lab.metrics.numbers import numbers

#: Start of the last ten minutes: all have subscribed long before.
LATE_S = END_S - 600
MINUTES = (5, 10, 15, 20, 25, 30)
RANKS = range(1, BROKERS + 1)
#: Brokers count as balanced up to this cov, for all schemes: the paper's alpha.
BALANCED = 0.15
CHECKED = ("fe", "be", "steps", "not_falling", "not_alike", "distance_base", "distance_end")


MEASURES: Mapping[str, Measure] = {
    "cov_late": Measure("", "coefficient of variation of the brokers' loads, last 10 min"),
    "max_late": Measure("MB/s", "load of the most loaded broker, last 10 min"),
    "mean_late": Measure("MB/s", "mean load of a broker, last 10 min"),
    "max_peak": Measure("MB/s", "highest load of a broker at any time"),
    "balanced_s": Measure("s", f"after which cov stays at or below {BALANCED}"),
    "moves": Measure("moves", "of subscribers to another broker"),
    "moves_later": Measure("moves", "... after the first round with moves"),
    "first_move_s": Measure("s", "time of that round; the end, if there is none"),
    "rounds_moving": Measure("rounds", "with moves"),
    "fe": Measure("subscriptions", "FE subscriptions at the end"),
    "be": Measure("subscriptions", "BE subscriptions at the end"),
    "steps": Measure("steps", "of LDM or SDM that were checked"),
    "not_falling": Measure("steps", "that did not lower the sorted loads (B13)"),
    "not_alike": Measure("steps", "that added other loads than B14 states"),
    "distance_base": Measure("", "distance of a shuffle to the lower bound, at base rates"),
    "distance_end": Measure("", "... at the final rates"),
    **{f"cov_{minute:02d}": Measure("", f"cov after {minute} min") for minute in MINUTES},
    **{
        f"load_{rank:02d}": Measure("MB/s", f"of the broker with rank {rank}, last 10 min")
        for rank in RANKS
    },
    **{
        f"clients_{rank:02d}": Measure("", f"of the broker with rank {rank}, last 10 min")
        for rank in RANKS
    },
}


def measure(trace: Trace, case: Case) -> dict[str, float]:
    gauges = trace["gauges"].withColumn("load", F.col("bytes_in_per_s") + F.col("bytes_out_per_s"))
    found = numbers(
        _over_time(gauges),
        _by_rank(gauges, int(case["brokers"])),
        _moves(trace["decisions"], str(case["scheme"])),
        _checks(trace["decisions"]),
    )
    return {name: value for name, value in found.items() if value is not None}


def _over_time(gauges: DataFrame) -> DataFrame:
    spread = gauges.groupBy("time_s").agg(
        (F.stddev_pop("load") / F.avg("load")).alias("cov"),
        (F.max("load") / MB).alias("max"),
        (F.avg("load") / MB).alias("mean"),
    )
    late = F.col("time_s") > LATE_S
    unbalanced_s = F.max(F.when(F.col("cov") > BALANCED, F.col("time_s")))
    return spread.agg(
        F.avg(F.when(late, F.col("cov"))).alias("cov_late"),
        F.avg(F.when(late, F.col("max"))).alias("max_late"),
        F.avg(F.when(late, F.col("mean"))).alias("mean_late"),
        F.max("max").alias("max_peak"),
        F.coalesce(unbalanced_s, F.lit(0.0)).alias("balanced_s"),
        *(
            F.max(F.when(F.col("time_s") == 60.0 * minute, F.col("cov"))).alias(f"cov_{minute:02d}")
            for minute in MINUTES
        ),
    )


def _by_rank(gauges: DataFrame, brokers: int) -> DataFrame:
    """Loads and clients of the brokers, from the highest down."""
    each = (
        gauges.where(F.col("time_s") > LATE_S)
        .groupBy("broker")
        .agg((F.avg("load") / MB).alias("load"), F.avg("clients").alias("clients"))
    )
    sorted_down = each.agg(
        F.sort_array(F.collect_list("load"), asc=False).alias("loads"),
        F.sort_array(F.collect_list("clients"), asc=False).alias("clients"),
    )
    return sorted_down.select(
        *(F.col("loads")[rank].alias(f"load_{rank + 1:02d}") for rank in range(brokers)),
        *(F.col("clients")[rank].alias(f"clients_{rank + 1:02d}") for rank in range(brokers)),
    )


def _moves(decisions: DataFrame, scheme: str) -> DataFrame:
    moves = decisions.where(F.col("policy") == scheme)
    rounds = moves.groupBy("time_s").agg(F.count("*").alias("moves"))
    return rounds.agg(
        F.coalesce(F.sum("moves"), F.lit(0)).cast("double").alias("moves"),
        F.coalesce(F.sum("moves") - F.min_by("moves", "time_s"), F.lit(0))
        .cast("double")
        .alias("moves_later"),
        F.coalesce(F.min("time_s"), F.lit(float(END_S))).alias("first_move_s"),
        F.count("*").cast("double").alias("rounds_moving"),
    )


def _checks(decisions: DataFrame) -> DataFrame:
    checks = decisions.where(F.col("policy") == "check")
    value = F.col("reason").cast("double")
    return checks.agg(
        *(F.max(F.when(F.col("action") == name, value)).alias(name) for name in CHECKED)
    )
