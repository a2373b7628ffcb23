"""Results with more rows than the driver may hold: written by Spark's tasks, read in parts."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.datacluster.memory_snapshots import MemorySnapshots
from tests.datacluster.small_cluster import ids, make, opened, report, subscribe

from godwit.datacluster.channels.channel_service import ChannelService
from godwit.datacluster.channels.executions import Execution
from godwit.datacluster.channels.result_files import ResultFiles
from godwit.datacluster.channels.result_writing import (
    ROW_GROUP_ROWS,
    ResultBudget,
    ResultWriter,
    arranged,
    arranged_there,
)

EXECUTION = Execution(1, 1, {}, 0, 0.0)


OF_TYPE = """CREATE CHANNEL OfType(type STRING) CONTINUOUS AS
    SELECT id FROM NEW Reports WHERE type = :type"""


class FewHere(ChannelService):
    """At most four rows of a result come into the driver."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self._writer = ResultWriter(self._files, here_rows_max=4)


def some_results(rows: int, subscriptions: int) -> pa.Table:
    random = np.random.default_rng(7)
    numbers = random.integers(0, 50, rows)
    return pa.table(
        {
            "_subscription": random.integers(1, subscriptions + 1, rows),
            "text": [None if n % 7 == 0 else f"text \u00e9 {n}" for n in numbers],
            "n": pa.array(numbers, pa.int32()),
            "price": [Decimal(int(n)) / 4 for n in numbers],
        }
    )


def test_tasks_arrange_results_as_the_driver_does(spark: SparkSession) -> None:
    results = some_results(500, 9)
    there = arranged_there(spark.createDataFrame(results)).toArrow()
    in_order = there.sort_by([("_subscription", "ascending"), ("_ordinal", "ascending")])
    assert in_order.to_pylist() == arranged(results).to_pylist()


def test_large_results_are_read_a_part_at_a_time(spark: SparkSession, tmp_path: Path) -> None:
    results = some_results(5 * ROW_GROUP_ROWS, 40)
    files = ResultFiles(tmp_path)
    written = ResultWriter(files).write_there(EXECUTION, spark.createDataFrame(results))
    path = tmp_path / "1" / "1.parquet"
    assert path.is_dir(), "tasks write a file each"
    assert written.rows == results.num_rows == pq.read_table(path).num_rows
    assert written.size_bytes == sum(arranged(results)["_bytes"].to_pylist())
    contents = files.contents(1, 1)
    expected = np.unique(results["_subscription"].to_numpy(), return_counts=True)
    assert np.array_equal(contents.subscriptions, expected[0])
    assert np.array_equal(contents.rows, expected[1])
    found = pa.concat_tables(files.rows(1, 1, {7: 100, 11: 0}))
    seven = found.filter(pa.compute.equal(found["_subscription"], 7))
    assert seven["_ordinal"].to_pylist() == list(range(100, int(contents.rows[6])))
    assert found.num_rows == contents.rows[6] - 100 + contents.rows[10]
    files.remove(1, 1)
    assert not path.exists()
    with pytest.raises(FileNotFoundError):
        next(files.rows(1, 1, {7: 0}))


def test_a_subscriber_sees_no_difference(
    spark: SparkSession, snapshots: MemorySnapshots, tmp_path: Path
) -> None:
    channels = opened(spark, snapshots, tmp_path, FewHere)
    make(channels, OF_TYPE)
    fire = subscribe(channels, "A", "OfType", type="fire")
    also = subscribe(channels, "A", "OfType", type="flood")
    report(snapshots, *range(1, 4))
    report(snapshots, 90, type="flood")
    channels.execute("OfType", now_s=10.0)
    report(snapshots, *range(4, 30))
    outcome = channels.execute("OfType", now_s=20.0)
    assert outcome is not None
    assert outcome.rows == 26
    assert ids(channels, fire) == list(range(1, 30))
    assert ids(channels, also) == [90]
    kinds = {path.name: path.is_dir() for path in tmp_path.glob("results/*/*")}
    assert kinds == {"1.parquet": False, "2.parquet": True}
    channels.close()
    again = opened(spark, snapshots, tmp_path, FewHere)
    assert ids(again, fire) == list(range(1, 30))


def test_results_of_a_subscription_that_has_ended_are_left_out(
    spark: SparkSession, snapshots: MemorySnapshots, tmp_path: Path
) -> None:
    channels = opened(spark, snapshots, tmp_path, FewHere)
    make(channels, OF_TYPE)
    fire = subscribe(channels, "A", "OfType", type="fire")
    ended = subscribe(channels, "A", "OfType", type="flood")
    report(snapshots, 1)
    channels.execute("OfType", now_s=10.0)
    channels._subscriptions.release("A", ended, now_s=10.0)
    channels._subscriptions.purge(released_before_s=1_000.0)
    report(snapshots, *range(2, 30))
    report(snapshots, *range(30, 60), type="flood")
    outcome = channels.execute("OfType", now_s=20.0)
    assert outcome is not None
    assert outcome.rows == 28
    assert ids(channels, fire) == list(range(1, 30))
    channels.close()


class SmallBudget(FewHere):
    """At most 20 rows of an execution."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        budget = ResultBudget(rows_max=20, bytes_max=10_000)
        self._writer = ResultWriter(self._files, here_rows_max=4, budget=budget)


def test_a_result_beyond_its_budget_stops_its_channel_alone(
    spark: SparkSession, snapshots: MemorySnapshots, tmp_path: Path
) -> None:
    channels = opened(spark, snapshots, tmp_path, SmallBudget)
    make(channels, OF_TYPE, OF_TYPE.replace("OfType", "Other"))
    fire = subscribe(channels, "A", "OfType", type="fire")
    flood = subscribe(channels, "A", "Other", type="flood")
    report(snapshots, *range(20))
    report(snapshots, 100, type="flood")
    channels.execute("OfType", now_s=10.0)
    assert ids(channels, fire) == list(range(20)), "the budget itself is within it"
    report(snapshots, *range(20, 41))
    report(snapshots, 101, type="flood")
    refused = channels.execute("OfType", now_s=20.0)
    assert refused is not None
    assert refused.error is not None
    assert refused.error.startswith("the result has 21 rows and 210 bytes, and the budget")
    assert "godwit channel skip OfType" in refused.error
    assert channels.stopped() == {"OfType": refused.error}
    channels.execute("Other", now_s=20.0)
    assert ids(channels, flood, "Other") == [100, 101]
    again = channels.execute("OfType", now_s=30.0)
    assert again is not None
    assert again.attempts == refused.attempts, "it is not tried again by itself"
    channels.close()
    channels = opened(spark, snapshots, tmp_path, FewHere)  # The budget was raised.
    assert list(channels.stopped()) == ["OfType"], "also after a restart"
    channels.resume("OfType")
    channels.execute("OfType", now_s=40.0)
    assert ids(channels, fire) == list(range(41))
    channels.close()


def test_pieces_are_parts_of_one_result(spark: SparkSession, tmp_path: Path) -> None:
    results = some_results(600, 9)
    files = ResultFiles(tmp_path)
    frame = spark.createDataFrame(results)
    size_bytes = sum(arranged(results)["_bytes"].to_pylist())
    writer = ResultWriter(files, piece_bytes=size_bytes // 2)
    jobs = []
    for number, deaths in ((1, 0), (2, 1)):
        execution = Execution(1, number, {}, 0, 0.0, attempts=deaths, deaths=deaths)
        assert writer.write_there(execution, frame).size_bytes == size_bytes
        everything = pa.concat_tables(files.rows(1, number, dict.fromkeys(range(1, 10), 0)))
        in_order = everything.sort_by([("_subscription", "ascending"), ("_ordinal", "ascending")])
        assert in_order.to_pylist() == arranged(results).to_pylist()
        parts = (tmp_path / "1" / f"{number}.parquet").glob("*.parquet")
        jobs.append(len({path.name.split("-", 2)[2] for path in parts}))
    assert jobs == [3, 4], "the names of files have the job that wrote them"


def test_what_has_failed_is_not_brought_to_the_driver_again(
    spark: SparkSession, snapshots: MemorySnapshots, tmp_path: Path
) -> None:
    """A few very long rows fail there, and not in the tasks."""

    class FailingHere(ChannelService):
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(*args, **options)  # type: ignore[arg-type]
            self._writer = TooLong(self._files)

    class TooLong(ResultWriter):
        def fits(self, table: pa.Table) -> bool:
            raise MemoryError("bigger than spark.driver.maxResultSize")

    channels = opened(spark, snapshots, tmp_path, FailingHere)
    make(channels, OF_TYPE)
    fire = subscribe(channels, "A", "OfType", type="fire")
    report(snapshots, 1, 2)
    failed = channels.execute("OfType", now_s=10.0)
    assert failed is not None
    assert failed.error is not None
    channels.execute("OfType", now_s=20.0)
    assert ids(channels, fire) == [1, 2]
    channels.close()
