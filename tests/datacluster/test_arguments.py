"""Arguments of a subscription against the parameters of its channel."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from godwit.datacluster.channels.arguments import canonical, columns
from godwit.datacluster.model.channel import Channel
from godwit.datacluster.model.dataset import Column, ColumnType
from godwit.errors import UsageError


def channel(*types: ColumnType) -> Channel:
    parameters = tuple(Column(f"p{n}", type) for n, type in enumerate(types))
    return Channel("c", parameters, 1.0, "")


@pytest.mark.parametrize(
    ("type", "one", "other"),
    [
        pytest.param(ColumnType.DOUBLE, 2, 2.0, id="two is two"),
        pytest.param(ColumnType.DOUBLE, 0.0, -0.0, id="there is one zero"),
        pytest.param(ColumnType.BIGINT, 2, 2.0, id="a whole number"),
        pytest.param(
            ColumnType.TIMESTAMP,
            "2026-05-01T12:00:00Z",
            datetime(2026, 5, 1, 14, tzinfo=timezone(timedelta(hours=2))),
            id="a moment is the same everywhere",
        ),
        pytest.param(ColumnType.TIMESTAMP, 1_777_636_800, "2026-05-01T12:00:00", id="seconds, UTC"),
    ],
)
def test_equal_arguments_are_equal_bytes(type: ColumnType, one: object, other: object) -> None:
    assert canonical(channel(type), {"p0": one}) == canonical(channel(type), {"P0": other})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param({}, "needs the argument p0", id="missing"),
        pytest.param({"p0": None}, "p0 must have a value", id="null"),
        pytest.param({"p0": 1}, "c: the argument p0: 1 is not a text", id="of another type"),
        pytest.param({"p0": "a", "p1": "b"}, "no parameter 'p1'", id="one more"),
        pytest.param({"p0": "a", "P0": "b"}, "twice", id="twice"),
    ],
)
def test_arguments_and_parameters_agree(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        canonical(channel(ColumnType.STRING), arguments)


def test_columns_give_back_what_was_given() -> None:
    types = channel(*ColumnType)
    noon = datetime(2026, 5, 1, 12, 0, 0, 5, tzinfo=UTC)
    values = ["'; DROP TABLE x", True, -(2**31), 2**63 - 1, 1e-300, noon]
    row = canonical(types, {f"p{n}": value for n, value in enumerate(values)})
    given = columns(types, [row, row])
    assert [given[f"p{n}"].to_pylist() for n in range(6)] == [[value, value] for value in values]
