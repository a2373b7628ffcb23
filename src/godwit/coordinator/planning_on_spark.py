"""The greedy shuffle (GSH) as a Spark job, for very many subscribers.

    holdings: subscriber bigint, held array<int>          the BE subscriptions of each
    --> assigned: subscriber, held, broker int            and the loads of this assignment

Subscribers with similar holdings form groups, the greedy algorithm of `policies.staged.shuffle`
assigns groups instead of subscribers, and each subscriber goes with its group.  The mark of a
subscriber is the first of its BE subscriptions in a fixed random order (a min-hash: two subscribers
have the same mark with a probability equal to the Jaccard similarity of their holdings).  Groups
have about the same load: a mark with more is split, marks with less are merged.

Three passes over the holdings, in NumPy over Arrow batches: the loads of marks; the holdings of
each group; the loads of the assignment.  Each partition sends on one vector for each group or
broker, and Spark adds these.  Nothing is cached, and no row is a Python object.  Memory of a
worker: a byte for each group and BE subscription, or four for each broker and BE subscription.

P1  The loads are those of `policies.staged.loads` for the assignment, to the last bit: Spark
    counts, and the sums over the counts are the model's.
P2  If every group is one subscriber, the assignment is that of `policies.staged.shuffle`.

There are no bit vectors (profile/) here: BAD measures a rate for each BE subscription.

Tested   tests/coordinator/test_planning_on_spark.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from godwit.errors import UsageError
from godwit.policies.staged.loads import BrokerLoads, Floats, Ints, Starts, Subscribers
from godwit.policies.staged.shuffle import greedy_shuffle

#: Groups for each broker: more groups give a more even assignment.
GROUPS_PER_BROKER = 100
#: Seed of the fixed random order of BE subscriptions.
ORDER_SEED = 7

Batches = Iterator[pa.RecordBatch]
Vector = npt.NDArray[Any]
#: The result of a partition: vectors by the number of a group or broker.
Vectors = dict[int, Vector]


@dataclass(frozen=True, slots=True)
class SparkPlan:
    assigned: DataFrame
    """subscriber, held, broker.  Computed on demand."""

    loads: BrokerLoads
    groups: int


def plan_on_spark(
    holdings: DataFrame, rates: Floats, m: int, *, groups_per_broker: int = GROUPS_PER_BROKER
) -> SparkPlan:
    """Assign all subscribers anew, and count the loads that this gives."""
    assigned, groups = assign_on_spark(holdings, rates, m, groups_per_broker=groups_per_broker)
    return SparkPlan(assigned, loads_on_spark(assigned, rates, m), groups)


def assign_on_spark(
    holdings: DataFrame, rates: Floats, m: int, *, groups_per_broker: int = GROUPS_PER_BROKER
) -> tuple[DataFrame, int]:
    """The new broker of each subscriber, computed on demand, and the number of groups.

    `rates` of the BE subscriptions are in bytes per second.
    """
    if m < 1 or groups_per_broker < 1:
        raise UsageError(f"{m} brokers, {groups_per_broker} groups each; at least 1 is needed")
    order = np.random.default_rng(ORDER_SEED).permutation(len(rates)).astype(np.int32)
    grouping = _Grouping.of(order, _loads_of_marks(holdings, order, rates), m * groups_per_broker)
    numbers, groups, weights = _groups(holdings, grouping, rates)
    brokers = greedy_shuffle(groups, m, weights)
    return _assigned(holdings, grouping, numbers, brokers), len(numbers)


def loads_on_spark(assigned: DataFrame, rates: Floats, m: int) -> BrokerLoads:
    """The loads of an assignment: `assigned` has the columns subscriber, held and broker."""
    q = len(rates)

    def count(batches: Iterator[_Holdings]) -> Vectors:
        counts = np.zeros((m, q), dtype=np.int32)
        for batch in batches:
            cells = np.repeat(batch.brokers, batch.lengths).astype(np.int64) * q + batch.held
            counts += np.bincount(cells, minlength=m * q).reshape(m, q).astype(np.int32)
        return dict(enumerate(counts))

    found = _combined(assigned, count, np.add, np.int32)
    counts = np.array([found.get(j, np.zeros(q, np.int32)) for j in range(m)])
    return BrokerLoads((counts > 0) @ rates, counts @ rates)


def _loads_of_marks(holdings: DataFrame, order: Ints, rates: Floats) -> Floats:
    """Loads by place in the order; the last is for subscribers without holdings."""

    def add_up(batches: Iterator[_Holdings]) -> Vectors:
        load = np.zeros(len(order) + 1)
        for batch in batches:
            load += np.bincount(batch.marks(order), batch.weights(rates), minlength=len(load))
        return {0: load}

    return _combined(holdings, add_up, np.add, np.float64).get(0, np.zeros(len(order) + 1))


def _groups(
    holdings: DataFrame, grouping: _Grouping, rates: Floats
) -> tuple[Starts, Subscribers, Floats]:
    """Groups as if they were subscribers: their numbers, holdings, and outgoing loads."""
    q = len(rates)

    def add_up(batches: Iterator[_Holdings]) -> Vectors:
        held: dict[int, Vector] = {}
        loads: dict[int, float] = {}
        for batch in batches:
            for group, entries, load in batch.by_group(grouping, rates):
                held.setdefault(group, np.zeros(q, dtype=bool))[entries] = True
                loads[group] = loads.get(group, 0.0) + load
        return {group: _packed(held[group], loads[group]) for group in held}

    def join(one: Vector, other: Vector) -> Vector:
        (flags, load), (more, added) = _unpacked(one, q), _unpacked(other, q)
        return _packed(flags | more, load + added)

    combined = _combined(holdings, add_up, join, np.uint8)
    found = {group: _unpacked(vector, q) for group, vector in combined.items()}
    numbers = np.array(sorted(found), dtype=np.int64)
    held = [np.flatnonzero(found[group][0]).astype(np.int32) for group in numbers.tolist()]
    starts = np.cumsum([0, *map(len, held)])
    flat = np.concatenate([np.zeros(0, np.int32), *held])
    weights = np.array([found[group][1] for group in numbers.tolist()], dtype=np.float64)
    return numbers, Subscribers(starts, flat, rates), weights


def _packed(held: Vector, load: float) -> Vector:
    """A bit for each BE subscription, then the load: to send little."""
    return np.concatenate((np.packbits(held), np.frombuffer(np.float64(load).tobytes(), np.uint8)))


def _unpacked(vector: Vector, q: int) -> tuple[Vector, float]:
    held = np.unpackbits(vector[:-8], count=q).astype(bool)
    return held, float(np.frombuffer(vector[-8:].tobytes(), np.float64)[0])


def _assigned(
    holdings: DataFrame, grouping: _Grouping, numbers: Starts, brokers: Ints
) -> DataFrame:
    """Each subscriber goes with its group: sorted `numbers` of groups, and the broker of each."""

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
    """The broker of each subscriber; empty before they are assigned."""

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> _Holdings:
        held = batch.column("held")
        is_assigned = "broker" in batch.schema.names
        return cls(
            batch.column("subscriber").to_numpy().astype(np.int64),
            held.value_lengths().fill_null(0).to_numpy().astype(np.int64),
            held.flatten().to_numpy().astype(np.int32),
            batch.column("broker").to_numpy() if is_assigned else np.zeros(0, dtype=np.int32),
        )

    def weights(self, rates: Floats) -> Floats:
        owners = np.repeat(np.arange(len(self.lengths)), self.lengths)
        sums = np.bincount(owners, rates[self.held], minlength=len(self.lengths))
        return sums.astype(np.float64)

    def marks(self, order: Ints) -> Starts:
        """The place of each mark in the order; after the last for a subscriber without holdings."""
        marks = np.full(len(self.lengths), len(order), dtype=np.int64)
        holding = np.flatnonzero(self.lengths)
        if len(holding):
            begins = (np.cumsum(self.lengths) - self.lengths)[holding]
            marks[holding] = np.minimum.reduceat(order[self.held], begins)
        return marks

    def by_group(self, grouping: _Grouping, rates: Floats) -> Iterator[tuple[int, Ints, float]]:
        """Each group's number, holdings with repetitions, and load."""
        groups, places = np.unique(grouping.groups(self), return_inverse=True)
        load = np.bincount(places, self.weights(rates), minlength=len(groups))
        of_entries = np.repeat(places, self.lengths)
        in_order = self.held[np.argsort(of_entries, kind="stable")]
        ends = np.cumsum(np.bincount(of_entries, minlength=len(groups)))
        for place, group in enumerate(groups.tolist()):
            begin = ends[place - 1] if place else 0
            yield group, in_order[begin : ends[place]], float(load[place])


@dataclass(frozen=True, slots=True)
class _Grouping:
    """The group of each subscriber."""

    order: Ints
    first: Starts
    """The number of a mark's first group, by place in the order."""

    parts: Starts
    """The number of groups that a mark is split into."""

    @classmethod
    def of(cls, order: Ints, loads: Floats, groups: int) -> _Grouping:
        """Cut the marks, side by side and as wide as their loads, into equal groups."""
        share = float(loads.sum()) / groups or 1.0
        before = np.cumsum(loads) - loads
        parts = np.maximum(1, np.ceil(loads / share)).astype(np.int64)
        return cls(order, np.floor(before / share).astype(np.int64), parts)

    def groups(self, batch: _Holdings) -> Starts:
        marks = batch.marks(self.order)
        groups: Starts = self.first[marks] + batch.subscribers % self.parts[marks]
        return groups


def _combined(
    frame: DataFrame,
    add_up: Callable[[Iterator[_Holdings]], Vectors],
    combine: Callable[[Vector, Vector], Vector],
    kind: type[np.generic],
) -> Vectors:
    """The results of all partitions, vectors of the same number combined."""

    def of_partition(batches: Batches) -> Batches:
        for number, vector in add_up(map(_Holdings.of, batches)).items():
            yield _row(number, vector)

    def of_number(rows: pa.Table) -> pa.Table:
        first, *others = (np.frombuffer(cell.as_py(), kind) for cell in rows.column("vector"))
        for other in others:
            first = combine(first, other)
        return pa.Table.from_batches([_row(rows.column("number")[0].as_py(), first)])

    schema = "number bigint, vector binary"
    rows = frame.mapInArrow(of_partition, schema).groupBy("number").applyInArrow(of_number, schema)
    table = rows.toArrow()
    numbers = table.column("number").to_pylist()
    return {
        number: np.frombuffer(cell.as_py(), kind)
        for number, cell in zip(numbers, table.column("vector"), strict=True)
    }


def _row(number: int, vector: Vector) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "number": pa.array([number], pa.int64()),
            "vector": pa.array([vector.tobytes()], pa.binary()),
        }
    )
