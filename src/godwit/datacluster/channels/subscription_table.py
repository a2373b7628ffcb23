"""The subscriptions of a channel in Spark: a cached base and the changes since.

Subscribing and unsubscribing leave the base as it is.  Executions read it together with a small
table of later subscriptions, and drop the results of those that have ended.  When there are many
changes, the base is rebuilt.

Rows are spread evenly over the cores, not by a key: the new records are broadcast to them, and a
key with few values would leave cores idle.

T1  Cached frames are released when they are replaced, and when the table is closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  The usual name.
from sqlglot import exp

from godwit.datacluster.channels.arguments import columns
from godwit.datacluster.channels.subscriptions import Subscriptions
from godwit.datacluster.model.channel import Channel
from godwit.datacluster.sql.channel_query import SUBSCRIPTION, SUBSCRIPTIONS
from godwit.datacluster.sql.expressions import DIALECT
from godwit.datacluster.sql.rewriting import CELLS, LEVEL, SubscriptionBox

#: Changes that are kept beside the base: at most this many, or this share of it.
CHANGES_MIN = 1_000
CHANGES_SHARE = 0.1
#: Fewer are sent to Spark with the query, which is faster than reading a cache.
CACHED_MIN = 2_000


class SubscriptionView(NamedTuple):
    """The subscriptions of one version."""

    frame: DataFrame
    levels: tuple[tuple[int, ...], ...]
    """The levels that occur, for each of `_level_0`, `_level_1` ..."""

    ids: np.ndarray
    """Ids in the base and the later ones, including those in `ended`."""

    ended: np.ndarray

    @property
    def is_empty(self) -> bool:
        return len(self.ids) == len(self.ended)


class _Part(NamedTuple):
    version: int
    frame: DataFrame
    levels: tuple[frozenset[int], ...]
    ids: np.ndarray


class SubscriptionTable:
    def __init__(
        self,
        spark: SparkSession,
        subscriptions: Subscriptions,
        channel_id: int,
        channel: Channel,
        boxes: Sequence[SubscriptionBox],
    ) -> None:
        self._spark = spark
        self._subscriptions = subscriptions
        self._channel_id = channel_id
        self._channel = channel
        self._boxes = boxes
        self._base: _Part | None = None
        self._later: _Part | None = None

    def at(self, version: int) -> SubscriptionView:
        base = self._base
        if base is None or base.version > version:
            base = self._make_base(version)
        change = self._subscriptions.changes(self._channel_id, after=base.version, through=version)
        allowed = max(CHANGES_MIN, int(CHANGES_SHARE * len(base.ids)))
        if len(change.added) + len(change.removed) > allowed:
            base = self._make_base(version)
            return _view(base, None, [])
        return _view(base, self._later_part(version, change.added), change.removed)

    @property
    def base_version(self) -> int | None:
        return None if self._base is None else self._base.version

    def close(self) -> None:
        """T1."""
        for part in (self._base, self._later):
            if part is not None:
                part.frame.unpersist()
        self._base = self._later = None

    def _later_part(self, version: int, added: Sequence[tuple[int, bytes]]) -> _Part | None:
        later = self._later
        if later is not None and later.version == version:
            return later
        if later is not None:
            later.frame.unpersist()
        self._later = self._part(version, added) if added else None
        return self._later

    def _make_base(self, version: int) -> _Part:
        self.close()
        rows = self._subscriptions.in_force(self._channel_id, version=version)
        self._base = self._part(version, rows)
        return self._base

    def _part(self, version: int, rows: Sequence[tuple[int, bytes]]) -> _Part:
        ids = pa.array([id for id, _ in rows], pa.int64())
        table = pa.table(
            {SUBSCRIPTION: ids} | columns(self._channel, [arguments for _, arguments in rows])
        )
        frame: DataFrame = self._spark.createDataFrame(table)
        for number, box in enumerate(self._boxes):
            frame = _with(frame, LEVEL.format(number), box.level)
            if box.cells is not None:
                frame = _with(frame, CELLS.format(number), box.cells)
        names = [LEVEL.format(number) for number in range(len(self._boxes))]
        if len(rows) < CACHED_MIN:
            found = frame.select(*names).collect() if names else []  # Runs no Spark job.
            levels = [frozenset(row[name] for row in found) for name in names]
        else:
            frame = frame.repartition(self._spark.sparkContext.defaultParallelism).cache()
            # This job also fills the cache.
            sets = frame.agg(F.count("*"), *(F.collect_set(name) for name in names)).first()
            assert sets is not None
            levels = list(map(frozenset, sets[1:]))
        return _Part(version, frame, tuple(each - {None} for each in levels), ids.to_numpy())


def _with(frame: DataFrame, name: str, value: exp.Expr) -> DataFrame:
    return frame.alias(SUBSCRIPTIONS).withColumn(name, F.expr(value.sql(DIALECT)))


def _view(base: _Part, later: _Part | None, ended: Sequence[int]) -> SubscriptionView:
    frame, levels, ids = base.frame, base.levels, base.ids
    if later is not None:
        frame = frame.union(later.frame)
        levels = tuple(a | b for a, b in zip(levels, later.levels, strict=True))
        ids = np.concatenate([ids, later.ids])
    in_order = tuple(tuple(sorted(each)) for each in levels)
    return SubscriptionView(frame, in_order, ids, np.array(ended, np.int64))
