"""A full disk: a clear error, nothing acknowledged is lost, and the log remains usable."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from godwit.datacluster.catalog import Catalog

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "segment_bytes",
    [pytest.param(10_000_000, id="first segment"), pytest.param(5_000, id="later segment")],
)
def test_a_log_on_a_full_disk(tmp_path: Path, segment_bytes: int) -> None:
    """In a separate process, whose files may not grow beyond some size for a while."""
    command = [sys.executable, "-m", "tests.datacluster.filling"]
    ran = subprocess.run(  # noqa: S603  Our own.
        [*command, str(tmp_path), str(segment_bytes)],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.stdout == "good\n", ran.stderr


def insert_two(catalog: Catalog) -> None:
    with catalog.transaction() as connection:
        connection.execute("INSERT INTO t VALUES ('half')")
        connection.execute("INSERT INTO t VALUES (?)", ("x" * 100_000,))


def test_a_catalog_on_a_full_disk(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.define("CREATE TABLE IF NOT EXISTS t (text TEXT)")
    with catalog.transaction() as connection:
        connection.execute("INSERT INTO t VALUES ('before')")
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    catalog._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(sqlite3.OperationalError, match="full"):
        insert_two(catalog)
    catalog._connection.execute("PRAGMA max_page_count = 1000000")
    with catalog.transaction() as connection:
        connection.execute("INSERT INTO t VALUES ('after')")
        texts = [row["text"] for row in connection.execute("SELECT text FROM t")]
    assert texts == ["before", "after"]
