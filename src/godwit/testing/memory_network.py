"""A network in memory, for the tests of applications: the real brokers and client, no sockets.

    async with MemoryNetwork(chain(2)) as network:
        async with network.connect("B1") as alice, network.connect("B2") as paul:
            ...
        await network.add_broker("B9", linked_to="B2")

Everything runs in the caller's event loop.  Brokers, links, frames and sessions are those of
production; only the bytes stay in the process.  Brokers and links can be added and removed, and
made to fail, while the network runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

from msgspec.structs import replace

from godwit.broker.effects import CloseLink, LinkEffect, OpenLink
from godwit.broker.modules import PolicyModule
from godwit.broker.routing import EpochStatus, Tables
from godwit.broker.stimuli import EpochStimulus, Hop, LinkKind, Neighbour
from godwit.client import Client
from godwit.client.broker_connection import FALL_BACK_S
from godwit.errors import UsageError
from godwit.migration.reshaping import ReshapingRecord, ReshapingStage, shape_of, topology_of
from godwit.overlay.mesh.mesh_settings import MeshSettings
from godwit.overlay.topology import Topology, chain
from godwit.protocol.call import Opener
from godwit.protocol.connection import Connection
from godwit.runtime.admission import Admission
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.dialling import Dialler
from godwit.runtime.returning import relinked
from godwit.runtime.server import make_node
from godwit.runtime.settings import BrokerSettings, Limits, network_of
from godwit.runtime.stopping import STOPPING, hang_up, part_from, say_goodbye
from godwit.sharing.live_channels import DataCluster, LiveChannels
from godwit.testing.memory_transport import connect_in_memory

ONE_BROKER = chain(1)
SCHEME = "memory://"
#: As a coordinator knows them.
COORDINATED, PORT = "godwit://", ":1"


class MemoryNetwork:
    def __init__(
        self,
        topology: Topology = ONE_BROKER,
        *,
        clusters: int | None = None,
        mesh: MeshSettings | None = None,
        limits: Limits | None = None,
        modules: Callable[[str], Sequence[PolicyModule]] = lambda _broker: (),
        latency_s: Callable[[], float] = lambda: 0.0,
        cluster: DataCluster | None = None,
        absent: Collection[str] = (),
        bandwidths_bytes_s: Mapping[str, float] | None = None,
    ) -> None:
        """With `clusters` the brokers of the topology are in so many clusters.

        With `mesh` there are soft links beside its links.

        `latency_s` returns how long what is written next takes to be read.

        `cluster` is where the brokers find channels.  Brokers that are `absent` at the start are
        started with `restart`; the others wait for them, as they do for a process that starts late.
        `bandwidths_bytes_s` are the output bandwidths by which brokers measure their load.
        """
        network = network_of(topology, clusters=clusters, mesh=mesh)
        brokers = network.broker
        if bandwidths_bytes_s is not None:
            brokers = [
                replace(each, output_bandwidth_bytes_s=bandwidths_bytes_s[each.id])
                if each.id in bandwidths_bytes_s
                else each
                for each in brokers
            ]
        self._network = replace(network, broker=brokers, limits=limits or Limits())
        self.nodes: dict[str, BrokerNode] = {}
        """Running brokers by name, to look into."""
        self._modules = modules
        self._latency_s = latency_s
        self._cluster = cluster
        self._absent = set(absent)
        self._dialling: dict[str, dict[str, asyncio.Task[None]]] = {}
        """For each running broker, the tasks that keep the links it dials."""
        self._shape: Topology | None = None
        """The shape that the network was given; the configuration does not change."""
        self.lane = 0
        """Of the links of the topology."""

    async def __aenter__(self) -> Self:
        for settings in self._network.broker:
            if settings.id not in self._absent:
                self.nodes[settings.id] = self._make_node(settings)
        diallers = [dialler for broker in self.nodes for dialler in self._start(broker)]
        for dialler in diallers:
            if dialler.where not in self._absent:
                await dialler.linked.wait()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        dialling = [task for tasks in self._dialling.values() for task in tasks.values()]
        for task in dialling:
            task.cancel()
        await asyncio.gather(*dialling, return_exceptions=True)
        for node in self.nodes.values():
            await _close(node, "the network was closed")

    @property
    def topology(self) -> Topology:
        """Brokers and links as they are now; one that has crashed is still among them."""
        return self._shape or self._network.topology

    def tables(self) -> dict[str, Tables]:
        """The routing tables of the running brokers, by name."""
        return {name: node.broker.routing.tables() for name, node in self.nodes.items()}

    # -- clients -------------------------------------------------------------------------------

    def url(self, broker: str) -> str:
        """The address of a broker, for `Client.move`."""
        return f"{SCHEME}{broker}"

    def connect(
        self,
        broker: str = "B1",
        *others: str,
        name: str | None = None,
        take_over: bool = False,
        fall_back_s: float = FALL_BACK_S,
    ) -> Client:
        """A client of `broker`, or else of one of the others, as `godwit.connect` makes one."""
        return Client(
            *map(self.url, (broker, *others)),
            resolve=self._resolve,
            name=name,
            take_over=take_over,
            fall_back_s=fall_back_s,
        )

    def _resolve(self, url: str) -> Opener:
        name = url.removeprefix(SCHEME).removeprefix(COORDINATED).removesuffix(PORT)
        return self._opener(self._network.of(name).id)

    def _opener(self, broker: str) -> Opener:
        async def open_in_memory(connection: Connection) -> None:
            if broker not in self.nodes:
                raise ConnectionRefusedError(f"broker {broker} is not running")
            connect_in_memory(connection, Admission(self.nodes[broker]).connection, self._latency_s)

        return open_in_memory

    # -- brokers and links come and go ---------------------------------------------------------

    async def add_broker(self, name: str, *, linked_to: str | None = None) -> None:
        """Start another broker; with `linked_to`, it dials that one.  Returns when they are linked.

        It receives the routing tables of its neighbour over the link, as in production.
        """
        settings = BrokerSettings(id=name, links=[] if linked_to is None else [linked_to])
        self._network = replace(self._network, broker=[*self._network.broker, settings])
        await self._run(name)

    async def remove_broker(self, name: str) -> None:
        """Stop a broker as SIGTERM does, and take its links away.

        Clients that are still there get a goodbye and try to reach it again: move or close them
        first.  If it linked others with each other, the network is in pieces until `add_link`.
        """
        self._network.of(name)
        if len(self._network.broker) == 1:
            raise UsageError(f"broker {name} is the last one: leave the network instead")
        node = self.nodes.get(name)
        if node is not None:
            node.is_stopping = True
        for broker, links in self._dialling.items():
            for link in [link for link in links if name in (broker, link)]:
                links.pop(link).cancel()
        if node is not None:
            await say_goodbye(node)
            await _close(node, STOPPING)
            del self.nodes[name], self._dialling[name]
        others = [each for each in self._network.broker if each.id != name]
        for index, each in enumerate(others):
            others[index] = replace(each, links=[link for link in each.links if link != name])
            if each.id in self.nodes:
                self.nodes[each.id].links.expect_no_longer(Neighbour(name))
        self._network = replace(self._network, broker=others)

    async def leave(self, name: str) -> None:
        """A broker leaves for good, by the order of a coordinator, which tells the others."""
        node = self.nodes[name]
        node.is_draining = node.is_stopping = True
        await say_goodbye(node)
        if self.nodes.get(name) is not node:
            return  # It has crashed meanwhile.
        for task in self._dialling.pop(name).values():
            task.cancel()
        await _close(node, STOPPING)
        del self.nodes[name]
        others = [
            replace(each, links=[link for link in each.links if link != name])
            for each in self._network.broker
            if each.id != name
        ]
        self._network = relinked(replace(self._network, broker=others))

    def forget(self, broker: str, gone: str) -> None:
        """A broker is told that another one has left for good."""
        node = self.nodes.get(broker)
        if node is None:
            return
        for lane in node.epochs.forget(gone):
            task = self._dialling[broker].pop(_lane_key(gone, lane), None)
            if task is not None:
                task.cancel()

    async def add_link(self, a: str, b: str) -> None:
        """Link two brokers that run: `a` dials `b`.  Returns when they are linked."""
        self._set_links(a, [*self._network.of(a).links, b])
        await self._dial(a, b).linked.wait()

    async def remove_link(self, a: str, b: str) -> None:
        """Take a link away, after what is queued on both sides has been delivered."""
        dialling, link = (a, b) if b in self._network.of(a).links else (b, a)
        if link not in self._network.of(dialling).links:
            raise UsageError(f"brokers {a} and {b} are not linked")
        links = self._network.of(dialling).links
        self._set_links(dialling, [other for other in links if other != link])
        if dialling in self._dialling:
            self._dialling[dialling].pop(link).cancel()
        ends = [(self.nodes[x], Neighbour(y)) for x, y in ((a, b), (b, a)) if x in self.nodes]
        ports = [node.ports[hop] for node, hop in ends if hop in node.ports]
        await part_from(ports, "the link was removed", within_s=self._network.limits.drain_s)
        for node, hop in ends:
            if hop in node.ports:  # It was down already.
                node.remove(node.ports[hop], "the link was removed")
            node.links.expect_no_longer(hop)

    def _set_links(self, broker: str, links: list[str]) -> None:
        brokers = [replace(b, links=links) if b.id == broker else b for b in self._network.broker]
        self._network = replace(self._network, broker=brokers)

    async def ask_epoch(self, broker: str, stimulus: EpochStimulus) -> EpochStatus:
        """Ask a running broker for something, as a coordinator does over HTTP."""
        await asyncio.sleep(self._latency_s())
        node = self.nodes.get(broker)
        if node is None:
            raise ConnectionRefusedError(f"broker {broker} is not running")
        return node.epochs.change(stimulus)

    def plan_shape(
        self,
        target: Topology,
        change: str,
        epoch: int,
        *,
        overlay: str = "",
        settings: Mapping[str, Any] | None = None,
    ) -> ReshapingRecord:
        """The record of a change to another shape, or overlay, of the same brokers."""
        addresses = {name: self.url(name) for name in target.brokers}
        shape = shape_of(
            target, epoch, addresses, follows=self.lane, overlay=overlay, settings=settings
        )
        return ReshapingRecord(change=change, shape=shape)

    def has_shape(self, record: ReshapingRecord) -> None:
        """A change is over."""
        if record.stage is ReshapingStage.DONE:
            self._shape, self.lane = topology_of(record.shape), record.shape.epoch

    # -- failures ------------------------------------------------------------------------------

    def crash(self, broker: str) -> None:
        """End a broker without a goodbye; its state is lost."""
        node = self.nodes.pop(broker)
        for task in self._dialling.pop(broker).values():
            task.cancel()
        node.is_stopping = True
        node.epochs.stop()
        if node.channels is not None:
            node.channels.abort()
        hang_up(node)

    async def restart(self, broker: str) -> None:
        """Start a broker that crashed, or was absent at the start, with empty tables.

        Returns when the links that it dials are up, or it has crashed again.
        """
        await self._run(broker)

    def cut(self, broker: str, peer: Hop) -> None:
        """Break the connection between a broker and one of its peers, if they are connected."""
        port = self.nodes[broker].ports.get(peer) if broker in self.nodes else None
        if port is not None and port.connection is not None:
            port.connection.lose()

    # -- brokers run ---------------------------------------------------------------------------

    async def _run(self, broker: str) -> None:
        self.nodes[broker] = self._make_node(self._network.of(broker))
        diallers = self._start(broker)
        dialling = list(self._dialling[broker].values())
        for dialler, task in zip(diallers, dialling, strict=True):
            linked = asyncio.create_task(dialler.linked.wait())
            await asyncio.wait([linked, task], return_when=asyncio.FIRST_COMPLETED)
            linked.cancel()

    def _make_node(self, settings: BrokerSettings) -> BrokerNode:
        node = make_node(self._network, settings, modules=self._modules(settings.id))
        node.broker.address = self.url(settings.id)
        node.on_link_effect = partial(self._on_link_effect, node)
        return node

    def _on_link_effect(self, node: BrokerNode, effect: LinkEffect) -> None:
        """The router opens or closes a link."""
        if isinstance(effect, CloseLink) and not node.is_stopping:
            closed = effect.neighbour
            task = self._dialling[node.name].pop(_lane_key(closed.name, closed.lane), None)
            if task is not None:
                task.cancel()
            if closed in node.ports:
                node.remove(node.ports[closed], "the link is closed")
        if not isinstance(effect, OpenLink) or not effect.is_caller or node.is_stopping:
            return
        neighbour = Neighbour(effect.broker, effect.lane)
        task = self._dialling[node.name].get(_lane_key(effect.broker, effect.lane))
        if neighbour not in node.ports and (task is None or task.done()):
            self._dial(
                node.name, effect.broker, effect.lane, kind=effect.kind, only_asks=effect.only_asks
            )

    def _start(self, broker: str) -> list[Dialler]:
        node = self.nodes[broker]
        self._dialling[broker] = {}
        node.start()
        if self._cluster is not None:
            node.channels = LiveChannels(node.name, self._cluster, now_s=node.now_s)
            node.channels.start()
        return [self._dial(broker, link) for link in self._network.of(broker).links]

    def _dial(
        self,
        broker: str,
        link: str,
        lane: int = 0,
        *,
        kind: LinkKind = LinkKind.PRIMARY,
        only_asks: bool = False,
    ) -> Dialler:
        node, opener = self.nodes[broker], self._opener(link)
        dialler = Dialler(node, opener, where=link, lane=lane, kind=kind, only_asks=only_asks)
        self._dialling[broker][_lane_key(link, lane)] = asyncio.create_task(dialler.run())
        return dialler


def _lane_key(link: str, lane: int) -> str:
    return f"{link}, lane {lane}" if lane else link


async def _close(node: BrokerNode, reason: str) -> None:
    node.is_stopping = True
    node.epochs.stop()
    if node.channels is not None:
        await node.channels.stop()
    for port in list(node.ports.values()):
        port.close(reason)
