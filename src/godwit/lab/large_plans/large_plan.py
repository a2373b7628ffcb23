"""CRAM on Spark: a plan for very many subscribers.

Paper    Cheung, thesis 6.2.3; the thesis plans for 22,500 subscriptions in one process.
Words    GIF -> gif_frames.py; clusters -> cluster_rounds.py; allocation scheme -> the plan.
Departs  1. Three steps instead of one loop: subscribers with the same profile by hash; units with
            common publications in rounds, up to a share of a broker; then CRAM itself with the
            clusters that are left, the tree and the publishers, on the driver.
         2. If there is no room for clusters of that size, the plan is made again with smaller ones.
Tested   tests/lab/test_large_plans.py: against make_plan, in one process and on a cluster.

The driver sees clusters, never subscribers: the assignment is a table on Spark.

LP1  The same subscribers give the same plan, however they are distributed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from godwit.errors import UsageError
from godwit.lab.large_plans.cluster_rounds import (
    ENOUGH,
    PIECE_MAX,
    ClusterRounds,
    clusters_of,
    merged_in_rounds,
)
from godwit.lab.large_plans.gif_frames import (
    GIF_BYTES,
    gifs_of,
    histogram_of,
    named,
    placed_in_units,
    units_of,
)
from godwit.policies.allocation.capacity import BrokerCapacity, UnallocatableError
from godwit.policies.allocation.packed_profiles import PublisherTable
from godwit.policies.allocation.plan import AllocationPlan
from godwit.policies.allocation.settings import AllocationSettings
from godwit.policies.large_allocation.finishing import (
    FINISH_MAX,
    FinishedPlan,
    SubscriberCluster,
    check_settings,
    completed,
    finished,
)
from godwit.policies.large_allocation.load_histogram import LoadHistogram
from godwit.policies.large_allocation.profile_bytes import decoded, decoded_counts
from godwit.policies.large_allocation.unit_limits import UnitLimits

#: The largest share of a broker that a unit takes; the next one if there is no room.
SHARES = (1 / 8, 1 / 64)
UNIT_BYTES = GIF_BYTES + 4


@dataclass(frozen=True, slots=True)
class LargePlan:
    plan: AllocationPlan
    """Its `assignment` is empty: `assigned` has it."""

    assigned: DataFrame
    """subscriber string, subscriptions int, broker string."""

    subscribers: int
    gifs: int
    clusters: int
    """For the last step."""


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """Sizes that trade time for quality."""

    shares: Sequence[float] = SHARES
    piece_max: int = PIECE_MAX
    enough: int = ENOUGH
    finish_max: int = FINISH_MAX


DEFAULTS = PlanLimits()


@contextmanager
def planned_on_spark(
    subscribers: DataFrame,
    table: PublisherTable,
    brokers: Sequence[BrokerCapacity],
    settings: AllocationSettings,
    *,
    limits: PlanLimits = DEFAULTS,
    clock: Callable[[], float] = lambda: 0.0,
) -> Iterator[LargePlan]:
    """The plan, while tables on Spark are there.

    `subscribers` has the columns of gif_frames.SUBSCRIBERS: the names are unique, and profiles are
    in the windows of `table` (policies/large_allocation/profile_bytes.py).  `brokers` are in their
    order.  Raises UsageError if settings are for one machine only, and UnallocatableError if there
    is no room.
    """
    check_settings(settings)
    if not brokers:
        raise UsageError("brokers: there are none; a plan needs at least one")
    with ExitStack() as kept:
        yield _Planning(subscribers, table, brokers, settings, limits, clock, kept).planned()


class _Planning:
    def __init__(
        self,
        subscribers: DataFrame,
        table: PublisherTable,
        brokers: Sequence[BrokerCapacity],
        settings: AllocationSettings,
        limits: PlanLimits,
        clock: Callable[[], float],
        kept: ExitStack,
    ) -> None:
        self._started_s = clock()
        self._clock = clock
        self._table = table
        self._brokers = brokers
        self._settings = settings
        self._limits = limits
        self._named = _cached(named(subscribers), kept)
        self._gifs = _cached(gifs_of(self._named), kept)
        self._kept = kept

    def planned(self) -> LargePlan:
        histogram = histogram_of(self._gifs, self._table)
        failure: UnallocatableError | None = None
        for share in self._limits.shares:
            try:
                return self._with_share(histogram, share)
            except UnallocatableError as error:
                failure = error
        assert failure is not None
        raise failure

    def _with_share(self, histogram: LoadHistogram, share: float) -> LargePlan:
        table, settings = self._table, self._settings
        limits = UnitLimits.of(
            self._brokers, histogram.total_bytes_s, histogram.subscriptions, share
        )
        placed = _cached(placed_in_units(self._named, self._gifs, table, limits), self._kept)
        sizes = self._limits
        rounds = ClusterRounds(
            table, limits, check_settings(settings), sizes.piece_max, sizes.enough
        )
        units = units_of(placed, self._gifs)
        clusters, evaluations = merged_in_rounds(clusters_of(units, table), rounds)
        rows = clusters.orderBy("cluster").toArrow()
        clusters.unpersist()
        members = _members(rows)
        pinned = self._pinned(placed, members)
        done = finished(
            _clusters(rows, table), table, self._brokers, settings,
            pinned=pinned,
            finish_max=self._limits.finish_max,
        )  # fmt: skip
        assigned = _assigned(placed, members, done.homes)
        plan = completed(
            done.plan,
            histogram.bounds(self._brokers, table),
            algorithm=settings.algorithm,
            moves=_moves(assigned) + done.plan.moves - _counted_twice(pinned, done, table),
            evaluations=evaluations,
            seconds=self._clock() - self._started_s,
        )
        return LargePlan(
            plan,
            assigned.select("subscriber", "subscriptions", F.col("home").alias("broker")),
            histogram.subscribers,
            self._gifs.count(),
            len(done.homes),
        )

    def _pinned(self, placed: DataFrame, members: Mapping[bytes, int]) -> dict[int, int]:
        """Publishers whose client subscribes, and its cluster."""
        clients = {name: p for p, name in enumerate(self._table.clients) if name is not None}
        if not clients:
            return {}
        found = placed.where(F.col("subscriber").isin(list(clients))).select("subscriber", "unit")
        return {clients[row["subscriber"]]: members[bytes(row["unit"])] for row in found.collect()}


def _cached(frame: DataFrame, kept: ExitStack) -> DataFrame:
    frame = frame.persist()
    kept.callback(frame.unpersist)
    return frame


def _clusters(rows: pa.Table, table: PublisherTable) -> list[SubscriberCluster]:
    found = []
    for row in rows.to_pylist():
        profile = decoded(row["profile"], table.words)
        deliveries = decoded_counts(row["deliveries"], profile)
        found.append(
            SubscriberCluster(profile, deliveries, row["bandwidth_bytes_s"], row["subscriptions"])
        )
    return found


def _members(rows: pa.Table) -> dict[bytes, int]:
    """Unit -> the place of its cluster."""
    return {
        data[start : start + UNIT_BYTES]: place
        for place, data in enumerate(rows.column("units").to_pylist())
        for start in range(0, len(data), UNIT_BYTES)
    }


def _assigned(placed: DataFrame, members: Mapping[bytes, int], homes: Sequence[str]) -> DataFrame:
    """placed, with the planned broker as `home`."""
    names = sorted(set(homes))
    index = {name: place for place, name in enumerate(names)}
    of_cluster = np.array([index[name] for name in homes], np.int32)
    places = of_cluster[np.fromiter(members.values(), np.int64, len(members))]
    home = pa.DictionaryArray.from_arrays(
        pa.array(places, pa.int32()), pa.array(names, pa.string())
    )
    units = pa.table({"unit": pa.array(list(members), pa.binary()), "home": home.cast(pa.string())})
    return placed.join(placed.sparkSession.createDataFrame(units), "unit")


def _moves(assigned: DataFrame) -> int:
    return assigned.where("broker is not null and broker != home").count()


def _counted_twice(pinned: Mapping[int, int], done: FinishedPlan, table: PublisherTable) -> int:
    """Publishers that move with their client, which is a subscriber."""
    homes = done.plan.publishers
    return sum(table.brokers[p] not in (None, homes[table.ids[p]]) for p in pinned)
