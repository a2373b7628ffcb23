"""Spark dies during an execution: tried again, and stopped if it goes on, without the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.datacluster.memory_snapshots import MemorySnapshots
from tests.datacluster.small_cluster import OF_TYPE, SETTINGS, ids, make, report, subscribe

from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channels.channel_definitions import KnownChannel
from godwit.datacluster.channels.channel_service import DEATHS_MAX, ChannelService
from godwit.datacluster.channels.evaluation import Evaluated
from godwit.datacluster.channels.executions import Execution
from godwit.datacluster.channels.scheduler import Scheduler
from godwit.spark.supervised import SupervisedSpark


class DyingSpark(SupervisedSpark):
    """Another session begins where one dies, without the time that it takes."""

    def die(self) -> None:
        self.generation += 1


class DeadlyChannels(ChannelService):
    """Spark dies of the executions of some channels."""

    def __init__(self, spark: DyingSpark, snapshots: MemorySnapshots, folder: Path) -> None:
        super().__init__(spark, Catalog(folder), snapshots, folder, settings=SETTINGS)
        self.dying = spark
        self.deadly = {"Deadly"}

    def _evaluate(self, known: KnownChannel, execution: Execution) -> Evaluated:
        if known.channel.name in self.deadly:
            self.dying.die()
            raise ConnectionRefusedError("no one listens")
        return super()._evaluate(known, execution)


@pytest.fixture
def channels(spark: SparkSession, snapshots: MemorySnapshots, tmp_path: Path) -> DeadlyChannels:
    made = DeadlyChannels(DyingSpark(lambda: spark), snapshots, tmp_path)
    make(made, OF_TYPE, OF_TYPE.replace("OfType", "Deadly"))
    return made


def test_a_channel_that_kills_spark_is_stopped_and_no_other(
    channels: DeadlyChannels, snapshots: MemorySnapshots, spark: SparkSession, tmp_path: Path
) -> None:
    fine = subscribe(channels, "A", "OfType", type="fire")
    deadly = subscribe(channels, "A", "Deadly", type="fire")
    scheduler = Scheduler(channels)
    scheduler.run_due(0.0)
    for second in range(10, 400, 10):
        if second <= 100:
            report(snapshots, second)
        scheduler.run_due(float(second))
    assert ids(channels, fine) == list(range(10, 101, 10)), "it keeps its period throughout"
    assert channels.dying.generation == 1 + DEATHS_MAX, "it is not tried again"
    reason = channels.stopped()["Deadly"]
    assert reason.startswith("Spark's Java process has died 3 times during this execution")
    assert "godwit channel resume Deadly" in reason
    channels.close()
    # Also after a restart: the planned execution does not run first and kill Spark again.
    again = DeadlyChannels(DyingSpark(lambda: spark), snapshots, tmp_path)
    Scheduler(again).run_due(500.0)
    assert again.dying.generation == 1
    again.deadly.clear()
    assert again.resume("Deadly") is not None
    assert again.stopped() == {}
    Scheduler(again).run_due(510.0)
    assert ids(again, deadly, "Deadly")[:1] == [10]


def test_one_death_costs_time_only(channels: DeadlyChannels, snapshots: MemorySnapshots) -> None:
    deadly = subscribe(channels, "A", "Deadly", type="fire")
    report(snapshots, 1)
    failed = channels.execute("Deadly", now_s=10.0)
    assert failed is not None
    assert failed.error == "Spark's Java process has died 1 times during this execution"
    channels.deadly.clear()
    channels.execute("Deadly", now_s=20.0)
    assert ids(channels, deadly, "Deadly") == [1]


def test_what_has_no_planned_execution_cannot_be_resumed(channels: DeadlyChannels) -> None:
    assert channels.resume("OfType") is None


def test_a_catalog_of_an_earlier_release_gets_the_column(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.define("CREATE TABLE IF NOT EXISTS executions (channel INTEGER, number INTEGER)")
    for _ in range(2):
        catalog.add_column("executions", "deaths", "INTEGER NOT NULL DEFAULT 0")
    with catalog.transaction() as connection:
        connection.execute("INSERT INTO executions (channel, number) VALUES (1, 1)")
        assert connection.execute("SELECT deaths FROM executions").fetchone()[0] == 0
    catalog.close()
