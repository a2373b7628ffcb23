"""Writes the results of an execution: small ones here, large ones by Spark's tasks.

    frame --> up to HERE_ROWS_MAX rows?  --> Arrow, sorted and numbered here --> one file
                      `-- more           --> sorted, numbered and written by Spark's tasks

A result is usually small, and then this is the fastest way.  How large it is shows when it is
computed: each task stops when it has too many rows for this process.  The driver never holds more.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  The usual name.
from pyspark.sql.types import DecimalType, StringType, StructField

from godwit.datacluster.channels.executions import Execution
from godwit.datacluster.channels.result_files import BYTES, ORDINAL, Integers, ResultFiles
from godwit.datacluster.sql.channel_query import SUBSCRIPTION

#: Results with more rows are written by Spark's tasks.
HERE_ROWS_MAX = 10_000
ROW_GROUP_ROWS = 4_096
#: A row group is what a pull reads at least.
ROW_GROUP_BYTES = 2 * 2**20
#: The size of a number, a timestamp or a boolean.
FIXED_BYTES = 8


class Written(msgspec.Struct, frozen=True):
    rows: int = 0
    size_bytes: int = 0


class ResultWriter:
    def __init__(self, files: ResultFiles, *, here_rows_max: int = HERE_ROWS_MAX) -> None:
        self._files = files
        self._here_rows_max = here_rows_max

    def few(self, results: DataFrame) -> DataFrame:
        """The rows that fit into this process, and one more if there are more."""
        return results.limit(self._here_rows_max + 1)

    def fits(self, table: pa.Table) -> bool:
        return bool(table.num_rows <= self._here_rows_max)

    def write_here(self, execution: Execution, results: pa.Table) -> Written:
        table = arranged(results)
        if not table.num_rows:
            return Written()

        def write(path: Path) -> None:
            pq.write_table(table, path, row_group_size=ROW_GROUP_ROWS, compression="zstd")

        self._files.write(execution.channel, execution.number, write)
        return Written(table.num_rows, int(np.sum(table[BYTES].to_numpy())))

    def write_there(self, execution: Execution, results: DataFrame) -> Written:
        def write(path: Path) -> None:
            arranged_there(results).write.option("parquet.block.size", ROW_GROUP_BYTES).option(
                "compression", "zstd"
            ).parquet(str(path))

        self._files.write(execution.channel, execution.number, write)
        contents = self._files.contents(execution.channel, execution.number)
        return Written(int(np.sum(contents.rows)), contents.size_bytes)


def arranged_there(results: DataFrame) -> DataFrame:
    """As `arranged`, by Spark's tasks, which spill to disk what does not fit into memory."""
    fields = results.schema.fields[1:]
    values = [_plain(field) for field in fields]
    by_subscription = Window.partitionBy(SUBSCRIPTION).orderBy(
        *(F.col(f"`{field.name}`").asc_nulls_last() for field in fields)
    )
    return results.select(
        F.col(SUBSCRIPTION).cast("bigint"),
        (F.row_number().over(by_subscription) - 1).cast("bigint").alias(ORDINAL),
        _size_bytes(fields).alias(BYTES),
        *values,
    )


def _plain(field: StructField) -> Column:
    column = F.col(f"`{field.name}`")
    is_decimal = isinstance(field.dataType, DecimalType)
    return column.cast("double").alias(field.name) if is_decimal else column


def _size_bytes(fields: list[StructField]) -> Column:
    size = F.lit(sum(len(field.name) for field in fields)).cast("bigint")
    for field in fields:
        if isinstance(field.dataType, StringType):
            size += F.coalesce(F.octet_length(f"`{field.name}`"), F.lit(0))
        else:
            size += F.lit(FIXED_BYTES)
    return size


def arranged(results: pa.Table) -> pa.Table:
    """Results as they are stored: sorted, numbered and with sizes."""
    results = _with_plain_types(results)
    order = [(name, "ascending") for name in results.column_names]
    results = results.sort_by(order).combine_chunks()
    ids = results[SUBSCRIPTION].to_numpy()
    is_first = np.concatenate([[True], ids[1:] != ids[:-1]]) if len(ids) else np.zeros(0, bool)
    starts = np.flatnonzero(is_first)
    ordinals = np.arange(len(ids)) - np.repeat(starts, np.diff([*starts, len(ids)]))
    values = results.drop_columns([SUBSCRIPTION])
    columns = {
        SUBSCRIPTION: pa.array(ids, pa.int64()),
        ORDINAL: pa.array(ordinals, pa.int64()),
        BYTES: pa.array(_sizes_bytes(values), pa.int64()),
    }
    for name in values.column_names:
        columns[name] = values[name]
    return pa.table(columns)


def _with_plain_types(results: pa.Table) -> pa.Table:
    """Decimals become doubles, the only non-integers that clients receive."""
    fields = [
        field.with_type(pa.float64()) if pa.types.is_decimal(field.type) else field
        for field in results.schema
    ]
    return results.cast(pa.schema(fields))


def _sizes_bytes(values: pa.Table) -> Integers:
    """Sizes of names and values of all columns."""
    sizes = np.full(values.num_rows, sum(map(len, values.column_names)), dtype=np.int64)
    for column in values.columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            lengths = pc.fill_null(pc.binary_length(column), 0)
            sizes += lengths.to_numpy().astype(np.int64)
        else:
            sizes += FIXED_BYTES
    return sizes
