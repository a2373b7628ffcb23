"""The channels of a data cluster: made, subscribed to, executed, and their results.

One door for the service that answers brokers, and for the scheduler.  Calls may come from any
thread; a channel is executed by one of them at a time.

    plan --> evaluate --> write --> rename --> commit

A crash before the commit leaves an execution that is planned, and that is repeated.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from pyspark.sql import SparkSession

from godwit.datacluster import channel_tables
from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channel import Channel
from godwit.datacluster.channel_definitions import ChannelDefinitions, KnownChannel
from godwit.datacluster.channel_query import check
from godwit.datacluster.channel_statements import ChannelStatement, CreateChannel, DropChannel
from godwit.datacluster.evaluation import BROADCAST_BYTES_MAX, Evaluation, verify
from godwit.datacluster.executions import Execution, Executions, Outcome, Range
from godwit.datacluster.result_files import BYTES, ResultFiles, arranged
from godwit.datacluster.results import Notices, Pulled, Results
from godwit.datacluster.snapshots import Snapshots
from godwit.datacluster.subscriptions import Position, Subscribed, Subscriptions

FOLDER = "results"


class ChannelSettings(msgspec.Struct, frozen=True):
    offline_s: float = 86_400.0
    """How long a subscription is kept that was released, and so its results."""

    keep_s: float = 7 * 86_400.0
    """How long results are kept that nobody has acknowledged."""


class ChannelStatus(msgspec.Struct, frozen=True):
    """What is known of a channel: `godwit channel show`."""

    channel: Channel
    subscriptions: int
    last: list[Outcome]


class Explanation(msgspec.Struct, frozen=True):
    """How a channel is run: `godwit channel explain`."""

    statement: str
    plan: str | None
    """Spark's, of the last execution."""


class Channels:
    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        snapshots: Snapshots,
        folder: Path,
        *,
        settings: ChannelSettings | None = None,
        step: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`step` is told what has been done of an execution; tests make it crash there."""
        # Queries are small: what adapting them costs is more than it gains.
        spark.conf.set("spark.sql.adaptive.enabled", "false")
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", str(BROADCAST_BYTES_MAX))
        channel_tables.define(catalog)
        self._spark = spark
        self._snapshots = snapshots
        self._settings = settings or ChannelSettings()
        self._step = step
        self._definitions = ChannelDefinitions(catalog)
        self._subscriptions = Subscriptions(catalog)
        self._executions = Executions(catalog)
        self._files = ResultFiles(folder / FOLDER)
        self._results = Results(catalog, self._files, self._subscriptions)
        self._evaluations: dict[int, Evaluation] = {}
        self._running: dict[int, threading.Lock] = {}
        self._lock = threading.Lock()
        self._verifying = threading.Lock()

    # -- definitions ---------------------------------------------------------------------------

    def apply(self, statement: ChannelStatement, *, now_s: float) -> None:
        match statement:
            case CreateChannel(channel):
                self._create(channel, now_s)
            case DropChannel(name):
                self._drop(self._definitions.known(name))

    def all(self) -> list[KnownChannel]:
        return self._definitions.all()

    def status(self, name: str, *, executions: int = 20) -> ChannelStatus:
        known = self._definitions.known(name)
        last = self._executions.recent(known.id, limit=executions)
        return ChannelStatus(known.channel, self._subscriptions.counts().get(known.id, 0), last)

    def explain(self, name: str) -> Explanation:
        known = self._definitions.known(name)
        statement = self._evaluation(known).statement()
        return Explanation(statement, self._executions.plan_of_last(known.id))

    def reading(self, dataset: str) -> list[str]:
        """Channels that read a dataset; it cannot be dropped before them."""
        return [
            known.channel.name
            for known in self._definitions.all()
            if dataset.lower() in map(str.lower, self._executions.last(known.id).inputs)
        ]

    def oldest_needed(self, dataset: str) -> int | None:
        """Later batches than this one may still be read as new; None if no channel reads it."""
        return self._executions.oldest_needed(dataset)

    # -- what brokers ask ----------------------------------------------------------------------

    def begin_broker(self, broker: str, *, now_s: float) -> int:
        """A broker has started: it holds what it will ask for.  The number of the last notice."""
        self._subscriptions.release_all(broker, now_s=now_s)
        return self._results.last_notice()

    def subscribe(self, broker: str, channel: str, arguments: Mapping[str, object]) -> Subscribed:
        return self.subscribe_all(broker, channel, [arguments])[0]

    def subscribe_all(
        self, broker: str, channel: str, arguments: Sequence[Mapping[str, object]]
    ) -> list[Subscribed]:
        """All of them, or an error and none."""
        known = self._definitions.known(channel)
        return self._subscriptions.subscribe(broker, known.id, known.channel, arguments)

    def unsubscribe(self, broker: str, subscription: int) -> None:
        self._subscriptions.unsubscribe(broker, subscription)

    def release(self, broker: str, subscription: int, *, now_s: float) -> None:
        self._subscriptions.release(broker, subscription, now_s=now_s)

    def acknowledge(self, broker: str, positions: Mapping[int, Position]) -> None:
        self._subscriptions.acknowledge(broker, positions)

    def notices(self, broker: str, *, after: int) -> Notices:
        names = {known.id: known.channel.name for known in self._definitions.all()}
        return self._results.notices(broker, after=after, channel_name=names.__getitem__)

    def pull(self, channel: str, positions: Mapping[int, Position], *, limit_bytes: int) -> Pulled:
        known = self._definitions.known(channel)
        return self._results.pull(known.id, positions, limit_bytes=limit_bytes)

    def channels_of(self, subscriptions: Iterable[int]) -> dict[int, str]:
        """The name of the channel of each subscription that there is."""
        names = {known.id: known.channel.name for known in self._definitions.all()}
        found = self._subscriptions.channels_of(subscriptions)
        return {id: names[channel] for id, channel in found.items() if channel in names}

    # -- executions ----------------------------------------------------------------------------

    def execute(self, name: str, *, now_s: float) -> Outcome | None:
        """Run the execution that is planned, or the next one; None if nothing is new.

        What fails is recorded, and tried again when this is called again.
        """
        known = self._definitions.known(name)
        with self._running_lock(known.id):
            last = {
                dataset: self._snapshots.last_batch(dataset)
                for dataset in self._executions.last(known.id).inputs
            }
            execution = self._executions.plan(known.id, last, now_s=now_s)
            if execution is None:
                return None
            self._step("planned")
            try:
                self._run(known, execution, now_s)
            except Exception as error:  # noqa: BLE001  Whatever it is, other channels go on.
                self._executions.failed(execution, _sentence(error))
                if known.id in self._evaluations:
                    self._evaluations[known.id].forget_subscriptions()
        return self._executions.recent(known.id, limit=1)[0]

    def has_planned(self, name: str) -> bool:
        return self._executions.has_planned(self._definitions.known(name).id)

    def skip(self, name: str, *, now_s: float) -> bool:
        """Pass over an execution that cannot be run; False if none is planned."""
        known = self._definitions.known(name)
        with self._running_lock(known.id):
            return self._executions.skip(known.id, now_s=now_s)

    def tidy(self, *, now_s: float) -> None:
        """Forget who did not come back, results that nobody needs, and what was unsubscribed."""
        self._subscriptions.purge(released_before_s=now_s - self._settings.offline_s)
        for known in self._definitions.all():
            self._results.retain(known.id, done_before_s=now_s - self._settings.keep_s)
            self._executions.forget(known.id)
            through = self._executions.last(known.id).version
            evaluation = self._evaluations.get(known.id)
            if evaluation is not None and evaluation.base_version is not None:
                through = min(through, evaluation.base_version)
            self._subscriptions.forget_removed(known.id, through=through)

    def close(self) -> None:
        for evaluation in self._evaluations.values():
            evaluation.close()
        self._evaluations.clear()

    # -- steps ---------------------------------------------------------------------------------

    def _create(self, channel: Channel, now_s: float) -> None:
        self._definitions.require_free(channel.name)
        query = check(channel, self._snapshots.dataset)
        with self._verifying:
            verify(self._spark, query)
        batches = {
            source.dataset: self._snapshots.last_batch(source.dataset) for source in query.sources
        }
        inputs = {dataset: Range(last, last) for dataset, last in batches.items()}
        self._definitions.add(channel, inputs, now_s=now_s)

    def _drop(self, known: KnownChannel) -> None:
        with self._running_lock(known.id):
            self._definitions.remove(known.id)
            evaluation = self._evaluations.pop(known.id, None)
            if evaluation is not None:
                evaluation.close()
            self._files.remove_channel(known.id)

    def _run(self, known: KnownChannel, execution: Execution, now_s: float) -> None:
        begun_s = time.perf_counter()
        evaluated = self._evaluation(known).run(execution)
        self._step("evaluated")
        evaluated_s = time.perf_counter()
        results = arranged(evaluated.results)
        if results.num_rows:
            self._files.write(known.id, execution.number, results)
            self._step("written")
        written_s = time.perf_counter()
        self._executions.done(
            execution,
            rows=results.num_rows,
            size_bytes=int(np.sum(results[BYTES].to_numpy())),
            timings=msgspec.structs.replace(evaluated.timings, writing_s=written_s - evaluated_s),
            plan=evaluated.plan,
            now_s=now_s + written_s - begun_s,
        )
        self._step("committed")

    def _evaluation(self, known: KnownChannel) -> Evaluation:
        with self._lock:
            found = self._evaluations.get(known.id)
            if found is None:
                found = self._evaluations[known.id] = Evaluation(
                    self._spark, self._snapshots, self._subscriptions, known.id, known.channel
                )
            return found

    def _running_lock(self, channel_id: int) -> threading.Lock:
        with self._lock:
            return self._running.setdefault(channel_id, threading.Lock())


def _sentence(error: Exception) -> str:
    """Spark adds its plans to what it says."""
    return f"{type(error).__name__}: {error}".splitlines()[0]
