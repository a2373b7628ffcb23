"""Datasets are read without Godwit: by SQLite and pandas, and by a plain Spark."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.datacluster.stocking import KEYED, UNKEYED, made, store

from godwit.datacluster.datasets.compaction import CompactionSettings, compact

MANUAL = Path(__file__).parents[2] / "docs" / "datacluster.md"
EAGER = CompactionSettings(fan_in=2, fold_rows=4, fold_ratio=0.0)


def recipe() -> str:
    """The example of the manual."""
    section = MANUAL.read_text().split("### Read a dataset without Godwit")[1]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("statement", [KEYED, UNKEYED])
def test_the_recipe_of_the_manual(spark: SparkSession, tmp_path: Path, statement: str) -> None:
    storage, known = made(spark, tmp_path, statement)
    for users in (["a", "b"], ["a", "c", "a"], ["b"]):
        store(storage, known, users)
        compact(storage, known, 2, EAGER)  # Files that were merged do not count twice.
    code = recipe().replace('"data"', repr(str(tmp_path))).replace("Readings", "places")
    names: dict[str, object] = {}
    exec(code.replace('"sensor"', '"user"'), names)  # noqa: S102  Our own manual.
    records, latest = names["records"], names["latest"]
    if statement == UNKEYED:
        assert list(records["user"]) == ["a", "b", "a", "c", "a", "b"]  # type: ignore[index]
    assert sorted(zip(latest["user"], latest["n"], strict=True)) == [  # type: ignore[index]
        ("a", 5), ("b", 6), ("c", 4),
    ]  # fmt: skip
    paths = names["paths"]
    assert isinstance(paths, list)
    by_spark = spark.read.parquet(*paths)
    assert by_spark.count() == len(records)  # type: ignore[arg-type]
    assert [field.dataType.simpleString() for field in by_spark.schema.fields[:3]] == [
        "string", "timestamp", "int",
    ]  # fmt: skip
    storage.close()


def test_readers_do_not_disturb(spark: SparkSession, tmp_path: Path) -> None:
    storage, known = made(spark, tmp_path, UNKEYED)
    reader = sqlite3.connect(f"file:{tmp_path}/catalog.db?mode=ro", uri=True)
    store(storage, known, ["a"])
    reading = reader.execute("SELECT path FROM dataset_files")  # Not ended.
    store(storage, known, ["b"])
    compact(storage, known, 0, EAGER)
    (path,) = reading.fetchone()
    assert (tmp_path / path).exists(), "it was replaced, and is kept for a while"
    reader.close()
    storage.close()
