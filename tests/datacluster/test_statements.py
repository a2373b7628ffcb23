"""Statements that are accepted, and the errors for those that are not."""

from __future__ import annotations

import pytest

from godwit.datacluster.ddl.parsing import RESERVED, parse
from godwit.datacluster.ddl.statements import (
    CreateChannel,
    CreateDataset,
    CreateFeed,
    DropChannel,
    DropDataset,
    DropFeed,
    Statement,
)
from godwit.datacluster.model.channel import Channel
from godwit.datacluster.model.dataset import Column, ColumnType, Dataset
from godwit.datacluster.model.feed import Feed
from godwit.errors import TextError, UsageError

LOCATIONS = Dataset(
    "UserLocations",
    (
        Column("user_id", ColumnType.STRING),
        Column("x", ColumnType.DOUBLE),
        Column("at", ColumnType.TIMESTAMP),
    ),
    key="user_id",
)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        pytest.param(
            "CREATE DATASET UserLocations (user_id STRING, x DOUBLE, at TIMESTAMP) KEY user_id",
            CreateDataset(LOCATIONS),
            id="a dataset with a key",
        ),
        pytest.param(
            "create dataset\n UserLocations(user_id string,x double,at timestamp)key user_id ;",
            CreateDataset(LOCATIONS),
            id="words in lower case, few blanks, a semicolon",
        ),
        pytest.param(
            "CREATE DATASET Shelters (open BOOLEAN, beds INT, id BIGINT) STATIC",
            CreateDataset(
                Dataset(
                    "Shelters",
                    (
                        Column("open", ColumnType.BOOLEAN),
                        Column("beds", ColumnType.INT),
                        Column("id", ColumnType.BIGINT),
                    ),
                    is_static=True,
                )
            ),
            id="a static one",
        ),
        pytest.param(
            "CREATE FEED reports FROM FILTER \"class = 'EMERGENCY'\" INTO EmergencyReports",
            CreateFeed(Feed("reports", "class = 'EMERGENCY'", "EmergencyReports")),
            id="a feed",
        ),
        pytest.param(
            "CREATE FEED f FROM FILTER 'class = ''X'' and a > 1' INTO d",
            CreateFeed(Feed("f", "class = 'X' and a > 1", "d")),
            id="doubled quotes",
        ),
        pytest.param(
            "CREATE DATASET d (Id INT) KEY ID",
            CreateDataset(Dataset("d", (Column("Id", ColumnType.INT),), key="Id")),
            id="a key in other letters",
        ),
        pytest.param(
            "create channel Near(user_id STRING, metres double) every 10 seconds as SELECT 1;",
            CreateChannel(
                Channel(
                    "Near",
                    (Column("user_id", ColumnType.STRING), Column("metres", ColumnType.DOUBLE)),
                    10.0,
                    "SELECT 1",
                )
            ),
            id="a channel every ten seconds",
        ),
        pytest.param(
            "CREATE CHANNEL c() CONTINUOUS AS SELECT '--'  -- note\nFROM NEW d\n;\n",
            CreateChannel(Channel("c", (), None, "SELECT '--'  -- note\nFROM NEW d")),
            id="a continuous channel without parameters; its query stays as written",
        ),
        pytest.param(
            "CREATE CHANNEL c() EVERY 2 MINUTES AS SELECT 1",
            CreateChannel(Channel("c", (), 120.0, "SELECT 1")),
            id="a channel every two minutes",
        ),
        pytest.param(
            "CREATE CHANNEL c() EVERY 0.5 SECONDS AS SELECT 1",
            CreateChannel(Channel("c", (), 0.5, "SELECT 1")),
            id="a channel every half second",
        ),
        pytest.param(
            "-- all; of them\nDROP /* or\nnot */ DATASET--\nShelters; -- done",
            DropDataset("Shelters"),
            id="comments are blanks",
        ),
        pytest.param("DROP DATASET Shelters", DropDataset("Shelters"), id="drop a dataset"),
        pytest.param("DROP FEED reports;", DropFeed("reports"), id="drop a feed"),
        pytest.param("DROP CHANNEL Near ;", DropChannel("Near"), id="drop a channel"),
    ],
)
def test_a_statement_is_accepted(text: str, meant: Statement) -> None:
    assert parse(text) == meant


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        pytest.param("SELECT 1", 1, "CREATE or DROP", id="another language"),
        pytest.param("CREATE TABLE t (a INT)", 8, "DATASET, FEED or CHANNEL", id="another kind"),
        pytest.param("CREATE DATASET _t (a INT)", 16, "a letter, then", id="an underscore first"),
        pytest.param("CREATE DATASET `t` (a INT)", 16, "a letter, then", id="quotes around a name"),
        pytest.param("CREATE DATASET é (a INT)", 16, "a letter, then", id="no ASCII letter"),
        pytest.param(f"CREATE DATASET {'t' * 65} (a INT)", 16, "at most 64", id="a long name"),
        pytest.param(
            "CREATE DATASET t_quarantine (a INT)", 16, "not end in _quarantine", id="our own name"
        ),
        pytest.param("CREATE DATASET t", 17, "( and the columns", id="no columns"),
        pytest.param("CREATE DATASET t ()", 19, "the name of a column", id="an empty list"),
        pytest.param("CREATE DATASET t (_batch INT)", 19, "a letter, then", id="our own column"),
        pytest.param("CREATE DATASET t (a INT, A INT)", 26, "another name", id="a column twice"),
        pytest.param("CREATE DATASET t (a TEXT)", 21, "a type: STRING, BOOLEAN", id="another type"),
        pytest.param("CREATE DATASET t (a INT b INT)", 25, ", or )", id="a comma missing"),
        pytest.param("CREATE DATASET t (a INT) KEY b", 30, "columns: a", id="a key that is none"),
        pytest.param("CREATE DATASET t (a INT) KEY a KEY a", 32, "the end", id="two keys"),
        pytest.param("CREATE DATASET t (a INT); DROP FEED f", 27, "the end", id="two statements"),
        pytest.param("CREATE FEED f FROM FILTER x INTO t", 27, "in quotes", id="a bare filter"),
        pytest.param("CREATE FEED f FROM FILTER 'a = ' INTO t", 27, "column 5", id="a bad filter"),
        pytest.param("CREATE FEED f FROM FILTER 'a = 1", 27, "a closing '", id="an open quote"),
        pytest.param("CREATE FEED f FROM FILTER 'a = 1' t", 35, "INTO", id="no INTO"),
        pytest.param("/* DROP FEED f", 1, "CREATE or DROP", id="an open comment"),
        pytest.param("CREATE CHANNEL _x() CONTINUOUS", 16, "a letter, then", id="our own channel"),
        pytest.param("CREATE CHANNEL x CONTINUOUS", 18, "( and the parameters", id="no list"),
        pytest.param("CREATE CHANNEL x(_s INT)", 18, "a letter, then", id="our own parameter"),
        pytest.param("CREATE CHANNEL x(a BLOB)", 20, "a type: STRING", id="a parameter's type"),
        pytest.param("CREATE CHANNEL x(a INT, A INT)", 25, "already", id="a parameter twice"),
        pytest.param("CREATE CHANNEL x() AS SELECT 1", 20, "EVERY or CONT", id="no period"),
        pytest.param("CREATE CHANNEL x() EVERY 0 SECONDS", 26, "above zero", id="no time"),
        pytest.param("CREATE CHANNEL x() EVERY 2 DAYS", 28, "SECONDS or MINUTES", id="days"),
        pytest.param("CREATE CHANNEL x() EVERY 9999 MINUTES", 26, "a day", id="a week"),
        pytest.param("CREATE CHANNEL x() CONTINUOUS SELECT 1", 31, "AS", id="no AS"),
        pytest.param("CREATE CHANNEL x() CONTINUOUS AS", 33, "SELECT", id="no query"),
        pytest.param("DROP CHANNEL x; DROP CHANNEL y", 17, "the end", id="two channels"),
        pytest.param(f"DROP CHANNEL {'x' * 65}", 14, "at most 64", id="a channel's long name"),
        pytest.param("DROP DATASET", 13, "the name of the dataset", id="drop nothing"),
    ],
)
def test_an_error_names_the_column_and_the_rule(text: str, column: int, expected: str) -> None:
    with pytest.raises(TextError, match="expected") as raised:
        parse(text)
    assert raised.value.column == column
    assert expected in str(raised.value)


@pytest.mark.parametrize("word", sorted(RESERVED))
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("CREATE DATASET ", " (a INT)", id="dataset"),
        pytest.param("CREATE DATASET t (", " INT)", id="column"),
        pytest.param("CREATE FEED ", " FROM FILTER 'a = 1' INTO t", id="feed"),
        pytest.param("CREATE FEED f FROM FILTER 'a = 1' INTO ", "", id="the dataset of a feed"),
        pytest.param("CREATE CHANNEL ", "() CONTINUOUS AS SELECT 1", id="channel"),
        pytest.param("CREATE CHANNEL c(", " INT) CONTINUOUS AS SELECT 1", id="parameter"),
        pytest.param("DROP CHANNEL ", "", id="drop"),
    ],
)
def test_reserved_words_are_not_names(before: str, after: str, word: str) -> None:
    with pytest.raises(TextError, match=f"{word.upper()} is a reserved word") as raised:
        parse(before + word + after)
    assert raised.value.column == len(before) + 1
    parse(f"{before}{word}_{after}")


def test_lengths_are_limited() -> None:
    def columns(count: int) -> str:
        return ", ".join(f"a{n} INT" for n in range(count))

    parse(f"CREATE DATASET t ({columns(256)})")
    with pytest.raises(TextError, match="at most 256 columns"):
        parse(f"CREATE DATASET t ({columns(257)})")
    parse(f"CREATE CHANNEL c({columns(32)}) CONTINUOUS AS SELECT 1")
    with pytest.raises(TextError, match="at most 32 parameters"):
        parse(f"CREATE CHANNEL c({columns(33)}) CONTINUOUS AS SELECT 1")
    with pytest.raises(UsageError, match="at most 1000000 characters"):
        parse("x" * 1_000_001)
    channel = "CREATE CHANNEL c() CONTINUOUS AS "
    parse(channel + "x" * (20_000 - len(channel)))
    with pytest.raises(UsageError, match="at most 20000 characters"):
        parse(channel + "x" * (20_001 - len(channel)))
