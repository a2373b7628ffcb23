"""The machine's clock is set: nothing that is accepted, delivered or kept changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.datacluster.memory_snapshots import MemorySnapshots
from tests.datacluster.small_cluster import ids, opened, report, subscribe
from tests.datacluster.stating import channel_statement

from godwit.datacluster.channels.channel_service import ChannelService
from godwit.datacluster.channels.scheduler import Scheduler
from godwit.datacluster.steady_clock import SLEW, SteadyClock

HOUR_S = 3_600.0
OF_TYPE = """CREATE CHANNEL OfType(type STRING) EVERY 10 SECONDS AS
    SELECT id FROM NEW Reports WHERE type = :type AND at > current_timestamp - INTERVAL 1 MINUTE"""


class Machine:
    """A clock that is set, and the time that really passes."""

    def __init__(self) -> None:
        self.set_s = 1_000_000.0
        self.passed_s = 0.0

    def clock(self, last_known_s: float = 0.0) -> SteadyClock:
        return SteadyClock(
            last_known_s,
            machine_s=lambda: self.set_s + self.passed_s,
            passing_s=lambda: self.passed_s,
        )


@pytest.mark.parametrize("jump_s", [-HOUR_S, HOUR_S])
def test_a_clock_that_is_set_is_followed_slowly(jump_s: float) -> None:
    machine = Machine()
    clock = machine.clock()
    assert clock() == 1_000_000.0
    machine.passed_s += 100.0
    assert clock() == 1_000_100.0
    machine.set_s += jump_s
    machine.passed_s += 100.0
    assert clock() == pytest.approx(1_000_200.0, abs=100.0 * SLEW)
    assert clock.ahead_s == pytest.approx(-jump_s, abs=100.0 * SLEW)
    before_s = clock()
    for _ in range(60 * 60):
        machine.passed_s += 60.0
        assert clock() > before_s
        before_s = clock()
    assert abs(clock.ahead_s) < 3.0, "in the end both agree"


def test_a_clock_that_is_set_back_during_a_restart() -> None:
    machine = Machine()
    last_s = machine.clock()()
    machine.set_s -= HOUR_S
    assert machine.clock(last_s)() == last_s
    assert machine.clock(last_s + 30 * 86_400)() == last_s - HOUR_S, "that clock was wrong"


@pytest.mark.parametrize("jumps_s", [(-HOUR_S, HOUR_S), (HOUR_S, -HOUR_S), (0.0, 0.0)])
def test_channels_keep_their_period_and_subscribers_their_results(
    spark: SparkSession, snapshots: MemorySnapshots, tmp_path: Path, jumps_s: tuple[float, float]
) -> None:
    machine = Machine()
    clock = machine.clock()
    channels: ChannelService = opened(spark, snapshots, tmp_path)
    channels.apply(channel_statement(OF_TYPE), now_s=clock())
    fire = subscribe(channels, "A", "OfType", type="fire")
    scheduler = Scheduler(channels, clock=clock)
    outcomes = [scheduler.run_due(clock())]
    for step, jump_s in enumerate((0.0, *jumps_s)):
        machine.set_s += jump_s
        machine.passed_s += 11.0
        snapshots.append("Reports", [{"id": step, "type": "fire", "at": int(clock() * 1e6)}])
        outcomes.append(scheduler.run_due(clock()))
    report(snapshots, 7)  # At no time, which no interval contains.
    assert [len(each) for each in outcomes] == [0, 1, 1, 1]
    assert ids(channels, fire) == [0, 1, 2]
    # A subscriber that is offline for a minute is not forgotten, and results of today are kept.
    channels._subscriptions.release("A", fire, now_s=clock())
    machine.set_s += jumps_s[0]
    machine.passed_s += 60.0
    scheduler.run_due(clock())
    assert channels._subscriptions.counts()
    channels.close()
