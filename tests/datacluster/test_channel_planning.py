"""Spark's plans of channels: forms that it decorrelates, and those that it refuses."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.datacluster.test_channel_query import dataset

from godwit.datacluster.channels.evaluation import verify
from godwit.datacluster.model.channel import Channel
from godwit.datacluster.model.dataset import Column, ColumnType
from godwit.datacluster.sql.channel_query import check
from godwit.errors import UsageError

PARAMETERS = (Column("t", ColumnType.STRING),)
FROM = "FROM NEW Reports r WHERE r.type = :t"
ALLOWED = {
    "every function": f"""SELECT lower(type) AS a, upper(type) AS b, length(type) AS c,
        trim(type) AS d, substring(type, 1, 2) AS e, concat(type, 'x') AS f, left(type, 1) AS g,
        type || 'y' AS h, contains(type, 'a') AS i, startswith(type, 'b') AS j,
        coalesce(type, '') AS k, round(lat, 2) AS l, pow(lat, 2) AS m, ln(lat) AS n,
        greatest(lat, lon) AS o, CASE WHEN lat > 1 THEN 'a' ELSE 'b' END AS p,
        if(lat > 1, 1, 2) AS q, nullif(lat, 0) AS r, hour(at) AS s, date_trunc('hour', at) AS t,
        cast(type AS INT) AS u, locate('a', type) AS v, lat % 2 AS w, type LIKE 'a%' AS x,
        at - INTERVAL 1 HOUR AS y, year(at) AS z, 1.5 AS aa {FROM}""",
    "every aggregate": f"""SELECT count(*) AS a, count(DISTINCT id) AS b, sum(id) AS c,
        avg(lat) AS d, min(lat) AS e, max(lat) AS f, max_by(id, severity) AS g,
        min_by(id, severity) AS h, stddev(lat) AS i, count_if(lat > 1) AS j {FROM} GROUP BY type""",
    "EXISTS": f"""SELECT r.id {FROM}
        AND EXISTS (SELECT 1 FROM Users u WHERE u.user_id = r.type AND u.lat < 3)""",
    "EXISTS of a parameter": f"""SELECT r.id {FROM}
        AND EXISTS (SELECT 1 FROM Users u WHERE u.user_id = :t AND u.lat < r.lat)""",
    "NOT EXISTS": f"""SELECT r.id {FROM}
        AND NOT EXISTS (SELECT 1 FROM Users u WHERE u.user_id = r.type)""",
    "IN a query": f"SELECT r.id {FROM} AND r.type IN (SELECT user_id FROM Users)",
    "a scalar query of the record": f"""SELECT r.id,
        (SELECT max(u.lat) FROM Users u WHERE u.user_id = r.type) AS m {FROM}""",
    "a scalar query of a parameter": f"""SELECT r.id,
        (SELECT count(*) FROM Users u WHERE u.user_id = :t) AS n {FROM}""",
    "a scalar query of nothing": f"SELECT r.id, (SELECT max(lat) FROM Users) AS m {FROM}",
    "DISTINCT": f"SELECT DISTINCT r.lat {FROM}",
    "a LEFT JOIN by a parameter": """SELECT r.id, u.lat FROM NEW Reports r
        LEFT JOIN Users u ON u.user_id = :t WHERE r.type = :t""",
    "the most frequent": f"""SELECT r.lat, count(*) AS n {FROM}
        GROUP BY r.lat ORDER BY n DESC LIMIT 3""",
    "the last hour": f"SELECT r.id {FROM} AND at > current_timestamp() - INTERVAL 1 HOUR",
}
REFUSED = {
    "NOT EXISTS without a key": (
        f"SELECT r.id {FROM} AND NOT EXISTS (SELECT 1 FROM Users u WHERE u.lat < r.lat)",
        "lacks a key",
    ),
    "a type that does not fit": (f"SELECT r.id {FROM} AND lat = at", "cannot be planned"),
    "a number as a condition": (f"SELECT r.id {FROM} AND lat", "cannot be planned"),
    "a column that is not grouped": (
        f"SELECT r.lat, count(*) AS n {FROM} GROUP BY r.lon",
        "cannot be planned",
    ),
    "an interval as a result": (f"SELECT at - at AS d {FROM}", "cast it"),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed(spark: SparkSession, name: str) -> None:
    verify(spark, check(Channel("c", PARAMETERS, 10.0, ALLOWED[name]), dataset))


@pytest.mark.parametrize("name", REFUSED)
def test_what_spark_refuses(spark: SparkSession, name: str) -> None:
    query, said = REFUSED[name]
    with pytest.raises(UsageError) as refused:
        verify(spark, check(Channel("c", PARAMETERS, 10.0, query), dataset))
    assert said in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
