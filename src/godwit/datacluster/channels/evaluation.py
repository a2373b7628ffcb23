"""Runs a channel's query on Spark, one job for all subscriptions.

The inputs of a channel are temporary views in Spark.  The query text is generated from the checked
tree; arguments are rows of a table in it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  The usual name.
from sqlglot import exp

from godwit.datacluster.channels.executions import Execution, Timings
from godwit.datacluster.channels.result_writing import ResultWriter, Written
from godwit.datacluster.channels.snapshots import Snapshots
from godwit.datacluster.channels.subscription_table import SubscriptionTable, SubscriptionView
from godwit.datacluster.channels.subscriptions import Subscriptions
from godwit.datacluster.model.channel import Channel
from godwit.datacluster.sql.channel_query import (
    SUBSCRIPTION,
    SUBSCRIPTIONS,
    CheckedQuery,
    Source,
    check,
)
from godwit.datacluster.sql.expressions import DIALECT
from godwit.datacluster.sql.rewriting import (
    CELLS,
    LEVEL,
    LEVELS,
    MOMENT,
    RewrittenQuery,
    rewrite_for_all,
)
from godwit.errors import UsageError

#: Joins that compare every row with every row.
UNBOUNDED = ("CartesianProduct", "BroadcastNestedLoopJoin")
PLAIN_TYPES = {
    "string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date",
    "timestamp",
}  # fmt: skip
#: Up to this size Spark sends the smaller side of a join to all cores.
BROADCAST_BYTES_MAX = 64 * 2**20


class Evaluated(msgspec.Struct, frozen=True):
    written: Written
    timings: Timings
    plan: str


class Evaluation:
    """One channel's query, prepared for execution."""

    def __init__(
        self,
        spark: SparkSession,
        snapshots: Snapshots,
        subscriptions: Subscriptions,
        writer: ResultWriter,
        channel_id: int,
        channel: Channel,
    ) -> None:
        self.query = check(channel, snapshots.dataset)
        self._one_pass = rewrite_for_all(self.query)
        self._spark = spark
        self._snapshots = snapshots
        self._writer = writer
        self._prefix = f"_godwit_{channel_id}_"
        self._table = SubscriptionTable(
            spark, subscriptions, channel_id, channel, self._one_pass.boxes
        )

    def run(self, execution: Execution) -> Evaluated:
        """Compute the results and write them."""
        start_s = time.perf_counter()
        view = self._table.at(execution.version)
        if view.is_empty:
            return Evaluated(Written(), Timings(), "no subscriptions")
        ready_s = time.perf_counter()
        with self._snapshots.reading():
            frames = {source.view: self._frame(source, execution) for source in self.query.sources}
            if self._one_pass.has_subscriptions:
                frames[SUBSCRIPTIONS] = view.frame
            results = self._named(self._planned(frames, view.levels, execution.moment_s), view)
            few = self._writer.few(results)
            plan = plan_of(few)
            planned_s = time.perf_counter()
            # What has failed once is kept away from the driver: its rows may be few and very long.
            table = None if execution.attempts else few.toArrow()
            ran_s = time.perf_counter()
            if table is not None and self._writer.fits(table):
                written = self._writer.write_here(execution, in_force(table, view))
            else:
                written = self._writer.write_there(execution, self._in_force(results, view))
        timings = Timings(
            subscriptions_s=ready_s - start_s,
            planning_s=planned_s - ready_s,
            running_s=ran_s - planned_s,
            writing_s=time.perf_counter() - ran_s,
        )
        return Evaluated(written, timings, plan)

    def statement(self) -> str:
        """The query for Spark, with placeholders for views, levels and the moment."""
        return self._one_pass.tree.sql(dialect=DIALECT, pretty=True)

    def forget_subscriptions(self) -> None:
        """Reload them at the next execution; the failure may be due to one that has ended."""
        self._table.close()

    @property
    def base_version(self) -> int | None:
        """Changes after this version are still needed."""
        return self._table.base_version

    def close(self) -> None:
        self._table.close()

    def _named(self, results: DataFrame, view: SubscriptionView) -> DataFrame:
        """With the columns of the channel behind the subscription."""
        if not self._one_pass.has_subscriptions:
            (id,) = np.setdiff1d(view.ids, view.ended)
            results = results.select(F.lit(int(id)).cast("bigint"), "*")
        return results.toDF(SUBSCRIPTION, *self.query.columns)

    def _in_force(self, results: DataFrame, view: SubscriptionView) -> DataFrame:
        """Without the results of subscriptions that have ended."""
        if not self._one_pass.has_subscriptions or not len(view.ended):
            return results
        ended = self._spark.createDataFrame(pa.table({SUBSCRIPTION: pa.array(view.ended)}))
        return results.join(F.broadcast(ended), SUBSCRIPTION, "left_anti")

    def _frame(self, source: Source, execution: Execution) -> DataFrame:
        range = execution.inputs[source.dataset]
        if source.is_new:
            return self._snapshots.new(source.dataset, after=range.after, through=range.through)
        return self._snapshots.frame(source.dataset, through=range.through)

    def _planned(
        self,
        frames: Mapping[str, DataFrame],
        levels: tuple[tuple[int, ...], ...],
        moment_s: float,
    ) -> DataFrame:
        names = {view: self._prefix + view.strip("_") for view in frames}
        for view, frame in frames.items():
            # Dropping a view also drops an equal cached frame; `where` makes them differ.
            frame.where("true").createOrReplaceTempView(names[view])
        try:
            return self._spark.sql(_statement(self._one_pass, names, levels, moment_s))
        finally:
            for name in names.values():
                self._spark.catalog.dropTempView(name)


def in_force(table: pa.Table, view: SubscriptionView) -> pa.Table:
    """Without the results of subscriptions that have ended."""
    if not len(view.ended):
        return table
    return table.filter(pa.array(~np.isin(table[SUBSCRIPTION].to_numpy(), view.ended)))


def verify(spark: SparkSession, query: CheckedQuery) -> None:
    """Let Spark plan the query over empty tables; UsageError if it cannot or must not be run."""
    one_pass = rewrite_for_all(query)
    frames = {}
    for view, types in query.schema.items():
        schema = ", ".join(f"`{name}` {type}" for name, type in types.items())
        if view == SUBSCRIPTIONS:
            schema += "".join(
                f", {LEVEL.format(n)} INT, {CELLS.format(n)} ARRAY<BIGINT>"
                for n in range(len(one_pass.boxes))
            )
        frames[view] = spark.createDataFrame(spark.sparkContext.emptyRDD(), schema)
    names = {view: f"_godwit_checked_{view.strip('_')}" for view in frames}
    for view, frame in frames.items():
        frame.createOrReplaceTempView(names[view])
    levels = tuple((0,) for _ in one_pass.boxes)
    try:
        frame = spark.sql(_statement(one_pass, names, levels, 0.0))
        plan = plan_of(frame)
    except (AnalysisException, ParseException) as error:
        raise UsageError(f"the query cannot be planned: {_first_line(error)}") from None
    finally:
        for name in names.values():
            spark.catalog.dropTempView(name)
    if any(kind in plan for kind in UNBOUNDED):
        raise UsageError(
            "the channel lacks a key: a join would compare every row with every row;"
            " join by an equality, a distance or a range"
        )
    for field in frame.schema.fields:
        type = field.dataType.simpleString()
        if type not in PLAIN_TYPES and not type.startswith("decimal"):
            raise UsageError(f"column {field.name} is of type {type}: cast it to a simple one")


def plan_of(frame: DataFrame) -> str:
    """The physical plan, without the numbers that differ between executions."""
    text = frame._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001  Not public.
    return re.sub(r"#\d+L?|, \[plan_id=\d+\]|_godwit_\d+_", "", text)


def _statement(
    one_pass: RewrittenQuery,
    names: Mapping[str, str],
    levels: tuple[tuple[int, ...], ...],
    moment_s: float,
) -> str:
    tree = one_pass.tree.copy()
    markers: dict[str, exp.Expr] = {
        LEVELS.format(number): exp.Array(expressions=[_integer(level) for level in each])
        for number, each in enumerate(levels)
    }
    markers[MOMENT] = exp.Anonymous(
        this="timestamp_micros", expressions=[_integer(round(moment_s * 1e6))]
    )
    for node in list(tree.walk()):
        if isinstance(node, exp.Table):
            node.set("this", exp.to_identifier(names[node.name], quoted=True))
        elif isinstance(node, exp.Column) and not node.table and node.name in markers:
            node.replace(markers[node.name].copy())
    return tree.sql(dialect=DIALECT)


def _integer(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300]
