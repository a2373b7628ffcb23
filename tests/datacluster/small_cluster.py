"""Channels over datasets in memory, and small things that tests do with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from tests.datacluster.memory_snapshots import REPORTS, SHELTERS, USERS, MemorySnapshots

from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channel_statements import parse_channel_statement
from godwit.datacluster.channels import Channels, ChannelSettings
from godwit.datacluster.subscriptions import LAST_ORDINAL, Position

OF_TYPE = """CREATE CHANNEL OfType(type STRING) EVERY 10 SECONDS AS
    SELECT id FROM NEW Reports WHERE type = :type"""
NEAR = """CREATE CHANNEL Near(lat DOUBLE, lon DOUBLE, radius DOUBLE) EVERY 10 SECONDS AS
    SELECT id FROM NEW Reports WHERE distance(lat, lon, :lat, :lon) < :radius"""
FAILING = """CREATE CHANNEL Failing(type STRING) EVERY 10 SECONDS AS
    SELECT id FROM NEW Reports WHERE type = :type AND type > 3"""
"""Spark makes a number of each type, and that cannot be done with 'fire'."""
SETTINGS = ChannelSettings(offline_s=100.0, keep_s=1_000.0)
START = Position(0, LAST_ORDINAL)


def small_snapshots(spark: SparkSession) -> MemorySnapshots:
    return MemorySnapshots(spark, REPORTS, USERS, SHELTERS)


def opened(
    spark: SparkSession,
    snapshots: MemorySnapshots,
    folder: Path,
    *,
    step: Callable[[str], None] = lambda _: None,
) -> Channels:
    return Channels(spark, Catalog(folder), snapshots, folder, settings=SETTINGS, step=step)


def make(channels: Channels, *statements: str) -> None:
    for statement in statements:
        channels.apply(parse_channel_statement(statement), now_s=0.0)


def report(snapshots: MemorySnapshots, *ids: int, type: str = "fire") -> int:
    """A batch of reports."""
    records = [{"id": id, "type": type, "lat": 60.0, "lon": 25.0} for id in ids]
    return snapshots.append("Reports", records)


def ids(channels: Channels, subscription: int, channel: str = "OfType") -> list[object]:
    """Of all results of a subscription that there are."""
    pulled = channels.pull(channel, {subscription: START}, limit_bytes=10_000)
    return [row.values["id"] for row in pulled.rows]
