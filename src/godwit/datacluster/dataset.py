"""What a dataset is: named columns, perhaps a key, and whether records ever arrive."""

from __future__ import annotations

from enum import StrEnum

import msgspec

#: Columns that the data cluster adds to every record.
BATCH = "_batch"
"""The ingest batch that brought the record: 0 for what was loaded, then 1, 2, 3 ..."""
POSITION = "_position"
"""Its place in the log of the dataset: unique, rising."""
ACCEPTED = "_accepted_s"
"""When Godwit took responsibility for it, in seconds since 1970."""


class ColumnType(StrEnum):
    """As Spark SQL writes them."""

    STRING = "STRING"
    BOOLEAN = "BOOLEAN"
    INT = "INT"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    TIMESTAMP = "TIMESTAMP"


class Column(msgspec.Struct, frozen=True):
    name: str
    type: ColumnType


class Dataset(msgspec.Struct, frozen=True):
    name: str
    columns: tuple[Column, ...]
    key: str | None = None
    """If there is one, queries see the latest record of each key."""

    is_static: bool = False
    """Loaded, not fed."""
