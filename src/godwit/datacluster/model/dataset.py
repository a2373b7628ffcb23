"""A dataset: named columns, perhaps a key; it is fed, or loaded from a file (static)."""

from __future__ import annotations

from enum import StrEnum

import msgspec

#: Columns that the data cluster adds to every record.
BATCH = "_batch"
"""The ingest batch of the record: 1, 2, 3 ...; 0 if it was loaded from a file."""
POSITION = "_position"
"""Its place in the log of the dataset: unique, ascending."""
ACCEPTED = "_accepted_s"
"""When Godwit accepted it, in seconds since 1970."""

#: Limit for names of datasets, columns, feeds, channels and parameters.
NAME_LENGTH_MAX = 64
#: The dataset `<name>_quarantine` stores the records that do not fit the columns of `<name>`.
QUARANTINE_SUFFIX = "_quarantine"


class ColumnType(StrEnum):
    """The names are those of Spark SQL."""

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
    """The key column, if any: queries see the latest record of each key."""

    is_static: bool = False
    """It is loaded from a file, not fed."""
