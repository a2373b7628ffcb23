"""Rows of a result file as brokers receive them: plain values, grouped by subscription."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from math import isfinite

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from godwit.api.datacluster_api import ExecutionRows
from godwit.content.channel_messages import Row
from godwit.content.values import Value
from godwit.datacluster.channels.result_files import BYTES, ORDINAL
from godwit.datacluster.sql.channel_query import SUBSCRIPTION


def by_subscription(
    table: pa.Table, *, execution: int, executed_s: float
) -> Iterator[tuple[int, ExecutionRows]]:
    """The rows of each subscription; `table` is sorted as result files are."""
    if not table.num_rows:
        return
    ids = table[SUBSCRIPTION].to_numpy()
    ordinals = table[ORDINAL].to_numpy()
    rows = [_plain(row) for row in table.drop_columns([SUBSCRIPTION, ORDINAL, BYTES]).to_pylist()]
    subscriptions, starts = np.unique(ids, return_index=True)
    ends = [*starts[1:].tolist(), len(rows)]
    for id, start, end in zip(subscriptions.tolist(), starts.tolist(), ends, strict=True):
        part = rows[start:end]
        yield (
            id,
            ExecutionRows(
                execution=execution,
                first=int(ordinals[start]),
                rows=part,
                executed_s=executed_s,
                size_bytes=len(msgspec.json.encode(part)),
            ),
        )


def append_rows(found: list[ExecutionRows], rows: ExecutionRows) -> None:
    """Add rows to those of a subscription; they may continue the last ones."""
    if not found or found[-1].execution != rows.execution:
        found.append(rows)
        return
    last = found[-1]
    last.rows.extend(rows.rows)
    found[-1] = replace(last, size_bytes=last.size_bytes + rows.size_bytes)


def _plain(values: dict[str, object]) -> Row:
    """Without NULL, NaN and infinities; times in ISO 8601."""
    return {name: _value(value) for name, value in values.items() if _is_value(value)}


def _is_value(value: object) -> bool:
    return isfinite(value) if isinstance(value, float) else value is not None


def _value(value: object) -> Value:
    match value:
        case bool() | int() | float() | str():
            return value
        case dt.datetime() | dt.date():
            return value.isoformat()
        case _:
            return str(value)
