"""What an operator asks a broker over HTTP: GET /metrics, /healthz, /routing; POST /move."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from socket import AF_INET, AF_INET6, create_server, socket
from typing import Protocol

import msgspec
import uvicorn
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from godwit.broker.stimuli import Client, Hop
from godwit.errors import UsageError
from godwit.network.moving import is_local, move_clients, parsed
from godwit.network.node import BrokerNode
from godwit.network.port import Port
from godwit.wire.addresses import why


class RowCounts(Protocol):
    """What a trace amounts to."""

    @property
    def rows(self) -> int: ...

    @property
    def rows_lost(self) -> int: ...


class Observed(Protocol):
    """A broker with a state of health."""

    node: BrokerNode

    @property
    def tracing(self) -> RowCounts | None: ...

    @property
    def troubles(self) -> list[str]: ...


@contextlib.asynccontextmanager
async def serve(observed: Observed, host: str, port: int) -> AsyncIterator[str]:
    """Answer on HOST:PORT as long as the context lasts; gives the address, if the port is 0."""
    listener = _listening(host, port)
    config = uvicorn.Config(
        application(observed), log_config=None, access_log=False, lifespan="off",
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = _QuietServer(config)
    task = asyncio.create_task(server.serve([listener]))
    while not (server.started or task.done()):  # noqa: ASYNC110  There is no event for it.
        await asyncio.sleep(0.01)
    try:
        host, port = listener.getsockname()[:2]
        yield f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    finally:
        server.should_exit = True
        await task


def _listening(host: str, port: int) -> socket:
    try:
        return create_server((host, port), family=AF_INET6 if ":" in host else AF_INET)
    except OSError as error:
        raise UsageError(f"cannot serve HTTP on {host}:{port}: {why(error)}") from None


class _QuietServer(uvicorn.Server):
    """Signals are the broker's business."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def application(observed: Observed) -> Starlette:
    registry = CollectorRegistry()
    registry.register(BrokerCollector(observed.node, observed.tracing))
    ProcessCollector(registry=registry)

    async def metrics(_request: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    async def healthz(_request: Request) -> Response:
        troubles = observed.troubles
        status = {"broker": observed.node.name, "healthy": not troubles, "troubles": troubles}
        return _json(status, status_code=503 if troubles else 200)

    async def routing(_request: Request) -> Response:
        tables = observed.node.broker.routing.tables()
        return _json(
            {
                "broker": observed.node.name,
                "advertisements": {id: _text(hop) for id, hop in tables.advertisements.items()},
                "subscriptions": {id: _text(hop) for id, hop in tables.subscriptions.items()},
                "told": tables.told,
            }
        )

    async def move(request: Request) -> Response:
        if request.client is None or not is_local(request.client.host):
            return _json({"error": "clients are moved from this machine only"}, status_code=403)
        # A form on a web page cannot send this kind of content.
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return _json({"error": "send application/json"}, status_code=415)
        try:
            wanted = parsed(await request.body())
        except UsageError as error:
            return _json({"error": str(error)}, status_code=400)
        return _json(await move_clients(observed.node, wanted))

    return Starlette(
        routes=[
            Route("/metrics", metrics),
            Route("/healthz", healthz),
            Route("/routing", routing),
            Route("/move", move, methods=["POST"]),
        ]
    )


def _json(content: object, *, status_code: int = 200) -> Response:
    body = msgspec.json.format(msgspec.json.encode(content), indent=2)
    return Response(body, status_code=status_code, media_type="application/json")


def _text(hop: Hop) -> str:
    return f"{type(hop).__name__.lower()} {hop.name}"


class BrokerCollector(Collector):
    """Reads the node when asked, so that counting costs the broker nothing more."""

    def __init__(self, node: BrokerNode, tracing: RowCounts | None = None) -> None:
        self._node = node
        self._tracing = tracing

    def collect(self) -> Iterable[Metric]:
        yield from self._traffic()
        yield from self._traced()
        yield from self._peers()
        yield from self._load()

    def _traffic(self) -> Iterator[Metric]:
        node = self._node
        ports = node.ports.values()
        handled = CounterMetricFamily(
            "godwit_messages_handled", "Messages taken in, by kind.", labels=["kind"]
        )
        for kind, count in node.handled.items():
            handled.add_metric([kind], count)
        yield handled
        yield CounterMetricFamily(
            "godwit_deliveries", "Publications handed to the queues of clients.", node.deliveries
        )
        dropped = CounterMetricFamily(
            "godwit_dropped", "Publications that were not passed on, by reason.", labels=["reason"]
        )
        reasons = node.dropped + Counter({"slow subscriber": sum(p.traffic.dropped for p in ports)})
        for reason, count in reasons.items():
            dropped.add_metric([reason], count)
        yield dropped
        decisions = CounterMetricFamily(
            "godwit_decisions", "What policies decided.", labels=["policy", "action"]
        )
        for labels, count in node.decisions.items():
            decisions.add_metric(labels, count)
        yield decisions
        yield CounterMetricFamily(
            "godwit_connections_refused", "Connections that broke the protocol.", node.refused
        )
        yield CounterMetricFamily(
            "godwit_isolations",
            "Times that a slow subscriber was isolated from its publishers.",
            node.isolations + sum(port.traffic.isolations for port in ports),
        )

    def _traced(self) -> Iterator[Metric]:
        rows = self._tracing.rows if self._tracing else 0
        yield CounterMetricFamily("godwit_trace_rows", "Rows of the trace.", rows)
        lost = self._tracing.rows_lost if self._tracing else 0
        yield CounterMetricFamily("godwit_trace_rows_lost", "Rows that were not written.", lost)

    def _peers(self) -> Iterator[Metric]:
        peers = GaugeMetricFamily(
            "godwit_peers", "Clients and neighbours.", labels=["kind", "state"]
        )
        queued = GaugeMetricFamily(
            "godwit_queue_bytes", "Bytes that wait for peers, or for their word.", labels=["kind"]
        )
        for kind, members in (("client", self._of(is_client=True)), ("link", self._of())):
            connected = sum(port.is_connected for port in members)
            peers.add_metric([kind, "connected"], connected)
            peers.add_metric([kind, "away"], len(members) - connected)
            streams = [port.stream for port in members]
            waiting = sum(s.pending_bytes + s.unacknowledged_bytes for s in streams)
            queued.add_metric([kind], waiting)
        yield peers
        yield queued

    def _of(self, *, is_client: bool = False) -> list[Port]:
        ports = self._node.ports.values()
        return [port for port in ports if isinstance(port.hop, Client) == is_client]

    def _load(self) -> Iterator[Metric]:
        node = self._node
        routing, load = node.broker.routing, node.meters.load(node.now_s())
        figures = {
            "godwit_subscriptions": ("Subscriptions in the tables.", routing.subscription_count),
            "godwit_advertisements": ("Advertisements in the tables.", routing.advertisement_count),
            "godwit_input_utilisation_ratio": ("Ir of the thesis.", load.input_utilisation),
            "godwit_output_utilisation_ratio": ("Or of the thesis.", load.output_utilisation),
            "godwit_matching_delay_seconds": ("Mean time for a message.", load.matching_delay_s),
            "godwit_publications_per_second": ("Publications in.", load.publications_per_s),
            "godwit_input_bytes_per_second": ("Bytes in.", load.bytes_in_per_s),
            "godwit_output_bytes_per_second": ("Bytes out.", load.bytes_out_per_s),
        }
        for name, (text, value) in figures.items():
            yield GaugeMetricFamily(name, text, value)
