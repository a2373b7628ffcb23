"""A broker over HTTP.

For operators      GET /metrics, /healthz, /routing, /network, /clients, /docs; POST /move, /drain;
                   /balancing; /gatherings; /subscriptions, /explain, /decisions
for a coordinator  POST /order, /move
for subscribers    what sharing/gateway.py has
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Protocol, get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from godwit.api.broker_api import DRAIN, MOVE, DrainRequest, MoveOutcome, MoveRequest
from godwit.api.network_api import (
    CLIENTS,
    NETWORK,
    ORDER,
    BrokerAccount,
    ClientNames,
    Command,
    NetworkView,
    Order,
)
from godwit.api.network_views import Known, network_view
from godwit.broker.stimuli import Hop, LocalClient
from godwit.http.application import application as rest_application
from godwit.http.application import json_response, metrics_route
from godwit.http.operations import Nothing, Served, served
from godwit.runtime.balancing_http import balancing_metrics, balancing_operations
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.broker_orders import BrokerOrders
from godwit.runtime.client_moves import check, drain, move_clients
from godwit.runtime.epoch_http import epoch_operations
from godwit.runtime.gathering_http import gathering_operations, profiling_metrics
from godwit.runtime.port import Port
from godwit.runtime.routing_http import routing_operations
from godwit.sharing.gateway import Gateway


class RowCounts(Protocol):
    """What a trace amounts to."""

    @property
    def rows(self) -> int: ...

    @property
    def rows_lost(self) -> int: ...


class Observed(Protocol):
    """A broker with a state of health."""

    node: BrokerNode
    gateway: Gateway

    @property
    def tracing(self) -> RowCounts | None: ...

    @property
    def troubles(self) -> list[str]: ...


def application(observed: Observed, orders: BrokerOrders | None = None) -> Starlette:
    """`orders`: of a broker whose process a coordinator may end."""
    node = observed.node
    orders = orders or BrokerOrders(node, observed.gateway, forget=lambda _broker: None)

    async def healthz(_request: Request) -> Response:
        troubles = observed.troubles
        status = {"broker": node.name, "healthy": not troubles, "troubles": troubles}
        return json_response(status, status_code=503 if troubles else 200)

    async def routing(_request: Request) -> Response:
        tables = node.broker.routing.tables()
        return json_response(
            {
                "broker": node.name,
                "advertisements": {id: _text(hop) for id, hop in tables.advertisements.items()},
                "subscriptions": {id: _text(hop) for id, hop in tables.subscriptions.items()},
                "told": tables.told,
                "links": {
                    link.name: kind.value for link, kind in node.broker.routing.neighbours.items()
                },
            }
        )

    async def drain_broker(request: DrainRequest) -> MoveOutcome:
        orders.because = ""
        return await drain(node, request)

    return rest_application(
        [
            *observed.gateway.operations(),
            served(DRAIN, drain_broker),
            *coordinated_operations(orders),
            *balancing_operations(node),
            *gathering_operations(node),
            *routing_operations(orders),
        ],
        title=f"Broker {node.name}",
        secret=node.secret,
        routes=[
            metrics_route(BrokerCollector(observed, orders)),
            Route("/healthz", healthz),
            Route("/routing", routing),
        ],
    )


def coordinated_operations(orders: BrokerOrders) -> list[Served]:
    """What a coordinator asks of a broker during a change."""
    node = orders.node

    async def move(request: MoveRequest) -> MoveOutcome:
        check(request)
        if request.authority is not None:
            orders.check(request.authority, "move")
        return await move_clients(node, request)

    async def network(_request: Nothing) -> NetworkView:
        return network_view({node.name: Known(orders.account())})

    async def clients(_request: Nothing) -> ClientNames:
        return orders.clients()

    async def order(request: Order) -> BrokerAccount:
        return orders.obey(request)

    return [
        served(MOVE, move),
        served(NETWORK, network),
        served(CLIENTS, clients),
        served(ORDER, order),
        *epoch_operations(node),
    ]


def _text(hop: Hop) -> str:
    return f"{hop.kind} {hop.name}"


class BrokerCollector(Collector):
    """Reads the node when asked, so that counting costs the broker nothing more."""

    def __init__(self, observed: Observed, orders: BrokerOrders) -> None:
        self._orders = orders
        self._node = observed.node
        self._tracing = observed.tracing
        self._gateway = observed.gateway

    def collect(self) -> Iterable[Metric]:
        yield from self._traffic()
        yield from self._traced()
        yield from self._peers()
        yield from self._load()
        yield from self._obeyed()
        yield from self._channels()
        yield from balancing_metrics(self._node)
        yield from profiling_metrics(self._node)

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
            "godwit_deliveries",
            "Publications handed to the queues of clients.",
            node.outbox.deliveries,
        )
        dropped = CounterMetricFamily(
            "godwit_dropped", "Publications that were not passed on, by reason.", labels=["reason"]
        )
        reasons = node.dropped + Counter({"slow subscriber": sum(p.traffic.dropped for p in ports)})
        for reason, count in reasons.items():
            dropped.add_metric([reason], count)
        yield dropped
        gaps = CounterMetricFamily(
            "godwit_gaps", "Gaps that clients were told of, by lost broker.", labels=["broker"]
        )
        for broker, count in node.broker.parts.gaps.items():
            gaps.add_metric([broker], count)
        yield gaps
        decisions = CounterMetricFamily(
            "godwit_decisions", "What policies decided.", labels=["policy", "action"]
        )
        for labels, count in node.decisions.items():
            decisions.add_metric(labels, count)
        yield decisions
        control = CounterMetricFamily(
            "godwit_control_publications",
            "What policies published, such as their load.",
            labels=["policy", "class"],
        )
        for labels, count in node.control.items():
            control.add_metric(labels, count)
        yield control
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

    def _obeyed(self) -> Iterator[Metric]:
        orders = CounterMetricFamily(
            "godwit_orders", "Orders of a coordinator that were obeyed.", labels=["command"]
        )
        for command in get_args(Command):
            orders.add_metric([command], self._orders.obeyed[command])
        yield orders
        yield CounterMetricFamily(
            "godwit_orders_refused",
            "Orders of a coordinator that is not in charge.",
            self._orders.refused,
        )
        yield GaugeMetricFamily(
            "godwit_draining", "Are new clients refused?", self._node.is_draining
        )

    def _of(self, *, is_client: bool = False) -> list[Port]:
        ports = self._node.ports.values()
        return [port for port in ports if isinstance(port.hop, LocalClient) == is_client]

    def _channels(self) -> Iterator[Metric]:
        channels = self._node.channels
        if channels is None:
            return
        desk = channels.desk
        figures = {
            "godwit_fe_subscriptions": ("Subscriptions to channels.", desk.front_ends),
            "godwit_be_subscriptions": ("Those in the data cluster for them.", desk.back_ends),
            "godwit_sharing_ratio": (
                "Front-end for one back-end subscription.",
                desk.sharing_ratio,
            ),
            "godwit_http_sessions": ("Subscribers over HTTP.", self._gateway.sessions),
            "godwit_datacluster_up": ("Does the data cluster answer?", channels.trouble is None),
        }
        for name, (text, value) in figures.items():
            yield GaugeMetricFamily(name, text, value)
        yield CounterMetricFamily(
            "godwit_channel_bytes_in", "Results pulled from the data cluster.", channels.bytes_in
        )
        yield CounterMetricFamily(
            "godwit_channel_bytes_out", "Results pushed to clients.", channels.bytes_out
        )
        yield CounterMetricFamily(
            "godwit_channel_rows", "Rows of results pushed to clients.", channels.rows_out
        )

    def _load(self) -> Iterator[Metric]:
        node = self._node
        routing, load = node.broker.routing, node.meters.load(node.now_s())
        figures = {
            "godwit_subscriptions": ("Subscriptions in the tables.", routing.subscription_count),
            "godwit_advertisements": ("Advertisements in the tables.", routing.advertisement_count),
            "godwit_missing_parts": ("Parts that are missing.", len(node.broker.parts.missing)),
            "godwit_input_utilisation_ratio": ("Ir of the thesis.", load.input_utilisation),
            "godwit_output_utilisation_ratio": ("Or of the thesis.", load.output_utilisation),
            "godwit_memory_utilisation_ratio": (
                "Memory over `memory_bytes`.",
                node.broker.memory_utilisation(),
            ),
            "godwit_matching_delay_seconds": ("Mean time for a message.", load.matching_delay_s),
            "godwit_publications_per_second": ("Publications in.", load.publications_per_s),
            "godwit_input_bytes_per_second": ("Bytes in.", load.bytes_in_per_s),
            "godwit_output_bytes_per_second": ("Bytes out.", load.bytes_out_per_s),
        }
        for name, (text, value) in figures.items():
            yield GaugeMetricFamily(name, text, value)
