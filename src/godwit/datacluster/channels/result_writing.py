"""Writes the results of an execution: small ones here, large ones by Spark's tasks.

    frame --> up to HERE_ROWS_MAX rows?  --> Arrow, sorted and numbered here --> one file
                      `-- more           --> counted --> sorted, numbered and written by Spark's
                                                         tasks, in pieces

A result is usually small, and then this is the fastest way.  How large it is shows when it is
computed: each task stops when it has too many rows for this process.  The driver never holds more.

A large result is counted first: one beyond the budget is refused before anything is written.  A
piece is the results of some of the subscriptions; what Spark sorts at a time, in memory and on the
disk, is one piece.  After a death of Spark there are four times as many pieces, so each is smaller.
"""

from __future__ import annotations

from math import ceil
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
from godwit.errors import GodwitError

#: Results with more rows are written by Spark's tasks.
HERE_ROWS_MAX = 10_000
ROW_GROUP_ROWS = 4_096
#: A row group is what a pull reads at least.
ROW_GROUP_BYTES = 2 * 2**20
#: The size of a number, a timestamp or a boolean.
FIXED_BYTES = 8
#: What Spark sorts at a time, as brokers receive it.
PIECE_BYTES = 4 * 2**30
#: Pieces after one death of Spark, after two ...
PIECES_PER_DEATH = 4


class ResultBudget(msgspec.Struct, frozen=True):
    """The largest result of one execution, for all its subscriptions together."""

    rows_max: int = 100_000_000
    bytes_max: int = 32 * 2**30


class OverBudgetError(GodwitError):
    """The result of an execution is larger than its budget."""


class Written(msgspec.Struct, frozen=True):
    rows: int = 0
    size_bytes: int = 0


class ResultWriter:
    def __init__(
        self,
        files: ResultFiles,
        *,
        here_rows_max: int = HERE_ROWS_MAX,
        budget: ResultBudget | None = None,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        self._files = files
        self._here_rows_max = here_rows_max
        self._budget = budget or ResultBudget()
        self._piece_bytes = piece_bytes

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
        expected = self._counted(results)
        if not expected.rows:
            return expected
        pieces = max(
            ceil(expected.size_bytes / self._piece_bytes), PIECES_PER_DEATH**execution.deaths
        )

        def write(path: Path) -> None:
            for piece in range(pieces):
                _write_piece(arranged_there(_piece(results, piece, pieces)), path)

        self._files.write(execution.channel, execution.number, write)
        contents = self._files.contents(execution.channel, execution.number)
        return Written(int(np.sum(contents.rows)), contents.size_bytes)

    def _counted(self, results: DataFrame) -> Written:
        """How large a result is.  Nothing but two numbers comes to the driver."""
        size_bytes = F.sum(_size_bytes(results.schema.fields[1:]))
        rows, found_bytes = results.agg(F.count("*"), size_bytes).collect()[0]
        counted = Written(rows, found_bytes or 0)
        budget = self._budget
        if counted.rows > budget.rows_max or counted.size_bytes > budget.bytes_max:
            raise OverBudgetError(
                f"the result has {counted.rows:,} rows and {counted.size_bytes:,} bytes, and the"
                f" budget of an execution is {budget.rows_max:,} rows (execution_rows_max) and"
                f" {budget.bytes_max:,} bytes (execution_bytes_max)"
            )
        return counted


def _piece(results: DataFrame, piece: int, pieces: int) -> DataFrame:
    if pieces == 1:
        return results
    return results.where(F.pmod(F.col(SUBSCRIPTION), F.lit(pieces)) == piece)


def _write_piece(results: DataFrame, path: Path) -> None:
    writer = results.write.mode("append").option("parquet.block.size", ROW_GROUP_BYTES)
    writer.option("compression", "zstd").parquet(str(path))


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
