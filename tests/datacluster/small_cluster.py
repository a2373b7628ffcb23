"""Channels over datasets in memory, and the requests that tests make of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.datacluster.memory_snapshots import REPORTS, SHELTERS, USERS, MemorySnapshots
from tests.datacluster.stating import channel_statement

from godwit.api.datacluster_api import (
    Granted,
    Notices,
    NoticesAfter,
    Pull,
    Pulled,
    PullFrom,
    Subscribe,
    Unsubscribe,
    Wanted,
)
from godwit.content.channel_messages import Position
from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channels.channel_service import ChannelService, ChannelSettings
from godwit.spark.supervised import SupervisedSpark

OF_TYPE = """CREATE CHANNEL OfType(type STRING) EVERY 10 SECONDS AS
    SELECT id FROM NEW Reports WHERE type = :type"""
NEAR = """CREATE CHANNEL Near(lat DOUBLE, lon DOUBLE, radius DOUBLE) EVERY 10 SECONDS AS
    SELECT id FROM NEW Reports WHERE distance(lat, lon, :lat, :lon) < :radius"""
FAILING = """CREATE CHANNEL Failing(type STRING) EVERY 10 SECONDS AS
    SELECT id FROM NEW Reports WHERE type = :type AND type > 3"""
"""Spark makes a number of each type, and that cannot be done with 'fire'."""
SETTINGS = ChannelSettings(offline_s=100.0, keep_s=1_000.0)
START: Position = (1, 0)
EVERYTHING = 10_000


def small_snapshots(spark: SparkSession) -> MemorySnapshots:
    return MemorySnapshots(spark, REPORTS, USERS, SHELTERS)


def opened(
    spark: SparkSession,
    snapshots: MemorySnapshots,
    folder: Path,
    kind: type[ChannelService] = ChannelService,
) -> ChannelService:
    return kind(
        SupervisedSpark(lambda: spark), Catalog(folder), snapshots, folder, settings=SETTINGS
    )


def make(channels: ChannelService, *statements: str) -> None:
    for statement in statements:
        channels.apply(channel_statement(statement), now_s=0.0)


def report(snapshots: MemorySnapshots, *ids: int, type: str = "fire") -> int:
    """A batch of reports."""
    records = [{"id": id, "type": type, "lat": 60.0, "lon": 25.0} for id in ids]
    return snapshots.append("Reports", records)


# -- what brokers ask --------------------------------------------------------------------------


def grant(
    channels: ChannelService, broker: str, channel: str, arguments: Mapping[str, Any]
) -> Granted:
    wanted = [Wanted(channel=channel, arguments=dict(arguments))]
    (granted,) = channels.brokers.subscribe(
        Subscribe(broker=broker, subscriptions=wanted)
    ).subscriptions
    return granted


def subscribe(channels: ChannelService, broker: str, channel: str, **arguments: Any) -> int:
    granted = grant(channels, broker, channel, arguments)
    assert granted.id is not None, granted.error
    return granted.id


def unsubscribe(channels: ChannelService, broker: str, id: int) -> None:
    channels.brokers.unsubscribe(Unsubscribe(broker=broker, ended=[id]), now_s=0.0)


def release(channels: ChannelService, broker: str, id: int, *, now_s: float) -> None:
    channels.brokers.unsubscribe(Unsubscribe(broker=broker, released=[id]), now_s=now_s)


def acknowledge(channels: ChannelService, broker: str, id: int, position: Position) -> None:
    done = [PullFrom(id=id, start=position)]
    channels.brokers.pull(Pull(broker=broker, pulls=[], acknowledged=done))


def notices(channels: ChannelService, broker: str, *, after: int = 0) -> Notices:
    return channels.brokers.notices(NoticesAfter(broker=broker, after=after))


def stored(
    channels: ChannelService,
    starts: Mapping[int, Position],
    channel: str = "OfType",
    *,
    limit_bytes: int = EVERYTHING,
) -> dict[int, Pulled]:
    """Results that are kept, also of subscriptions that have ended, which brokers cannot pull."""
    (known,) = [each for each in channels.all() if each.channel.name == channel]
    pulled = channels._results.pull(known.id, starts, limit_bytes=limit_bytes)
    return {each.id: each for each in pulled}


def rows(pulled: Pulled) -> list[tuple[int, int]]:
    """Execution and number of each row."""
    return [(r.execution, r.first + n) for r in pulled.results for n in range(len(r.rows))]


def ids(channels: ChannelService, subscription: int, channel: str = "OfType") -> list[object]:
    """Of all results of a subscription that there are."""
    pulled = stored(channels, {subscription: START}, channel)[subscription]
    return [row["id"] for results in pulled.results for row in results.rows]
