"""One broker as a process: sockets, links, signals, graceful stop.

On SIGTERM or SIGINT a broker accepts no new callers, says goodbye to its clients, which keep what
it has not acknowledged and try to reach it again, sends its neighbours what is queued, says goodbye
to them, and exits.

On SIGHUP it makes room for its successor: it hangs up without a goodbye.  All peers keep what they
have for it, as if it had failed, and nothing is lost if the successor starts in time.

A coordinator can order both (broker_orders.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self, assert_never

from godwit.broker.core import Broker
from godwit.broker.effects import CloseLink, DropLane, LinkEffect, OpenLink
from godwit.broker.modules import PolicyModule
from godwit.broker.routing import Place
from godwit.broker.stimuli import LinkKind, Neighbour
from godwit.errors import UsageError
from godwit.overlay import make_router, overlay
from godwit.overlay.mesh.mesh_settings import MeshSettings
from godwit.policies import offload, placement, soft_links
from godwit.policies.allocation.cbc import profiling_modules
from godwit.protocol.addresses import address, url_address, why
from godwit.protocol.call import socket_opener
from godwit.protocol.connection import Connection
from godwit.runtime.admission import Admission
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.broker_orders import BrokerOrders
from godwit.runtime.dialling import Dialler
from godwit.runtime.live_meters import LiveMeters, resident_bytes
from godwit.runtime.output_limiter import OutputLimiter
from godwit.runtime.settings import MESH, BrokerSettings, NetworkSettings
from godwit.runtime.stopping import STOPPING, hang_up, say_goodbye
from godwit.sharing.gateway import Gateway
from godwit.sharing.live_channels import LiveChannels

if TYPE_CHECKING:
    from godwit.runtime.broker_trace import BrokerTrace

log = logging.getLogger("godwit.server")

#: Connections that wait to be accepted: when a broker is back, all its clients call at once.  One
#: that does not fit is not refused: its caller takes it for connected and waits for many seconds.
CALLERS_MAX = 4_096


class BrokerServer:
    """`async with BrokerServer(network, settings):` is a broker that listens."""

    def __init__(
        self,
        network: NetworkSettings,
        settings: BrokerSettings,
        *,
        listener: socket.socket | None = None,
    ) -> None:
        """`listener` is the socket to listen on, if there is one already."""
        self.settings = settings
        self._network = network
        self.tracing = tracing_of(network, settings)
        self.node = make_node(network, settings, self.tracing)
        self.gateway = Gateway(self.node)
        self.orders = BrokerOrders(
            self.node,
            self.gateway,
            forget=self._forget,
            has_coordinator=network.service_url("coordinator") is not None,
        )
        self.orders.finds_clusters = network.finds_clusters
        self.node.on_link_effect = self._on_link_effect
        self.diallers = [
            self._dialler(link, network.dialled_address(link)) for link in settings.links
        ]
        self._socket = listener
        self._listener: asyncio.Server | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._dialling: dict[str, asyncio.Task[None]] = {}
        """Links that this broker dials, by broker or address, and lane."""
        self._http: contextlib.AbstractAsyncContextManager[str] | None = None
        self.http_url: str | None = None
        self._services = contextlib.AsyncExitStack()
        self.makes_room = False
        """A successor will start: hang up without a goodbye."""

    @property
    def url(self) -> str:
        if self._listener is None:
            raise UsageError("the broker does not listen; use it inside `async with`")
        host, port = self._listener.sockets[0].getsockname()[:2]
        return f"godwit://[{host}]:{port}" if ":" in host else f"godwit://{host}:{port}"

    @property
    def troubles(self) -> list[str]:
        """Why this broker is not healthy: recovery, links that are down, here or elsewhere."""
        troubled = [d for d in self.diallers if d.trouble is not None and not d.is_over]
        links = [f"{d.where}: {d.trouble}" for d in troubled]
        dialled = {self.node.links.name_of(d.where) for d in troubled}
        for missing in self.node.links.missing:
            if missing.behind != self.node.name:
                links.append(f"{missing.name} is missing, behind {missing.behind}")
            elif missing.name not in dialled:
                links.append(f"{missing.name} is missing: it is configured, and not linked")
        if self.node.epochs.is_outside:
            links.append("not part of the network: let it join (godwit network join)")
        if self.node.is_recovering:
            links.append("recovering after a failure")
        parts = self.node.broker.parts.missing
        links += [f"a gap for clients: {part.by} has given up {part.broker}" for part in parts]
        if self.node.is_draining:
            because = self.orders.because
            links.append(f"being drained: {because}" if because else "being drained")
        return links

    async def __aenter__(self) -> Self:
        await self._serve_http()
        try:
            # Last: clients of a broker that restarts call at once, and its modules start now.
            self._listener = await self._listen()
        except BaseException:
            if self._http is not None:
                await self._http.__aexit__(None, None, None)
            raise
        reached_at = self.settings.address
        self.node.broker.address = self.url if reached_at is None else f"godwit://{reached_at}"
        self.node.start()
        if self.tracing is not None:
            self.tracing.start(self.node)
        for dialler in self.diallers:
            self._dialling[dialler.where] = asyncio.create_task(dialler.run())
        await self._use_services()
        log.info("listening", extra={"broker": self.node.name, "url": self.url})
        return self

    async def __aexit__(self, *exc: object) -> None:
        node = self.node
        node.is_stopping = True
        if self.tracing is not None:
            self.tracing.before_stop(node)
        self.gateway.close()
        if self.makes_room:
            hang_up(node)
        else:
            await say_goodbye(node)
        assert self._listener is not None
        self._listener.close()
        tasks = [*self._tasks, *self._dialling.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._services.aclose()
        for port in list(node.ports.values()):
            port.close(STOPPING)
        await asyncio.sleep(0)
        if self.tracing is not None:
            await self.tracing.stop(within_s=node.limits.drain_s)
        if self._http is not None:
            await self._http.__aexit__(None, None, None)
        log.info("stopped", extra={"broker": node.name})

    async def _serve_http(self) -> None:
        if self.settings.http is not None:
            # Costs a second, used by few.
            from godwit.http.serving import serve  # noqa: PLC0415
            from godwit.runtime.broker_http import application  # noqa: PLC0415

            self._http = serve(application(self, self.orders), *address(self.settings.http))
            self.http_url = self.orders.http_url = await self._http.__aenter__()

    async def _use_services(self) -> None:
        """Connect to the data cluster and the coordinator, if configured."""
        network, node = self._network, self.node
        datacluster, coordinator = map(network.service_url, ("datacluster", "coordinator"))
        if datacluster is not None:
            from godwit.sharing.remote_datacluster import RemoteDataCluster  # noqa: PLC0415

            cluster = RemoteDataCluster(datacluster, network.secret)
            self._services.push_async_callback(cluster.close)
            node.channels = LiveChannels(node.name, cluster, now_s=node.now_s)
            self._services.push_async_callback(node.channels.stop)
            node.channels.start()
        if coordinator is not None:
            from godwit.http.http_client import HttpClient  # noqa: PLC0415
            from godwit.runtime.reporting import Reporter  # noqa: PLC0415

            caller = HttpClient(coordinator, secret=network.secret)
            self._services.push_async_callback(caller.close)
            reporter = Reporter(
                node,
                caller,
                http=self.http_url,
                location=self.settings.location,
                orders=self.orders,
            )
            self._tasks.append(asyncio.create_task(reporter.run()))

    def _dialler(
        self,
        link: str,
        where: tuple[str, int],
        kind: LinkKind = LinkKind.PRIMARY,
        lane: int = 0,
        only_asks: bool = False,
    ) -> Dialler:
        return Dialler(
            self.node,
            socket_opener(*where),
            where=link,
            secret=self._network.secret,
            kind=kind,
            lane=lane,
            only_asks=only_asks,
        )

    def _on_link_effect(self, effect: LinkEffect) -> None:
        """The router opens or closes a link; the end that asks for it dials."""
        match effect:
            case OpenLink(broker=broker, kind=kind, lane=lane, is_caller=True):
                key, neighbour = _dialling_key(broker, lane), Neighbour(broker, lane)
                task = self._dialling.get(key)
                if neighbour not in self.node.ports and (task is None or task.done()):
                    where = self._address_of(effect)
                    dialler = self._dialler(broker, where, kind, lane, effect.only_asks)
                    self._dialling[key] = asyncio.create_task(dialler.run())
            case OpenLink():
                pass  # The other end dials.
            case CloseLink(neighbour=neighbour):
                task = self._dialling.pop(_dialling_key(neighbour.name, neighbour.lane), None)
                if task is not None:
                    task.cancel()
                port = self.node.ports.get(neighbour)
                if port is not None:
                    self.node.remove(port, "the link is closed")
            case DropLane():
                raise AssertionError("the node drops lanes itself")
            case _:
                assert_never(effect)

    def _address_of(self, effect: OpenLink) -> tuple[str, int]:
        if effect.address:
            return url_address(effect.address)
        return self._network.dialled_address(effect.broker)

    def _forget(self, broker: str) -> None:
        """A neighbour has left for good: do not call it, and do not miss it."""
        links = self.node.links
        for dialler in [d for d in self.diallers if links.name_of(d.where) == broker]:
            self.diallers.remove(dialler)
            self._dialling.pop(dialler.where).cancel()
        for lane in self.node.epochs.forget(broker):
            opened = self._dialling.pop(_dialling_key(broker, lane), None)
            if opened is not None:
                opened.cancel()

    async def linked(self) -> None:
        """Wait until every link that this broker dials has been up."""
        for dialler in self.diallers:
            await dialler.linked.wait()

    async def _listen(self) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        if self._socket is not None:
            return await loop.create_server(self._on_caller, sock=self._socket, backlog=CALLERS_MAX)
        host, port = address(self.settings.listen)
        try:
            return await loop.create_server(self._on_caller, host, port, backlog=CALLERS_MAX)
        except OSError as error:
            raise UsageError(f"cannot listen on {self.settings.listen}: {why(error)}") from None

    def _on_caller(self) -> Connection:
        return Admission(self.node).connection


def _dialling_key(broker: str, lane: int) -> str:
    return f"{broker}, lane {lane}" if lane else broker


def tracing_of(network: NetworkSettings, settings: BrokerSettings) -> BrokerTrace | None:
    """The tracer of this broker; None if tracing is off."""
    network.trace.check()
    if network.trace.folder is None:
        return None
    from godwit.runtime.broker_trace import BrokerTrace  # noqa: PLC0415  As with HTTP.

    return BrokerTrace(network.trace, settings.id)


def make_node(
    network: NetworkSettings,
    settings: BrokerSettings,
    tracing: BrokerTrace | None = None,
    modules: Sequence[PolicyModule] = (),
) -> BrokerNode:
    bandwidth = settings.output_bandwidth_bytes_s
    if network.placement is not None:
        modules = [*modules, *placement.modules(network.placement)(settings.id)]
    if network.balancing is not None:
        # Brokers must not detect at the same times, nor a restarted one repeat its choices.
        balancing = offload.modules(network.balancing, seed=secrets.randbits(64))
        modules = [*modules, *balancing(settings.id)]
    if network.profiling is not None:
        modules = [*modules, *profiling_modules(network.profiling)(settings.id)]
    if network.overlay == MESH:
        modules = [*modules, *soft_links.modules(network.mesh or MeshSettings())(settings.id)]
    neighbours = network.neighbours(settings)
    addresses = [link for link in settings.links if "://" in link]
    expected = [Neighbour(each) for each in (*neighbours, *addresses)]
    broker = Broker(
        settings.id,
        # Links are added when they are up.
        routing=make_router(
            Place(settings.id, expected=expected, settings=network.overlay_settings),
            overlay(network.overlay),
        ),
        modules=modules,
        meters=LiveMeters(
            output_bandwidth_bytes_s=bandwidth,
            window_s=network.limits.load_window_s,
            now_s=time.time(),
        ),
        codec_checks_values=True,
    )
    if settings.memory_bytes is not None:
        available_bytes = settings.memory_bytes
        broker.memory_utilisation = lambda: resident_bytes() / available_bytes
    node = BrokerNode(
        broker,
        limits=network.limits,
        limiter=OutputLimiter(bandwidth) if settings.limit_output else None,
        secret=network.secret,
        neighbours=neighbours,
        addresses=addresses,
    )
    node.tracer = tracing
    return node
