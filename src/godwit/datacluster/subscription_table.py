"""The subscriptions of a channel in Spark: a cached base, and what has changed since.

A base is not touched when somebody subscribes or unsubscribes.  Executions read it together with a
small table of those that came later, and drop the results of those that are gone.  When that has
become much, the base is made anew.

Rows are spread evenly over the cores, not by a key: the side that is new is broadcast to them, and
a key with few values would leave cores idle.

T1  There is one cached base, and whoever makes the next one, or closes, gives it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  As everybody calls it.
from sqlglot import exp

from godwit.datacluster.arguments import columns
from godwit.datacluster.channel import Channel
from godwit.datacluster.channel_query import SUBSCRIPTION, SUBSCRIPTIONS
from godwit.datacluster.expressions import DIALECT
from godwit.datacluster.one_pass import LEVEL
from godwit.datacluster.subscriptions import Subscriptions

#: Changes that are kept beside the base: so many, or this part of it.
CHANGES_MIN = 1_000
CHANGES_SHARE = 0.1


class SubscriptionView(NamedTuple):
    """The subscriptions at a version."""

    frame: DataFrame
    levels: tuple[tuple[int, ...], ...]
    """For each `_level_0`, `_level_1` ... those that occur."""

    ids: np.ndarray
    """Of the base and those that came later; may include some that are gone."""

    gone: np.ndarray

    @property
    def is_empty(self) -> bool:
        return len(self.ids) == len(self.gone)


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
        levels: Sequence[exp.Expr],
    ) -> None:
        self._spark = spark
        self._subscriptions = subscriptions
        self._channel_id = channel_id
        self._channel = channel
        self._levels = [level.sql(dialect=DIALECT) for level in levels]
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
        later = self._later
        if later is None or later.version != version:
            later = self._later = self._part(version, change.added) if change.added else None
        return _view(base, later, change.removed)

    def close(self) -> None:
        """T1."""
        if self._base is not None:
            self._base.frame.unpersist()
        self._base = self._later = None

    def _make_base(self, version: int) -> _Part:
        self.close()
        rows = self._subscriptions.in_force(self._channel_id, version=version)
        self._base = self._part(version, rows, is_cached=True)
        return self._base

    def _part(
        self, version: int, rows: Sequence[tuple[int, bytes]], *, is_cached: bool = False
    ) -> _Part:
        ids = pa.array([id for id, _ in rows], pa.int64())
        table = pa.table(
            {SUBSCRIPTION: ids} | columns(self._channel, [arguments for _, arguments in rows])
        )
        frame: DataFrame = self._spark.createDataFrame(table).alias(SUBSCRIPTIONS)
        names = [LEVEL.format(number) for number in range(len(self._levels))]
        frame = frame.selectExpr(
            "*", *(f"{sql} AS {name}" for name, sql in zip(names, self._levels, strict=True))
        )
        if is_cached:
            frame = frame.repartition(self._spark.sparkContext.defaultParallelism).cache()
        levels: tuple[frozenset[int], ...] = ()
        if names or is_cached:  # Asking for the levels fills the cache, too.
            found = frame.agg(F.count("*"), *(F.collect_set(name) for name in names)).first()
            assert found is not None
            levels = tuple(map(frozenset, found[1:]))
        return _Part(version, frame, levels, ids.to_numpy())


def _view(base: _Part, later: _Part | None, gone: Sequence[int]) -> SubscriptionView:
    frame, levels, ids = base.frame, base.levels, base.ids
    if later is not None:
        frame = frame.union(later.frame)
        levels = tuple(a | b for a, b in zip(levels, later.levels, strict=True))
        ids = np.concatenate([ids, later.ids])
    in_order = tuple(tuple(sorted(each)) for each in levels)
    return SubscriptionView(frame, in_order, ids, np.array(gone, np.int64))
