"""Brokers in memory that a run kills, stops and starts again, as those of broker_fleet.py.

The same plans, clients and judgement, on a virtual clock: a run takes seconds, and a seed is the
same run each time.  What only processes do is left out: clocks are not set, and a broker that is
stopped is cut off from all others, while its own timers go on.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from random import Random
from typing import TypeAlias

from godwit.broker.effects import LinkEffect, OpenLink
from godwit.broker.stimuli import Neighbour
from godwit.client import Client
from godwit.client.broker_connection import FALL_BACK_S
from godwit.client.client import CONNECT_S
from godwit.overlay.topology import Topology
from godwit.protocol.call import Opener
from godwit.protocol.connection import Connection
from godwit.runtime.admission import Admission
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.dialling import Dialler
from godwit.runtime.server import make_node
from godwit.runtime.settings import BrokerSettings, Limits
from godwit.runtime.stopping import hang_up, say_goodbye
from godwit.testing.memory_transport import MemoryTransport, connect_in_memory
from godwit.testing.nemesis.broker_fleet import TAIL_LINES, BrokerFleet, links_of, network_in
from godwit.testing.nemesis.clocks import SettableClock
from godwit.testing.nemesis.tcp_proxy import Way

#: Of addresses: the host is the broker.
SCHEME, PORT = "godwit://", ":7400"
#: How long a process takes to start, on a machine that is busy or not.
START_S = (0.2, 1.0)
#: The longest latency of a connection, as powers of ten of seconds.
LATENCY_EXPONENTS = (-4.0, -1.3)
LOG_LINES_MAX = 2_000


class MemoryWire:
    """The connections to one broker over one link, or of its clients; fails as a proxy does."""

    def __init__(self, url: str = "") -> None:
        self.url = url
        """Where clients call."""
        self.delay_s = 0.0
        self._stalled: set[Way] = set()
        self._ends: list[MemoryTransport] = []

    def stall(self, *ways: Way) -> None:
        self._stalled.update(ways or Way)

    def flow(self) -> None:
        self._stalled.clear()

    def drop(self) -> None:
        ends, self._ends = self._ends, []
        for end in ends:
            if not end.is_closed:
                end.drop()

    def connect(
        self,
        near: Connection,
        far: Connection,
        latency_s: Callable[[], float],
        are_awake: Callable[[], bool],
    ) -> None:
        end, _ = connect_in_memory(
            near,
            far,
            lambda: latency_s() + self.delay_s,
            forth=lambda: Way.FORTH not in self._stalled and are_awake(),
            back=lambda: Way.BACK not in self._stalled and are_awake(),
        )
        self._ends = [each for each in self._ends if not each.is_closed] + [end]


class _LogLines(logging.Handler):
    """What brokers log, as one text for each record."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: deque[str] = deque(maxlen=LOG_LINES_MAX)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1
        shown = [f"{key}={record.__dict__[key]}" for key in _SHOWN if key in record.__dict__]
        at_s = asyncio.get_running_loop().time()
        self.lines.append(f"{at_s:.3f} {' '.join([record.getMessage(), *shown])}")


_SHOWN = ("broker", "peer", "kind", "where", "neighbour", "reason", "dropped")


class MemoryFleet:
    def __init__(
        self, topology: Topology, limits: Limits, seed: int, clusters: int | None = None
    ) -> None:
        """With `clusters` the links are those of so many clusters of these brokers."""
        self.topology = topology
        self._clusters = clusters
        self.links: dict[tuple[str, str], MemoryWire] = {}
        self.doors = {name: MemoryWire(_url(name)) for name in topology.brokers}
        self.clocks: dict[str, SettableClock] = {}
        """None: clocks of a virtual run are not set."""
        self.nodes: dict[str, BrokerNode] = {}
        self._limits = limits
        self._random = Random(seed)
        self._stopped: set[str] = set()
        self._dialling: dict[str, list[asyncio.Task[None]]] = {}
        self._settings = {
            name: BrokerSettings(id=name, links=links_of(topology, name))
            for name in topology.brokers
        }
        self._log = _LogLines()

    async def prepare(self) -> None:
        for link in sorted(self.topology.links):
            self.links[link] = MemoryWire()
        logging.getLogger("godwit").addHandler(self._log)
        logging.getLogger("godwit").setLevel(logging.INFO)

    # -- connections ---------------------------------------------------------------------------

    def url(self, broker: str) -> str:
        return self.doors[broker].url

    def connect(
        self,
        url: str,
        *,
        name: str | None = None,
        take_over: bool = False,
        connect_s: float = CONNECT_S,
        fall_back_s: float = FALL_BACK_S,
    ) -> Client:
        return Client(
            url,
            resolve=self._door,
            name=name,
            incarnation=None if name is None else f"{self._random.getrandbits(48):012x}",
            take_over=take_over,
            connect_s=connect_s,
            fall_back_s=fall_back_s,
        )

    def _door(self, url: str) -> Opener:
        broker = _broker(url)
        return self._opener(broker, "", self.doors[broker])

    def _opener(self, broker: str, caller: str, wire: MemoryWire) -> Opener:
        async def open_in_memory(connection: Connection) -> None:
            longest_s = 10 ** self._random.uniform(*LATENCY_EXPONENTS)
            latency_s = partial(self._random.uniform, 0.0, longest_s)
            await asyncio.sleep(latency_s())
            if broker not in self.nodes:
                raise ConnectionRefusedError(f"broker {broker} is not running")
            answering = Admission(self.nodes[broker]).connection
            are_awake = partial(self._stopped.isdisjoint, {broker, caller})
            wire.connect(connection, answering, latency_s, are_awake)

        return open_in_memory

    # -- brokers -------------------------------------------------------------------------------

    async def start(self, broker: str) -> None:
        await asyncio.sleep(self._random.uniform(*START_S))
        settings = self._settings[broker]
        others = [each for name, each in self._settings.items() if name in self.doors]
        known = others if broker in self.doors else [settings]
        node = make_node(network_in(known, self._limits, self._clusters), settings)
        node.broker.address = _url(broker)
        node.on_link_effect = partial(self._on_link_effect, node)
        self.nodes[broker] = node
        node.start()
        self._dialling[broker] = [
            asyncio.create_task(
                Dialler(node, self._link_opener(broker, link), where=link, secret="").run()
            )
            for link in settings.links
        ]

    def _on_link_effect(self, node: BrokerNode, effect: LinkEffect) -> None:
        """Another broker takes the place of a lost one in a ring; links are not closed here."""
        assert isinstance(effect, OpenLink), effect
        is_linked = Neighbour(effect.broker, effect.lane) in node.ports
        if not is_linked and not node.is_stopping:
            opener = self._link_opener(node.name, effect.broker)
            dialler = Dialler(node, opener, where=effect.broker, secret="", kind=effect.kind)
            self._dialling[node.name].append(asyncio.create_task(dialler.run()))

    def _link_opener(self, broker: str, link: str) -> Opener:
        to = _broker(link)
        wire = self.links.get((to, broker)) or self.links.get((broker, to))
        return self._opener(to, broker, wire or MemoryWire())

    async def join(self, broker: str, *links: str) -> None:
        self._settings[broker] = BrokerSettings(id=broker, links=[_url(link) for link in links])
        await self.start(broker)

    async def leave(self, broker: str) -> int:
        """Stop as SIGTERM does: meanwhile neighbours that were away may come back."""
        node = self.nodes[broker]
        node.is_stopping = True
        await say_goodbye(node)
        self._end(broker)
        for port in list(node.ports.values()):
            port.close("the broker has left")
        return 0

    async def kill(self, *brokers: str) -> None:
        for broker in brokers:
            hang_up(self._end(broker))
            self._stopped.discard(broker)

    def _end(self, broker: str) -> BrokerNode:
        for task in self._dialling.pop(broker):
            task.cancel()
        node = self.nodes.pop(broker)
        node.is_stopping = True
        node.epochs.stop()
        return node

    def send(self, broker: str, number: signal.Signals) -> None:
        if number is signal.SIGSTOP:
            self._stopped.add(broker)
        else:
            self._stopped.discard(broker)

    def ended_by_themselves(self) -> Collection[str]:
        return ()

    async def stop(self) -> dict[str, int]:
        self._stopped.clear()
        for broker in list(self.nodes):
            await self.kill(broker)
        logging.getLogger("godwit").removeHandler(self._log)
        return {}

    # -- logs ----------------------------------------------------------------------------------

    def log(self, broker: str) -> list[str]:
        """The lines of all brokers: they share a process."""
        return list(self._log.lines)

    def log_tail(self, broker: str) -> list[str]:
        return self.log(broker)[-TAIL_LINES:]


def _url(broker: str) -> str:
    return f"{SCHEME}{broker}{PORT}"


def _broker(link: str) -> str:
    """The broker that a link of the configuration, or a URL, leads to."""
    return link.removeprefix(SCHEME).removesuffix(PORT)


Fleet: TypeAlias = BrokerFleet | MemoryFleet
