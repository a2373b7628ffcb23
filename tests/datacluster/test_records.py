"""Records against columns: which fit, and the reasons for the others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from godwit.datacluster.datasets.records import Content, RecordFitter, as_text
from godwit.datacluster.model.dataset import Column, ColumnType, Dataset

ALL = Dataset("All", tuple(Column(kind.lower(), kind) for kind in ColumnType))
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
KEYED = Dataset("Keyed", (Column("k", ColumnType.STRING), Column("v", ColumnType.INT)), key="k")


def fitted(content: Content, dataset: Dataset = ALL) -> dict[str, object] | str:
    """One record as it comes out between two others, or the reason."""
    other: Mapping[str, object] = {"k": "other", "v": 0} if dataset is KEYED else {}
    found = RecordFitter(dataset).fit([other, content, other], [1.0, 2.0, 3.0])
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
        ({"int": 3.0, "timestamp": "2026-05-01T14:00:00+02:00"}, {"int": 3, "timestamp": NOON}),
        (b'{"string": "x", "int": 1, "more": {}}', {"string": "x", "int": 1}),
    ],
)  # fmt: skip
def test_what_fits(content: Content, expected: dict[str, object]) -> None:
    assert fitted(content) == expected


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"string": 1}, "string: 1 is not a text"),
        ({"string": "x", "timestamp": "soon"}, "timestamp: 'soon' is not a time as in"),
        (b"", "not a JSON object: Input data was truncated"),
        (b"[]", "not a JSON object: Expected `object`, got `array`"),
        (b'{"string": "\xff"}', "not a JSON object: "),
        (b'{"double": NaN}', "not a JSON object: "),
        (b'{"double": 1e999}', "not a JSON object: Number out of range"),
        (b'{"more": ' + b"[" * 100_000, "not a JSON object: "),
        (3, "a record is a mapping of attributes to values, not int"),
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
    assert fitted({"k": 1, "v": "x"}, KEYED) == "k: 1 is not a text"


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
