"""The arguments of a subscription against the parameters of its channel.

What fits is put into one form, so that equal arguments are equal bytes.  Values are values: nothing
in them is ever read as a query.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa

from godwit.datacluster.channel import Channel
from godwit.datacluster.dataset import Column, ColumnType
from godwit.errors import UsageError

TEXT_BYTES_MAX = 10_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Spark's TIMESTAMP ends with the year 9999.
MICROSECONDS_MAX = 253_402_300_799_999_999
MICROSECONDS_MIN = -62_135_596_800_000_000

ARROW_TYPES = {
    ColumnType.STRING: pa.string(),
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.INT: pa.int32(),
    ColumnType.BIGINT: pa.int64(),
    ColumnType.DOUBLE: pa.float64(),
    ColumnType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}


def canonical(channel: Channel, arguments: Mapping[str, object]) -> bytes:
    """In the order of the parameters, or a UsageError that says which argument does not fit."""
    given: dict[str, object] = {}
    for name, value in arguments.items():
        if not isinstance(name, str) or name.lower() in given:
            raise UsageError(f"channel {channel.name}: the argument {name!r} is given twice")
        given[name.lower()] = value
    values = []
    for parameter in channel.parameters:
        if parameter.name.lower() not in given:
            raise UsageError(f"channel {channel.name} needs the argument {parameter.name}")
        values.append(_fitted(channel, parameter, given.pop(parameter.name.lower())))
    if given:
        raise UsageError(f"channel {channel.name} has no parameter {next(iter(given))[:64]!r}")
    return msgspec.json.encode(values)


def columns(channel: Channel, rows: Sequence[bytes]) -> dict[str, pa.Array]:
    """Many arguments, as columns named as the parameters are, in small letters."""
    decoder = msgspec.json.Decoder(list[Any])
    decoded = [decoder.decode(row) for row in rows]
    return {
        parameter.name.lower(): pa.array(
            [values[place] for values in decoded], type=ARROW_TYPES[parameter.type]
        )
        for place, parameter in enumerate(channel.parameters)
    }


def _fitted(channel: Channel, parameter: Column, value: object) -> object:
    fitted = _FITTING[parameter.type](value)
    if fitted is None:
        raise UsageError(
            f"channel {channel.name}: the argument {parameter.name} is to be"
            f" {_EXPECTED[parameter.type]}, not {_shown(value)}"
        )
    return fitted


def _text(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        size_bytes = len(value.encode())
    except UnicodeEncodeError:  # Half of a character.
        return None
    return value if size_bytes <= TEXT_BYTES_MAX else None


def _boolean(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _integer(bits: int) -> Callable[[object], int | None]:
    def fitted(value: object) -> int | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if isinstance(value, float) and not value.is_integer():
            return None
        return int(value) if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None

    return fitted


def _real(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        real = float(value) + 0.0  # There is one zero.
    except OverflowError:
        return None
    return real if math.isfinite(real) else None


def _microseconds(value: object) -> int | None:
    """Since 1970, from a text in ISO 8601 or a datetime, both with their zone."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    since = value - EPOCH
    microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return microseconds if MICROSECONDS_MIN <= microseconds <= MICROSECONDS_MAX else None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


_FITTING: dict[ColumnType, Callable[[object], object]] = {
    ColumnType.STRING: _text,
    ColumnType.BOOLEAN: _boolean,
    ColumnType.INT: _integer(32),
    ColumnType.BIGINT: _integer(64),
    ColumnType.DOUBLE: _real,
    ColumnType.TIMESTAMP: _microseconds,
}
_EXPECTED = {
    ColumnType.STRING: f"a text of at most {TEXT_BYTES_MAX} bytes",
    ColumnType.BOOLEAN: "true or false",
    ColumnType.INT: "a whole number of 32 bits",
    ColumnType.BIGINT: "a whole number of 64 bits",
    ColumnType.DOUBLE: "a finite number",
    ColumnType.TIMESTAMP: "a moment with its zone, as 2026-05-01T12:00:00Z",
}
