"""Subscriptions of brokers, and how Spark sees them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.datacluster.memory_snapshots import MemorySnapshots
from tests.datacluster.small_cluster import (
    NEAR,
    START,
    grant,
    ids,
    notices,
    release,
    report,
    subscribe,
    unsubscribe,
)
from tests.datacluster.stating import channel_statement

from godwit.api.datacluster_api import CreateBroker, Granted, Pull, PullFrom
from godwit.datacluster.channels import subscription_table
from godwit.datacluster.channels.channel_service import ChannelService


def test_equal_arguments_are_one_subscription_for_all_brokers(channels: ChannelService) -> None:
    first = grant(channels, "A", "OfType", {"type": "fire"})
    assert first == Granted(id=1, start=(1, 0))
    assert grant(channels, "A", "oftype", {"TYPE": "fire"}) == first
    assert grant(channels, "B", "OfType", {"type": "fire"}) == first
    assert grant(channels, "B", "OfType", {"type": "Fire"}).id != first.id


def test_it_takes_effect_at_the_next_execution(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    old = subscribe(channels, "A", "OfType", type="fire")
    report(snapshots, 1)
    channels.execute("OfType", now_s=10.0)
    late = grant(channels, "B", "OfType", {"type": "flood"})
    again = grant(channels, "C", "OfType", {"type": "fire"})
    assert late.id is not None
    assert (late.start, again) == ((2, 0), Granted(id=old, start=(2, 0)))
    report(snapshots, 2, type="flood")
    unsubscribe(channels, "A", old)
    unsubscribe(channels, "C", old)
    report(snapshots, 3)
    channels.execute("OfType", now_s=20.0)
    assert ids(channels, late.id) == [2]
    assert ids(channels, old) == [1]
    assert notices(channels, "C").notices == []


def test_a_subscription_lasts_while_somebody_holds_it(channels: ChannelService) -> None:
    held = subscribe(channels, "A", "OfType", type="fire")
    subscribe(channels, "B", "OfType", type="fire")
    unsubscribe(channels, "A", held)
    unsubscribe(channels, "A", held)  # Again: the answer was lost.
    assert channels.status("OfType").subscriptions == 1
    unsubscribe(channels, "B", held)
    assert channels.status("OfType").subscriptions == 0
    assert subscribe(channels, "A", "OfType", type="fire") != held


def test_who_is_offline_is_waited_for(channels: ChannelService, snapshots: MemorySnapshots) -> None:
    held = subscribe(channels, "A", "OfType", type="fire")
    release(channels, "A", held, now_s=1_000.0)
    report(snapshots, 1)
    channels.execute("OfType", now_s=1_010.0)
    channels.tidy(now_s=1_100.0)
    assert subscribe(channels, "A", "OfType", type="fire") == held
    assert ids(channels, held) == [1]
    release(channels, "A", held, now_s=1_100.0)
    channels.tidy(now_s=1_201.0)
    assert channels.status("OfType").subscriptions == 0


@pytest.mark.parametrize(
    "value",
    ["' OR '1'='1", "x'; DROP TABLE subscriptions; --", "${type}", ":type", "\x00", "`", "{x}"],
)
def test_hostile_arguments_are_values(
    channels: ChannelService, snapshots: MemorySnapshots, value: str
) -> None:
    other = subscribe(channels, "A", "OfType", type="fire")
    hostile = subscribe(channels, "A", "OfType", type=value)
    report(snapshots, 1)
    report(snapshots, 2, type=value)
    outcome = channels.execute("OfType", now_s=10.0)
    assert outcome is not None
    assert (outcome.error, outcome.rows) == (None, 2)
    assert (ids(channels, other), ids(channels, hostile)) == ([1], [2])


def test_an_unknown_channel_is_named(channels: ChannelService) -> None:
    assert grant(channels, "A", "Nope", {}) == Granted(error="there is no channel Nope")
    refused = grant(channels, "A", "OfType", {})
    assert refused == Granted(error="channel OfType needs the argument type")


def test_a_cached_base_and_what_came_later(
    spark: SparkSession,
    channels: ChannelService,
    snapshots: MemorySnapshots,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a cache from 10 on, made anew after 5 changes: nobody is missed, and nothing stays."""
    monkeypatch.setattr(subscription_table, "CACHED_MIN", 10)
    monkeypatch.setattr(subscription_table, "CHANGES_MIN", 5)
    channels.apply(channel_statement(NEAR), now_s=0.0)
    before = _cached(spark)
    circles = [{"lat": 60.0, "lon": 25.0, "radius": 10.0 ** (n % 6)} for n in range(12)]
    all_of_them = [circle | {"lon": 25.0 + n / 1e4} for n, circle in enumerate(circles)]
    held = {subscribe(channels, "A", "Near", **circle) for circle in all_of_them}
    for step in range(5):
        report(snapshots, step)
        outcome = channels.execute("Near", now_s=10.0 * step)
        assert outcome is not None
        assert outcome.error is None
        assert "InMemoryTableScan" in (channels.explain("Near").plan or "")
        expected = {id for id in held if 55.5 * (id - min(held) + 0.1) < 10.0 ** ((id - 1) % 6)}
        got = {id for id in held if step in ids(channels, id, "Near")}
        assert got >= expected, "who is near enough"
        assert _cached(spark) == before + 1
        gone = min(held - {min(held)})
        unsubscribe(channels, "A", gone)
        channels.tidy(now_s=0.0)
        held.discard(gone)
        held.add(subscribe(channels, "A", "Near", lat=60.0, lon=25.0, radius=4.0 + step))
    channels.close()
    assert _cached(spark) == before


def _cached(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.getPersistentRDDs().size())


def test_a_broker_that_starts_anew_holds_what_it_asks_for(
    channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    lost = subscribe(channels, "A", "OfType", type="fire")
    kept = subscribe(channels, "A", "OfType", type="flood")
    report(snapshots, 1)
    report(snapshots, 2, type="flood")
    channels.execute("OfType", now_s=10.0)
    created = channels.brokers.create_broker(CreateBroker(broker="A"), now_s=500.0)
    assert created.notices == notices(channels, "B").through == 1
    again = grant(channels, "A", "OfType", {"type": "flood"})
    assert again == Granted(id=kept, start=(2, 0))
    channels.tidy(now_s=601.0)
    asked = [PullFrom(id=id, start=START) for id in (lost, kept)]
    answer = channels.brokers.pull(Pull(broker="A", pulls=asked))
    assert answer.unknown == [lost]
    assert [notice.subscriptions for notice in notices(channels, "A").notices] == [[kept]]
