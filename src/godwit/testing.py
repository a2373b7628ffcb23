"""A network in memory, for the tests of applications: the real brokers and client, no sockets.

    async with MemoryNetwork(chain(2)) as network:
        async with network.connect("B1") as alice, network.connect("B2") as paul:
            ...

Everything runs in the caller's event loop: brokers, links, frames, sessions are those of
production; only the bytes do not leave the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from godwit.broker.modules import PolicyModule
from godwit.broker.stimuli import Hop
from godwit.client import Client
from godwit.client.line import FALL_BACK_S
from godwit.network.admission import Admission
from godwit.network.channels import Channels, DataCluster
from godwit.network.dialling import Dialler
from godwit.network.node import BrokerNode
from godwit.network.server import make_node
from godwit.network.settings import Limits, NetworkSettings, network_of
from godwit.overlay.topology import Topology, chain
from godwit.wire.call import Opener
from godwit.wire.connection import Connection

ONE_BROKER = chain(1)
SCHEME = "memory://"


class MemoryNetwork:
    def __init__(
        self,
        topology: Topology = ONE_BROKER,
        *,
        limits: Limits | None = None,
        modules: Callable[[str], Sequence[PolicyModule]] = lambda _broker: (),
        latency_s: Callable[[], float] = lambda: 0.0,
        cluster: DataCluster | None = None,
    ) -> None:
        """`latency_s` is asked how long what is written takes to be read.

        `cluster` is where the brokers find channels.
        """
        settings = network_of(topology)
        self._network = NetworkSettings(broker=settings.broker, limits=limits or Limits())
        self.nodes: dict[str, BrokerNode] = {}
        """The brokers, by name; for a look into their tables."""
        self._modules = modules
        self._latency_s = latency_s
        self._cluster = cluster
        self._dialling: dict[str, list[asyncio.Task[None]]] = {}

    def url(self, broker: str) -> str:
        """Where a broker is, for `Client.move`."""
        return f"{SCHEME}{broker}"

    def connect(
        self, broker: str = "B1", *, name: str | None = None, fall_back_s: float = FALL_BACK_S
    ) -> Client:
        """A client of `broker`, as `godwit.connect` makes one."""
        return Client(self.url(broker), resolve=self._resolve, name=name, fall_back_s=fall_back_s)

    def _resolve(self, url: str) -> Opener:
        return self._opener(self._network.of(url.removeprefix(SCHEME)).id)

    async def __aenter__(self) -> Self:
        for settings in self._network.broker:
            self.nodes[settings.id] = self._make_node(settings.id)
        diallers = [dialler for broker in self.nodes for dialler in self._start(broker)]
        for dialler in diallers:
            await dialler.linked.wait()
        return self

    def _make_node(self, broker: str) -> BrokerNode:
        settings, modules = self._network.of(broker), self._modules(broker)
        node = make_node(self._network, settings, modules=modules)
        node.broker.address = self.url(broker)
        return node

    def _start(self, broker: str) -> list[Dialler]:
        node = self.nodes[broker]
        links = self._network.of(broker).links
        diallers = [Dialler(node, self._opener(link), where=link) for link in links]
        node.start()
        if self._cluster is not None:
            node.channels = Channels(node, self._cluster)
            node.channels.start()
        self._dialling[broker] = [asyncio.create_task(dialler.run()) for dialler in diallers]
        return diallers

    def crash(self, broker: str) -> None:
        """A broker is gone, with all that it had; nobody is told."""
        node = self.nodes.pop(broker)
        for task in self._dialling.pop(broker):
            task.cancel()
        node.is_stopping = True
        if node.channels is not None:
            node.channels.abort()
        for connection in (*node.callers, *(port.connection for port in node.ports.values())):
            if connection is not None:
                connection.abort()

    def cut(self, broker: str, peer: Hop) -> None:
        """Break the connection between a broker and a peer of it, if there is one."""
        port = self.nodes[broker].ports.get(peer) if broker in self.nodes else None
        if port is not None and port.connection is not None:
            port.connection.lose()

    async def restart(self, broker: str) -> None:
        """A broker that crashed is back, and knows nothing.

        Returns when it has the links that it dials, or has crashed again.
        """
        self.nodes[broker] = self._make_node(broker)
        diallers = self._start(broker)
        for dialler, dialling in zip(diallers, self._dialling[broker], strict=True):
            linked = asyncio.create_task(dialler.linked.wait())
            await asyncio.wait([linked, dialling], return_when=asyncio.FIRST_COMPLETED)
            linked.cancel()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        dialling = [task for tasks in self._dialling.values() for task in tasks]
        for task in dialling:
            task.cancel()
        await asyncio.gather(*dialling, return_exceptions=True)
        for node in self.nodes.values():
            node.is_stopping = True
            if node.channels is not None:
                await node.channels.stop()
            for port in list(node.ports.values()):
                port.close("the network is over")

    def _opener(self, broker: str) -> Opener:
        async def open_in_memory(connection: Connection) -> None:
            if broker not in self.nodes:
                raise ConnectionRefusedError(f"broker {broker} is not there")
            near = _End(connection, self._latency_s)
            far = _End(Admission(self.nodes[broker]).connection, self._latency_s)
            near.peer, far.peer = far, near
            near.protocol.connection_made(near)
            far.protocol.connection_made(far)

        return open_in_memory


class _End(asyncio.Transport):
    """One end of a connection in memory: what is written here is read at the other end."""

    peer: _End

    def __init__(self, protocol: Connection, latency_s: Callable[[], float]) -> None:
        super().__init__()
        self.protocol = protocol
        self._latency_s = latency_s
        self._unread = bytearray()
        self._high = 65_536
        self.takes_bytes = True
        self.is_over = False
        self._is_full = False
        self._pump_is_planned = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high or self._high

    def get_write_buffer_size(self) -> int:
        return len(self._unread)

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self.is_over:
            return
        self._unread += data
        if len(self._unread) > self._high and not self._is_full:
            self._is_full = True
            self.protocol.pause_writing()
        self.pump_soon()

    def pause_reading(self) -> None:
        self.takes_bytes = False

    def resume_reading(self) -> None:
        self.takes_bytes = True
        self.peer.pump_soon()

    def is_closing(self) -> bool:
        return self.is_over

    def close(self) -> None:
        """Let what was written be read, then end."""
        self.is_over = True
        self.pump_soon()

    def abort(self) -> None:
        self._unread.clear()
        self.close()

    def pump_soon(self) -> None:
        if not self._pump_is_planned:
            self._pump_is_planned = True
            asyncio.get_running_loop().call_later(self._latency_s(), self._pump)

    def _pump(self) -> None:
        self._pump_is_planned = False
        peer = self.peer
        if self._unread and peer.takes_bytes and not peer.is_over:
            data = bytes(self._unread)
            self._unread.clear()
            peer.protocol.data_received(data)
            if self._is_full:
                self._is_full = False
                self.protocol.resume_writing()
        if self.is_over and (not self._unread or peer.is_over):
            peer.is_over = True
            self.protocol.connection_lost(None)
            peer.protocol.connection_lost(None)
