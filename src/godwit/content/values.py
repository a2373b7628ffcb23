"""The values of the content language, and its limits.

A value is a number, a string or a boolean.  Integers and floats are one kind and compare as
real numbers; Python does that exactly, also between 2**53 + 1 and 2.0**53.  A boolean is never
a number, although it is in Python: `kind_of` and `hash_key` make the difference.

One rule says which Python objects are values, for filters, clients, frames, HTTP and the arguments
of channels: `check_value`.  docs/guide.md has it as a table.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from math import isfinite
from typing import Annotated, TypeAlias

import msgspec

from godwit.errors import ContentError

Number: TypeAlias = int | float
Value: TypeAlias = int | float | str | bool
Record: TypeAlias = Mapping[str, Value]

ATTRIBUTES_PER_RECORD_MAX = 256
ATTRIBUTE_LENGTH_MAX = 128
STRING_LENGTH_MAX = 4096
PREDICATES_PER_FILTER_MAX = 64
VALUES_PER_LIST_MAX = 1024
#: All strings of a filter together: bounds the work of comparing two of them.
CHARACTERS_PER_FILTER_MAX = 65_536
#: A filter or record as text.
TEXT_LENGTH_MAX = 1_000_000

# 64 bits: what all wire formats and column stores support.
INTEGER_MIN = -(2**63)
INTEGER_MAX = 2**63 - 1

#: Attribute names: a letter or _, then letters, digits and some punctuation
#: (`openClose%Diff`, `geo.lat`, `x-priority`).
ATTRIBUTE_PATTERN = re.compile(r"[^\W\d][\w.%$#@:/-]*")


#: Possible in Python strings, but not in UTF-8.
_SURROGATE = re.compile("[\ud800-\udfff]")


class Kind(Enum):
    """The type of a value.  Values of different kinds are never equal, nor ordered."""

    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"


def kind_of(value: Value) -> Kind:
    if isinstance(value, bool):  # First: a Python bool is an int.
        return Kind.BOOLEAN
    return Kind.STRING if isinstance(value, str) else Kind.NUMBER


class _Truth(Enum):
    TRUE = True
    FALSE = False


def hash_key(value: object) -> object:
    """`value` for use in dictionaries and sets: 1 and 1.0 collide, 1 and True do not."""
    if value is True:
        return _Truth.TRUE
    if value is False:
        return _Truth.FALSE
    return value


def check_attribute(name: object) -> str:
    if isinstance(name, str) and _is_attribute(name):
        return name
    if isinstance(name, str) and len(name) > ATTRIBUTE_LENGTH_MAX:
        raise ContentError(
            f"attribute name {name[:20]!r}... has {len(name)} characters;"
            f" at most {ATTRIBUTE_LENGTH_MAX} are allowed"
        )
    raise ContentError(
        f"{name!r} is not an attribute name: write a letter or _,"
        " then letters, digits or any of . % $ # @ : / -"
    )


@lru_cache(maxsize=4096)  # Most records have the same names.
def _is_attribute(name: str) -> bool:
    return len(name) <= ATTRIBUTE_LENGTH_MAX and ATTRIBUTE_PATTERN.fullmatch(name) is not None


def check_value(value: object, *, of: str) -> Value:
    """`value` as a plain int, float, str or bool, or an error about attribute `of`.

    Subclasses and NumPy's scalars are converted, exactly.  (NumPy's float is a Python float too,
    but it prints differently and rounds integers before it compares them.)
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return _checked_integer(int.__int__(value), of)
    if isinstance(value, float):
        return _checked_float(float.__float__(value), of)
    if isinstance(value, str):
        return _checked_string(str.__str__(value), of)
    plain = _plain_of_numpy(value)
    if plain is None:
        raise ContentError(f"{of}: {why_no_value(value)}")
    return check_value(plain, of=of)


def _checked_integer(value: int, of: str) -> int:
    if not INTEGER_MIN <= value <= INTEGER_MAX:
        raise ContentError(f"{of}: an integer must fit into 64 bits; write a float instead")
    return value


def _checked_float(value: float, of: str) -> float:
    if not isfinite(value):
        raise ContentError(f"{of}: {value} is not allowed; use a finite number")
    return value


def _checked_string(value: str, of: str) -> str:
    if len(value) > STRING_LENGTH_MAX:
        raise ContentError(
            f"{of}: a string of {len(value)} characters; at most {STRING_LENGTH_MAX} are allowed"
        )
    if not value.isascii() and _SURROGATE.search(value):
        raise ContentError(f"{of}: the string contains half of a surrogate pair")
    return value


def _plain_of_numpy(value: object) -> Value | None:
    """A scalar of NumPy as the Python value that equals it; None if there is none."""
    numpy = sys.modules.get("numpy")  # If it was not imported, this is not one of its scalars.
    if numpy is None or not isinstance(value, numpy.generic):
        return None
    if isinstance(value, numpy.bool_):
        return bool(value)
    if isinstance(value, numpy.integer) and not isinstance(value, numpy.timedelta64):
        return int(value)  # NumPy takes a duration for an integer.
    if isinstance(value, numpy.floating):
        number = float(value)
        return number if number == value or number != number else None  # noqa: PLR0124  NaN.
    return None


def why_no_value(value: object) -> str:
    """What is wrong with a Python object that is not a value, and what to write instead."""
    if value is None:
        return "None is not a value; leave the attribute out"
    names = [kind.__name__ for kind in type(value).__mro__]
    hint = next((_HINTS[name] for name in names if name in _HINTS), None)
    return f"{names[0]} is not a value; {hint or 'use a number, a string or a boolean'}"


_AS_TEXT = "use its text, str(x)"
_AS_ISO = "use its ISO text, x.isoformat()"
_AS_PAYLOAD = "send bytes as the payload, or text such as x.hex()"
_IN_PARTS = "use an attribute for each part, or text"
#: By the name of a class or of one of its bases, so that their modules need not be imported.
_HINTS = {
    "Enum": "use its .value",
    "Decimal": f"{_AS_TEXT}, or float(x) if rounding is allowed",
    "Fraction": f"{_AS_TEXT}, or float(x) if rounding is allowed",
    "datetime": f"{_AS_ISO}, or seconds, x.timestamp()",
    "date": _AS_ISO,
    "time": _AS_ISO,
    "timedelta": "use seconds, x.total_seconds()",
    "datetime64": "use its ISO text, str(x)",
    "timedelta64": "use seconds, float(x / numpy.timedelta64(1, 's'))",
    "UUID": _AS_TEXT,
    "bytes": _AS_PAYLOAD,
    "bytearray": _AS_PAYLOAD,
    "memoryview": _AS_PAYLOAD,
    "list": _IN_PARTS,
    "tuple": _IN_PARTS,
    "set": _IN_PARTS,
    "frozenset": _IN_PARTS,
    "dict": _IN_PARTS,
    "ndarray": _IN_PARTS,
}


def check_record(record: Mapping[str, object]) -> dict[str, Value]:
    """A copy of `record` with plain values, if it obeys every rule of the language."""
    if not isinstance(record, Mapping):
        raise ContentError(f"a record maps attributes to values; got {type(record).__name__}")
    if not record:
        raise ContentError("a record has at least one attribute")
    if len(record) > ATTRIBUTES_PER_RECORD_MAX:
        raise ContentError(
            f"a record of {len(record)} attributes; at most {ATTRIBUTES_PER_RECORD_MAX} are allowed"
        )
    if (
        type(record) is dict
        and _are_attributes(tuple(record))
        and _are_plain_kinds(map(type, record.values()))
    ):
        try:  # contextlib.suppress would take half as long as the rest.
            return _decode(_encode(record))
        except _ROUND_TRIP_ERRORS:
            pass  # Something is wrong or unusual: check each attribute.
    return {check_attribute(name): check_value(value, of=name) for name, value in record.items()}


def check_values(record: Mapping[str, object]) -> Record:
    """`record` with plain values.  Unlike `check_record`, its size and names do not matter."""
    if _are_plain_kinds(map(type, record.values())):
        try:
            return _decode(_encode(record))
        except _ROUND_TRIP_ERRORS:
            pass
    return {name: check_value(value, of=str(name)) for name, value in record.items()}


# A round trip through a codec with these types takes a third of the time of checking one by one: it
# checks kinds, ranges, lengths and surrogates.
CheckedValue: TypeAlias = (
    Annotated[int, msgspec.Meta(ge=INTEGER_MIN, le=INTEGER_MAX)]
    | Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
    | Annotated[str, msgspec.Meta(max_length=STRING_LENGTH_MAX)]
    | bool
)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, CheckedValue]).decode
_ROUND_TRIP_ERRORS = (msgspec.MsgspecError, TypeError, ValueError, OverflowError)
#: Of other types, such as dates, UUIDs and decimals, the codec would make strings.
_are_plain_kinds = frozenset({int, float, str, bool}).issuperset


@lru_cache(maxsize=4096)  # Few combinations of names occur.
def _are_attributes(names: tuple[object, ...]) -> bool:
    return all(isinstance(name, str) and _is_attribute(name) for name in names)
