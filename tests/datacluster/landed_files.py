"""The records of a dataset according to its catalog, read without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from godwit.datacluster.catalog import Catalog
from godwit.datacluster.datasets.definitions import Definitions
from godwit.datacluster.datasets.files import Files
from godwit.datacluster.datasets.folders import Folders


def records(folder: Path, name: str) -> list[dict[str, object]]:
    """In the order of their positions."""
    catalog = Catalog(folder)
    known = Definitions(catalog).entry(name)
    files = Files(catalog).of(known.id)
    catalog.close()
    folders = Folders(folder)
    tables = [pq.read_table(folders.path(file)) for file in files]
    rows: list[dict[str, object]] = (
        pa.concat_tables(tables, promote_options="default").sort_by("_position").to_pylist()
    )
    return rows


def check(folder: Path, sent: int) -> None:
    """`sent` records of each source of feeding.py are there: each once, in order, without gaps."""
    for name, is_bad in (("Reports", False), ("Reports_quarantine", True)):
        found = records(folder, name)
        assert [row["_position"] for row in found] == list(range(1, len(found) + 1))
        batches = [row["_batch"] for row in found]
        assert set(batches) == set(range(1, max(map(int, map(str, batches))) + 1))
        assert batches == sorted(batches, key=lambda batch: int(str(batch)))
        column = "sequence" if is_bad else "n"
        wanted = [n for n in range(1, sent + 1) if (n % 7 == 0) is is_bad]
        for source in ("a", "b"):
            assert [row[column] for row in found if row["source"] == source] == wanted
