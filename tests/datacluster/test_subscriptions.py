"""Subscriptions of brokers, and how Spark sees them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.datacluster.memory_snapshots import MemorySnapshots
from tests.datacluster.small_cluster import NEAR, ids, report

from godwit.datacluster import subscription_table
from godwit.datacluster.channel_statements import parse_channel_statement
from godwit.datacluster.channels import Channels
from godwit.datacluster.subscriptions import Subscribed
from godwit.errors import UsageError


def test_equal_arguments_are_one_subscription_for_all_brokers(channels: Channels) -> None:
    first = channels.subscribe("A", "OfType", {"type": "fire"})
    assert first == Subscribed(1, 0, 0)
    assert channels.subscribe("A", "oftype", {"TYPE": "fire"}) == first
    assert channels.subscribe("B", "OfType", {"type": "fire"}) == first
    assert channels.subscribe("B", "OfType", {"type": "Fire"}).id != first.id


def test_it_takes_effect_at_the_next_execution(
    channels: Channels, snapshots: MemorySnapshots
) -> None:
    old = channels.subscribe("A", "OfType", {"type": "fire"})
    report(snapshots, 1)
    channels.execute("OfType", now_s=10.0)
    late = channels.subscribe("B", "OfType", {"type": "flood"})
    again = channels.subscribe("C", "OfType", {"type": "fire"})
    assert (late.after_execution, again) == (1, Subscribed(old.id, 1, 1))
    report(snapshots, 2, type="flood")
    channels.unsubscribe("A", old.id)
    channels.unsubscribe("C", old.id)
    report(snapshots, 3)
    channels.execute("OfType", now_s=20.0)
    assert ids(channels, late.id) == [2]
    assert ids(channels, old.id) == [1]
    assert channels.notices("C", after=0).notices == []


def test_a_subscription_lasts_while_somebody_holds_it(channels: Channels) -> None:
    held = channels.subscribe("A", "OfType", {"type": "fire"})
    channels.subscribe("B", "OfType", {"type": "fire"})
    channels.unsubscribe("A", held.id)
    channels.unsubscribe("A", held.id)  # Again: the answer was lost.
    assert channels.status("OfType").subscriptions == 1
    channels.unsubscribe("B", held.id)
    assert channels.status("OfType").subscriptions == 0
    assert channels.subscribe("A", "OfType", {"type": "fire"}).id != held.id


def test_who_is_offline_is_waited_for(channels: Channels, snapshots: MemorySnapshots) -> None:
    held = channels.subscribe("A", "OfType", {"type": "fire"})
    channels.release("A", held.id, now_s=1_000.0)
    report(snapshots, 1)
    channels.execute("OfType", now_s=1_010.0)
    channels.tidy(now_s=1_100.0)
    assert channels.subscribe("A", "OfType", {"type": "fire"}).id == held.id
    assert ids(channels, held.id) == [1]
    channels.release("A", held.id, now_s=1_100.0)
    channels.tidy(now_s=1_201.0)
    assert channels.status("OfType").subscriptions == 0


@pytest.mark.parametrize(
    "value",
    ["' OR '1'='1", "x'; DROP TABLE subscriptions; --", "${type}", ":type", "\x00", "`", "{x}"],
)
def test_hostile_arguments_are_values(
    channels: Channels, snapshots: MemorySnapshots, value: str
) -> None:
    other = channels.subscribe("A", "OfType", {"type": "fire"})
    hostile = channels.subscribe("A", "OfType", {"type": value})
    report(snapshots, 1)
    report(snapshots, 2, type=value)
    outcome = channels.execute("OfType", now_s=10.0)
    assert outcome is not None
    assert (outcome.error, outcome.rows) == (None, 2)
    assert (ids(channels, other.id), ids(channels, hostile.id)) == ([1], [2])


def test_an_unknown_channel_is_named(channels: Channels) -> None:
    with pytest.raises(UsageError, match="there is no channel Nope"):
        channels.subscribe("A", "Nope", {})
    with pytest.raises(UsageError, match="needs the argument type"):
        channels.subscribe("A", "OfType", {})


def test_a_cached_base_and_what_came_later(
    spark: SparkSession,
    channels: Channels,
    snapshots: MemorySnapshots,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a cache from 10 on, made anew after 5 changes: nobody is missed, and nothing stays."""
    monkeypatch.setattr(subscription_table, "CACHED_MIN", 10)
    monkeypatch.setattr(subscription_table, "CHANGES_MIN", 5)
    channels.apply(parse_channel_statement(NEAR), now_s=0.0)
    before = _cached(spark)
    circles = [{"lat": 60.0, "lon": 25.0, "radius": 10.0 ** (n % 6)} for n in range(12)]
    all_of_them = [circle | {"lon": 25.0 + n / 1e4} for n, circle in enumerate(circles)]
    held = {s.id for s in channels.subscribe_all("A", "Near", all_of_them)}
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
        channels.unsubscribe("A", gone)
        channels.tidy(now_s=0.0)
        held.discard(gone)
        new = {"lat": 60.0, "lon": 25.0, "radius": 4.0 + step}
        held.add(channels.subscribe("A", "Near", new).id)
    channels.close()
    assert _cached(spark) == before


def _cached(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.getPersistentRDDs().size())


def test_a_broker_that_starts_anew_holds_what_it_asks_for(
    channels: Channels, snapshots: MemorySnapshots
) -> None:
    lost = channels.subscribe("A", "OfType", {"type": "fire"})
    kept = channels.subscribe("A", "OfType", {"type": "flood"})
    report(snapshots, 1)
    channels.execute("OfType", now_s=10.0)
    last = channels.begin_broker("A", now_s=1_000.0)
    assert last == channels.notices("B", after=0).through == 1
    again = channels.subscribe("A", "OfType", {"type": "flood"})
    assert again == Subscribed(kept.id, 0, 1)  # Held since execution 0, asked for after 1.
    channels.tidy(now_s=1_000.0 + 10 * 86_400.0)
    assert channels.channels_of([lost.id, kept.id]) == {kept.id: "OfType"}
