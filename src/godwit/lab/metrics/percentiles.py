"""Exact percentiles within groups.  By sorting, which can spill to disk; Spark's own percentiles
keep every value in memory.

    ranked(frame, "delay_s", "broker").groupBy("broker").agg(percentile("delay_s", 0.99))
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812


def ranked(frame: DataFrame, value: str, *of: str) -> DataFrame:
    """The rows with their rank by `value` within the group, and the size of the group."""
    together = Window.partitionBy(*of)
    return frame.withColumns(
        {
            "place": F.row_number().over(together.orderBy(value)) - 1,
            "all": F.count("*").over(together),
        }
    )


def percentile(value: str, share: float) -> Column:
    """Linear interpolation between the two nearest ranks."""
    off = F.abs(F.col("place") - share * (F.col("all") - 1))
    return F.sum(F.col(value) * F.greatest(F.lit(0.0), 1 - off))
