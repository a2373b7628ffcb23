"""What a metric is: a function from tables of the trace to a table with declared columns.

    @stage("delivered", columns="bucket_s double, delay_s_mean double")
    def delay_over_time(delivered: DataFrame, over: Span) -> DataFrame: ...

A stage is pure: it reads the frames it is given, collects nothing and caches nothing.  Called, it
checks what came in and what goes out against the declarations, by name and type, so a trace of
another version, or a slip in a stage, is an error that names the column, not a wrong number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  As everyone calls it.
from pyspark.sql.types import StructType

from godwit.errors import UsageError
from godwit.lab.reading import spark_schema


@dataclass(frozen=True, slots=True)
class Span:
    """The part of a run that is looked at, and the width of the buckets of time in it."""

    start_s: float
    end_s: float
    bucket_s: float = 60.0

    def __post_init__(self) -> None:
        if not self.start_s < self.end_s or self.bucket_s <= 0:
            raise UsageError(f"{self} is no span of time")

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s

    def of(self, frame: DataFrame) -> DataFrame:
        """The rows of this span."""
        return frame.where((F.col("time_s") >= self.start_s) & (F.col("time_s") < self.end_s))

    def bucketed(self, frame: DataFrame) -> DataFrame:
        """The rows of this span, with the start of the bucket they fall into."""
        number = F.floor((F.col("time_s") - self.start_s) / self.bucket_s)
        return self.of(frame).withColumn("bucket_s", self.start_s + number * self.bucket_s)


Compute: TypeAlias = Callable[..., DataFrame]


@dataclass(frozen=True)
class Stage:
    name: str
    reads: tuple[str, ...]
    columns: str
    """Of the result: names and types, in Spark's language."""

    compute: Compute

    def __call__(self, trace: Mapping[str, DataFrame], over: Span) -> DataFrame:
        for table in self.reads:
            _check(self.name, f"its input {table}", spark_schema(table), trace[table].schema)
        result = self.compute(*(trace[table] for table in self.reads), over)
        declared = StructType.fromDDL(self.columns)
        assert isinstance(declared, StructType)
        _check(self.name, "its result", declared, result.schema)
        return result


def stage(*reads: str, columns: str) -> Callable[[Compute], Stage]:
    """Make a stage of a function that takes the tables it reads, and the span."""

    def made(compute: Compute) -> Stage:
        return Stage(compute.__name__, reads, columns, compute)

    return made


def _check(stage: str, what: str, declared: StructType, found: StructType) -> None:
    expected = [(field.name, field.dataType.simpleString()) for field in declared]
    given = [(field.name, field.dataType.simpleString()) for field in found]
    for column in expected:
        if column not in given:
            raise UsageError(f"{stage}: {what} lacks the column {column[0]} {column[1]}")
    if len(given) != len(expected):
        raise UsageError(f"{stage}: {what} has columns that are not declared")
