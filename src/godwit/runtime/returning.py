"""Broker processes that have left the network by order of its coordinator, and may come back.

As long as some are away, the coordinator is told which, and says which of them it needs again: then
they are started, as new brokers, with a link to one that runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial

from msgspec.structs import replace

from godwit.errors import GodwitError
from godwit.runtime.processes import Processes
from godwit.runtime.restarting import Supervised
from godwit.runtime.settings import BrokerSettings, NetworkSettings

log = logging.getLogger("godwit.restarting")

#: How often the coordinator is asked.
ASK_S = 1.0


def relinked(network: NetworkSettings) -> NetworkSettings:
    """Every broker has a neighbour to ask which shape the network has, when it is restarted."""
    for id in [each.id for each in network.broker]:
        others = [each.id for each in network.broker if each.id != id]
        if others and not network.neighbours(network.of(id)):
            brokers = [
                replace(each, links=others[:1]) if each.id == id else each
                for each in network.broker
            ]
            network = replace(network, broker=brokers)
    return network


class Returning:
    def __init__(self, brokers: Processes) -> None:
        self._brokers = brokers
        self._away: dict[str, BrokerSettings] = {}

    def supervised(self, broker: str) -> Supervised:
        """A broker process, as `supervise` runs it."""
        return Supervised(
            f"broker {broker}",
            partial(self._brokers.wait, broker),
            partial(self._start, broker),
            partial(self._left, broker),
        )

    async def _left(self, broker: str) -> None:
        """Return when the coordinator needs the broker again."""
        self._away[broker] = self._brokers.network.of(broker)
        self._brokers.take_out(broker)
        self._brokers.network = relinked(self._brokers.network)
        await self._wanted(broker)

    async def _wanted(self, broker: str) -> None:
        network = self._brokers.network
        url = network.service_url("coordinator")
        if url is None:
            await asyncio.Event().wait()  # Until the others are stopped, too.
            return
        from godwit.api.network_api import STARTS, Startable  # noqa: PLC0415  Few networks need it.
        from godwit.http.http_client import HttpClient  # noqa: PLC0415

        async with HttpClient(url, secret=network.secret, attempts=1) as coordinator:
            while True:
                with contextlib.suppress(GodwitError):  # It may be restarted.
                    answer = await coordinator.call(STARTS, Startable([broker]))
                    if broker in answer.brokers:
                        return
                await asyncio.sleep(ASK_S)

    async def _start(self, broker: str) -> None:
        settings = self._away.get(broker)
        if settings is None:
            await self._brokers.restart(broker)
            return
        running = [each.id for each in self._brokers.network.broker if each.id != broker]
        links = [link for link in settings.links if link in running] or running[:1]
        if any(each.id == broker for each in self._brokers.network.broker):
            self._brokers.take_out(broker)  # The last attempt has failed.
        await self._brokers.join(replace(settings, links=links))
        del self._away[broker]
