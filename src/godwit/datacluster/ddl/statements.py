"""Statements: what the data definition language can express, as values.

    CREATE DATASET name (column type, ...) [KEY column] [STATIC]
    CREATE FEED name FROM FILTER "filter" INTO dataset
    CREATE CHANNEL name(parameter type, ...) EVERY n SECONDS|MINUTES AS SELECT ...
    CREATE CHANNEL name(parameter type, ...) CONTINUOUS AS SELECT ...
    DROP DATASET|FEED|CHANNEL name

parsing.py reads them.  sql/channel_query.py checks the SELECT of a channel, which is text here.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from godwit.datacluster.model.channel import Channel
from godwit.datacluster.model.dataset import Dataset
from godwit.datacluster.model.feed import Feed


class CreateDataset(msgspec.Struct, frozen=True):
    dataset: Dataset


class CreateFeed(msgspec.Struct, frozen=True):
    feed: Feed


class CreateChannel(msgspec.Struct, frozen=True):
    channel: Channel


class DropDataset(msgspec.Struct, frozen=True):
    name: str


class DropFeed(msgspec.Struct, frozen=True):
    name: str


class DropChannel(msgspec.Struct, frozen=True):
    name: str


DatasetStatement: TypeAlias = CreateDataset | CreateFeed | DropDataset | DropFeed
ChannelStatement: TypeAlias = CreateChannel | DropChannel
Statement: TypeAlias = DatasetStatement | ChannelStatement
