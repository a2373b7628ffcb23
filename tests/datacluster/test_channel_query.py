"""Queries that a channel may have, and those that are refused: each with one sentence."""

from __future__ import annotations

import pytest
from tests.datacluster.memory_snapshots import REPORTS, SHELTERS, USERS

from godwit.datacluster.model.channel import Channel
from godwit.datacluster.model.dataset import Column, ColumnType, Dataset
from godwit.datacluster.sql.channel_query import CheckedQuery, Source, check
from godwit.datacluster.sql.rewriting import rewrite_for_all
from godwit.errors import UsageError

DATASETS = {dataset.name.lower(): dataset for dataset in (REPORTS, USERS, SHELTERS)}


def dataset(name: str) -> Dataset:
    if name.lower() not in DATASETS:
        raise UsageError(f"there is no dataset {name}")
    return DATASETS[name.lower()]


def checked(query: str) -> CheckedQuery:
    return check(Channel("c", (Column("t", ColumnType.STRING),), 10.0, query), dataset)


def test_names_are_resolved_and_spelled_as_they_were() -> None:
    query = checked("SELECT Id, r.Type AS Kind FROM NEW reports r WHERE TYPE = :T")
    assert query.columns == ("Id", "Kind")
    assert query.sources == (Source("Reports", is_new=True),)


def test_a_star_is_every_column_but_the_internal_ones() -> None:
    query = checked("SELECT * FROM NEW Reports WHERE type = :t")
    assert query.columns == ("id", "type", "severity", "lat", "lon", "at")


def test_new_and_all_of_one_dataset() -> None:
    query = checked(
        "SELECT a.id FROM NEW Reports a JOIN Reports b ON a.lat = b.lat WHERE a.type = :t"
    )
    assert query.sources == (Source("Reports", is_new=True), Source("Reports", is_new=False))


def test_parameters_become_columns_of_the_subscriptions() -> None:
    made = rewrite_for_all(checked("SELECT id FROM NEW Reports WHERE type = :t"))
    assert made.tree.sql("spark") == (
        "SELECT `_s`.`_subscription` AS `_subscription`, `reports`.`id` AS `id` FROM _s AS `_s`"
        " JOIN `_new_reports` AS `reports` ON `reports`.`type` = `_s`.`t`"
    )


@pytest.mark.parametrize("text", [r"'it\'s; DROP TABLE x --'", r"'a\\'", "'`'", "'/*'"])
def test_texts_stay_texts(text: str) -> None:
    made = rewrite_for_all(checked(f"SELECT id, {text} AS s FROM NEW Reports WHERE type = :t"))
    assert f" {text} AS `s`" in made.tree.sql("spark")


WHERE = "FROM NEW Reports r WHERE r.type = :t"
REFUSED = {
    # Not one SELECT.
    "another statement": ("DROP TABLE x", "one SELECT"),
    "two statements": (f"SELECT id {WHERE}; DROP TABLE x", "one SELECT"),
    "a union": (f"SELECT id {WHERE} UNION SELECT 1 AS id FROM Users", "one SELECT"),
    "an insert": ("INSERT INTO Users SELECT * FROM NEW Reports", "one SELECT"),
    "values": ("VALUES (1)", "one SELECT"),
    "no SQL at all": (f"SELECT id {WHERE})", "cannot be read"),
    "no FROM": ("SELECT :t AS t", "FROM"),
    "nested a thousand times": (f"SELECT {'(' * 3000}1{')' * 3000} AS x {WHERE}", "too deeply"),
    # Clauses.
    "a hint": (f"SELECT /*+ BROADCAST(r) */ id {WHERE}", "a hint"),
    "a lateral view": (
        "SELECT id FROM NEW Reports LATERAL VIEW explode(array(1)) e AS x WHERE type = :t",
        "LATERAL VIEW",
    ),
    "a sample": ("SELECT id FROM NEW Reports TABLESAMPLE (9 ROWS) WHERE type = :t", "TABLESAMPLE"),
    "an older version": ("SELECT id FROM NEW Reports VERSION AS OF 1 WHERE type = :t", "VERSION"),
    "a window": (f"SELECT rank() OVER (ORDER BY id) AS n {WHERE}", "RANK"),
    "USING": ("SELECT id FROM NEW Reports JOIN Users USING (lat) WHERE type = :t", "USING"),
    "a script": (f"SELECT TRANSFORM(id) USING 'cat' AS x {WHERE}", "USING 'cat'"),
    "rollup": (f"SELECT count(*) AS n {WHERE} GROUP BY ROLLUP (r.type)", "ROLLUP"),
    "an order for nothing": (
        f"SELECT id {WHERE} ORDER BY id",
        "ORDER BY and LIMIT need each other",
    ),
    "any three": (f"SELECT id {WHERE} LIMIT 3", "ORDER BY and LIMIT need each other"),
    "an order within": (
        "SELECT id FROM (SELECT id, type FROM NEW Reports ORDER BY id LIMIT 1) r WHERE type = :t",
        "at the end",
    ),
    "a limit that is a parameter": (f"SELECT id {WHERE} ORDER BY id LIMIT :t", "number"),
    "the first few different ones": (
        f"SELECT DISTINCT id {WHERE} ORDER BY id LIMIT 2",
        "not both",
    ),
    "a full join": ("SELECT id FROM NEW Reports r FULL JOIN Users u ON type = :t", "FULL"),
    "a right join": ("SELECT id FROM NEW Reports r RIGHT JOIN Users u ON type = :t", "RIGHT"),
    # Tables.
    "a file": ("SELECT id FROM NEW Reports JOIN parquet.`/etc` p ON type = :t", "not a name"),
    "another database": ("SELECT id FROM NEW Reports JOIN x.Users u ON type = :t", "with a dot"),
    "a table function": ("SELECT id FROM NEW Reports JOIN range(9) ON type = :t", "is not one"),
    "a name that is computed": ("SELECT id FROM IDENTIFIER('x') WHERE type = :t", "is not one"),
    "an unknown dataset": ("SELECT id FROM NEW Nope WHERE type = :t", "no dataset Nope"),
    "nothing new": ("SELECT id FROM Reports WHERE type = :t", "needs NEW"),
    "new on the side": (
        "SELECT u.lat FROM Users u LEFT JOIN NEW Reports r ON type = :t WHERE u.user_id = :t",
        "needs NEW",
    ),
    "static, but new": (
        "SELECT id FROM NEW Reports r JOIN NEW Shelters s ON s.type = :t AND r.type = :t",
        "static",
    ),
    # Columns and parameters.
    "an unknown column": (f"SELECT nope {WHERE}", "nope"),
    "an ambiguous column": (
        "SELECT lat FROM NEW Reports r JOIN Users u ON u.user_id = type WHERE type = :t",
        "lat",
    ),
    "an internal column": (f"SELECT _batch {WHERE}", "not a name"),
    "an internal table": ("SELECT id FROM _s JOIN NEW Reports r ON r.type = :t", "not a name"),
    "a strange name": (f"SELECT id AS `a b` {WHERE}", "not a name"),
    "a name twice": (f"SELECT id, lat AS ID {WHERE}", "two columns"),
    "a value without name": (f"SELECT id + 1 {WHERE}", "with AS"),
    "a parameter that is not there": (f"SELECT id {WHERE} AND lat = :x", "no parameter :x"),
    "a parameter nobody uses": ("SELECT id FROM NEW Reports", "does not use the parameter :t"),
    "a parameter by position": (f"SELECT id {WHERE} AND lat = ?", "no parameter"),
    "a variable": (f"SELECT ${{x}} AS x {WHERE}", "may not use"),
    # Functions.
    "java": (f"SELECT java_method('java.lang.System', 'exit', 1) AS x {WHERE}", "java_method"),
    "reflection": (f"SELECT reflect('java.lang.System', 'exit', 1) AS x {WHERE}", "reflect"),
    "who am I": (f"SELECT current_user() AS x {WHERE}", "current_user"),
    "dice": (f"SELECT rand() AS x {WHERE}", "rand"),
    "files": (f"SELECT input_file_name() AS x {WHERE}", "input_file_name"),
    "sleep": (f"SELECT id {WHERE} AND sleep(9) = 1", "sleep"),
    "much memory": (f"SELECT repeat('x', 2000000000) AS x {WHERE}", "repeat"),
    "an array": (f"SELECT collect_list(id) AS x {WHERE} GROUP BY type", "array_agg"),
    "a slow pattern": (f"SELECT id {WHERE} AND type RLIKE '(a+)+b'", "may not"),
    "distance of three": (f"SELECT distance(1, 2, 3) AS x {WHERE}", "lat1"),
    "an aggregate of nothing": (f"SELECT count(*) AS n {WHERE}", "GROUP BY"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    query, said = REFUSED[name]
    with pytest.raises(UsageError) as refused:
        rewrite_for_all(checked(query))
    assert said in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


LACKING = {
    "no condition": "SELECT r.id FROM NEW Reports r JOIN Users u ON r.type = :t",
    "one end only": "SELECT id FROM NEW Reports r WHERE r.severity > length(:t)",
    "or": "SELECT id FROM NEW Reports r WHERE r.type = :t OR r.lat > 0",
    "unequal": "SELECT id FROM NEW Reports r WHERE r.type <> :t",
    "texts in between": "SELECT id FROM NEW Reports r WHERE r.type BETWEEN :t AND :t",
    "far away": "SELECT id FROM NEW Reports r WHERE distance(lat, lon, 1, length(:t)) > 9",
    "a radius of the record": (
        "SELECT id FROM NEW Reports r WHERE distance(lat, lon, 1, length(:t)) < r.severity"
    ),
    "on the left": (
        "SELECT r.id FROM NEW Reports r LEFT JOIN Users u ON u.lat > r.lat WHERE r.type = :t"
    ),
}


@pytest.mark.parametrize("name", LACKING)
def test_a_channel_lacks_a_key(name: str) -> None:
    with pytest.raises(UsageError, match="lacks a key"):
        rewrite_for_all(checked(LACKING[name]))
