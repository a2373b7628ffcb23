"""A broker registers with its coordinator, and reports its load regularly.

The coordinator may be unreachable: the broker continues, and reports when it is back.
"""

from __future__ import annotations

import asyncio
import logging

from godwit.api import coordinator_api
from godwit.content.geography import GeoPoint
from godwit.http.errors import RestError
from godwit.http.http_client import HttpClient
from godwit.protocol.backoff import Backoff
from godwit.protocol.supervision import Supervisor
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.broker_orders import BrokerOrders

log = logging.getLogger("godwit.reporting")

NOT_FOUND = 404
#: While the coordinator does not answer.
AGAIN_S = 5.0


class Reporter:
    def __init__(
        self,
        node: BrokerNode,
        caller: HttpClient,
        *,
        http: str | None,
        location: GeoPoint | None,
        orders: BrokerOrders | None = None,
    ) -> None:
        self._node = node
        self._caller = caller
        self._http = http
        self._location = location
        self._orders = orders
        self._last_s = node.now_s()
        self._last_in = self._last_out = 0
        self._is_registered = False
        self._supervisor = Supervisor(log, "coordinator", trouble="has not answered yet")

    @property
    def trouble(self) -> str | None:
        """Why the coordinator does not answer; None if it does."""
        return self._supervisor.trouble

    async def run(self) -> None:
        """Until cancelled."""
        backoff = Backoff(first_s=AGAIN_S, max_s=AGAIN_S, jitter=0.0)
        await self._supervisor.run(self._step, backoff)

    async def _step(self) -> None:
        try:
            answer = await (self._report() if self._is_registered else self._register())
        except RestError as error:
            if error.status != NOT_FOUND or not self._is_registered:
                raise
            self._is_registered = False  # The coordinator has lost its state: register again.
            return
        self._is_registered = True
        self._supervisor.recover()
        if self._orders is not None:
            self._orders.on_registered(answer.authority)
        await asyncio.sleep(answer.report_s)

    async def _register(self) -> coordinator_api.Registered:
        request = coordinator_api.RegisterBroker(
            self._node.name, self._node.broker.address, self._http, self._location
        )
        return await self._caller.call(coordinator_api.REGISTER_BROKER, request)

    async def _report(self) -> coordinator_api.Registered:
        return await self._caller.call(coordinator_api.LOAD_REPORT, self.report())

    def report(self) -> coordinator_api.LoadReport:
        """Bytes of channels in and out, and subscribers that are connected."""
        node = self._node
        now_s = node.now_s()
        elapsed_s = max(now_s - self._last_s, 1e-3)
        channels = node.channels
        bytes_in = 0 if channels is None else channels.bytes_in
        bytes_out = 0 if channels is None else channels.bytes_out
        held = {} if channels is None else channels.online()
        report = coordinator_api.LoadReport(
            broker=node.name,
            bytes_in_per_s=(bytes_in - self._last_in) / elapsed_s,
            bytes_out_per_s=(bytes_out - self._last_out) / elapsed_s,
            rates={} if channels is None else channels.rates_of(held, now_s),
            subscribers=held,
            account=None if self._orders is None else self._orders.account(),
        )
        self._last_s, self._last_in, self._last_out = now_s, bytes_in, bytes_out
        return report
