"""Which values fit which column type: one rule for records and for arguments of subscriptions.

    fit        one value, in the form in which it is stored
    fit_all    many values of a column, as an Arrow array, with a reason for each that does not fit

docs/datacluster.md has the rule as a table.  `fit_all` checks all values at once: which types
occur, the longest text, whether a number is out of range.  Only if such a check fails, or a type
is unusual, are the values checked one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from math import isfinite

import pyarrow as pa
import pyarrow.compute as pc

from godwit.content.values import INTEGER_MAX, INTEGER_MIN
from godwit.datacluster.model.dataset import ColumnType
from godwit.datacluster.model.schemas import ARROW

STRING_LENGTH_MAX = 65_536
_RANGES = {ColumnType.INT: (-(2**31), 2**31 - 1), ColumnType.BIGINT: (INTEGER_MIN, INTEGER_MAX)}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The years 1 to 9999, as for Spark's TIMESTAMP.
_FIRST_S = -62_135_596_800
_END_S = 253_402_300_800
_NONE = type(None)
#: Types whose values are checked together.
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
    """A value does not fit its type; says why."""


def fit(value: object, kind: ColumnType) -> object:
    """The value as it is stored (a TIMESTAMP as microseconds since 1970), or UnfitError."""
    return _FITS[kind](value)


def fit_all(values: Sequence[object], kind: ColumnType) -> tuple[pa.Array, dict[int, str]]:
    """The array and, by place, why a value does not fit.  None fits; unfit values become null."""
    found = _together(values, kind) if set(map(type, values)) <= _USUAL[kind] else None
    return (found, {}) if found is not None else _one_by_one(values, kind)


# -- many values -------------------------------------------------------------------------------


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
    if bounds["min"] is not None and (bounds["min"] < _FIRST_S or bounds["max"] >= _END_S):
        return None
    if pc.any(pc.is_nan(seconds)).as_py():
        return None
    microseconds = pc.round(pc.multiply(seconds, 1e6)).cast(pa.int64())
    return microseconds.cast(ARROW[ColumnType.TIMESTAMP])


def _one_by_one(values: Sequence[object], kind: ColumnType) -> tuple[pa.Array, dict[int, str]]:
    fitting = _FITS[kind]
    fitted: list[object] = []
    reasons: dict[int, str] = {}
    for place, value in enumerate(values):
        try:
            fitted.append(None if value is None else fitting(value))
        except UnfitError as error:
            fitted.append(None)
            reasons[place] = str(error)
    return pa.array(fitted, ARROW[kind]), reasons


# -- one value ---------------------------------------------------------------------------------


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise UnfitError(f"{_shown(value)} is not a text")
    if len(value) > STRING_LENGTH_MAX:
        raise UnfitError(
            f"a text of {len(value)} characters; at most {STRING_LENGTH_MAX} are allowed"
        )
    try:
        value.encode()
    except UnicodeError:
        raise UnfitError(
            "the text has half of a surrogate pair, which is not a character"
        ) from None
    return value


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise UnfitError(f"{_shown(value)} is neither true nor false")
    return value


def _integer(kind: ColumnType) -> Callable[[object], int]:
    lowest, highest = _RANGES[kind]

    def integer(value: object) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # Filters have one kind of number: 3.0 is 3.
        if isinstance(value, bool) or not isinstance(value, int):
            raise UnfitError(f"{_shown(value)} is not a whole number")
        if not lowest <= value <= highest:
            raise UnfitError(f"{_shown(value)} does not fit into {kind}")
        return int(value)

    return integer


def _double(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnfitError(f"{_shown(value)} is not a number")
    if isinstance(value, int) and not INTEGER_MIN <= value <= INTEGER_MAX:
        raise UnfitError(
            f"{_shown(value)} does not fit into DOUBLE: an integer must fit into 64 bits;"
            " write a float instead"
        )
    number = float(value)
    if not isfinite(number):
        raise UnfitError(f"{number} is not a finite number")
    return number


def _timestamp(value: object) -> int:
    """Microseconds since 1970."""
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            raise UnfitError(f"{_shown(value)} is not a time as in 2026-05-01T12:00:00Z") from None
        microseconds = _microseconds(at)
    elif isinstance(value, datetime):
        microseconds = _microseconds(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        microseconds = round(max(_FIRST_S - 1, min(_double(value), _END_S)) * 1e6)
    else:
        raise UnfitError(f"{_shown(value)} is not a time: seconds since 1970, or ISO 8601 text")
    if not _FIRST_S * 10**6 <= microseconds < _END_S * 10**6:
        raise UnfitError(f"{_shown(value)} is a time outside the years 1 to 9999")
    return microseconds


def _microseconds(at: datetime) -> int:
    """UTC, unless the time has a zone."""
    since = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds


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
