"""What a broker reports to a coordinator, and that it survives its absence."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette
from tests.sharing.clusters import CHANNEL, MemoryCluster

from godwit.api import coordinator_api
from godwit.content.geography import GeoPoint
from godwit.http.application import application
from godwit.http.errors import RestError
from godwit.http.http_client import HttpClient
from godwit.http.operations import served
from godwit.http.serving import serve
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.reporting import Reporter
from godwit.testing.memory_network import MemoryNetwork


class Listener:
    """Notes what it is told; forgets whom it knows when it is told to."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.heard: list[coordinator_api.RegisterBroker | coordinator_api.LoadReport] = []

    async def register(self, request: coordinator_api.RegisterBroker) -> coordinator_api.Registered:
        self.known.add(request.broker)
        self.heard.append(request)
        return coordinator_api.Registered(request.broker, 0.01)

    async def report(self, request: coordinator_api.LoadReport) -> coordinator_api.Registered:
        if request.broker not in self.known:
            raise RestError(404, "who is that?")
        self.heard.append(request)
        return coordinator_api.Registered(request.broker, 0.01)

    def application(self) -> Starlette:
        operations = [
            served(coordinator_api.REGISTER_BROKER, self.register), served(coordinator_api.LOAD_REPORT, self.report)  # noqa: E501
        ]  # fmt: skip
        return application(operations, title="a coordinator")


@contextlib.asynccontextmanager
async def stage() -> AsyncIterator[tuple[Listener, BrokerNode, HttpClient]]:
    """Somebody who listens, a broker, and its line to him."""
    listener = Listener()
    async with (
        asyncio.timeout(30),
        MemoryNetwork() as network,
        serve(listener.application(), "127.0.0.1", 0) as url,
        HttpClient(url) as caller,
    ):
        yield listener, network.nodes["B1"], caller


def test_a_broker_introduces_itself_again_to_one_that_has_forgotten() -> None:
    async def history() -> None:
        async with stage() as (listener, node, caller):
            place = GeoPoint(60.0, 25.0)
            reporter = Reporter(node, caller, http="http://127.0.0.1:1", location=place)
            running = asyncio.create_task(reporter.run())
            while len(listener.heard) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert listener.heard[0] == coordinator_api.RegisterBroker(
                "B1", "memory://B1", "http://127.0.0.1:1", place
            )
            assert isinstance(listener.heard[1], coordinator_api.LoadReport)
            listener.known.clear()
            count = len(listener.heard)
            while coordinator_api.RegisterBroker not in map(type, listener.heard[count:]):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert reporter.trouble is None
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running

    asyncio.run(history())


def test_a_broker_goes_on_without_a_coordinator() -> None:
    async def history() -> None:
        async with (
            asyncio.timeout(30),
            MemoryNetwork() as network,
            HttpClient("http://127.0.0.1:9", attempts=1) as caller,
        ):
            reporter = Reporter(network.nodes["B1"], caller, http=None, location=None)
            running = asyncio.create_task(reporter.run())
            while reporter.trouble == "has not answered yet":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert not running.done()
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running

    asyncio.run(history())


def test_a_report_says_who_is_here_and_what_came_in() -> None:
    async def history() -> None:
        cluster = MemoryCluster()
        network = MemoryNetwork(cluster=cluster)
        async with (
            asyncio.timeout(30),
            network,
            network.connect(name="a") as client,
            client.subscribe_channel(CHANNEL, n=1) as events,
            HttpClient("http://127.0.0.1:9") as caller,
        ):
            node = network.nodes["B1"]
            reporter = Reporter(node, caller, http=None, location=None)
            await events.in_effect()
            cluster.execute({0: [{"v": "x" * 100}]})
            await anext(events)
            report = reporter.report()
            assert report.subscribers == {"a": [0]}
            assert report.rates == {}  # Too young.
            assert report.bytes_in_per_s == report.bytes_out_per_s > 0
            assert reporter.report().bytes_in_per_s == 0

    asyncio.run(history())


def test_a_report_that_cannot_be_made_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    report, wrong = Reporter.report, iter([True])

    def once_wrong(reporter: Reporter) -> coordinator_api.LoadReport:
        if next(wrong, False):
            raise LookupError("nobody has thought of that")
        return report(reporter)

    async def history() -> None:
        async with stage() as (listener, node, caller):
            reporter = Reporter(node, caller, http=None, location=None)
            running = asyncio.create_task(reporter.run())
            while len(listener.heard) < 2 or reporter.trouble:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running

    monkeypatch.setattr(Reporter, "report", once_wrong)
    monkeypatch.setattr("godwit.runtime.reporting.AGAIN_S", 0.01)
    asyncio.run(history())
