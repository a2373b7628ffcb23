"""A result that is larger than Spark's memory.

    python -m benchmarks.large_results [--subscriptions 2000] [--records 3000]

Every subscription of a channel gets every new record, of about 300 bytes: by default 6 million
rows, 1.9 GB as brokers receive them, with 2 GiB for Spark's driver.  Printed are the time of the
execution, rows a second, and the peak memory of this process and of Java.  Then one subscription
is pulled, and all of them in pulls of 4 MiB for ten seconds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tests.datacluster.memory_snapshots import MemorySnapshots

from benchmarks.usage import peak_mebibytes
from godwit.api.datacluster_api import Pull, PullFrom, Subscribe, Wanted
from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channels.channel_service import ChannelService
from godwit.datacluster.ddl.parsing import parse
from godwit.datacluster.ddl.statements import CreateChannel
from godwit.datacluster.model.dataset import Column, ColumnType, Dataset
from godwit.spark.session import spark_session
from godwit.spark.supervised import SupervisedSpark

REPORTS = Dataset(
    "Reports",
    (
        Column("id", ColumnType.BIGINT),
        Column("kind", ColumnType.STRING),
        Column("text", ColumnType.STRING),
    ),
)
CHANNEL = """CREATE CHANNEL Everything(kind STRING, above BIGINT) CONTINUOUS AS
    SELECT id, text FROM NEW Reports WHERE kind = :kind AND id > :above"""
PULL_BYTES = 4 * 2**20
PULLING_S = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_results", description=__doc__)
    parser.add_argument("--subscriptions", type=int, default=2_000)
    parser.add_argument("--records", type=int, default=3_000)
    arguments = parser.parse_args()
    spark = spark_session(application="benchmark")
    with tempfile.TemporaryDirectory() as folder:
        snapshots = MemorySnapshots(spark, REPORTS)
        channels = ChannelService(
            SupervisedSpark(lambda: spark), Catalog(Path(folder)), snapshots, Path(folder)
        )
        statement = parse(CHANNEL)
        assert isinstance(statement, CreateChannel)
        channels.apply(statement, now_s=0.0)
        wanted = [
            Wanted(channel="Everything", arguments={"kind": "fire", "above": -n})
            for n in range(arguments.subscriptions)
        ]
        granted = channels.brokers.subscribe(Subscribe(broker="A", subscriptions=wanted))
        ids = [each.id for each in granted.subscriptions if each.id is not None]
        records = [
            {"id": n + 1, "kind": "fire", "text": f"{n:>300}"} for n in range(arguments.records)
        ]
        snapshots.append("Reports", records)
        begun_s = time.perf_counter()
        outcome = channels.execute("Everything", now_s=1.0)
        took_s = time.perf_counter() - begun_s
        assert outcome is not None
        if outcome.error is not None:
            print(f"failed after {took_s:.1f} s: {outcome.error}")
            return
        java = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]  # noqa: SLF001
        print(
            f"{outcome.rows:,} rows, {outcome.bytes / 1e9:.2f} GB in {took_s:.1f} s"
            f" ({outcome.rows / took_s:,.0f} rows/s);"
            f" peaks: Python {peak_mebibytes():,.0f} MiB, Java {peak_mebibytes(java):,.0f} MiB"
        )
        begun_s = time.perf_counter()
        rows = pulled(channels, ids[:1])
        print(f"one subscription: {rows:,} rows in {time.perf_counter() - begun_s:.2f} s")
        begun_s, rows, pulls, starts = time.perf_counter(), 0, 0, dict.fromkeys(ids, (1, 0))
        while time.perf_counter() - begun_s < PULLING_S:
            rows += advance(channels, starts)
            pulls += 1
        print(
            f"{pulls} pulls of all: {rows:,} rows in {time.perf_counter() - begun_s:.1f} s;"
            f" peak: Python {peak_mebibytes():,.0f} MiB"
        )
        channels.close()
    spark.stop()


def pulled(channels: ChannelService, ids: list[int]) -> int:
    starts, rows = dict.fromkeys(ids, (1, 0)), 0
    while taken := advance(channels, starts):
        rows += taken
    return rows


def advance(channels: ChannelService, starts: dict[int, tuple[int, int]]) -> int:
    """Pull once from each start; the number of rows."""
    request = Pull(
        broker="A",
        pulls=[PullFrom(id=id, start=start) for id, start in starts.items()],
        limit_bytes=PULL_BYTES,
    )
    found = channels.brokers.pull(request).pulled
    starts.update({each.id: each.end for each in found})
    return sum(len(part.rows) for each in found for part in each.results)


if __name__ == "__main__":
    main()
