"""DROP CHANNEL: what brokers are told, and how a channel of the same name differs from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.datacluster.memory_snapshots import MemorySnapshots
from tests.datacluster.small_cluster import (
    OF_TYPE,
    grant,
    make,
    notices,
    opened,
    report,
    rows,
    stored,
    subscribe,
)

from godwit.api.datacluster_api import ChannelDropped, CreateBroker, Granted
from godwit.datacluster.channels.channel_service import ChannelService

DROP = "DROP CHANNEL oftype"
FIRE = {"type": "fire"}
WHY = Granted(error="channel OfType was dropped")


def test_brokers_are_told_when_they_ask_the_next_time(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    a, b = (
        subscribe(channels, "A", "OfType", type="fire"),
        subscribe(channels, "B", "OfType", type="x"),
    )
    report(snapshots, 1)
    channels.execute("OfType", now_s=10.0)
    heard = notices(channels, "A").through
    make(channels, DROP)
    for broker in ("A", "B", "C"):
        told = notices(channels, broker, after=heard)
        assert told.dropped == [
            ChannelDropped(number=heard + 1, channel="OfType", through=max(a, b))
        ]
        assert told.through == heard + 1
        assert notices(channels, broker, after=told.through).dropped == []
    started = channels.brokers.create_broker(CreateBroker(broker="D"), now_s=0.0)
    assert notices(channels, "D", after=started.notices).dropped == []


def test_those_who_subscribe_are_told_also_after_a_restart(
    spark: SparkSession, channels: ChannelService, snapshots: MemorySnapshots, tmp_path: Path
) -> None:
    make(channels, DROP)
    for service in (channels, opened(spark, snapshots, tmp_path)):
        assert grant(service, "A", "OfType", FIRE) == WHY
        assert grant(service, "A", "Nonsense", {}).error == "there is no channel Nonsense"


def test_positions_of_a_channel_are_above_those_of_an_earlier_one_of_its_name(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    first = grant(channels, "A", "OfType", FIRE)
    assert (first.start, first.first) == ((1, 0), (0, 0))
    report(snapshots, 1)
    channels.execute("OfType", now_s=10.0)
    behind = grant(channels, "A", "OfType", FIRE).start
    for drops in (1, 2):
        make(channels, DROP, OF_TYPE)
        again = grant(channels, "A", "OfType", FIRE)
        assert again.id is not None
        assert again.start == again.first > behind
        dropped = notices(channels, "A").dropped[-1]
        assert len(notices(channels, "A").dropped) == 1, "the last one is enough"
        assert dropped.through < again.id
        assert channels.status("OfType").last == []
        report(snapshots, 10 + drops)
        outcome = channels.execute("OfType", now_s=10.0 * drops)
        assert outcome is not None
        assert outcome.number == again.start[0]
        assert rows(stored(channels, {again.id: again.start})[again.id]) == [again.start]
        behind = grant(channels, "A", "OfType", FIRE).start


def test_a_drop_between_two_steps_of_a_subscription(
    channels: ChannelService, monkeypatch: pytest.MonkeyPatch
) -> None:
    definitions = channels.brokers._definitions
    known = definitions.known("OfType")
    make(channels, DROP)
    monkeypatch.setattr(definitions, "known", lambda _: known)
    assert grant(channels, "A", "OfType", FIRE) == WHY


def test_those_who_wait_for_notices_are_woken(
    channels: ChannelService, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[int] = []
    monkeypatch.setattr(
        channels, "_on_results", lambda: woken.append(len(notices(channels, "A").dropped))
    )
    make(channels, DROP)
    assert woken == [1]
