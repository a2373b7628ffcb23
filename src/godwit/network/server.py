"""One broker as a process: sockets, links, signals, and a stop that loses nothing it need not.

Told to stop (SIGTERM, SIGINT), a broker takes no new callers, says goodbye to its clients, which
keep what it has not acknowledged and look for it to come back, sends its neighbours all that is
under way, says goodbye to them, and exits.

Told to make room for its successor (SIGHUP), it hangs up without a word.  All peers keep for it
what they have, as if it had failed, and nothing is lost if the successor is there in time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from godwit import placement
from godwit.broker.core import Broker
from godwit.broker.meters import Meters
from godwit.broker.modules import PolicyModule
from godwit.errors import UsageError
from godwit.network.admission import Admission
from godwit.network.channels import Channels
from godwit.network.dialling import Dialler
from godwit.network.gateway import Gateway
from godwit.network.node import BrokerNode
from godwit.network.port import ClientPort, LinkPort, Port
from godwit.network.settings import BrokerSettings, NetworkSettings
from godwit.overlay import overlay
from godwit.wire.addresses import address, why
from godwit.wire.call import socket_opener
from godwit.wire.connection import Connection
from godwit.wire.frames import Goodbye

if TYPE_CHECKING:
    from godwit.network.tracing import Tracing

log = logging.getLogger("godwit.server")

STOPPING = "the broker is stopping"
DRAIN_STEP_S = 0.02
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
        self.diallers = [
            Dialler(
                self.node,
                socket_opener(*network.dialled_address(link)),
                where=link,
                secret=network.secret,
            )
            for link in settings.links
        ]
        self._socket = listener
        self._listener: asyncio.Server | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._http: contextlib.AbstractAsyncContextManager[str] | None = None
        self.http_url: str | None = None
        self._services = contextlib.AsyncExitStack()
        self.makes_room = False
        """Will a successor be there in a moment?  Then nobody is told goodbye."""

    @property
    def url(self) -> str:
        assert self._listener is not None, "the broker does not listen"
        host, port = self._listener.sockets[0].getsockname()[:2]
        return f"godwit://[{host}]:{port}" if ":" in host else f"godwit://{host}:{port}"

    @property
    def troubles(self) -> list[str]:
        """What keeps this broker from being healthy: a failure, links that are not there."""
        links = [f"{d.where}: {d.trouble}" for d in self.diallers if d.trouble is not None]
        return [*links, "recovering after a failure"] if self.node.is_recovering else links

    async def __aenter__(self) -> Self:
        self._listener = await self._listen()
        try:
            await self._serve_http()
        except BaseException:
            self._listener.close()
            raise
        reached_at = self.settings.address
        self.node.broker.address = self.url if reached_at is None else f"godwit://{reached_at}"
        self.node.start()
        if self.tracing is not None:
            self.tracing.start(self.node)
        self._tasks = [asyncio.create_task(dialler.run()) for dialler in self.diallers]
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
            self._hang_up()
        else:
            await self._say_goodbye()
        assert self._listener is not None
        self._listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
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
            from godwit.network.http import application  # noqa: PLC0415
            from godwit.rest.serving import serve  # noqa: PLC0415

            self._http = serve(application(self), *address(self.settings.http))
            self.http_url = await self._http.__aenter__()

    async def _use_services(self) -> None:
        """The data cluster and the coordinator, if there are; HTTP costs a second to import."""
        network, node = self._network, self.node
        datacluster, coordinator = map(network.service_url, ("datacluster", "coordinator"))
        if datacluster is not None:
            from godwit.network.datacluster import RemoteDataCluster  # noqa: PLC0415

            cluster = RemoteDataCluster(datacluster, network.secret)
            self._services.push_async_callback(cluster.close)
            node.channels = Channels(node, cluster)
            self._services.push_async_callback(node.channels.stop)
            node.channels.start()
        if coordinator is not None:
            from godwit.network.reporting import Reporter  # noqa: PLC0415
            from godwit.rest.calling import Caller  # noqa: PLC0415

            caller = Caller(coordinator, secret=network.secret)
            self._services.push_async_callback(caller.close)
            reporter = Reporter(node, caller, http=self.http_url, location=self.settings.location)
            self._tasks.append(asyncio.create_task(reporter.run()))

    async def linked(self) -> None:
        """Wait until every link that this broker dials is there."""
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

    def _hang_up(self) -> None:
        connections = [port.connection for port in self.node.ports.values()]
        for connection in [*connections, *self.node.callers]:
            if connection is not None:
                connection.abort()

    async def _say_goodbye(self) -> None:
        node = self.node
        for caller in list(node.callers):
            caller.close(Goodbye(reason=STOPPING))
        deadline_s = node.now_s() + node.limits.drain_s
        await self._part_from(ClientPort, deadline_s)
        # Links that are away may still come back: what was taken in shall leave by them.
        await self._part_from(LinkPort, deadline_s)

    async def _part_from(self, kind: type[Port], deadline_s: float) -> None:
        """Let what is queued for such peers leave, while there is time, then say goodbye."""
        ports = [port for port in self.node.ports.values() if isinstance(port, kind)]
        # A client that is away will not be back in time; a link may.
        waited_for = [port for port in ports if port.is_connected or kind is LinkPort]
        await self._until(lambda: all(p.stream.is_idle for p in waited_for), deadline_s)
        for port in ports:
            port.part(STOPPING)
        await self._until(lambda: not any(p.is_connected for p in ports), deadline_s)

    async def _until(self, done: Callable[[], bool], deadline_s: float) -> None:
        # What ends it happens in many places; they need not know of a broker that stops.
        while not done() and self.node.now_s() < deadline_s:  # noqa: ASYNC110
            await asyncio.sleep(DRAIN_STEP_S)


def tracing_of(network: NetworkSettings, settings: BrokerSettings) -> Tracing | None:
    """What traces this broker, if that is asked for."""
    network.trace.check()
    if network.trace.folder is None:
        return None
    from godwit.network.tracing import Tracing  # noqa: PLC0415  As with HTTP.

    return Tracing(network.trace, settings.id)


def make_node(
    network: NetworkSettings,
    settings: BrokerSettings,
    tracing: Tracing | None = None,
    modules: Sequence[PolicyModule] = (),
) -> BrokerNode:
    bandwidth = settings.output_bandwidth_bytes_s
    if network.placement is not None:
        modules = [*modules, *placement.modules(network.placement)(settings.id)]
    make_broker = Broker if tracing is None else tracing.make_broker
    broker = make_broker(
        settings.id,
        routing=overlay(network.overlay)(()),  # Neighbours are there when their links are.
        modules=modules,
        meters=Meters(output_bandwidth_bytes_s=bandwidth, now_s=time.time()),
        codec_checks_values=True,
    )
    return BrokerNode(
        broker,
        limits=network.limits,
        output_bandwidth_bytes_s=bandwidth,
        secret=network.secret,
        neighbours=network.topology.neighbours(settings.id),
    )
