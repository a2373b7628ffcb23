"""The values of one column: an Arrow array of those that fit, and for each other one the reason.

Almost always all values fit, so they are looked at together first: which types there are, the
longest text, whether a number is out of range.  Only if something is wrong, or unusual, does each
get a look of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from math import isfinite

import pyarrow as pa
import pyarrow.compute as pc

from godwit.datacluster.dataset import ColumnType
from godwit.datacluster.schemas import ARROW

STRING_LENGTH_MAX = 65_536
_RANGES = {ColumnType.INT: (-(2**31), 2**31 - 1), ColumnType.BIGINT: (-(2**63), 2**63 - 1)}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_S = (datetime(1, 1, 2, tzinfo=UTC) - _EPOCH).total_seconds()
_LAST_S = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH).total_seconds()
_NONE = type(None)
#: Types that need no look at each value, unless a check of the whole fails.
_USUAL: dict[ColumnType, set[type]] = {
    ColumnType.STRING: {str, _NONE},
    ColumnType.BOOLEAN: {bool, _NONE},
    ColumnType.INT: {int, _NONE},
    ColumnType.BIGINT: {int, _NONE},
    ColumnType.DOUBLE: {float, int, _NONE},
    ColumnType.TIMESTAMP: {float, int, _NONE},
}
_CONVERSION_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeError)


class UnfitError(Exception):
    """A value that is not of the column's type; says why."""


def as_array(values: Sequence[object], kind: ColumnType) -> tuple[pa.Array, dict[int, str]]:
    """The array has no value in the places that have a reason."""
    found = _together(values, kind) if set(map(type, values)) <= _USUAL[kind] else None
    return (found, {}) if found is not None else _one_by_one(values, kind)


def _together(values: Sequence[object], kind: ColumnType) -> pa.Array | None:
    try:
        match kind:
            case ColumnType.STRING:
                texts = [value for value in values if isinstance(value, str)]
                if max(map(len, texts), default=0) > STRING_LENGTH_MAX:
                    return None
                return pa.array(values, pa.string())
            case ColumnType.DOUBLE:
                array = pa.array(values, pa.float64())
                return array if pc.all(pc.is_finite(array)).as_py() is not False else None
            case ColumnType.TIMESTAMP:
                return _instants(pa.array(values, pa.float64()))
            case _:
                return pa.array(values, ARROW[kind])
    except _CONVERSION_ERRORS:
        return None


def _instants(seconds: pa.Array) -> pa.Array | None:
    bounds = pc.min_max(seconds).as_py()
    if bounds["min"] is not None and (bounds["min"] < _FIRST_S or bounds["max"] > _LAST_S):
        return None
    if pc.any(pc.is_nan(seconds)).as_py():
        return None
    microseconds = pc.round(pc.multiply(seconds, 1e6)).cast(pa.int64())
    return microseconds.cast(ARROW[ColumnType.TIMESTAMP])


def _one_by_one(values: Sequence[object], kind: ColumnType) -> tuple[pa.Array, dict[int, str]]:
    fit = _FITS[kind]
    good: list[object] = []
    reasons: dict[int, str] = {}
    for place, value in enumerate(values):
        try:
            good.append(None if value is None else fit(value))
        except UnfitError as error:
            good.append(None)
            reasons[place] = str(error)
    return pa.array(good, ARROW[kind]), reasons


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise UnfitError(f"{_shown(value)} is no text")
    if len(value) > STRING_LENGTH_MAX:
        raise UnfitError(
            f"a text of {len(value)} characters; at most {STRING_LENGTH_MAX} are allowed"
        )
    try:
        value.encode()
    except UnicodeError:
        raise UnfitError("half a surrogate pair is no character") from None
    return value


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise UnfitError(f"{_shown(value)} is neither true nor false")
    return value


def _integer(kind: ColumnType) -> Callable[[object], int]:
    lowest, highest = _RANGES[kind]

    def integer(value: object) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # The language of filters knows one kind of number: 3.0 is 3.
        if isinstance(value, bool) or not isinstance(value, int):
            raise UnfitError(f"{_shown(value)} is no whole number")
        if not lowest <= value <= highest:
            raise UnfitError(f"{_shown(value)} does not fit into {kind}")
        return int(value)

    return integer


def _double(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnfitError(f"{_shown(value)} is no number")
    try:
        number = float(value)
    except OverflowError:
        raise UnfitError(f"{_shown(value)} does not fit into DOUBLE") from None
    if not isfinite(number):
        raise UnfitError(f"{number} is no number; NaN and infinities are refused")
    return number


def _timestamp(value: object) -> datetime:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise UnfitError(f"{_shown(value)} is no time as in 2026-05-01T12:00:00Z") from None
    if isinstance(value, datetime):
        at = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        seconds = (at - _EPOCH).total_seconds()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = _double(value)
        at = None
    else:
        raise UnfitError(f"{_shown(value)} is no time: seconds since 1970, or an ISO 8601 text")
    if not _FIRST_S <= seconds <= _LAST_S:
        raise UnfitError(f"{_shown(value)} is a time outside the years 1 to 9999")
    return at if at is not None else _EPOCH + timedelta(microseconds=round(seconds * 1e6))


_FITS: dict[ColumnType, Callable[[object], object]] = {
    ColumnType.STRING: _string,
    ColumnType.BOOLEAN: _boolean,
    ColumnType.INT: _integer(ColumnType.INT),
    ColumnType.BIGINT: _integer(ColumnType.BIGINT),
    ColumnType.DOUBLE: _double,
    ColumnType.TIMESTAMP: _timestamp,
}


def _shown(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"  # Python refuses to print the longest.
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
