"""Commits of batches: the catalog of the data cluster beside a Delta table.

    pip install deltalake
    python -m benchmarks.open_tables [--batches 300] [--records 100]

Both write a Parquet file for each batch, sync it, and commit it with the number of the batch, so
that a batch that is repeated is recognised.  In turns, in one process, without Spark.  Printed are
commits a second, the time of a commit, and how long a reader takes to find the files of the table.
deltalake is not needed by Godwit; without it only the catalog is measured.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from godwit.datacluster.catalog import Catalog
from godwit.datacluster.datasets.definitions import Definitions
from godwit.datacluster.datasets.files import Files, IngestProgress
from godwit.datacluster.datasets.folders import Folders
from godwit.datacluster.disk import sync

QUERY = "benchmark"


def batch(number: int, records: int) -> pa.Table:
    first = number * records
    return pa.table(
        {
            "name": [f"name {n}" for n in range(first, first + records)],
            "value": [float(n) for n in range(first, first + records)],
            "_accepted_s": [float(n) for n in range(first, first + records)],
            "_position": list(range(first + 1, first + records + 1)),
            "_batch": [number + 1] * records,
        }
    )


class CatalogTable:
    def __init__(self, folder: Path) -> None:
        self._catalog = Catalog(folder)
        Definitions(self._catalog)
        self._files, self._folders = Files(self._catalog), Folders(folder)

    def commit(self, number: int, records: pa.Table) -> bool:
        """False if it has been committed before."""
        before = self._files.progress(1)
        if before.query_batch >= number:
            return False
        with self._folders.staging() as staged:
            staged.mkdir()
            pq.write_table(records, staged / "batch.parquet")
            files = self._folders.publish(1, staged)
        last = before.position + records.num_rows
        self._files.commit(1, before, IngestProgress(number + 1, last, QUERY, number), files)
        return True

    def paths(self) -> int:
        return len(self._files.of(1))


class DeltaTable:
    def __init__(self, folder: Path) -> None:
        import deltalake  # type: ignore[import-not-found]  # noqa: PLC0415  Only for this benchmark.

        self._delta, self._folder = deltalake, folder

    def commit(self, number: int, records: pa.Table) -> bool:
        if number:
            done = self._delta.DeltaTable(str(self._folder)).transaction_version(QUERY)
            if done is not None and done >= number:
                return False
        transaction = self._delta.Transaction(QUERY, number)
        properties = self._delta.CommitProperties(app_transactions=[transaction])
        self._delta.write_deltalake(
            str(self._folder), records, mode="append", commit_properties=properties
        )
        self._sync(self._folder / "_delta_log" / f"{number:020}.json")
        return True

    def _sync(self, commit: Path) -> None:
        """The library does not sync the files of a commit."""
        for line in commit.read_bytes().splitlines():
            if added := msgspec.json.decode(line).get("add"):
                sync(self._folder / added["path"])
        sync(commit)
        sync(commit.parent)

    def paths(self) -> int:
        return len(self._delta.DeltaTable(str(self._folder)).file_uris())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--records", type=int, default=100)
    given, console = parser.parse_args(), Console()
    with tempfile.TemporaryDirectory(prefix="godwit-") as folder:
        tables: dict[str, CatalogTable | DeltaTable] = {"catalog": CatalogTable(Path(folder, "a"))}
        try:
            tables["delta"] = DeltaTable(Path(folder, "b"))
        except ImportError:
            console.print("deltalake is not installed")
        took_s: dict[str, list[float]] = {name: [] for name in tables}
        for number in range(given.batches):
            records = batch(number, given.records)
            for name, table in tables.items():
                took_s[name].append(timed(lambda t=table, n=number, r=records: t.commit(n, r)))  # type: ignore[misc]
        for name, table in tables.items():
            assert not table.commit(given.batches - 1, records), "a repeated batch is recognised"
            assert table.paths() == given.batches
            found_s = timed(table.paths)
            quantiles = statistics.quantiles(took_s[name], n=100)
            console.print(
                f"{name}: {given.batches / sum(took_s[name]):.0f} commits/s, p50"
                f" {quantiles[49] * 1000:.1f} ms, p99 {quantiles[98] * 1000:.1f} ms;"
                f" {given.batches} files found in {found_s * 1000:.1f} ms"
            )


def timed(step: Callable[[], object]) -> float:
    begun_s = time.perf_counter()
    step()
    return time.perf_counter() - begun_s


if __name__ == "__main__":
    main()
