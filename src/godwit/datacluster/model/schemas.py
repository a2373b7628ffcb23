"""The columns of a dataset as Arrow and Spark schemas, with the columns that Godwit adds."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from godwit.datacluster.model.dataset import ACCEPTED, BATCH, POSITION, ColumnType, Dataset

ARROW: dict[ColumnType, pa.DataType] = {
    ColumnType.STRING: pa.string(),
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.INT: pa.int32(),
    ColumnType.BIGINT: pa.int64(),
    ColumnType.DOUBLE: pa.float64(),
    ColumnType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}
SPARK: dict[ColumnType, DataType] = {
    ColumnType.STRING: StringType(),
    ColumnType.BOOLEAN: BooleanType(),
    ColumnType.INT: IntegerType(),
    ColumnType.BIGINT: LongType(),
    ColumnType.DOUBLE: DoubleType(),
    ColumnType.TIMESTAMP: TimestampType(),
}
_ACCEPTED_FIELD = pa.field(ACCEPTED, pa.float64())
_PLACE_FIELDS = [pa.field(POSITION, pa.int64()), pa.field(BATCH, pa.int64())]


def logged(dataset: Dataset) -> pa.Schema:
    """A record in the log: the columns, and when it was accepted."""
    fields = [pa.field(column.name, ARROW[column.type]) for column in dataset.columns]
    return pa.schema([*fields, _ACCEPTED_FIELD])


def positioned(schema: pa.Schema) -> pa.Schema:
    """A record as read from the log: with its position."""
    return schema.append(_PLACE_FIELDS[0])


def stored(dataset: Dataset) -> pa.Schema:
    """A record in a Parquet file: with its position and batch."""
    return pa.schema([*logged(dataset), *_PLACE_FIELDS])


def spark_schema(dataset: Dataset, *, with_batch: bool = True) -> StructType:
    fields = [StructField(column.name, SPARK[column.type]) for column in dataset.columns]
    fields += [StructField(ACCEPTED, DoubleType()), StructField(POSITION, LongType())]
    if with_batch:
        fields.append(StructField(BATCH, LongType()))
    return StructType(fields)
