"""What an attribute can hold, and how much of it: the values and the limits of the language.

A value is a number, a string or a boolean.  Integers and floats are one kind and compare as
real numbers; Python does that exactly, also between 2**53 + 1 and 2.0**53.  A boolean is never
a number, although Python thinks so: `kind_of` and `hash_key` are where that is put right.
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

# 64 bits, because that is what every wire format and column store agrees on.
INTEGER_MIN = -(2**63)
INTEGER_MAX = 2**63 - 1

#: Attribute names: a letter or _, then letters, digits and the punctuation seen in the wild
#: (`openClose%Diff`, `geo.lat`, `x-priority`).
ATTRIBUTE_PATTERN = re.compile(r"[^\W\d][\w.%$#@:/-]*")


#: Python strings can hold these, but no encoding can carry them.
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
        f"{name!r} is no attribute name: a letter or _,"
        " then letters, digits or any of . % $ # @ : / -"
    )


@lru_cache(maxsize=4096)  # The same names come in every record.
def _is_attribute(name: str) -> bool:
    return len(name) <= ATTRIBUTE_LENGTH_MAX and ATTRIBUTE_PATTERN.fullmatch(name) is not None


def check_value(value: object, *, of: str) -> Value:
    """Give `value` back if the language has it, else say what is wrong with attribute `of`.

    It comes back as a plain int, float, str or bool: numpy's float is a Python float too, but it
    prints differently and rounds integers before it compares them.
    """
    match value:
        case bool():
            return value
        case int():
            if not INTEGER_MIN <= value <= INTEGER_MAX:
                raise ContentError(f"{of}: an integer must fit into 64 bits; write a float instead")
            return int(value)
        case float():
            if not isfinite(value):
                raise ContentError(f"{of}: {value} is no number; NaN and infinities are refused")
            return float(value)
        case str():
            if len(value) > STRING_LENGTH_MAX:
                raise ContentError(
                    f"{of}: a string of {len(value)} characters;"
                    f" at most {STRING_LENGTH_MAX} are allowed"
                )
            if not value.isascii() and _SURROGATE.search(value):
                raise ContentError(f"{of}: half a surrogate pair is no character")
            return str(value)
        case _:
            raise ContentError(
                f"{of}: {type(value).__name__} is no value; use a number, a string or a boolean"
            )


def check_record(record: Mapping[str, object]) -> dict[str, Value]:
    """A copy of `record`, of plain values, if every rule of the language holds for it."""
    if not isinstance(record, Mapping):
        raise ContentError(f"a record maps attributes to values; got {type(record).__name__}")
    if not record:
        raise ContentError("a record has at least one attribute")
    if len(record) > ATTRIBUTES_PER_RECORD_MAX:
        raise ContentError(
            f"a record of {len(record)} attributes; at most {ATTRIBUTES_PER_RECORD_MAX} are allowed"
        )
    if type(record) is dict and _are_attributes(tuple(record)):
        try:  # Not contextlib.suppress, which takes half as long as the rest.
            return _decode(_encode(record))
        except _ROUND_TRIP_ERRORS:
            pass  # Something is wrong with it, or unusual: look at it piece by piece.
    return {check_attribute(name): check_value(value, of=name) for name, value in record.items()}


# Brokers check every record.  A round trip through a codec with these types does it in a third of
# the time: it checks kinds, ranges and lengths, and what comes back is plain.
CheckedValue: TypeAlias = (
    Annotated[int, msgspec.Meta(ge=INTEGER_MIN, le=INTEGER_MAX)]
    | Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
    | Annotated[str, msgspec.Meta(max_length=STRING_LENGTH_MAX)]
    | bool
)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, CheckedValue]).decode
_ROUND_TRIP_ERRORS = (msgspec.MsgspecError, TypeError, ValueError, OverflowError)


@lru_cache(maxsize=4096)  # Records come in few shapes.
def _are_attributes(names: tuple[object, ...]) -> bool:
    return all(isinstance(name, str) and _is_attribute(name) for name in names)
