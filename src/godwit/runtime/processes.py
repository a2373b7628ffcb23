"""A whole network of broker processes on this machine.

    async with Processes(network) as running:
        running.url("B1")

Every process is on a leash: its standard input is a pipe from here, and it stops when that closes.
So no broker outlives this process, however it ends.  They are forked (forks.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

import msgspec

from godwit.errors import GodwitError, UsageError
from godwit.protocol.addresses import address, why
from godwit.runtime.broker_orders import LEFT
from godwit.runtime.forks import ForkedProcess, shared_forks
from godwit.runtime.settings import BrokerSettings, NetworkSettings, dump_network

#: What a broker prints when it accepts clients, answers over HTTP, and its links are up.
LISTENS, ANSWERS, LINKED = "listens on", "answers on", "is linked"
#: Not in the range from which systems assign ports to connections.
QUIET_PORTS = range(20_000, 32_000)
READY_S = 60.0
STOP_S = 15.0
#: What a broker imports, and what it imports only if it needs it.
BROKER_MODULE = "godwit.cli.broker"
SERVING_MODULES = (
    "godwit.http.serving", "uvicorn.protocols.http.auto", "uvicorn.lifespan.off",
)  # fmt: skip
HTTP_MODULES = (*SERVING_MODULES, "godwit.runtime.broker_http")
DATACLUSTER_MODULE = "godwit.sharing.remote_datacluster"
COORDINATOR_MODULES = ("godwit.http.http_client", "godwit.runtime.reporting")

#: Some programs are better not forked.
AnyProcess: TypeAlias = asyncio.subprocess.Process | ForkedProcess


class Processes:
    def __init__(
        self, network: NetworkSettings, *, log_level: str = "warning", supervised: bool = False
    ) -> None:
        """`supervised`: the caller starts brokers again that end."""
        self._log_level = log_level
        self.is_supervised = supervised
        self._listeners: dict[str, socket.socket] = {}
        network.trace.check()
        try:
            brokers = [self._with_ports(broker) for broker in network.broker]
        except UsageError:
            self._close_listeners()
            raise
        self.network = msgspec.structs.replace(network, broker=brokers)
        self._http: dict[str, str] = {}
        self._running: dict[str, ForkedProcess] = {}
        self._is_stopped = False
        self._starting: set[str] = set()
        """Of those that run, the ones whose links are not up yet."""
        self._folder = tempfile.TemporaryDirectory(prefix="godwit-")
        self._file = Path(self._folder.name) / "network.toml"

    def _with_ports(self, broker: BrokerSettings) -> BrokerSettings:
        """`broker` with a real port, which is taken now and handed over to the process."""
        listener = self._listeners[broker.id] = take_port(broker.listen, "listen")
        if broker.http is not None:
            take_port(broker.http, "serve HTTP").close()  # Better to know now than in a process.
        host, port = address(broker.listen)[0], listener.getsockname()[1]
        return msgspec.structs.replace(broker, listen=f"{host}:{port}")

    def _close_listeners(self) -> None:
        for listener in self._listeners.values():
            listener.close()
        self._listeners.clear()

    def url(self, broker: str) -> str:
        return f"godwit://{self.network.of(broker).listen}"

    def http(self, broker: str) -> str:
        """The HTTP address of the broker."""
        return self._http[broker]

    def pid(self, broker: str) -> int:
        return self._running[broker].pid

    async def __aenter__(self) -> Self:
        self._file.write_text(dump_network(self.network))
        try:
            async with asyncio.timeout(READY_S), asyncio.TaskGroup() as starting:
                for broker in self.network.broker:
                    starting.create_task(self.start(broker.id))
        except BaseException as error:
            await self.stop()
            if isinstance(error, ExceptionGroup):
                raise error.exceptions[0] from None
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self, broker: str) -> None:
        """Start one broker, and wait until its links are up."""
        arguments = [
            "broker", "--leash", "--config", str(self._file),
            "--id", broker, "--log-level", self._log_level,
        ]  # fmt: skip
        if self.is_supervised:
            arguments.append("--supervised")
        listener = self._listeners.pop(broker, None)
        try:
            process = await shared_forks().start(
                arguments, modules=self._modules(broker), listener=listener
            )
        finally:
            if listener is not None:
                listener.close()
        if self._is_stopped:  # Meanwhile: `stop` did not know of this process.
            process.send_signal(signal.SIGTERM)
            await ended(process)
            raise GodwitError(f"broker {broker} was started while the network was stopped")
        self._running[broker] = process
        self._starting.add(broker)
        async for line in process.stdout:
            word = line.decode().split()[-1]
            if ANSWERS.encode() in line:
                self._http[broker] = word
            elif LINKED.encode() in line:
                self._starting.discard(broker)
                return
        code = await process.wait()
        self._forget(broker, process)
        raise GodwitError(f"broker {broker} ended with code {code}")

    def _modules(self, broker: str) -> list[str]:
        """What this broker will import, as runtime.server does."""
        modules = [BROKER_MODULE]
        if self.network.of(broker).http is not None:
            modules += HTTP_MODULES
        if self.network.service_url("datacluster") is not None:
            modules.append(DATACLUSTER_MODULE)
        if self.network.service_url("coordinator") is not None:
            modules += COORDINATOR_MODULES
        return modules

    async def restart(self, broker: str) -> None:
        """Start one broker that has ended, at the same addresses, and wait for its links."""
        settings, http = self.network.of(broker), self._http.get(broker)
        if settings.http is not None and http is not None:  # Its port may have been any free one.
            again = msgspec.structs.replace(settings, http=http.removeprefix("http://"))
            brokers = [again if each is settings else each for each in self.network.broker]
            self.network = msgspec.structs.replace(self.network, broker=brokers)
            self._file.write_text(dump_network(self.network))
        await self.start(broker)

    async def wait(self, broker: str) -> int:
        """Wait until a broker ends by itself; the answer is its exit code."""
        process = self._running[broker]
        code = await process.wait()
        self._forget(broker, process)
        return code

    def _forget(self, broker: str, process: ForkedProcess) -> None:
        """A process has ended by itself, unless we have ended it meanwhile."""
        if self._running.get(broker) is process:
            del self._running[broker]
            self._starting.discard(broker)
            process.close()

    async def join(self, broker: BrokerSettings) -> None:
        """Start another broker, which dials its links, and wait until they are up."""
        broker = self._with_ports(broker)
        self.network = _with_brokers(self.network, [*self.network.broker, broker])
        self._file.write_text(dump_network(self.network))
        await self.start(broker.id)

    async def leave(self, broker: str) -> int:
        """Stop a broker for good, gracefully; the answer is its exit code.  Drain it first."""
        code = await self.kill(broker, signal.SIGTERM)
        self.take_out(broker)
        return code

    def take_out(self, broker: str) -> None:
        """A broker has left for good: the network is one without it and its links."""
        brokers = [
            msgspec.structs.replace(each, links=[link for link in each.links if link != broker])
            for each in self.network.broker
            if each.id != broker
        ]
        if not brokers:
            return
        self.network = _with_brokers(self.network, brokers)
        self._file.write_text(dump_network(self.network))

    async def first_end(self) -> str:
        """Wait until a broker ends by itself, and not for good; the answer says which."""
        ends = {
            asyncio.create_task(process.wait()): broker for broker, process in self._running.items()
        }
        try:
            while True:
                done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                failed = {ends.pop(task): task.result() for task in done}
                for broker in [broker for broker, code in failed.items() if code == LEFT]:
                    self._forget(broker, self._running[broker])
                    self.take_out(broker)
                    del failed[broker]
                if failed or not ends:
                    texts = [
                        f"broker {name} ended with code {code}" for name, code in failed.items()
                    ]
                    return ", ".join(texts) or "all brokers have left"
        finally:
            for task in ends:
                task.cancel()

    async def kill(self, broker: str, by: signal.Signals = signal.SIGKILL) -> int:
        """End one broker as a crash would, or otherwise; the answer is its exit code."""
        process = self._running.pop(broker)
        self._starting.discard(broker)
        process.send_signal(by)
        code = await process.wait()
        process.close()
        return code

    async def stop(self) -> dict[str, int]:
        """Stop all that run, gracefully; the answer is their exit codes."""
        self._is_stopped = True
        running, self._running = self._running, {}
        for process in running.values():
            process.send_signal(signal.SIGTERM)
        waiting = [ended(process) for process in running.values()]
        codes = await asyncio.gather(*waiting)
        self._close_listeners()
        self._folder.cleanup()
        # One that was stopped while it started may not have been able to end in good order.
        return {
            broker: 0 if broker in self._starting else code
            for broker, code in zip(running, codes, strict=True)
        }


async def ended(process: AnyProcess) -> int:
    """Wait for a process that was asked to stop; after STOP_S, kill it."""
    try:
        async with asyncio.timeout(STOP_S):
            return await process.wait()
    except TimeoutError:
        if isinstance(process, ForkedProcess):
            process.send_signal(signal.SIGKILL, to_group=True)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return await process.wait()
    finally:
        let_go(process)


def _with_brokers(network: NetworkSettings, brokers: list[BrokerSettings]) -> NetworkSettings:
    """The network of these brokers; in clusters their links follow anew."""
    if network.clusters is None:
        return msgspec.structs.replace(network, broker=brokers)
    brokers = [msgspec.structs.replace(each, links=[]) for each in brokers]
    clusters = network.clusters
    if isinstance(clusters, int):
        clusters = min(clusters, len(brokers))
    return msgspec.structs.replace(network, broker=brokers, clusters=clusters)


def let_go(process: AnyProcess) -> None:
    """Close our ends of the pipes."""
    if isinstance(process, ForkedProcess):
        process.close()
        return
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001  There is no other way.


def free_port() -> int:
    """A free port, for a process that will listen on it later."""
    while True:
        port = secrets.choice(QUIET_PORTS)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def take_port(where: str, purpose: str) -> socket.socket:
    """A socket that listens there; UsageError if the port is taken."""
    host, port = address(where)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise UsageError(f"cannot {purpose} on {where}: {why(error)}") from None
