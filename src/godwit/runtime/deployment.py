"""A whole network file on this machine: the brokers, and the services that it has tables for.

    async with LocalDeployment(network) as running:
        running.brokers.url("B1"), running.services["datacluster"].url

The coordinator starts first, which is quick; then the brokers, which can wait for their services;
then the data cluster, which is slow.  Brokers stop first, so that feeds receive what is queued.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from godwit.api import dashboard_api
from godwit.runtime.processes import Processes, take_port
from godwit.runtime.restarting import RestartLimit, Supervised, supervise
from godwit.runtime.returning import Returning
from godwit.runtime.service import Service
from godwit.runtime.settings import NetworkSettings, Table
from godwit.runtime.toml_writer import toml_text

COORDINATOR, DATACLUSTER = "coordinator", "datacluster"


class LocalDeployment:
    def __init__(
        self, network: NetworkSettings, *, log_level: str = "warning", supervised: bool = False
    ) -> None:
        """`supervised`: the caller will call `supervise`."""
        tables = {
            name: _with_port(table, network.services.listen(name))
            for name, table in network.services.tables.items()
        }
        for name in (name for name in tables if getattr(network, name) is None):
            url = f"http://{tables[name]['listen']}"
            network = msgspec.structs.replace(network, **{name: url})
        self.brokers = Processes(network, log_level=log_level, supervised=supervised)
        self._folder = tempfile.TemporaryDirectory(prefix="godwit-")
        self.services = {
            name: Service(name, "--config", str(self._written(name, table)), log_level=log_level)
            for name, table in tables.items()
        }

    def _written(self, service: str, table: Table) -> Path:
        """A file for the service; what the table leaves open is as in the network."""
        network = self.brokers.network
        usual: Table = {"secret": network.secret} if network.secret else {}
        if service == COORDINATOR:
            usual["dashboard"] = dashboard_api.OFF  # There is one for all of it.
        if service == DATACLUSTER:
            first = network.broker[0]
            usual["broker"] = f"godwit://{first.address or first.listen}"
        path = Path(self._folder.name) / f"services.{service}.toml"
        path.write_text(toml_text({**usual, **table}))
        return path

    async def __aenter__(self) -> Self:
        try:
            await self._start(COORDINATOR)
            await self.brokers.__aenter__()
            await self._start(DATACLUSTER)
        except BaseException:
            await self.stop()
            raise
        return self

    async def _start(self, service: str) -> None:
        if service in self.services:
            await self.services[service].start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def first_end(self) -> str:
        """Wait until a process ends by itself; the answer says which."""
        ends = [asyncio.create_task(self.brokers.first_end())]
        ends += [asyncio.create_task(self._end_of(name)) for name in self.services]
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            return ", ".join(task.result() for task in done)
        finally:
            for task in ends:
                task.cancel()

    async def supervise(self, limit: RestartLimit) -> str:
        """Start each process again that ends; return, and say why, when one is given up."""
        returning = Returning(self.brokers)
        brokers = [returning.supervised(broker.id) for broker in self.brokers.network.broker]
        services = [
            Supervised(f"godwit {name}", service.wait, service.start)
            for name, service in self.services.items()
        ]
        return await supervise([*brokers, *services], limit)

    async def _end_of(self, service: str) -> str:
        return f"godwit {service} ended with code {await self.services[service].wait()}"

    async def stop(self) -> dict[str, int]:
        """Stop all that run, gracefully; the answer is their exit codes."""
        codes = await self.brokers.stop()
        for name, service in self.services.items():
            codes[name] = await service.stop()
        self._folder.cleanup()
        return codes


def _with_port(table: Table, listen: str) -> Table:
    """`table` with a port that is free now."""
    with take_port(listen, "serve HTTP") as listener:
        host = listen.rpartition(":")[0]
        return {**table, "listen": f"{host}:{listener.getsockname()[1]}"}
