"""What a metric is: a function from tables of the trace to a table with declared columns.

    @stage("delivered", columns="bucket_s double, delay_s_mean double")
    def delay_over_time(delivered: DataFrame, over: Span) -> DataFrame: ...

A stage is pure: it reads the frames it is given, collects nothing and caches nothing.  A call
checks input and output against the declarations, by name and type, so a trace of another version,
or a mistake in a stage, is an error that names the column, not a wrong number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  The usual name.
from pyspark.sql.types import StructType

from godwit.errors import UsageError
from godwit.lab.metrics.reading import spark_schema


@dataclass(frozen=True, slots=True)
class Span:
    """The measured part of a run, and the width of its buckets of time."""

    start_s: float
    end_s: float
    bucket_s: float = 60.0

    def __post_init__(self) -> None:
        if not self.start_s < self.end_s or self.bucket_s <= 0:
            raise UsageError(
                f"{self} is not a span of time: it must start before its end, with buckets above 0"
            )

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s

    def of(self, frame: DataFrame) -> DataFrame:
        """The rows of this span."""
        return frame.where((F.col("time_s") >= self.start_s) & (F.col("time_s") < self.end_s))

    def bucketed(self, frame: DataFrame) -> DataFrame:
        """The rows of this span, with the start of their bucket."""
        number = F.floor((F.col("time_s") - self.start_s) / self.bucket_s)
        return self.of(frame).withColumn("bucket_s", self.start_s + number * self.bucket_s)


Compute: TypeAlias = Callable[..., DataFrame]


@dataclass(frozen=True)
class MetricStage:
    name: str
    reads: tuple[str, ...]
    columns: str
    """Columns of the result: names and types, as DDL of Spark."""

    compute: Compute

    def __call__(self, trace: Mapping[str, DataFrame], over: Span) -> DataFrame:
        for table in self.reads:
            _check(self.name, f"its input {table}", spark_schema(table), trace[table].schema)
        result = self.compute(*(trace[table] for table in self.reads), over)
        declared = StructType.fromDDL(self.columns)
        assert isinstance(declared, StructType)
        _check(self.name, "its result", declared, result.schema)
        return result


def stage(*reads: str, columns: str) -> Callable[[Compute], MetricStage]:
    """Turn a function of the tables it reads and the span into a stage."""

    def made(compute: Compute) -> MetricStage:
        return MetricStage(compute.__name__, reads, columns, compute)

    return made


def _check(stage: str, what: str, declared: StructType, found: StructType) -> None:
    expected = [(field.name, field.dataType.simpleString()) for field in declared]
    given = [(field.name, field.dataType.simpleString()) for field in found]
    for column in expected:
        if column not in given:
            raise UsageError(f"{stage}: {what} lacks the column {column[0]} {column[1]}")
    if len(given) != len(expected):
        raise UsageError(f"{stage}: {what} has columns that are not declared")
