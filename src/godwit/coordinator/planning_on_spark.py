"""The greedy shuffle (GSH) as a Spark job, for more subscribers than one process should hold.

    holdings: subscriber bigint, held array<int>      (who holds which BE subscriptions)
    --> assignment: subscriber bigint, broker int     and the loads it gives

Subscribers are put together with people alike, the greedy algorithm of `balance.shuffle` deals out
these groups instead of single people, and everybody follows their group.  Alike: of what somebody
holds, the BE subscription that comes first in a fixed random order is their mark (a min-hash: two
people have the same mark with the probability of what they share of what they hold together).  A
mark with more than a small part of the load is split into several groups.

Three passes over the holdings, each a map over Arrow batches in NumPy that sends on sums only:
marks and their loads; groups and what they hold; the loads of the assignment.  Nothing is cached,
and no row is a Python object.  What comes to the driver grows with the groups and with what they
hold, not with the subscribers.

P1  The loads are those of `balance.model` for the assignment, to the last bit: Spark counts, and
    the sums over the counts are the model's.
P2  If every group is one subscriber, the assignment is that of `balance.shuffle`.

Tested   tests/coordinator/test_planning_on_spark.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from godwit.balance.model import BrokerLoads, Floats, Ints, Starts, Subscribers
from godwit.balance.shuffle import greedy_shuffle
from godwit.errors import UsageError

#: A broker gets so many groups, or more: the more there are, the more evenly they are dealt out.
GROUPS_PER_BROKER = 100
#: Of the fixed random order of BE subscriptions.
ORDER_SEED = 7
#: Stands for a BE subscription in a row that has the load of a group.
LOAD = -1

Batches = Iterator[pa.RecordBatch]
#: What a batch becomes: columns by name.
Mapping = Callable[["_Holdings"], dict[str, npt.NDArray[np.generic]]]


@dataclass(frozen=True, slots=True)
class SparkPlan:
    assigned: DataFrame
    """subscriber, held, broker.  Computed when it is asked for."""

    loads: BrokerLoads
    groups: int


def plan_on_spark(
    holdings: DataFrame, rates: Floats, m: int, *, groups_per_broker: int = GROUPS_PER_BROKER
) -> SparkPlan:
    """Assign everybody anew.  `rates` of the BE subscriptions are in bytes per second."""
    if m < 1 or groups_per_broker < 1:
        raise UsageError(f"{m} brokers, {groups_per_broker} groups each; one or more are possible")
    order = np.random.default_rng(ORDER_SEED).permutation(len(rates)).astype(np.int32)
    marked = _sums(holdings, _loads_of_marks(order, rates), "mark int, load double")
    grouping = _Grouping.of(order, marked, m * groups_per_broker)
    summed = _sums(holdings, _groups(grouping, rates), "group bigint, be int, load double")
    numbers, people, weights = _as_subscribers(summed, rates)
    brokers = greedy_shuffle(people, m, weights)
    assigned = assign_on_spark(holdings, grouping, numbers, brokers)
    return SparkPlan(assigned, loads_on_spark(assigned, rates, m), len(numbers))


def loads_on_spark(assigned: DataFrame, rates: Floats, m: int) -> BrokerLoads:
    """The loads of an assignment: `assigned` has the columns held and broker, besides others."""
    q = len(rates)

    def count(batch: _Holdings) -> dict[str, npt.NDArray[np.generic]]:
        cells = np.repeat(batch.brokers, batch.lengths).astype(np.int64) * q + batch.held
        there, counts = np.unique(cells, return_counts=True)
        return {"broker": (there // q).astype(np.int32), "be": (there % q).astype(np.int32),
                "holders": counts.astype(np.int64)}  # fmt: skip

    found = _sums(assigned, count, "broker int, be int, holders bigint")
    counts = np.zeros((m, q), dtype=np.int32)
    counts[found["broker"], found["be"]] = found["holders"]
    return BrokerLoads((counts > 0) @ rates, counts @ rates)


def assign_on_spark(
    holdings: DataFrame, grouping: _Grouping, numbers: Starts, brokers: Ints
) -> DataFrame:
    """Everybody follows their group: `numbers` of the groups, in order, and the broker of each."""

    def follow(batches: Batches) -> Batches:
        for batch in batches:
            groups = grouping.groups(_Holdings.of(batch))
            broker = pa.array(brokers[np.searchsorted(numbers, groups)], pa.int32())
            columns = [batch.column("subscriber"), batch.column("held"), broker]
            yield pa.RecordBatch.from_arrays(columns, ["subscriber", "held", "broker"])

    return holdings.mapInArrow(follow, "subscriber bigint, held array<int>, broker int")


@dataclass(frozen=True, slots=True)
class _Holdings:
    """A batch of subscribers as arrays."""

    subscribers: Starts
    lengths: Starts
    held: Ints
    brokers: Ints

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> _Holdings:
        held = batch.column("held")
        names = batch.schema.names
        none = np.zeros(0, dtype=np.int32)
        return cls(
            batch.column("subscriber").to_numpy().astype(np.int64),
            held.value_lengths().fill_null(0).to_numpy().astype(np.int64),
            held.flatten().to_numpy().astype(np.int32),
            batch.column("broker").to_numpy() if "broker" in names else none,
        )

    @property
    def owners(self) -> Starts:
        """The place in the batch of whose each entry of `held` is."""
        return np.repeat(np.arange(len(self.lengths), dtype=np.int64), self.lengths)

    def weights(self, rates: Floats) -> Floats:
        sums = np.bincount(self.owners, rates[self.held], minlength=len(self.lengths))
        return sums.astype(np.float64)

    def marks(self, order: Ints) -> Starts:
        """The place in the order of each one's mark; after the last, if somebody holds nothing."""
        marks = np.full(len(self.lengths), len(order), dtype=np.int64)
        holding = np.flatnonzero(self.lengths)
        if len(holding):
            begins = (np.cumsum(self.lengths) - self.lengths)[holding]
            marks[holding] = np.minimum.reduceat(order[self.held], begins)
        return marks


@dataclass(frozen=True, slots=True)
class _Grouping:
    """Which group a subscriber belongs to."""

    order: Ints
    parts: Starts
    """Into how many groups the people of each mark are split."""

    first: Starts
    """The number of each mark's first group."""

    @classmethod
    def of(cls, order: Ints, marked: dict[str, npt.NDArray[np.generic]], groups: int) -> _Grouping:
        load = np.zeros(len(order) + 1)
        load[marked["mark"].astype(np.int64)] = marked["load"]
        share = load.sum() / groups
        wanted = np.ceil(load / share) if share > 0 else np.ones_like(load)
        parts = np.maximum(1, wanted).astype(np.int64)
        return cls(order, parts, np.cumsum(parts) - parts)

    def groups(self, batch: _Holdings) -> Starts:
        marks = batch.marks(self.order)
        groups: Starts = self.first[marks] + batch.subscribers % self.parts[marks]
        return groups


def _loads_of_marks(order: Ints, rates: Floats) -> Mapping:
    def summed(batch: _Holdings) -> dict[str, npt.NDArray[np.generic]]:
        marks, places = np.unique(batch.marks(order), return_inverse=True)
        load = np.bincount(places, batch.weights(rates))
        return {"mark": marks.astype(np.int32), "load": load.astype(np.float64)}

    return summed


def _groups(grouping: _Grouping, rates: Floats) -> Mapping:
    """A row for each BE subscription of a group, without a load; and one with its load."""
    q = max(len(rates), 1)

    def summed(batch: _Holdings) -> dict[str, npt.NDArray[np.generic]]:
        groups, places = np.unique(grouping.groups(batch), return_inverse=True)
        load = np.bincount(places, batch.weights(rates), minlength=len(groups))
        holders = np.repeat(places, batch.lengths).astype(np.int64)
        cells = np.unique(holders * q + batch.held)
        be = np.concatenate((cells % q, np.full(len(groups), LOAD)))
        group = np.concatenate((groups[cells // q], groups))
        loads = np.concatenate((np.zeros(len(cells)), load))
        return {"group": group, "be": be.astype(np.int32), "load": loads}

    return summed


def _as_subscribers(
    summed: dict[str, npt.NDArray[np.generic]], rates: Floats
) -> tuple[Starts, Subscribers, Floats]:
    """Groups as if they were people: their numbers, what they hold, and what they are sent."""
    in_order = np.lexsort((summed["be"], summed["group"]))
    group, be, load = (summed[name][in_order] for name in ("group", "be", "load"))
    is_load = be == LOAD  # The first row of each group.
    numbers = group[is_load].astype(np.int64)
    starts = np.concatenate((np.flatnonzero(is_load), [len(be)])) - np.arange(len(numbers) + 1)
    held = be[~is_load].astype(np.int32)
    return numbers, Subscribers(starts, held, rates), load[is_load].astype(np.float64)


def _sums(frame: DataFrame, mapping: Mapping, schema: str) -> dict[str, npt.NDArray[np.generic]]:
    """Map each batch, and add up the last column over all rows that are equal in the others."""
    *keys, summed = (column.split()[0] for column in schema.split(", "))

    def mapped(batches: Batches) -> Batches:
        for batch in batches:
            if batch.num_rows:
                columns = mapping(_Holdings.of(batch))
                yield pa.RecordBatch.from_pydict({k: pa.array(v) for k, v in columns.items()})

    rows = frame.mapInArrow(mapped, schema)
    table = rows.groupBy(*keys).agg(F.sum(summed).alias(summed)).toArrow()
    return {name: table.column(name).to_numpy() for name in (*keys, summed)}
