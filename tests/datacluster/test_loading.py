"""Static datasets from files: accepted and refused files; a load replaces the one before."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.datacluster.stocking import made

from godwit.datacluster.datasets.loading import load
from godwit.datacluster.datasets.storage import Storage
from godwit.errors import UsageError

SHELTERS = "CREATE DATASET Shelters (id INT, name STRING, x DOUBLE, open BOOLEAN, since TIMESTAMP)"
CSV = """id,name,open,x,since,more
1,"Töölö, north",true,1.5,2020-01-01T00:00:00Z,m
2,,FALSE,-2,,
"""
JSON = """{"id": 1, "name": "Töölö, north", "open": true, "x": 1.5, "since": 1577836800, "more": 1}

{"id": 2, "open": false, "x": -2}
"""
EXPECTED = [(1, "Töölö, north", 1.5, True, 1577836800.0), (2, None, -2.0, False, None)]


def rows(storage: Storage) -> list[tuple[object, ...]]:
    found = storage.frame("Shelters", through=0).orderBy("_position").collect()
    assert [row["_batch"] for row in found] == [0] * len(found)
    return [
        (row["id"], row["name"], row["x"], row["open"], row["since"] and _seconds(row["since"]))
        for row in found
    ]


def _seconds(at: datetime) -> float:
    return at.timestamp()  # Spark returns local time without a zone.


def shelters(spark: SparkSession, folder: Path, *, key: str = "") -> Storage:
    return made(spark, folder / "cluster", f"{SHELTERS} {key} STATIC")[0]


def test_three_kinds_of_files_say_the_same(spark: SparkSession, tmp_path: Path) -> None:
    storage = shelters(spark, tmp_path)
    (tmp_path / "a.csv").write_text(CSV)
    (tmp_path / "a.json").write_text(JSON)
    columns = {
        "name": ["Töölö, north", None], "id": [1, 2], "x": [1.5, -2.0], "open": [True, False],
        "since": [datetime(2020, 1, 1, tzinfo=UTC), None],
    }  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    for name in ("a.csv", "a.json", "a.parquet"):
        assert load(storage, "shelters", tmp_path / name) == 2
        assert rows(storage) == EXPECTED
    assert storage.last_batch("Shelters") == 0


def test_of_a_key_the_last_record_counts(spark: SparkSession, tmp_path: Path) -> None:
    storage = shelters(spark, tmp_path, key="KEY id")
    (tmp_path / "a.json").write_text(
        '{"id": 1, "name": "a"}\n{"id": 2, "name": "b"}\n{"id": 1, "name": "c"}'
    )
    assert load(storage, "Shelters", tmp_path / "a.json") == 2
    assert rows(storage) == [(2, "b", None, None, None), (1, "c", None, None, None)]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.csv", "id,name\n1,x", "a.csv: column x is missing; the file has id, name"),
        ("a.csv", CSV + "x,,,,,", "a.csv: record 3: id: 'x' is not a whole number"),
        ("a.csv", CSV + "3,,maybe,,,", "a.csv: record 3: open: 'maybe' is neither"),
        ("a.json", '{"id": 1}\n{"id": 3000000000}', "record 2: id: 3000000000 does not fit"),
        ("a.json", '{"id": 1}\n{', "a.json: record 2: not a JSON object"),
        ("a.parquet", "PAR1", "a.parquet: cannot be read"),
        ("a.xml", "", "the name must end in one of .csv, .json, .jsonl, .parquet"),
        ("b.csv", None, "b.csv: cannot be read: .*No such file"),
    ],
)
def test_a_file_that_does_not_fit_changes_nothing(
    spark: SparkSession, tmp_path: Path, name: str, content: str | None, reason: str
) -> None:
    storage = shelters(spark, tmp_path)
    (tmp_path / "good.csv").write_text(CSV)
    load(storage, "Shelters", tmp_path / "good.csv")
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(UsageError, match=reason):
        load(storage, "Shelters", tmp_path / name)
    assert rows(storage) == EXPECTED
    assert not list((tmp_path / "cluster" / "data" / "staging").iterdir())


def test_what_is_fed_is_not_loaded(spark: SparkSession, tmp_path: Path) -> None:
    storage = made(spark, tmp_path, SHELTERS)[0]
    with pytest.raises(UsageError, match="only a STATIC dataset can be loaded"):
        load(storage, "Shelters", tmp_path / "a.csv")
