"""The data cluster as a process: HTTP and feeds on asyncio, Spark in threads.

async with DataClusterServer(settings) as server:
    server.url
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from pyspark.sql import SparkSession
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from godwit.api import datacluster_api as api
from godwit.datacluster.cluster import Cluster
from godwit.datacluster.ddl.statements import CreateFeed, DropFeed
from godwit.datacluster.feeding import Feeding, take_posted
from godwit.datacluster.lease import Lease
from godwit.datacluster.log.segments import FullError
from godwit.datacluster.settings import DataClusterSettings
from godwit.datacluster.views import channel_view, channel_views, dataset_views
from godwit.errors import UsageError
from godwit.http.application import application, json_response, metrics_route
from godwit.http.errors import RestError
from godwit.http.operations import Answer, Asked, served
from godwit.http.serving import serve
from godwit.protocol.addresses import address
from godwit.spark.memory import default_memory_mib
from godwit.spark.session import spark_session
from godwit.spark.supervised import SupervisedSpark

log = logging.getLogger("godwit.datacluster")

#: How long the creation of a feed waits until the feed is in effect.
FEED_S = 10.0
THREADS = 16
#: How often a standby looks whether it is needed.
LOOK_S = 0.25
#: The exit status of a process whose place a standby has taken (EX_TEMPFAIL).
DISPLACED = 75
NOT_STARTED = "the data cluster has not started; use the server inside `async with`"


class DataClusterServer:
    def __init__(self, settings: DataClusterSettings) -> None:
        self.settings = settings
        self.url = ""
        self.records_taken = 0
        self._stack = contextlib.AsyncExitStack()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="datacluster")
        self._has_results = asyncio.Event()
        self._is_stopping = False
        self._spark: SupervisedSpark | None = None
        self._cluster: Cluster | None = None
        self._feeding: Feeding | None = None

    @property
    def cluster(self) -> Cluster:
        if self._cluster is None:
            raise UsageError(NOT_STARTED)
        return self._cluster

    @property
    def feeding(self) -> Feeding:
        if self._feeding is None:
            raise UsageError(NOT_STARTED)
        return self._feeding

    @property
    def spark_deaths(self) -> int:
        return 0 if self._spark is None else self._spark.deaths

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        log.info("listening", extra={"url": self.url})
        return self

    async def _start(self) -> None:
        settings, loop = self.settings, asyncio.get_running_loop()
        loop.set_default_executor(self._threads)

        def on_results() -> None:
            loop.call_soon_threadsafe(self._announce)

        lease = await asyncio.to_thread(Lease, Path(settings.folder), lease_s=settings.lease_s)
        self._stack.push_async_callback(asyncio.to_thread, lease.give_back)
        if not settings.standby:
            lease.take()  # Before Spark starts, which takes longer.
        spark = self._spark = await asyncio.to_thread(SupervisedSpark, self._start_spark)
        self._stack.push_async_callback(asyncio.to_thread, spark.stop)
        spark.supervise()
        if settings.standby:
            await self._stand_by(lease)
        lease.hold(_end_at_once)
        self._cluster = await asyncio.to_thread(
            Cluster, spark, settings, lease=lease, on_results=on_results
        )
        self._stack.push_async_callback(asyncio.to_thread, self._cluster.close)
        self._feeding = Feeding(
            self._cluster.datasets,
            name=settings.name,
            url=settings.broker,
            secret=settings.secret,
            clock=self._cluster.clock,
        )
        self._stack.push_async_callback(self._feeding.stop)
        self._feeding.start_all()
        listening = serve(self._application(), *address(settings.listen))
        self.url = await self._stack.enter_async_context(listening)
        self._stack.callback(self._release_waiting)

    async def _stand_by(self, lease: Lease) -> None:
        log.info("standing by", extra={"folder": self.settings.folder})
        while not await asyncio.to_thread(lease.try_to_take):  # noqa: ASYNC110  No event tells.
            await asyncio.sleep(LOOK_S)

    def _start_spark(self) -> SparkSession:
        settings = self.settings
        spark = spark_session(
            settings.master,
            application=f"godwit {settings.name}",
            memory_mib=settings.memory_mib or default_memory_mib(),
            executor_memory_mib=settings.executor_memory_mib,
        )
        spark.sparkContext.setLogLevel("OFF")  # Failures are raised, and logged by us.
        return spark

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()
        log.info("stopped")

    def _release_waiting(self) -> None:
        """Answer the brokers that wait for notices."""
        self._is_stopping = True
        self._announce()

    def _announce(self) -> None:
        self._has_results.set()
        self._has_results = asyncio.Event()

    # -- operations ----------------------------------------------------------------------------

    def _application(self) -> Starlette:
        cluster, brokers = self.cluster, self.cluster.channels.brokers
        return application(
            [
                served(api.CREATE_BROKER, _in_thread(self._create_broker)),
                served(api.SUBSCRIBE, _in_thread(brokers.subscribe)),
                served(api.UNSUBSCRIBE, _in_thread(self._unsubscribe)),
                served(api.NOTICES, self._notices),
                served(api.PULL, _in_thread(brokers.pull)),
                served(api.CREATE_CHANNEL, self._create_channel),
                served(api.STATEMENT, self._statement),
                served(api.SKIP_EXECUTION, _in_thread(self._skip_execution)),
                served(api.RESUME_CHANNEL, _in_thread(self._resume_channel)),
                served(api.RECORDS, self._records),
                served(api.LOAD, self._load),
                served(api.DATASETS, _in_thread(lambda _: dataset_views(cluster))),
                served(api.CHANNELS, _in_thread(lambda _: channel_views(cluster.channels))),
                served(api.CHANNEL, _in_thread(self._channel)),
                served(api.EXPLAIN, _in_thread(self._explain)),
            ],
            title="Godwit data cluster",
            secret=self.settings.secret,
            routes=[metrics_route(_Collector(self)), Route("/healthz", self._healthz)],
        )

    async def _healthz(self, _request: Request) -> Response:
        ingestion = {each.dataset: each.reason for each in self.cluster.datasets.troubles()}
        spark = None if self._spark is None else self._spark.trouble
        shown = {"feeds": self.feeding.troubles, "ingestion": ingestion, "spark": spark}
        is_healthy = not any(shown.values())
        # A channel that is stopped concerns its subscribers only.
        shown["stopped"] = await asyncio.to_thread(self.cluster.channels.stopped)
        return json_response(
            {"healthy": is_healthy, **shown}, status_code=200 if is_healthy else 503
        )

    def _create_broker(self, request: api.CreateBroker) -> api.BrokerCreated:
        return self.cluster.channels.brokers.create_broker(request, now_s=self.cluster.clock())

    def _unsubscribe(self, request: api.Unsubscribe) -> api.Done:
        self.cluster.channels.brokers.unsubscribe(request, now_s=self.cluster.clock())
        return api.Done()

    async def _notices(self, request: api.NoticesAfter) -> api.Notices:
        deadline_s = asyncio.get_running_loop().time() + request.wait_s
        while True:
            has_results = self._has_results
            found = await asyncio.to_thread(self.cluster.channels.brokers.notices, request)
            if found.notices or found.through > request.after or self._is_stopping:
                return found
            try:
                async with asyncio.timeout_at(deadline_s):
                    await has_results.wait()
            except TimeoutError:
                return found

    async def _create_channel(self, request: api.ChannelStatementText) -> api.Done:
        return await self._statement(api.Statement(request.statement))

    async def _statement(self, request: api.Statement) -> api.Done:
        statement = await asyncio.to_thread(self.cluster.execute, request.text)
        if isinstance(statement, CreateFeed):
            self.feeding.start(statement.feed)
            await self._wait_for(statement.feed.name)
        elif isinstance(statement, DropFeed):
            await self.feeding.end(statement.name)
        return api.Done(type(statement).__name__)

    def _skip_execution(self, request: api.SkipExecution) -> api.ExecutionSkipped:
        skipped = self.cluster.skip(request.channel)
        if skipped is None:
            reason = f"channel {request.channel} has no planned execution to skip"
            raise RestError(409, reason)
        return api.ExecutionSkipped(skipped.number, skipped.attempts, skipped.error)

    def _resume_channel(self, request: api.ResumeChannel) -> api.Done:
        resumed = self.cluster.resume(request.channel)
        if resumed is None:
            raise RestError(409, f"channel {request.channel} has no planned execution to try again")
        return api.Done(f"execution {resumed.number}")

    async def _wait_for(self, feed: str) -> None:
        if self.settings.broker is None:
            return
        with contextlib.suppress(TimeoutError):  # The feed exists; /healthz shows its trouble.
            async with asyncio.timeout(FEED_S):
                await self.feeding.in_effect(feed)

    async def _records(self, request: api.Records) -> api.Taken:
        inbox = await asyncio.to_thread(self.cluster.datasets.inbox, request.dataset)
        records = [bytes(record) for record in request.records]
        try:
            taken = await asyncio.to_thread(
                take_posted,
                inbox,
                records,
                request.producer,
                request.first_sequence,
                accepted_s=self.cluster.clock(),
            )
        except FullError as error:
            raise RestError(503, str(error), retry_after_s=1.0) from None
        self.records_taken += taken.accepted
        return api.Taken(taken.accepted, taken.rejected, taken.duplicates)

    async def _load(self, request: api.LoadFile) -> api.Done:
        path = Path(request.path)
        count = await asyncio.to_thread(self.cluster.datasets.load, request.dataset, path)
        return api.Done(f"{count} records")

    def _channel(self, request: api.Named) -> api.ChannelView:
        return channel_view(self.cluster.channels, request.name)

    def _explain(self, request: api.Named) -> api.Explained:
        explained = self.cluster.channels.explain(request.name)
        return api.Explained(explained.statement, explained.plan)


def _end_at_once() -> None:
    """A standby has taken over: whatever this process still does is in vain."""
    os._exit(DISPLACED)


def _in_thread(answer: Callable[[Asked], Answer]) -> Callable[[Asked], Awaitable[Answer]]:
    async def handler(request: Asked) -> Answer:
        return await asyncio.to_thread(answer, request)

    return handler


class _Collector(Collector):
    def __init__(self, server: DataClusterServer) -> None:
        self._server = server

    def collect(self) -> Iterable[Metric]:
        cluster = self._server.cluster
        yield CounterMetricFamily(
            "godwit_records_posted", "Records accepted over HTTP.", self._server.records_taken
        )
        yield GaugeMetricFamily(
            "godwit_clock_ahead_seconds",
            "How far the data cluster's clock is ahead of the machine's.",
            cluster.clock.ahead_s,
        )
        yield CounterMetricFamily(
            "godwit_spark_deaths", "Deaths of Spark's Java process.", self._server.spark_deaths
        )
        yield GaugeMetricFamily(
            "godwit_channels_stopped",
            "Channels that wait for an operator.",
            len(cluster.channels.stopped()),
        )
        rows = GaugeMetricFamily("godwit_dataset_rows", "Records stored.", labels=["dataset"])
        waiting = GaugeMetricFamily(
            "godwit_dataset_waiting_bytes", "Accepted, not ingested yet.", labels=["dataset"]
        )
        for dataset in dataset_views(cluster).datasets:
            rows.add_metric([dataset.name], dataset.rows)
            waiting.add_metric([dataset.name], dataset.waiting_bytes)
        yield from (rows, waiting)
        subscriptions = GaugeMetricFamily(
            "godwit_channel_subscriptions", "BE subscriptions in force.", labels=["channel"]
        )
        took = GaugeMetricFamily(
            "godwit_execution_seconds", "Duration of the last execution.", labels=["channel"]
        )
        for channel in channel_views(cluster.channels).channels:
            subscriptions.add_metric([channel.name], channel.subscriptions)
            if channel.last and channel.last[0].took_s is not None:
                took.add_metric([channel.name], channel.last[0].took_s)
        yield from (subscriptions, took)
