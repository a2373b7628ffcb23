"""Duration of a channel's execution, and what it depends on.

    python -m benchmarks channels [--quick]

equality   reports of a type, of as many types as there are subscriptions
area       reports in a box of about 500 by 500 m, on a map of 55 by 55 km
near       reports within 300 m of the latest place of a user, of as many users

An execution is timed from its plan to its commit, with results on disk: the median of several.  One
query for each subscription is measured on a sample and extrapolated.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from tests.datacluster.memory_snapshots import USERS

from benchmarks.report import Row
from godwit.api.datacluster_api import Subscribe, Wanted
from godwit.content.values import Value
from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channels.channel_service import ChannelService
from godwit.datacluster.ddl.parsing import parse
from godwit.datacluster.ddl.statements import CreateChannel
from godwit.datacluster.model.dataset import Column, ColumnType, Dataset
from godwit.errors import UsageError
from godwit.spark.session import spark_session
from godwit.spark.supervised import SupervisedSpark

SEED = 1
EXECUTIONS = 7
WARMING = 3
MAP = ((60.0, 60.5), (24.0, 25.0))
BOX = (0.0045, 0.009)
RECORD_TEXT = "x" * 300

REPORTS = Dataset(
    "Reports",
    (
        Column("id", ColumnType.BIGINT),
        Column("type", ColumnType.STRING),
        Column("lat", ColumnType.DOUBLE),
        Column("lon", ColumnType.DOUBLE),
        Column("message", ColumnType.STRING),
    ),
)
CHANNELS = {
    "equality": """CREATE CHANNEL equality(type STRING) EVERY 10 SECONDS AS
        SELECT id, lat, lon, message FROM NEW Reports WHERE type = :type""",
    "area": """CREATE CHANNEL area(south DOUBLE, north DOUBLE, west DOUBLE, east DOUBLE)
        EVERY 10 SECONDS AS SELECT id, type, message FROM NEW Reports
        WHERE lat BETWEEN :south AND :north AND lon BETWEEN :west AND :east""",
    "near": """CREATE CHANNEL near(user STRING) EVERY 10 SECONDS AS
        SELECT r.id, r.type, r.message FROM NEW Reports r JOIN Users u ON u.user_id = :user
        WHERE distance(r.lat, r.lon, u.lat, u.lon) < 300""",
}


class Stored:
    """Datasets as storage keeps them: new records in Parquet files, the latest places cached."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._datasets = {"reports": REPORTS, "users": USERS}
        self._batches = 0
        self._users: DataFrame | None = None

    def set_users(self, table: pa.Table) -> None:
        frame: DataFrame = self._spark.createDataFrame(table)
        self._users = frame.repartition(self._spark.sparkContext.defaultParallelism).cache()
        self._users.count()

    def append(self, table: pa.Table) -> None:
        pq.write_table(table, self._folder / f"{self._batches + 1}.parquet")
        self._batches += 1

    def dataset(self, name: str) -> Dataset:
        if name.lower() not in self._datasets:
            raise UsageError(f"there is no dataset {name}")
        return self._datasets[name.lower()]

    def last_batch(self, name: str) -> int:
        return self._batches if name.lower() == "reports" else 0

    def reading(self) -> AbstractContextManager[None]:
        return nullcontext()

    def frame(self, name: str, *, through: int) -> DataFrame:
        assert self._users is not None
        return self._users

    def new(self, name: str, *, after: int, through: int) -> DataFrame:
        paths = [str(self._folder / f"{n}.parquet") for n in range(after + 1, through + 1)]
        return self._spark.read.parquet(*paths)


class Bench:
    """Channels over datasets in a folder, and random records and arguments for them."""

    def __init__(self, spark: SparkSession, folder: Path, distinct: int) -> None:
        self._random = np.random.default_rng(SEED)
        self._distinct = distinct
        self.stored = Stored(spark, folder)
        self.stored.set_users(
            pa.table({"user_id": [f"u{n}" for n in range(distinct)]} | self._places(distinct))
        )
        self.channels = ChannelService(
            SupervisedSpark(lambda: spark), Catalog(folder), self.stored, folder
        )
        for text in CHANNELS.values():
            statement = parse(text)
            assert isinstance(statement, CreateChannel)
            self.channels.apply(statement, now_s=0.0)

    def subscribe(self, name: str, count: int, *, brokers: int = 1) -> None:
        """`count` different subscriptions, each held by so many brokers."""
        arguments = [self._arguments(name, n) for n in range(count)]
        for broker in range(brokers):
            wanted = [Wanted(channel=name, arguments=each) for each in arguments]
            request = Subscribe(broker=f"B{broker}", subscriptions=wanted)
            self.channels.brokers.subscribe(request)

    def execution_s(self, name: str, records: int) -> tuple[float, int]:
        """Seconds of an execution over so many new records, and its rows."""
        self.stored.append(self._reports(records))
        start_s = time.perf_counter()
        outcome = self.channels.execute(name, now_s=time.time())
        taken_s = time.perf_counter() - start_s
        assert outcome is not None
        assert outcome.error is None, outcome.error
        return taken_s, outcome.rows

    def median_s(self, name: str, records: int) -> tuple[float, int]:
        for _ in range(WARMING):
            self.execution_s(name, records)
        runs = [self.execution_s(name, records) for _ in range(EXECUTIONS)]
        return statistics.median(taken_s for taken_s, _ in runs), runs[-1][1]

    def _arguments(self, name: str, n: int) -> dict[str, Value]:
        if name == "equality":
            return {"type": f"t{n}"}
        if name == "near":
            return {"user": f"u{n}"}
        south = self._random.uniform(*MAP[0]) + n * 1e-9
        west = self._random.uniform(*MAP[1])
        return {"south": south, "north": south + BOX[0], "west": west, "east": west + BOX[1]}

    def _places(self, count: int) -> dict[str, np.ndarray]:
        lat, lon = (self._random.uniform(low, high, count) for low, high in MAP)
        return {"lat": lat, "lon": lon}

    def _reports(self, count: int) -> pa.Table:
        types = self._random.integers(0, self._distinct, count)
        columns = {"id": np.arange(count), "type": [f"t{n}" for n in types.tolist()]}
        return pa.table(columns | self._places(count) | {"message": [RECORD_TEXT] * count})


def one_query_each(spark: SparkSession, records: int, folder: Path) -> list[Row]:
    """One pass for 1,000 subscriptions, against one query for each."""
    count = 1_000
    rows = []
    for name in CHANNELS:
        with BenchInFolder(spark, folder, count) as bench:
            bench.subscribe(name, count)
            one_pass_s, _ = bench.median_s(name, records)
        with BenchInFolder(spark, folder, count) as bench:
            bench.subscribe(name, 1)
            single_s, _ = bench.median_s(name, records)
        all_s = single_s * count
        measure = f"s, one query each from {EXECUTIONS} of them"
        rows.append(Row(measure, name, count, all_s, one_pass_s, all_s / one_pass_s, 100))
    return rows


def large(spark: SparkSession, name: str, folder: Path, bar_s: float, count: int) -> list[Row]:
    with BenchInFolder(spark, folder, count) as bench:
        start_s = time.perf_counter()
        bench.subscribe(name, count)
        subscribed_s = time.perf_counter() - start_s
        first_s, _ = bench.execution_s(name, 10_000)
        taken_s, results = bench.median_s(name, 10_000)
    return [
        Row("s to subscribe, in one call", name, count, None, subscribed_s, subscribed_s),
        Row("s, first execution: makes the cache", name, count, None, first_s, first_s),
        Row(
            f"s, 10,000 records, {results:,} results",
            *(name, count, None, taken_s, taken_s, bar_s),
            is_at_most=True,
        ),
    ]


def sharing(spark: SparkSession, folder: Path, count: int) -> list[Row]:
    """The same number of subscribers with fewer different arguments."""
    rows = []
    for each in (1, 10, 100):
        with BenchInFolder(spark, folder, count) as bench:
            bench.subscribe("equality", count // each, brokers=1)
            taken_s, _ = bench.median_s("equality", 10_000)
        measure = f"s, {count:,} subscribers, {each} for each argument"
        rows.append(Row(measure, "equality", count // each, None, taken_s, taken_s))
    with BenchInFolder(spark, folder, count) as bench:
        bench.subscribe("equality", count // 100, brokers=10)
        taken_s, _ = bench.median_s("equality", 10_000)
    rows.append(
        Row("s, the same from 10 brokers", "equality", count // 100, None, taken_s, taken_s)
    )
    return rows


class BenchInFolder:
    """A bench in a new folder, closed at the end."""

    def __init__(self, spark: SparkSession, folder: Path, distinct: int) -> None:
        self._folder = tempfile.TemporaryDirectory(dir=folder)
        self._bench = Bench(spark, Path(self._folder.name), distinct)

    def __enter__(self) -> Bench:
        return self._bench

    def __exit__(self, *_: object) -> None:
        self._bench.channels.close()
        self._folder.cleanup()


def rows(*, quick: bool) -> Iterator[list[Row]]:
    """All measurements, one by one."""
    spark = spark_session(application="benchmarks")
    count = 10_000 if quick else 100_000
    with tempfile.TemporaryDirectory() as folder:
        yield one_query_each(spark, 1_000, Path(folder))
        for name, bar_s in (("equality", 1.5), ("area", 1.5), ("near", 2.5)):
            yield large(spark, name, Path(folder), bar_s, count)
        yield sharing(spark, Path(folder), count)
    spark.stop()
