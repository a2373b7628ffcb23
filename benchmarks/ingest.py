"""Throughput and latency of records into a dataset.

    python -m benchmarks ingest [--quick]

Records of about 500 bytes, as publications, are put into an inbox as fast as it accepts them:
checked, synced to disk, read by Spark, written to Parquet, added to the catalog.  The clock stops
when the last one is in the dataset.  The reference, in the same run, is pyarrow writing the same
records to Parquet files, in chunks of the same size: no checks, no log, no query.

On a busy machine the wall clock also measures other processes.  So the processor time of all our
processes, Java included, is measured as well: the throughput of one core.

The latency is measured separately, at a steady rate well below that: from when an inbox has
accepted a record to when its batch is reported.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.report import Row
from benchmarks.usage import processor_s
from godwit.datacluster.catalog import Catalog
from godwit.datacluster.datasets.dataset_service import DatasetService
from godwit.datacluster.datasets.inbox import Inbox, Incoming
from godwit.datacluster.datasets.storage import Storage
from godwit.datacluster.ddl.parsing import parse
from godwit.datacluster.ddl.statements import CreateDataset
from godwit.datacluster.log.segments import FullError
from godwit.spark.session import spark_session
from godwit.spark.supervised import SupervisedSpark

STATEMENT = """CREATE DATASET Reports (id BIGINT, kind STRING, severity DOUBLE, x DOUBLE, y DOUBLE,
    at TIMESTAMP, is_confirmed BOOLEAN, reporter STRING, street STRING, text STRING)"""
RECORDS, RECORDS_QUICK = 600_000, 200_000
WARM_UP = 60_000
AT_A_TIME = 1_000
RECORDS_PER_S_BAR = 20_000
LATENCY_RECORDS_PER_S = 2_000
LATENCY_S, LATENCY_S_QUICK = 40.0, 15.0
INTERVAL_S = 0.05
KINDS = ("fire", "flood", "storm", "accident", "outage", "leak", "crime", "quake")


def reports(count: int, random: Random) -> list[dict[str, object]]:
    return [
        {
            "id": n,
            "kind": KINDS[n % len(KINDS)],
            "severity": random.random(),
            "x": random.uniform(0, 1e4),
            "y": random.uniform(0, 1e4),
            "at": 1.7e9 + n / 100,
            "is_confirmed": n % 3 == 0,
            "reporter": f"user-{random.randrange(10**6):06d}",
            "street": f"{random.randrange(1, 200)} {random.randbytes(12).hex()} street",
            "text": random.randbytes(120).hex(),
        }
        for n in range(count)
    ]


class Cluster:
    """A data cluster with one dataset, and when each batch was stored."""

    def __init__(self, folder: Path) -> None:
        self.spark = spark_session(application="benchmark")
        self.storage = Storage(SupervisedSpark(lambda: self.spark), Catalog(folder), folder)
        self._arrived = threading.Condition()
        self.batches: list[tuple[int, float]] = []
        self.landing = DatasetService(
            self.storage, on_batch=self._on_batch, horizon=self.storage.last_batch
        )
        statement = parse(STATEMENT)
        assert isinstance(statement, CreateDataset)
        self.landing.execute(statement)
        self.inbox: Inbox = self.landing.inbox("Reports")
        self._dataset = self.storage.definitions.entry("Reports").id

    def _on_batch(self, name: str, batch: int) -> None:
        position = self.storage.files.progress(self._dataset).position
        with self._arrived:
            self.batches.append((position, time.perf_counter()))
            self._arrived.notify_all()

    def wait_for(self, position: int) -> None:
        with self._arrived:
            while not self.batches or self.batches[-1][0] < position:
                self._arrived.wait()

    def close(self) -> None:
        self.landing.close()
        self.storage.close()
        self.spark.stop()


def incoming(records: Sequence[dict[str, object]], first: int) -> list[Incoming]:
    now_s = time.time()
    return [Incoming("p", first + n, record, now_s) for n, record in enumerate(records)]


def fill(cluster: Cluster, records: Sequence[dict[str, object]], first: int) -> tuple[float, float]:
    """Seconds until all are accepted, and until all are in the dataset."""
    start = time.perf_counter()
    for place in range(0, len(records), AT_A_TIME):
        chunk = incoming(records[place : place + AT_A_TIME], first + place)
        while True:
            try:
                cluster.inbox.take(chunk)
            except FullError:
                time.sleep(0.01)
                continue
            break
    accepted_s = time.perf_counter() - start
    cluster.wait_for(first + len(records) - 1)
    return accepted_s, time.perf_counter() - start


def trickle(cluster: Cluster, records: Sequence[dict[str, object]], first: int) -> np.ndarray:
    """Put records in at a steady rate; the seconds that each takes."""
    at_a_time = round(LATENCY_RECORDS_PER_S * INTERVAL_S)
    taken: list[tuple[int, float]] = []
    start = time.perf_counter()
    cluster.batches.clear()
    for turn, place in enumerate(range(0, len(records), at_a_time)):
        time.sleep(max(0.0, start + turn * INTERVAL_S - time.perf_counter()))
        chunk = records[place : place + at_a_time]
        cluster.inbox.take(incoming(chunk, first + place))
        taken.append((first + place + len(chunk) - 1, time.perf_counter()))
    cluster.wait_for(first + len(records) - 1)
    positions = np.array([position for position, _ in cluster.batches])
    stored_s = np.array([moment for _, moment in cluster.batches])
    return np.array(
        [stored_s[np.searchsorted(positions, position)] - moment for position, moment in taken]
    )


def plain_s(records: Sequence[dict[str, object]], folder: Path, at_a_time: int) -> float:
    """Seconds that pyarrow alone takes for the same records."""
    folder.mkdir()
    start = time.perf_counter()
    for place in range(0, len(records), at_a_time):
        table = pa.Table.from_pylist(list(records[place : place + at_a_time]))
        path = folder / f"{place}.parquet"
        pq.write_table(table, path)
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.close(file)
    return time.perf_counter() - start


def measure(folder: Path, *, quick: bool) -> list[Row]:
    count = RECORDS_QUICK if quick else RECORDS
    records = reports(100_000, Random(1))
    size_bytes = len(msgspec.json.encode(records[-1]))
    many = [records[n % len(records)] for n in range(count)]
    cluster = Cluster(folder / "cluster")
    fill(cluster, many[:WARM_UP], 1)
    before_s = processor_s()
    accepted_s, stored_s = fill(cluster, many, 1 + WARM_UP)
    spent_s = processor_s() - before_s
    reference_s = plain_s(many, folder / "plain", AT_A_TIME)
    found = cluster.storage.frame("Reports", through=cluster.storage.last_batch("Reports")).count()
    assert found == WARM_UP + count, f"{found} records"
    seconds = LATENCY_S_QUICK if quick else LATENCY_S
    slow = many[: round(seconds * LATENCY_RECORDS_PER_S)]
    latencies_s = trickle(cluster, slow, 1 + WARM_UP + count)
    cluster.close()
    per_s, plain_per_s = count / stored_s, count / reference_s
    workload = f"records of {size_bytes} bytes"
    at = f"at {LATENCY_RECORDS_PER_S:,}/s"
    return [
        Row("accepted/s", workload, count, plain_per_s, count / accepted_s, count / accepted_s),
        Row("in the dataset/s", workload, count, plain_per_s, per_s, per_s, RECORDS_PER_S_BAR),
        Row("in, in a second of a core", workload, count, None, count / spent_s, count / spent_s),
        *(
            Row(f"s from accepted to in, {at}, p{q}", workload, len(slow), None, value, value)
            for q in (50, 99)
            for value in [float(np.percentile(latencies_s, q))]
        ),
    ]


def _measure(folder: str, quick: bool) -> list[Row]:
    return measure(Path(folder), quick=quick)


def rows(*, quick: bool) -> Iterator[list[Row]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        # Java is a child of the process that started it, and ends with it.
        multiprocessing.get_context("spawn").Pool(1) as pool,
    ):
        yield pool.apply(_measure, (folder, quick))
