"""Measures of `bad-prototype`: loads, their imbalance, moves.  Times are the paper's."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from godwit.experiments.bad_prototype.run_notes import SHUFFLE
from godwit.experiments.bad_prototype.runs import BROKERS
from godwit.lab.declaration import Case, Measure, Trace
from godwit.lab.metrics.numbers import numbers
from godwit.workloads.emergencies import SUBSCRIBED_BY_S

KB = 1e3
MINUTES = (5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30)
RANKS = range(1, BROKERS + 1)

MEASURES = {
    "cov_late": Measure("", "coefficient of variation of the brokers' loads, late"),
    "max_late": Measure("kB/s", "load of the most loaded broker, late"),
    "mean_late": Measure("kB/s", "mean load of a broker, late"),
    "max_peak": Measure("kB/s", "highest load of a broker at any time"),
    "moves": Measure("moves", "of subscribers to another broker"),
    "moves_later": Measure("moves", "... after the first plan with moves"),
    "first_move_s": Measure("s", "time of the first move"),
    "plans": Measure("plans", "with moves"),
    "shuffles": Measure("plans", "... that were shuffles"),
    "fe": Measure("subscriptions", "FE subscriptions"),
    "be": Measure("subscriptions", "BE subscriptions"),
    **{f"load_{rank}": Measure("kB/s", f"of the broker with rank {rank}, late") for rank in RANKS},
    **{f"clients_{rank}": Measure("", f"of the broker with rank {rank}, late") for rank in RANKS},
    **{f"cov_{minute:02d}": Measure("", f"cov after {minute} min") for minute in MINUTES},
    **{
        f"max_{minute:02d}": Measure("kB/s", f"maximum load after {minute} min")
        for minute in MINUTES
    },
    **{f"moves_{minute:02d}": Measure("moves", f"in the first {minute} min") for minute in MINUTES},
}


def late_s(case: Case) -> float:
    """Start of the late time: the second half of the time after all have subscribed."""
    return (SUBSCRIBED_BY_S + 60.0 * float(case["minutes"])) / 2


def measure(trace: Trace, case: Case) -> dict[str, float]:
    gauges = trace["gauges"].withColumn(
        "load", (F.col("bytes_in_per_s") + F.col("bytes_out_per_s")) / KB
    )
    minutes = [minute for minute in MINUTES if minute <= float(case["minutes"])]
    found = numbers(
        _over_time(gauges, late_s(case), minutes),
        _by_rank(gauges.where(F.col("time_s") > late_s(case))),
        _moves(trace["decisions"], minutes),
        _checks(trace["decisions"]),
    )
    return {name: value for name, value in found.items() if value is not None}


def _over_time(gauges: DataFrame, late_s: float, minutes: list[int]) -> DataFrame:
    spread = gauges.groupBy("time_s").agg(
        # Without load, before the first subscriptions, there is no cov.
        F.try_divide(F.stddev_pop("load"), F.avg("load")).alias("cov"),
        F.max("load").alias("max"),
        F.avg("load").alias("mean"),
    )
    late = F.col("time_s") > late_s
    after = {minute: _just_before(minute) for minute in minutes}
    return spread.agg(
        *(F.avg(F.when(late, F.col(of))).alias(f"{of}_late") for of in ("cov", "max", "mean")),
        F.max("max").alias("max_peak"),
        *(
            F.avg(F.when(is_then, F.col(of))).alias(f"{of}_{minute:02d}")
            for of in ("cov", "max")
            for minute, is_then in after.items()
        ),
    )


def _just_before(minute: int) -> Column:
    """A range of time, because live runs are not sampled on the second."""
    return (F.col("time_s") > 60.0 * minute - 30.0) & (F.col("time_s") <= 60.0 * minute)


def _by_rank(late: DataFrame) -> DataFrame:
    """Loads and clients of the brokers, from the highest down."""
    each = late.groupBy("broker").agg(
        F.avg("load").alias("load"), F.avg("clients").alias("clients")
    )
    sorted_down = each.agg(
        F.sort_array(F.collect_list("load"), asc=False).alias("loads"),
        F.sort_array(F.collect_list("clients"), asc=False).alias("clients"),
    )
    return sorted_down.select(
        *(F.col("loads")[rank - 1].alias(f"load_{rank}") for rank in RANKS),
        *(F.col("clients")[rank - 1].alias(f"clients_{rank}") for rank in RANKS),
    )


def _moves(decisions: DataFrame, minutes: list[int]) -> DataFrame:
    moves = decisions.where(F.col("policy") != "check").withColumn(
        "plan", F.col("policy").cast("int")
    )
    plans = moves.groupBy("plan").agg(
        F.count("*").alias("moves"),
        F.min("time_s").alias("from_s"),
        F.max((F.col("action") == SHUFFLE).cast("int")).alias("is_shuffle"),
        *(
            F.sum((F.col("time_s") <= 60.0 * minute).cast("int")).alias(f"by_{minute}")
            for minute in minutes
        ),
    )
    return plans.agg(
        F.coalesce(F.sum("moves"), F.lit(0)).cast("double").alias("moves"),
        F.coalesce(F.sum("moves") - F.min_by("moves", "plan"), F.lit(0))
        .cast("double")
        .alias("moves_later"),
        F.min("from_s").alias("first_move_s"),
        F.count("*").cast("double").alias("plans"),
        F.coalesce(F.sum("is_shuffle"), F.lit(0)).cast("double").alias("shuffles"),
        *(
            F.coalesce(F.sum(f"by_{minute}"), F.lit(0)).cast("double").alias(f"moves_{minute:02d}")
            for minute in minutes
        ),
    )


def _checks(decisions: DataFrame) -> DataFrame:
    checks = decisions.where(F.col("policy") == "check")
    value = F.col("reason").cast("double")
    return checks.agg(
        *(F.max(F.when(F.col("action") == name, value)).alias(name) for name in ("fe", "be"))
    )
