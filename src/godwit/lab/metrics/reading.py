"""The tables of a trace as data frames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from godwit.errors import UsageError
from godwit.trace.schema import TABLES

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def spark_schema(table: str) -> StructType:
    """The columns of a table of the trace, as a Spark schema."""
    return from_arrow_schema(TABLES[table])


def read_trace(session: SparkSession, folder: Path) -> dict[str, DataFrame]:
    """The tables of a trace, by name."""
    missing = [name for name in TABLES if not (folder / name).is_dir()]
    if missing:
        raise UsageError(f"{folder} is not a trace: it has no {', '.join(missing)}")
    return {
        name: session.read.schema(spark_schema(name)).parquet(str(folder / name)) for name in TABLES
    }
