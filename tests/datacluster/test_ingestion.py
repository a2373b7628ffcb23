"""From an inbox into a dataset, through Spark: batches, trouble, restarts, drops."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.datacluster.stating import dataset_statement
from tests.datacluster.stocking import open_storage
from tests.sweeps import seeds

from godwit.client.durable_subscription import DurableSubscription
from godwit.datacluster.datasets.dataset_service import DatasetService, DatasetSettings
from godwit.datacluster.datasets.inbox import AcceptedRecords, Inbox, Incoming
from godwit.datacluster.datasets.ingestion import IngestionQuery, IngestionSettings
from godwit.datacluster.datasets.storage import Storage
from godwit.datacluster.feeding import Feeder
from godwit.datacluster.log.feed_log import LogSettings
from godwit.datacluster.model.feed import Feed
from godwit.errors import UsageError

QUICK = DatasetSettings(ingestion=IngestionSettings(interval_s=0.0, retry_s=0.1))
REPORTS = "CREATE DATASET Reports (n INT, at TIMESTAMP)"
PATIENCE_S = 120.0


class Landed:
    """A storage with its service, and the batches that were reported."""

    def __init__(self, spark: SparkSession, folder: Path, settings: DatasetSettings) -> None:
        self.storage: Storage = open_storage(spark, folder)
        self.told: list[tuple[str, int]] = []
        self._changed = threading.Condition()
        self.landing = DatasetService(
            self.storage,
            on_batch=self._on_batch,
            horizon=self.storage.last_batch,
            settings=settings,
        )

    def _on_batch(self, name: str, batch: int) -> None:
        with self._changed:
            self.told.append((name, batch))
            self._changed.notify_all()

    def take(self, first: int, count: int) -> AcceptedRecords:
        records = [
            Incoming("a", n, {"n": n if n % 10 else "bad", "at": n}, float(n))
            for n in range(first, first + count)
        ]
        return self.landing.inbox("Reports").take(records, {"feed": first + count})

    def wait(self, is_so: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        with self._changed:
            while not is_so():
                assert time.monotonic() < deadline_s, self.landing.troubles()
                self._changed.wait(0.1)

    def numbers(self, name: str = "Reports", column: str = "n") -> list[object]:
        frame = self.storage.frame(name, through=self.storage.last_batch(name))
        found = frame.select("_position", column).orderBy("_position").collect()
        assert [row["_position"] for row in found] == list(range(1, len(found) + 1))
        return [row[column] for row in found]

    def position(self, name: str = "Reports") -> int:
        return self.storage.files.progress(self.storage.definitions.entry(name).id).position


@contextmanager
def landed(
    spark: SparkSession, folder: Path, settings: DatasetSettings = QUICK
) -> Iterator[Landed]:
    it = Landed(spark, folder, settings)
    try:
        yield it
    finally:
        it.landing.close()
        it.storage.close()


def good(count: int) -> list[object]:
    return [n for n in range(1, count + 1) if n % 10]


def test_records_get_in_batch_by_batch_and_again_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    with landed(spark, tmp_path) as it:
        it.landing.execute(dataset_statement(REPORTS))
        assert it.take(1, 5) == AcceptedRecords(5, 0, 0)
        it.wait(lambda: ("Reports", 1) in it.told)
        assert it.take(3, 10) == AcceptedRecords(6, 1, 3)
        it.wait(lambda: it.position() == 11 and ("Reports_quarantine", 1) in it.told)
        assert it.numbers() == good(12)
        assert it.numbers("Reports_quarantine", "sequence") == [10]
        assert it.landing.inbox("reports").waiting_bytes == 0
        assert it.landing.troubles() == []
    with landed(spark, tmp_path) as it:
        assert it.landing.inbox("Reports").marks == {"feed": 13}
        assert it.take(10, 6) == AcceptedRecords(3, 0, 3)
        it.wait(lambda: it.position() == 14)
        last = it.storage.last_batch("Reports")
        it.wait(lambda: ("Reports", last) in it.told)  # It is told after it is stored.
        assert it.numbers() == good(15)


def test_a_query_sleeps_while_no_records_come(spark: SparkSession, tmp_path: Path) -> None:
    drowsy = DatasetSettings(ingestion=IngestionSettings(interval_s=0.0, sleep_s=0.5))
    with landed(spark, tmp_path, drowsy) as it:
        it.landing.execute(dataset_statement(REPORTS))
        queries = it.landing._ingestion._all()
        for first in (1, 6):
            assert all(query.is_asleep for query in queries)
            assert not spark.streams.active
            it.take(first, 4)
            it.wait(lambda first=first: it.position() == first + 3 - first // 6)  # type: ignore[misc]
            it.wait(lambda: all(query.is_asleep for query in queries))
        assert it.numbers() == [1, 2, 3, 4, 6, 7, 8, 9]
        assert it.landing.troubles() == []


def test_a_backlog_is_ingested_in_batches_of_limited_size(
    spark: SparkSession, tmp_path: Path
) -> None:
    settings = DatasetSettings(
        log=LogSettings(segment_bytes=1),
        ingestion=IngestionSettings(interval_s=0.0, rows_max=4),
    )
    with landed(spark, tmp_path, settings) as it:
        it.landing.execute(dataset_statement(REPORTS))
        it.landing._ingestion.stop()
        for n in range(1, 10, 3):
            it.take(n, 3)
    with landed(spark, tmp_path, settings) as it:
        it.wait(lambda: it.position() == 9)
        assert it.numbers() == good(9)
        assert it.storage.last_batch("Reports") == 3
        new = it.storage.new("Reports", after=1, through=2).collect()
        assert sorted(row["n"] for row in new) == [4, 5, 6]


@pytest.mark.parametrize("seed", range(seeds(1, whole=2)))
def test_it_can_be_stopped_at_any_moment(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    sent = 0
    for turn in range(4):
        with landed(spark, tmp_path) as it:
            if not turn:
                it.landing.execute(dataset_statement(REPORTS))
            batches = it.storage.last_batch("Reports") + random.randrange(3)
            while True:
                it.take(sent + 1, 7)
                sent += 7
                if it.storage.last_batch("Reports") >= batches:
                    break
                time.sleep(random.uniform(0.0, 0.2))  # For several batches.
    with landed(spark, tmp_path) as it:
        it.wait(lambda: it.position() == len(good(sent)))
        assert it.numbers() == good(sent)
        it.wait(lambda: it.position("Reports_quarantine") == sent - len(good(sent)))


@pytest.mark.parametrize("damage", ["a query stopped while it started", "an offset is unreadable"])
def test_a_checkpoint_that_spark_refuses_is_replaced(
    spark: SparkSession, tmp_path: Path, damage: str
) -> None:
    with landed(spark, tmp_path) as it:
        it.landing.execute(dataset_statement(REPORTS))
        it.take(1, 5)
        it.wait(lambda: it.position() == 5)
        entry = it.storage.definitions.entry("Reports")
        checkpoint = it.storage.folders.checkpoint(entry.id)
    if damage == "an offset is unreadable":
        last = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
        last.write_text("")
        (checkpoint / "offsets" / f".{last.name}.crc").unlink(missing_ok=True)
    else:
        (checkpoint / "metadata").unlink()
    with landed(spark, tmp_path) as it:
        it.take(6, 4)
        it.wait(lambda: it.position() == 9)
        assert it.numbers() == good(9)
        it.wait(lambda: it.landing.troubles() == [])


def test_a_query_that_fails_says_so_and_is_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    with landed(spark, tmp_path) as it:
        it.landing.execute(dataset_statement(REPORTS))
        staging = tmp_path / "data" / "staging"
        staging.rmdir()
        staging.touch()  # So that writing there fails.
        it.take(1, 9)
        it.wait(lambda: bool(it.landing.troubles()))
        (trouble,) = it.landing.troubles()
        assert trouble.dataset == "Reports"
        assert "staging" in trouble.reason
        it.take(10, 9)
        staging.unlink()
        it.wait(lambda: it.position() == 17)
        assert it.numbers() == good(18)
        it.wait(lambda: not it.landing.troubles())


def once_wrong(real: Callable[..., Any]) -> Callable[..., Any]:
    """Like the real one, but the first call ends with an unexpected error."""
    wrong = iter([True])

    def perhaps_wrong(*arguments: Any) -> Any:
        if next(wrong, False):
            raise LookupError("nobody has thought of that")
        return real(*arguments)

    return perhaps_wrong


def test_whatever_goes_wrong_somebody_goes_on_looking_after_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(IngestionQuery, "_failure", once_wrong(IngestionQuery._failure))
    with landed(spark, tmp_path) as it:
        it.landing.execute(dataset_statement(REPORTS))
        it.take(1, 10)
        it.wait(lambda: it.position("Reports_quarantine") == 1)


def test_whatever_goes_wrong_a_feed_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def follow(_follower: DurableSubscription, _connect_s: float) -> None:
        followed.set()
        await asyncio.Event().wait()

    async def history(inbox: Inbox) -> None:
        feed = Feed("reports", "n is present", "Reports")
        feeder = Feeder(feed, inbox, "data.reports", "godwit://127.0.0.1:1", "", clock=time.time)
        running = asyncio.create_task(feeder.run())
        async with asyncio.timeout(PATIENCE_S):
            await followed.wait()
        assert feeder.trouble == "LookupError: nobody has thought of that"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    followed = asyncio.Event()
    monkeypatch.setattr(DurableSubscription, "run", once_wrong(follow))
    with landed(spark, tmp_path) as it:
        it.landing.execute(dataset_statement(REPORTS))
        asyncio.run(history(it.landing.inbox("Reports")))


def test_a_lost_checkpoint_does_no_harm(spark: SparkSession, tmp_path: Path) -> None:
    with landed(spark, tmp_path) as it:
        it.landing.execute(dataset_statement(REPORTS))
        it.take(1, 5)
        it.wait(lambda: it.position() == 5)
    shutil.rmtree(tmp_path / "checkpoints")
    with landed(spark, tmp_path) as it:
        it.take(6, 4)
        it.wait(lambda: it.position() == 9)
        assert it.numbers() == good(9)
        batches = [row["_batch"] for row in it.storage.frame("Reports", through=9).collect()]
        assert sorted(set(batches)) == [1, 2]


@pytest.mark.parametrize(("astray", "later"), [(7, 2), (9, 0)])
def test_spark_begins_anew_if_it_is_not_where_the_dataset_ends(
    spark: SparkSession, tmp_path: Path, astray: int, later: int
) -> None:
    """As if Spark had done a batch that the dataset lacks; perhaps no records follow."""
    with landed(spark, tmp_path) as it:
        it.landing.execute(dataset_statement(REPORTS))
        it.take(1, 5)
        it.wait(lambda: it.position() == 5)
        it.landing._ingestion.stop()
        it.take(6, 2)
        it.take(8, 2 - later)
        checkpoint = it.storage.folders.checkpoint(it.storage.definitions.entry("Reports").id)
    offsets = (checkpoint / "offsets" / "0").read_text().splitlines()
    offsets[-1] = json.dumps({"position": astray})
    (checkpoint / "offsets" / "1").write_text("\n".join(offsets))
    (checkpoint / "commits").mkdir(exist_ok=True)
    for batch in ("0", "1"):
        (checkpoint / "commits" / batch).write_text('v1\n{"nextBatchWatermarkMs":0}')
        (checkpoint / "commits" / f".{batch}.crc").unlink(missing_ok=True)
    impatient = DatasetSettings(ingestion=IngestionSettings(interval_s=0.1, idle_s_max=2.0))
    with landed(spark, tmp_path, impatient) as it:
        it.take(10 - later, later)
        it.wait(lambda: it.position() == 9)
        assert it.numbers() == good(9)
        it.wait(lambda: not it.landing.troubles())


def test_a_batch_that_spark_does_not_know_to_be_done_is_not_done_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As if it had been killed between the catalog's commit and Spark's."""
    with landed(spark, tmp_path) as it:
        it.landing.execute(dataset_statement(REPORTS))
        it.take(1, 5)
        it.wait(lambda: it.position() == 5)
        known = it.storage.definitions.entry("Reports")
        commits = it.storage.folders.checkpoint(known.id) / "commits"
        it.wait((commits / "0").exists)
    for commit in commits.iterdir():
        commit.unlink()
    with landed(spark, tmp_path) as it:
        it.take(6, 4)
        it.wait(lambda: it.position() == 9)
        assert it.numbers() == good(9)
        assert [batch for name, batch in it.told if name == "Reports"] == [1, 2]


def test_a_dataset_that_was_dropped_leaves_nothing_behind(
    spark: SparkSession, tmp_path: Path
) -> None:
    with landed(spark, tmp_path) as it:
        it.landing.execute(dataset_statement(REPORTS))
        it.landing.execute(dataset_statement("CREATE FEED f FROM FILTER 'n > 0' INTO Reports"))
        assert [feed.dataset for feed in it.landing.feeds()] == ["Reports"]
        it.take(1, 5)
        it.wait(lambda: it.position() == 5)
        with pytest.raises(UsageError, match="is fed by f"):
            it.landing.execute(dataset_statement("DROP DATASET Reports"))
        it.landing.execute(dataset_statement("DROP FEED f"))
        it.landing.execute(dataset_statement("DROP DATASET Reports"))
        with pytest.raises(UsageError, match="there is no dataset"):
            it.landing.inbox("Reports")
        it.landing.execute(dataset_statement(REPORTS))
        assert it.storage.last_batch("Reports") == 0
        it.take(1, 3)
        it.wait(lambda: it.position() == 3)
        assert it.numbers() == [1, 2, 3]
        it.storage.delete_dropped(grace_s=0.0)
        assert len(list((tmp_path / "data").glob("*/*.parquet"))) == 1
        assert len(list((tmp_path / "logs").iterdir())) == 2


def test_a_static_dataset_takes_no_records(spark: SparkSession, tmp_path: Path) -> None:
    with landed(spark, tmp_path) as it:
        it.landing.execute(dataset_statement("CREATE DATASET Shelters (n INT) STATIC"))
        (tmp_path / "a.csv").write_text("n\n1\n2\n")
        assert it.landing.load("Shelters", tmp_path / "a.csv") == 2
        assert it.storage.frame("Shelters", through=0).count() == 2
        with pytest.raises(UsageError, match="does not take records"):
            it.landing.inbox("Shelters")


def test_wherever_ingestion_fails_a_batch_gets_in_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failures before and after each step, in turn."""
    with landed(spark, tmp_path) as it:
        it.landing.execute(dataset_statement(REPORTS))
        steps = (it.storage.folders, "publish"), (it.storage.files, "commit")
        moments = [(*step, is_before) for step in steps for is_before in (True, False)]
        for n, (owner, name, is_before) in enumerate(moments):
            failing = FailsOnce(getattr(owner, name), is_before=is_before)
            monkeypatch.setattr(owner, name, failing)
            it.take(1 + 5 * n, 5)
            count = len(good(5 + 5 * n))
            it.wait(lambda count=count: it.position() == count)  # type: ignore[misc]
            assert failing.has_failed
            monkeypatch.undo()
        assert it.numbers() == good(20)
        it.wait(lambda: not it.landing.troubles())
    with landed(spark, tmp_path) as it:
        assert it.numbers() == good(20)
        counting = it.storage.files.all_paths()
        assert len(list((tmp_path / "data").glob("*/*.parquet"))) == len(counting)


class FailsOnce:
    def __init__(self, step: Callable[..., object], *, is_before: bool) -> None:
        self._step = step
        self._is_before = is_before
        self.has_failed = False

    def __call__(self, *arguments: object, **named: object) -> object:
        if self.has_failed:
            return self._step(*arguments, **named)
        self.has_failed = True
        if not self._is_before:
            self._step(*arguments, **named)
        raise OSError("as planned")
