"""When channels are executed."""

from __future__ import annotations

import threading
import time

from tests.datacluster.memory_snapshots import MemorySnapshots
from tests.datacluster.small_cluster import FAILING, ids, make, report

from godwit.datacluster.channels import Channels
from godwit.datacluster.executions import Outcome
from godwit.datacluster.scheduler import Scheduler

CONTINUOUS = """CREATE CHANNEL AtOnce(type STRING) CONTINUOUS AS
    SELECT id FROM NEW Reports WHERE type = :type"""
A_WHILE_S = 120.0


def inputs(outcomes: list[Outcome]) -> list[tuple[int, int]]:
    ranges = [outcome.inputs["Reports"] for outcome in outcomes]
    return [(range.after, range.through) for range in ranges]


def test_periods_that_were_missed_are_one_execution(
    channels: Channels, snapshots: MemorySnapshots
) -> None:
    channels.subscribe("A", "OfType", {"type": "fire"})
    scheduler = Scheduler(channels)
    report(snapshots, 1)
    assert scheduler.run_due(9.9) == []
    assert inputs(scheduler.run_due(10.0)) == [(0, 1)]
    report(snapshots, 2)
    assert scheduler.run_due(19.0) == []
    report(snapshots, 3)
    assert inputs(scheduler.run_due(57.0)) == [(1, 3)]
    report(snapshots, 4)
    assert scheduler.run_due(59.0) == [], "the next one is at 60, as ever"
    assert inputs(scheduler.run_due(60.0)) == [(3, 4)]


def test_nothing_new_is_no_execution(channels: Channels) -> None:
    channels.subscribe("A", "OfType", {"type": "fire"})
    scheduler = Scheduler(channels)
    assert scheduler.run_due(10.0) == []
    assert channels.status("OfType").last == []


def test_a_continuous_channel_follows_every_batch(
    channels: Channels, snapshots: MemorySnapshots
) -> None:
    make(channels, CONTINUOUS, "DROP CHANNEL OfType")
    fire = channels.subscribe("A", "AtOnce", {"type": "fire"}).id
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


def test_a_failing_channel_waits_longer_and_longer_and_holds_up_no_other(
    channels: Channels, snapshots: MemorySnapshots
) -> None:
    make(channels, FAILING)
    channels.subscribe("A", "Failing", {"type": "fire"})
    fire = channels.subscribe("A", "OfType", {"type": "fire"}).id
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


def test_what_was_planned_is_run_first(channels: Channels, snapshots: MemorySnapshots) -> None:
    make(channels, FAILING)
    channels.subscribe("A", "Failing", {"type": "fire"})
    report(snapshots, 1)
    channels.execute("Failing", now_s=0.0)
    (outcome,) = Scheduler(channels).run_due(1.0)
    assert outcome.attempts == 2


def test_the_thread_runs_channels_and_stops(channels: Channels, snapshots: MemorySnapshots) -> None:
    make(channels, CONTINUOUS)
    fire = channels.subscribe("A", "AtOnce", {"type": "fire"}).id
    scheduler = Scheduler(channels)
    scheduler.start()
    scheduler.on_batch("Reports", report(snapshots, 1))
    give_up_s = time.monotonic() + A_WHILE_S
    while ids(channels, fire, "AtOnce") != [1] and time.monotonic() < give_up_s:
        threading.Event().wait(0.05)
    scheduler.stop()
    assert ids(channels, fire, "AtOnce") == [1]
    assert "channels" not in {thread.name for thread in threading.enumerate()}
