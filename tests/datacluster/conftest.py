"""One Spark session for all tests of the data cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.datacluster.memory_snapshots import MemorySnapshots
from tests.datacluster.small_cluster import OF_TYPE, make, opened, small_snapshots
from tests.spark import spark

from godwit.datacluster.channels.channel_service import ChannelService

__all__ = ["spark"]


@pytest.fixture
def snapshots(spark: SparkSession) -> MemorySnapshots:
    return small_snapshots(spark)


@pytest.fixture
def channels(spark: SparkSession, snapshots: MemorySnapshots, tmp_path: Path) -> ChannelService:
    """With the channel `OfType`."""
    channels = opened(spark, snapshots, tmp_path)
    make(channels, OF_TYPE)
    return channels
