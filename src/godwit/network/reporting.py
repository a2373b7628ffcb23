"""A broker and its coordinator: it makes itself known, and says regularly what it has to do.

The coordinator may be away: the broker goes on without it, and reports when it is back.
"""

from __future__ import annotations

import asyncio
import logging

from godwit.errors import GodwitError
from godwit.network.node import BrokerNode
from godwit.rest import bcs
from godwit.rest.calling import Caller
from godwit.rest.errors import RestError

log = logging.getLogger("godwit.reporting")

NOT_FOUND = 404
#: While the coordinator does not answer.
AGAIN_S = 5.0


class Reporter:
    def __init__(
        self,
        node: BrokerNode,
        caller: Caller,
        *,
        http: str | None,
        location: bcs.Location | None,
    ) -> None:
        self.trouble: str | None = "has not answered yet"
        self._node = node
        self._caller = caller
        self._http = http
        self._location = location
        self._last_s = node.now_s()
        self._last_in = self._last_out = 0

    async def run(self) -> None:
        is_known = False
        while True:
            wait_s = AGAIN_S
            try:
                wait_s = await (self._report() if is_known else self._register())
                is_known = True
                self.trouble = None
            except GodwitError as error:
                if isinstance(error, RestError) and error.status == NOT_FOUND and is_known:
                    is_known = False  # It has lost its memory: introduce ourselves.
                    continue
                if self.trouble is None:
                    log.warning("coordinator", extra={"error": str(error)})
                self.trouble = str(error)
            except Exception as error:  # What nobody has thought of must not end it, either.
                log.exception("coordinator")
                self.trouble = f"{type(error).__name__}: {error}"
            await asyncio.sleep(wait_s)

    async def _register(self) -> float:
        request = bcs.RegisterBroker(
            self._node.name, self._node.broker.address, self._http, self._location
        )
        return (await self._caller.call(bcs.REGISTER_BROKER, request)).report_s

    async def _report(self) -> float:
        return (await self._caller.call(bcs.LOAD_REPORT, self.report())).report_s

    def report(self) -> bcs.LoadReport:
        """Of what channels bring in and go out; whoever is online counts."""
        node = self._node
        now_s = node.now_s()
        elapsed_s = max(now_s - self._last_s, 1e-3)
        channels = node.channels
        bytes_in = 0 if channels is None else channels.bytes_in
        bytes_out = 0 if channels is None else channels.bytes_out
        held = {} if channels is None else channels.online()
        report = bcs.LoadReport(
            broker=node.name,
            bytes_in_per_s=(bytes_in - self._last_in) / elapsed_s,
            bytes_out_per_s=(bytes_out - self._last_out) / elapsed_s,
            rates={} if channels is None else channels.rates_of(held, now_s),
            subscribers=held,
        )
        self._last_s, self._last_in, self._last_out = now_s, bytes_in, bytes_out
        return report
