"""Records against columns: which fit, and what is said of the others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from godwit.datacluster.dataset import Column, ColumnType, Dataset
from godwit.datacluster.records import Content, Fitting, as_text

ALL = Dataset("All", tuple(Column(kind.lower(), kind) for kind in ColumnType))
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
KEYED = Dataset("Keyed", (Column("k", ColumnType.STRING), Column("v", ColumnType.INT)), key="k")


def fitted(content: Content, dataset: Dataset = ALL) -> dict[str, object] | str:
    """One record as it comes out between two others, or the reason."""
    other: Mapping[str, object] = {"k": "other", "v": 0} if dataset is KEYED else {}
    found = Fitting(dataset).fit([other, content, other], [1.0, 2.0, 3.0])
    if found.reasons:
        assert set(found.reasons) == {1}
        assert found.places == [0, 2]
        assert found.batch.num_rows == 2
        return found.reasons[1]
    assert found.places == [0, 1, 2]
    row: dict[str, object] = found.batch.to_pylist()[1]
    assert row.pop("_accepted_s") == 2.0
    return {name: value for name, value in row.items() if value is not None}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({}, {}),
        ({"string": "é", "more": [1]}, {"string": "é"}),
        ({"STRING": "x"}, {}),
        ({"string": None}, {}),
        ({"string": "x" * 65_536}, {"string": "x" * 65_536}),
        ({"boolean": False}, {"boolean": False}),
        ({"int": -(2**31), "bigint": 2**63 - 1}, {"int": -(2**31), "bigint": 2**63 - 1}),
        ({"int": 3.0, "bigint": -4.0}, {"int": 3, "bigint": -4}),
        ({"double": 3}, {"double": 3.0}),
        ({"double": 2**62 + 1}, {"double": 2.0**62}),
        ({"timestamp": 0}, {"timestamp": datetime(1970, 1, 1, tzinfo=UTC)}),
        ({"timestamp": 1.25}, {"timestamp": datetime(1970, 1, 1, 0, 0, 1, 250_000, UTC)}),
        ({"timestamp": "2026-05-01T14:00:00+02:00"}, {"timestamp": NOON}),
        ({"timestamp": "2026-05-01T12:00:00"}, {"timestamp": NOON}),
        (b'{"string": "x", "int": 1, "more": {}}', {"string": "x", "int": 1}),
    ],
)  # fmt: skip
def test_what_fits(content: Content, expected: dict[str, object]) -> None:
    assert fitted(content) == expected


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"string": 1}, "string: 1 is no text"),
        ({"string": "x" * 65_537}, "string: a text of 65537 characters; at most 65536 are allowed"),
        ({"string": "\ud800"}, "string: half a surrogate pair is no character"),
        ({"string": ["x"]}, "string: ['x'] is no text"),
        ({"boolean": 1}, "boolean: 1 is neither true nor false"),
        ({"boolean": "true"}, "boolean: 'true' is neither true nor false"),
        ({"int": 2**31}, "int: 2147483648 does not fit into INT"),
        ({"int": -(2**31) - 1}, "int: -2147483649 does not fit into INT"),
        ({"int": True}, "int: True is no whole number"),
        ({"int": 1.5}, "int: 1.5 is no whole number"),
        ({"int": "1"}, "int: '1' is no whole number"),
        ({"int": math.inf}, "int: inf is no whole number"),
        ({"bigint": 2**63}, "bigint: 9223372036854775808 does not fit into BIGINT"),
        ({"double": math.nan}, "double: nan is no number; NaN and infinities are refused"),
        ({"double": -math.inf}, "double: -inf is no number; NaN and infinities are refused"),
        ({"double": True}, "double: True is no number"),
        ({"double": "1.5"}, "double: '1.5' is no number"),
        ({"double": 10**400}, "double: an integer of 1329 bits does not fit into DOUBLE"),
        ({"timestamp": math.nan}, "timestamp: nan is no number; NaN and infinities are refused"),
        ({"timestamp": 1e300}, "timestamp: 1e+300 is a time outside the years 1 to 9999"),
        ({"timestamp": -1e14}, "timestamp: -100000000000000.0 is a time outside the years"),
        ({"timestamp": "soon"}, "timestamp: 'soon' is no time as in 2026-05-01T12:00:00Z"),
        ({"timestamp": True}, "timestamp: True is no time: seconds since 1970, or an ISO"),
        (b"", "no JSON object: Input data was truncated"),
        (b"[]", "no JSON object: Expected `object`, got `array`"),
        (b'{"string": "\xff"}', "no JSON object: "),
        (b'{"double": NaN}', "no JSON object: "),
        (b'{"double": 1e999}', "no JSON object: Number out of range"),
        (b'{"more": ' + b"[" * 100_000, "no JSON object: "),
        (3, "a record has attributes and values; got int"),
    ],
)  # fmt: skip
def test_what_does_not_fit(content: Content, reason: str) -> None:
    found = fitted(content)
    assert isinstance(found, str)
    assert found.startswith(reason)


@pytest.mark.parametrize("content", [{}, {"v": 1}, {"k": None, "v": 1}, b"{}"])
def test_a_key_must_have_a_value(content: Content) -> None:
    assert fitted(content, KEYED) == "k: the key must have a value"
    assert fitted({"k": ""}, KEYED) == {"k": ""}


def test_of_several_faults_one_is_named() -> None:
    assert fitted({"k": 1, "v": "x"}, KEYED) == "k: 1 is no text"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b'{"a": \xff}' + b"x" * 100, '{"a": �}xx'),
        ({"a": 1}, '{"a":1}'),
        ({"a": object}, '{"a":"<cla'),
        ({"a": "\ud800"}, "{'a': '\\ud"),
        ({"a": math.nan}, '{"a":null}'),
    ],
)
def test_a_record_can_always_be_shown(content: Content, text: str) -> None:
    assert as_text(content, length_max=10) == text
