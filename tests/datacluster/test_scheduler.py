"""When channels are executed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from tests.datacluster.memory_snapshots import MemorySnapshots
from tests.datacluster.small_cluster import (
    FAILING,
    OF_TYPE,
    ids,
    make,
    opened,
    report,
    subscribe,
)

from godwit.datacluster.channels.channel_service import ChannelService
from godwit.datacluster.channels.executions import ExecutionOutcome
from godwit.datacluster.channels.scheduler import Scheduler

CONTINUOUS = """CREATE CHANNEL AtOnce(type STRING) CONTINUOUS AS
    SELECT id FROM NEW Reports WHERE type = :type"""
WHERE_USERS_ARE = """CREATE CHANNEL AtUser(user STRING) CONTINUOUS AS
    SELECT r.id FROM NEW Reports r JOIN Users u ON r.lon = u.lon WHERE u.user_id = :user"""
A_WHILE_S = 120.0


class SlowChannels(ChannelService):
    TAKES_S = 0.2

    def execute(self, name: str, *, now_s: float) -> ExecutionOutcome | None:
        outcome = super().execute(name, now_s=now_s)
        time.sleep(self.TAKES_S)
        return outcome


def inputs(outcomes: list[ExecutionOutcome]) -> list[tuple[int, int]]:
    ranges = [outcome.inputs["Reports"] for outcome in outcomes]
    return [(range.after, range.through) for range in ranges]


def test_periods_that_were_missed_are_one_execution(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    subscribe(channels, "A", "OfType", type="fire")
    scheduler = Scheduler(channels)
    report(snapshots, 1)
    assert scheduler.run_due(9.9) == []
    assert channels.status("OfType").unread_batches == 1
    assert inputs(scheduler.run_due(10.0)) == [(0, 1)]
    assert channels.status("OfType").unread_batches == 0
    report(snapshots, 2)
    assert scheduler.run_due(19.0) == []
    report(snapshots, 3)
    assert inputs(scheduler.run_due(57.0)) == [(1, 3)]
    report(snapshots, 4)
    assert scheduler.run_due(59.0) == [], "the next one is at 60, as ever"
    assert inputs(scheduler.run_due(60.0)) == [(3, 4)]


def test_nothing_new_is_no_execution(channels: ChannelService) -> None:
    subscribe(channels, "A", "OfType", type="fire")
    scheduler = Scheduler(channels)
    assert scheduler.run_due(10.0) == []
    assert channels.status("OfType").last == []


def test_a_continuous_channel_follows_every_batch(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    make(channels, CONTINUOUS, "DROP CHANNEL OfType")
    fire = subscribe(channels, "A", "AtOnce", type="fire")
    scheduler = Scheduler(channels)
    assert scheduler.run_due(0.0) == []
    batch = report(snapshots, 1)
    assert scheduler.run_due(1.0) == [], "it was not told yet"
    scheduler.on_batch("reports", batch)
    assert inputs(scheduler.run_due(2.0)) == [(0, 1)]
    assert scheduler.run_due(2.0) == []
    scheduler.on_batch("Users", 7)
    report(snapshots, 2)
    assert scheduler.run_due(3.0) == [], "it does not read users"
    assert ids(channels, fire, "AtOnce") == [1]


def test_what_is_new_in_a_dataset_that_is_only_looked_up_is_no_reason_to_run(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    make(channels, WHERE_USERS_ARE, "DROP CHANNEL OfType")
    anna = subscribe(channels, "A", "AtUser", user="anna")
    scheduler = Scheduler(channels)
    for place in range(3):
        batch = snapshots.append("Users", [{"user_id": "anna", "lat": 60.0, "lon": float(place)}])
        scheduler.on_batch("Users", batch)
        assert scheduler.run_due(float(place)) == [], "no report is new"
    batch = snapshots.append("Reports", [{"id": 1, "type": "fire", "lat": 60.0, "lon": 2.0}])
    scheduler.on_batch("Reports", batch)
    assert inputs(scheduler.run_due(3.0)) == [(0, 1)]
    assert ids(channels, anna, "AtUser") == [1], "where anna was last"


def test_the_moment_of_a_channel_that_waited_for_others_is_when_it_runs(
    spark: SparkSession, snapshots: MemorySnapshots, tmp_path: Path
) -> None:
    """Records that it reads may have been accepted meanwhile."""
    channels = opened(spark, snapshots, tmp_path, SlowChannels)
    make(channels, OF_TYPE, OF_TYPE.replace("OfType", "Second"))
    for channel in ("OfType", "Second"):
        subscribe(channels, "A", channel, type="fire")
    report(snapshots, 1)
    scheduler = Scheduler(channels, at_once=1)
    scheduler.run_due(0.0)
    first, second = scheduler.run_due(10.0)
    assert first.moment_s == 10.0
    assert second.moment_s >= 10.0 + SlowChannels.TAKES_S
    channels.close()


def test_a_failing_channel_waits_longer_and_longer_and_holds_up_no_other(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    make(channels, FAILING)
    subscribe(channels, "A", "Failing", type="fire")
    fire = subscribe(channels, "A", "OfType", type="fire")
    scheduler = Scheduler(channels)
    scheduler.run_due(0.0)
    report(snapshots, 0)
    attempts = []
    for second in range(10, 131):
        if second % 10 == 0 and second <= 40:
            report(snapshots, second)
        failed = [outcome for outcome in scheduler.run_due(float(second)) if outcome.error]
        attempts += [second for _ in failed]
    assert attempts == [10, 20, 30, 40, 56, 88]
    assert ids(channels, fire) == [0, 10, 20, 30, 40]
    (last,) = channels.status("Failing").last
    assert (last.attempts, last.state) == (6, "planned")
    assert channels.status("Failing").unread_batches == 5, "also those that it tries to read"


def test_what_was_planned_is_run_first(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    make(channels, FAILING)
    subscribe(channels, "A", "Failing", type="fire")
    report(snapshots, 1)
    channels.execute("Failing", now_s=0.0)
    (outcome,) = Scheduler(channels).run_due(1.0)
    assert outcome.attempts == 2


def test_a_channel_that_was_skipped_starts_as_a_new_one(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    make(channels, FAILING)
    seven = subscribe(channels, "A", "Failing", type="7")
    scheduler = Scheduler(channels)
    scheduler.run_due(0.0)
    report(snapshots, 1)
    assert [outcome.state for outcome in scheduler.run_due(10.0)] == ["done", "planned"]
    for second in (20, 30, 40):
        scheduler.run_due(float(second))
    report(snapshots, 2, type="7")
    skipped = channels.skip("Failing", now_s=41.0)
    assert skipped is not None
    scheduler.on_skip(skipped.channel)
    assert scheduler.run_due(42.0) == []
    outcomes = [outcome for outcome in scheduler.run_due(50.0) if outcome.channel != 1]
    assert inputs(outcomes) == [(1, 2)], "at its next period, not when it would be tried again"
    assert ids(channels, seven, "Failing") == [2]


def test_the_thread_runs_channels_and_stops(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    make(channels, CONTINUOUS)
    fire = subscribe(channels, "A", "AtOnce", type="fire")
    scheduler = Scheduler(channels)
    scheduler.start()
    scheduler.on_batch("Reports", report(snapshots, 1))
    give_up_s = time.monotonic() + A_WHILE_S
    while ids(channels, fire, "AtOnce") != [1] and time.monotonic() < give_up_s:
        threading.Event().wait(0.05)
    scheduler.stop()
    assert ids(channels, fire, "AtOnce") == [1]
    assert "channels" not in {thread.name for thread in threading.enumerate()}


# -- side by side ----------------------------------------------------------------------------------


class HeldChannels(ChannelService):
    """Executions of `OfType` wait before they end."""

    def hold(self) -> None:
        self.may_go_on = threading.Event()
        self.begun: list[str] = []
        self.ended: list[str] = []

    def execute(self, name: str, *, now_s: float) -> ExecutionOutcome | None:
        outcome = super().execute(name, now_s=now_s)
        self.begun.append(name)
        if name == "OfType":
            assert self.may_go_on.wait(A_WHILE_S)
        self.ended.append(name)
        return outcome


def held(spark: SparkSession, snapshots: MemorySnapshots, folder: Path) -> HeldChannels:
    channels = opened(spark, snapshots, folder, HeldChannels)
    assert isinstance(channels, HeldChannels)
    channels.hold()
    make(channels, OF_TYPE, CONTINUOUS)
    for channel in ("OfType", "AtOnce"):
        subscribe(channels, "A", channel, type="fire")
    return channels


def until(is_so: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + A_WHILE_S
    while not is_so():
        assert time.monotonic() < give_up_s
        threading.Event().wait(0.02)


def test_a_slow_channel_does_not_delay_another(
    spark: SparkSession, snapshots: MemorySnapshots, tmp_path: Path
) -> None:
    channels = held(spark, snapshots, tmp_path)
    now_s = [0.0]
    scheduler = Scheduler(channels, clock=lambda: now_s[0])
    scheduler.start()
    until(lambda: "AtOnce" in channels.ended)
    scheduler.on_batch("Reports", report(snapshots, 1))
    now_s[0] = 10.0
    until(lambda: "OfType" in channels.begun)
    for number in (2, 3):
        before = len(channels.ended)
        scheduler.on_batch("Reports", report(snapshots, number))
        until(lambda before=before: len(channels.ended) > before)  # type: ignore[misc]
    assert "OfType" not in channels.ended
    channels.may_go_on.set()
    scheduler.stop()
    assert "OfType" in channels.ended
    channels.close()


def test_a_batch_that_comes_during_an_execution_is_read_by_the_next(
    spark: SparkSession, snapshots: MemorySnapshots, tmp_path: Path
) -> None:
    channels = held(spark, snapshots, tmp_path)
    make(channels, "DROP CHANNEL OfType", CONTINUOUS.replace("AtOnce", "OfType"))
    fire = subscribe(channels, "A", "OfType", type="fire")
    scheduler = Scheduler(channels)
    scheduler.start()
    until(lambda: "OfType" in channels.begun)  # It has seen that nothing is new.
    scheduler.on_batch("Reports", report(snapshots, 1))
    until(lambda: "AtOnce" in channels.ended)
    threading.Event().wait(0.3)  # For the scheduler to take note of the batch.
    channels.may_go_on.set()
    until(lambda: ids(channels, fire) == [1])
    scheduler.stop()
    channels.close()


def test_an_execution_during_which_spark_died_runs_alone(
    spark: SparkSession, snapshots: MemorySnapshots, tmp_path: Path
) -> None:
    channels = held(spark, snapshots, tmp_path)
    channels.has_died = lambda name: name == "OfType"  # type: ignore[method-assign]
    now_s = [0.0]
    scheduler = Scheduler(channels, clock=lambda: now_s[0])
    scheduler.start()
    until(lambda: channels.ended == ["AtOnce"])
    now_s[0] = 10.0
    until(lambda: "OfType" in channels.begun)
    scheduler.on_batch("Reports", report(snapshots, 1))
    threading.Event().wait(0.3)
    assert channels.ended == ["AtOnce"]
    assert channels.begun.count("AtOnce") == 1, "it waits for the other one"
    channels.may_go_on.set()
    until(lambda: channels.ended.count("AtOnce") >= 2)
    assert channels.ended.index("OfType") == 1
    scheduler.stop()
    channels.close()
