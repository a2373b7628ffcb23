"""What can be said, and what is answered to what cannot."""

from __future__ import annotations

import pytest

from godwit.datacluster.dataset import Column, ColumnType, Dataset
from godwit.datacluster.feed import Feed
from godwit.datacluster.statements import (
    CreateDataset,
    CreateFeed,
    DropDataset,
    DropFeed,
    Statement,
    parse,
)
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
        pytest.param("DROP DATASET Shelters", DropDataset("Shelters"), id="drop a dataset"),
        pytest.param("DROP FEED reports;", DropFeed("reports"), id="drop a feed"),
    ],
)
def test_what_can_be_said(text: str, meant: Statement) -> None:
    assert parse(text) == meant


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        pytest.param("SELECT 1", 1, "CREATE or DROP", id="another language"),
        pytest.param("CREATE TABLE t (a INT)", 8, "DATASET or FEED", id="another kind"),
        pytest.param("CREATE DATASET _t (a INT)", 16, "a letter, then", id="an underscore first"),
        pytest.param("CREATE DATASET `t` (a INT)", 16, "a letter, then", id="quotes around a name"),
        pytest.param("CREATE DATASET é (a INT)", 16, "a letter, then", id="no ASCII letter"),
        pytest.param(f"CREATE DATASET {'t' * 65} (a INT)", 16, "at most 64", id="a long name"),
        pytest.param(
            "CREATE DATASET new (a INT)", 16, "a word of the queries", id="a reserved word"
        ),
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
        pytest.param("DROP DATASET", 13, "the name of a dataset", id="drop nothing"),
    ],
)
def test_what_cannot(text: str, column: int, expected: str) -> None:
    with pytest.raises(TextError, match="expected") as raised:
        parse(text)
    assert raised.value.column == column
    assert expected in str(raised.value)


def test_columns_are_limited() -> None:
    def columns(count: int) -> str:
        return ", ".join(f"a{n} INT" for n in range(count))

    parse(f"CREATE DATASET t ({columns(256)})")
    with pytest.raises(TextError, match="at most 256 columns"):
        parse(f"CREATE DATASET t ({columns(257)})")
    with pytest.raises(UsageError, match="at most 1000000 characters"):
        parse("x" * 1_000_001)
