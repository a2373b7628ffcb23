"""The channels of a data cluster: definitions, executions, and the requests of brokers.

Called by the server and by the scheduler.  Calls may come from any thread; a channel is executed by
one of them at a time, several channels side by side.

    plan --> evaluate, write --> commit --> on_results

A crash before the commit leaves a planned execution, which is repeated.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from godwit.datacluster.catalog import Catalog
from godwit.datacluster.channels import channel_tables
from godwit.datacluster.channels.broker_service import BrokerService
from godwit.datacluster.channels.channel_definitions import ChannelDefinitions, KnownChannel
from godwit.datacluster.channels.evaluation import (
    BROADCAST_BYTES_MAX,
    Evaluated,
    Evaluation,
    verify,
)
from godwit.datacluster.channels.executions import (
    DONE,
    Execution,
    ExecutionOutcome,
    Executions,
    Range,
)
from godwit.datacluster.channels.result_files import ResultFiles
from godwit.datacluster.channels.result_writing import (
    OverBudgetError,
    ResultBudget,
    ResultWriter,
)
from godwit.datacluster.channels.results import ResultStore
from godwit.datacluster.channels.snapshots import Snapshots
from godwit.datacluster.channels.subscriptions import Subscriptions
from godwit.datacluster.ddl.statements import ChannelStatement, CreateChannel, DropChannel
from godwit.datacluster.model.channel import Channel
from godwit.datacluster.sql.channel_query import check
from godwit.spark.supervised import SupervisedSpark

FOLDER = "results"
#: An execution during which Spark has died so often is not tried again by itself.
DEATHS_MAX = 3


class ChannelSettings(msgspec.Struct, frozen=True):
    offline_s: float = 3_600.0
    """How long a released subscription is kept, with its results."""

    keep_s: float = 86_400.0
    """How long results are kept that are not acknowledged."""

    budget: ResultBudget = ResultBudget()
    """The largest result of one execution."""


class ChannelStatus(msgspec.Struct, frozen=True):
    """A channel, its subscriptions and last executions: `godwit channel show`."""

    channel: Channel
    subscriptions: int
    unread_batches: int
    """Batches whose records are new to the channel, and that no ended execution has read."""

    last: list[ExecutionOutcome]


class ChannelExplanation(msgspec.Struct, frozen=True):
    """How a channel is executed: `godwit channel explain`."""

    statement: str
    plan: str | None
    """Spark's plan of the last execution."""


class ChannelService:
    def __init__(
        self,
        spark: SupervisedSpark,
        catalog: Catalog,
        snapshots: Snapshots,
        folder: Path,
        *,
        settings: ChannelSettings | None = None,
        on_results: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_results` is called after a commit with results, and after a channel was dropped.

        In the thread that executes or drops.
        """
        spark.prepare(_prepare)
        channel_tables.define(catalog)
        self._spark = spark
        self._snapshots = snapshots
        self._settings = settings or ChannelSettings()
        self._on_results = on_results
        self._definitions = ChannelDefinitions(catalog)
        self._subscriptions = Subscriptions(catalog)
        self._executions = Executions(catalog)
        self._files = ResultFiles(folder / FOLDER)
        self._writer = ResultWriter(self._files, budget=self._settings.budget)
        self._results = ResultStore(catalog, self._files, self._subscriptions)
        self._evaluations: dict[int, Evaluation] = {}
        self._generation = spark.generation
        """Of the Spark session that has the evaluations."""
        self._running: dict[int, threading.Lock] = {}
        self._lock = threading.Lock()
        self._verifying = threading.Lock()
        self.brokers = BrokerService(self._definitions, self._subscriptions, self._results)

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
        return ChannelStatus(
            channel=known.channel,
            subscriptions=self._subscriptions.counts().get(known.id, 0),
            unread_batches=self._unread_batches(known),
            last=last,
        )

    def explain(self, name: str) -> ChannelExplanation:
        known = self._definitions.known(name)
        statement = self._evaluation(known).statement()
        return ChannelExplanation(statement, self._executions.plan_of_last(known.id))

    def reading(self, dataset: str) -> list[str]:
        """Channels that read a dataset; they must be dropped before it."""
        return [
            known.channel.name
            for known in self._definitions.all()
            if dataset.lower() in map(str.lower, self._executions.last(known.id).inputs)
        ]

    def oldest_needed(self) -> dict[str, int]:
        """Batches after these may still be read as new, by dataset in lower case."""
        return self._executions.oldest_needed()

    def _create(self, channel: Channel, now_s: float) -> None:
        self._definitions.require_free(channel.name)
        query = check(channel, self._snapshots.dataset)
        with self._verifying:
            verify(self._spark.session, query)
        batches = {
            source.dataset: self._snapshots.last_batch(source.dataset) for source in query.sources
        }
        inputs = {dataset: Range(last, last) for dataset, last in batches.items()}
        self._definitions.add(channel, inputs, now_s=now_s)

    def _unread_batches(self, known: KnownChannel) -> int:
        read = self._executions.read_through(known.id)
        sources = check(known.channel, self._snapshots.dataset).sources
        news = {source.dataset for source in sources if source.is_new}
        return sum(self._snapshots.last_batch(dataset) - read[dataset] for dataset in news)

    def _drop(self, known: KnownChannel) -> None:
        with self._running_lock(known.id):
            self._definitions.remove(known.id)
            evaluation = self._evaluations.pop(known.id, None)
            if evaluation is not None and self._spark.is_current(self._generation):
                evaluation.close()
            self._files.remove_channel(known.id)
        self._on_results()  # Brokers tell their subscribers.

    # -- executions ----------------------------------------------------------------------------

    def execute(self, name: str, *, now_s: float) -> ExecutionOutcome | None:
        """Run the planned execution, or plan and run the next one; None if nothing is new.

        A failure is recorded; the next call tries again.
        """
        known = self._definitions.known(name)
        with self._running_lock(known.id):
            execution = self._plan(known, now_s)
            if execution is None:
                return None
            if execution.is_stopped:
                return self._executions.recent(known.id, limit=1)[0]
            try:
                self._run(known, execution, now_s)
            except Exception as error:  # noqa: BLE001  Other channels must go on.
                self._on_failure(known, execution, error)
            outcome = self._executions.recent(known.id, limit=1)[0]
        if outcome.state == DONE and outcome.rows:
            self._on_results()
        return outcome

    def _on_failure(self, known: KnownChannel, execution: Execution, error: Exception) -> None:
        if self._spark.is_current(self._generation):
            # The same records would be too many again.
            is_stopped = isinstance(error, OverBudgetError)
            reason = str(error) + _remedy(known) if is_stopped else _sentence(error)
            self._executions.failed(execution, reason, is_stopped=is_stopped)
            if known.id in self._evaluations:
                self._evaluations[known.id].forget_subscriptions()
            return
        deaths = execution.deaths + 1
        reason = f"Spark's Java process has died {deaths} times during this execution"
        is_stopped = deaths >= DEATHS_MAX
        if is_stopped:
            reason += _remedy(known)
        self._executions.failed(execution, reason, has_died=True, is_stopped=is_stopped)

    @property
    def is_down(self) -> bool:
        """Whether nothing can be executed at present: Spark is being started again."""
        return self._spark.trouble is not None

    def resume(self, name: str) -> Execution | None:
        """Try the planned execution again although it was stopped; None if there is none."""
        known = self._definitions.known(name)
        with self._running_lock(known.id):
            return self._executions.resume(known.id)

    def stopped(self) -> dict[str, str]:
        """Channels that wait for an operator, and the reason."""
        last = {known.channel.name: self._executions.last(known.id) for known in self.all()}
        return {
            name: execution.error or "" for name, execution in last.items() if execution.is_stopped
        }

    def has_planned(self, name: str) -> bool:
        return self._executions.has_planned(self._definitions.known(name).id)

    def has_died(self, name: str) -> bool:
        """Whether Spark has died during the planned execution."""
        id = self._definitions.known(name).id
        return self._executions.has_planned(id) and self._executions.last(id).deaths > 0

    def share_cores(self, channel_id: int) -> None:
        """In this thread, Spark gives a channel its share of the cores, whatever others do."""
        context = self._spark.session.sparkContext
        context.setLocalProperty("spark.scheduler.pool", f"channel-{channel_id}")

    def skip(self, name: str, *, now_s: float) -> Execution | None:
        """Pass over the planned execution, and its records with it; None if there is none."""
        known = self._definitions.known(name)
        with self._running_lock(known.id):
            return self._executions.skip(known.id, now_s=now_s)

    def tidy(self, *, now_s: float) -> None:
        """Remove expired subscriptions, results that are not needed, and removed subscriptions."""
        self._subscriptions.purge(released_before_s=now_s - self._settings.offline_s)
        for known in self._definitions.all():
            running = self._running_lock(known.id)
            if running.acquire(blocking=False):  # One that is running is tidied up later.
                try:
                    self._tidy(known.id, now_s)
                finally:
                    running.release()

    def _tidy(self, channel_id: int, now_s: float) -> None:
        self._results.retain(channel_id, done_before_s=now_s - self._settings.keep_s)
        self._executions.forget(channel_id)
        through = self._executions.last(channel_id).version
        evaluation = self._evaluations.get(channel_id)
        if evaluation is not None and evaluation.base_version is not None:
            through = min(through, evaluation.base_version)
        self._subscriptions.forget_removed(channel_id, through=through)

    def close(self) -> None:
        if self._spark.is_current(self._generation):
            for evaluation in self._evaluations.values():
                evaluation.close()
        self._evaluations.clear()

    # -- steps of an execution -----------------------------------------------------------------

    def _plan(self, known: KnownChannel, now_s: float) -> Execution | None:
        last = {
            dataset: self._snapshots.last_batch(dataset)
            for dataset in self._executions.last(known.id).inputs
        }
        sources = self._evaluation(known).query.sources
        news = {source.dataset for source in sources if source.is_new}
        return self._executions.plan(known.id, last, news, now_s=now_s)

    def _run(self, known: KnownChannel, execution: Execution, now_s: float) -> None:
        begun_s = time.perf_counter()
        evaluated = self._evaluate(known, execution)
        self._executions.done(
            execution,
            rows=evaluated.written.rows,
            size_bytes=evaluated.written.size_bytes,
            timings=evaluated.timings,
            plan=evaluated.plan,
            now_s=now_s + time.perf_counter() - begun_s,
        )

    def _evaluate(self, known: KnownChannel, execution: Execution) -> Evaluated:
        return self._evaluation(known).run(execution)

    def _evaluation(self, known: KnownChannel) -> Evaluation:
        with self._lock:
            if not self._spark.is_current(self._generation):  # They have died with their session.
                self._evaluations.clear()
                self._generation = self._spark.generation
            found = self._evaluations.get(known.id)
            if found is None:
                found = self._evaluations[known.id] = Evaluation(
                    self._spark.session,
                    self._snapshots,
                    self._subscriptions,
                    self._writer,
                    known.id,
                    known.channel,
                )
            return found

    def _running_lock(self, channel_id: int) -> threading.Lock:
        with self._lock:
            return self._running.setdefault(channel_id, threading.Lock())


def _prepare(spark: SparkSession) -> None:
    # Queries are small: adaptive execution costs more than it gains.
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", str(BROADCAST_BYTES_MAX))


def _remedy(known: KnownChannel) -> str:
    name = known.channel.name
    return (
        f": the channel is stopped; `godwit channel resume {name}` tries it again,"
        f" `godwit channel skip {name}` passes over it"
    )


def _sentence(error: Exception) -> str:
    """The first line; Spark appends its plans."""
    return f"{type(error).__name__}: {error}".splitlines()[0]
