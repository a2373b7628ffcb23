"""Broker processes that a run kills, stops and starts again; every link and client has a proxy.

Each broker has its own network file, in which the brokers that it dials are at the addresses of
proxies.  So it knows its neighbours by name, as in any network.

Processes are forked (runtime/forks.py), by a process whose clock can be set, as theirs can.  They
are on a leash, as those of `runtime.processes`, and in the process group of the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
from collections.abc import Collection
from pathlib import Path

from godwit.client import connect
from godwit.errors import GodwitError
from godwit.overlay.topology import Topology
from godwit.runtime.forks import ForkedProcess, Forks
from godwit.runtime.processes import BROKER_MODULE, LISTENS, QUIET_PORTS, ended
from godwit.runtime.settings import (
    CLUSTERS,
    BrokerSettings,
    Limits,
    NetworkSettings,
    dump_network,
)
from godwit.testing.nemesis.clocks import SettableClock, tidy_up
from godwit.testing.nemesis.tcp_proxy import Proxy

#: For a process on a busy machine to listen.
START_S = 60.0
TAIL_LINES = 25


def own_host() -> str:
    """A loopback address that other runs do not use: they cannot take the port of a dead broker."""
    number = os.getpid() % 2**22
    host = f"127.{1 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"
    try:
        with socket.create_server((host, 0)):
            return host
    except OSError:  # A system with one loopback address.
        return "127.0.0.1"


def links_of(topology: Topology, broker: str) -> list[str]:
    """The neighbours that a broker dials: of each link the second end dials."""
    return [other for other in topology.neighbours(broker) if other < broker]


def network_in(
    brokers: list[BrokerSettings], limits: Limits, clusters: int | None
) -> NetworkSettings:
    """With `clusters` the brokers have the links of so many clusters, else those of a tree."""
    overlay = "tree" if clusters is None else CLUSTERS
    return NetworkSettings(broker=brokers, limits=limits, overlay=overlay, clusters=clusters)


class BrokerFleet:
    def __init__(
        self, topology: Topology, limits: Limits, folder: Path, clusters: int | None = None
    ) -> None:
        """With `clusters` the links are those of so many clusters of these brokers."""
        self.topology = topology
        self._clusters = clusters
        self.links: dict[tuple[str, str], Proxy] = {}
        """By the ends of the link, in alphabetical order; the second end dials."""
        self.doors: dict[str, Proxy] = {}
        """Where clients of each broker call."""
        self.clocks: dict[str, SettableClock] = {}
        self.pids: list[int] = []
        """Of all processes so far."""
        self._limits = limits
        self._folder = folder
        self._host = own_host()
        self._listen: dict[str, str] = {}
        self._running: dict[str, ForkedProcess] = {}
        self._readers: set[asyncio.Task[None]] = set()
        self._forks: Forks
        self._stack = contextlib.AsyncExitStack()

    async def prepare(self) -> None:
        """Everything but the processes."""
        enter = self._stack.enter_async_context
        clock = SettableClock(self._folder / "forks.clock")
        self._forks = Forks(clock.environment, are_apart=False)
        self._stack.callback(self._end_forks)
        ports = random.sample(QUIET_PORTS, len(self.topology.brokers))
        for broker, port in zip(self.topology.brokers, ports, strict=True):
            self._listen[broker] = f"{self._host}:{port}"
            self.doors[broker] = await enter(Proxy())
            self.doors[broker].target = self._listen[broker]
            self.clocks[broker] = SettableClock(self._folder / f"{broker}.clock")
        for a, b in sorted(self.topology.links):
            self.links[a, b] = await enter(Proxy())
            self.links[a, b].target = self._listen[a]
        for broker in self.topology.brokers:
            self._file(broker).write_text(dump_network(self._seen_by(broker)))

    def _seen_by(self, broker: str) -> NetworkSettings:
        def listen(other: str) -> str:
            proxy = self.links.get((other, broker))
            return self._listen[other] if proxy is None else f"127.0.0.1:{proxy.port}"

        brokers = [
            BrokerSettings(
                id=name,
                listen=listen(name),
                links=links_of(self.topology, name),
            )
            for name in self.topology.brokers
        ]
        return network_in(brokers, self._limits, self._clusters)

    async def join(self, broker: str, *links: str) -> None:
        """Start another broker, which dials these."""
        settings = BrokerSettings(
            id=broker,
            listen=f"{self._host}:0",
            links=[f"godwit://{self._listen[link]}" for link in links],
        )
        network = NetworkSettings(broker=[settings], limits=self._limits)
        self._file(broker).write_text(dump_network(network))
        self.clocks[broker] = SettableClock(self._folder / f"{broker}.clock")
        await self.start(broker)

    async def leave(self, broker: str) -> int:
        """Stop a broker that has joined, gracefully; the answer is its exit code."""
        process = self._running.pop(broker)
        process.send_signal(signal.SIGTERM)
        return await ended(process)

    def _file(self, broker: str) -> Path:
        return self._folder / f"{broker}.toml"

    def _log(self, broker: str) -> Path:
        return self._folder / f"{broker}.log"

    def log_tail(self, broker: str) -> list[str]:
        return self.log(broker)[-TAIL_LINES:]

    def log(self, broker: str) -> list[str]:
        """All lines, also of earlier processes of this broker."""
        file = self._log(broker)
        return file.read_text().splitlines() if file.exists() else []

    def url(self, broker: str) -> str:
        """Where clients call."""
        return self.doors[broker].url

    #: Makes a client.
    connect = staticmethod(connect)

    # -- processes -----------------------------------------------------------------------------

    async def start(self, broker: str) -> None:
        """Start a broker, and wait until it listens."""
        arguments = [
            "broker", "--leash", "--id", broker,
            "--config", str(self._file(broker)), "--log-level", "info",
        ]  # fmt: skip
        with self._log(broker).open("a") as log:
            process = await self._forks.start(
                arguments,
                modules=[BROKER_MODULE],
                environment={**os.environ, **self.clocks[broker].environment},
                stderr=log.fileno(),
            )
        self._running[broker] = process
        self.pids.append(process.pid)
        out = process.stdout
        async with asyncio.timeout(START_S):
            while LISTENS.encode() not in (line := await out.readline()):
                if not line:
                    code = await process.wait()
                    raise GodwitError(f"broker {broker} ended with code {code} when it was started")
        reader = asyncio.create_task(_read_on(out))
        self._readers.add(reader)
        reader.add_done_callback(self._readers.discard)

    async def kill(self, *brokers: str) -> None:
        """SIGKILL, all at once."""
        killed = [self._running.pop(broker) for broker in brokers]
        for process in killed:
            process.send_signal(signal.SIGKILL)
        for process in killed:
            await process.wait()
            process.close()

    def send(self, broker: str, number: signal.Signals) -> None:
        self._running[broker].send_signal(number)

    def ended_by_themselves(self) -> Collection[str]:
        return [name for name, each in self._running.items() if each.returncode is not None]

    async def stop(self) -> dict[str, int]:
        """Stop all that run, gracefully, and the proxies; the answer is their exit codes."""
        running, self._running = self._running, {}
        try:
            for process in running.values():
                for number in (signal.SIGCONT, signal.SIGTERM):
                    process.send_signal(number)
            codes = await asyncio.gather(*map(ended, running.values()))
        finally:
            await self._stack.aclose()
        return dict(zip(running, codes, strict=True))

    def _end_forks(self) -> None:
        pid = self._forks.server_pid
        self._forks.close()
        if pid is not None:
            tidy_up(pid)


async def _read_on(out: asyncio.StreamReader) -> None:
    """A pipe that is full would stop the process."""
    while await out.read(4096):
        pass
