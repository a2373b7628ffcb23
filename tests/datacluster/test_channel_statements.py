"""Statements that make and drop channels."""

from __future__ import annotations

import pytest

from godwit.datacluster.channel import Channel
from godwit.datacluster.channel_statements import (
    CreateChannel,
    DropChannel,
    parse_channel_statement,
)
from godwit.datacluster.dataset import Column, ColumnType
from godwit.errors import UsageError


def test_a_channel_every_ten_seconds() -> None:
    text = "create channel Near(user_id STRING, metres double) every 10 seconds as SELECT 1;"
    parameters = (Column("user_id", ColumnType.STRING), Column("metres", ColumnType.DOUBLE))
    expected = Channel("Near", parameters, 10.0, "SELECT 1")
    assert parse_channel_statement(text) == CreateChannel(expected)


@pytest.mark.parametrize(
    ("period", "every_s"),
    [("CONTINUOUS", None), ("EVERY 2 MINUTES", 120.0), ("EVERY 0.5 SECONDS", 0.5)],
)
def test_periods(period: str, every_s: float | None) -> None:
    statement = parse_channel_statement(f"CREATE CHANNEL c() {period} AS SELECT 1")
    assert statement == CreateChannel(Channel("c", (), every_s, "SELECT 1"))


def test_a_channel_is_dropped() -> None:
    assert parse_channel_statement("DROP CHANNEL Near ;") == DropChannel("Near")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("SELECT 1", "CREATE or DROP", id="something else"),
        pytest.param("DROP TABLE x", "CHANNEL", id="not a channel"),
        pytest.param("DROP CHANNEL x; DROP CHANNEL y", "the end", id="two statements"),
        pytest.param("CREATE CHANNEL _x() CONTINUOUS AS SELECT 1", "a letter", id="internal name"),
        pytest.param("CREATE CHANNEL x CONTINUOUS AS SELECT 1", "parameters", id="no list"),
        pytest.param("CREATE CHANNEL x(a BLOB) CONTINUOUS AS SELECT 1", "a type", id="no type"),
        pytest.param(
            "CREATE CHANNEL x(a INT, A INT) CONTINUOUS AS SELECT 1", "already", id="named twice"
        ),
        pytest.param("CREATE CHANNEL x() EVERY 0 SECONDS AS SELECT 1", "period", id="no time"),
        pytest.param("CREATE CHANNEL x() EVERY 2 DAYS AS SELECT 1", "MINUTES", id="days"),
        pytest.param("CREATE CHANNEL x() EVERY 9999 MINUTES AS SELECT 1", "a day", id="a week"),
        pytest.param("CREATE CHANNEL x() CONTINUOUS SELECT 1", "AS", id="no AS"),
        pytest.param("CREATE CHANNEL x() CONTINUOUS AS", "SELECT", id="no query"),
        pytest.param("CREATE CHANNEL x() CONTINUOUS AS " + "x" * 30_000, "at most", id="long"),
        pytest.param(f"DROP CHANNEL {'x' * 65}", "at most 64", id="long name"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_channel_statement(text)
