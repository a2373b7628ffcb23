"""A coordinator for a network in memory: the real one, without sockets and without a disk.

    async with MemoryCoordinator(network, random=Random(1)) as coordinator:
        change = await coordinator.carry_out(ChangeRequest(kind=ChangeKind.DRAIN, brokers=["B3"]))

What brokers are asked, they answer by the handlers that they serve over HTTP.  Brokers that are
ordered to leave do, and those that a change needs again are started, as `godwit up` starts them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from types import TracebackType
from typing import Self

from godwit.api.coordinator_api import LoadReport, RegisterBroker
from godwit.api.network_api import ChangeRequest, NetworkChange
from godwit.coordinator.broker_calls import BrokerCalls
from godwit.coordinator.broker_records import BrokerRecord, Memory
from godwit.coordinator.change_requests import ChangeRequests
from godwit.coordinator.change_runner import ChangeRunner
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.settings import CoordinatorSettings
from godwit.errors import UnreachableError, UsageError
from godwit.http.errors import RestError
from godwit.http.operations import Answer, Asked, Operation, Served
from godwit.runtime.broker_http import coordinated_operations
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.broker_orders import BrokerOrders
from godwit.sharing.gateway import Gateway
from godwit.testing.memory_network import COORDINATED, PORT, MemoryNetwork

REPORT_S = 1.0
TICK_S = 0.1
WRONG = 400


class MemoryCoordinator:
    def __init__(self, network: MemoryNetwork, *, random: Random) -> None:
        self.memory = Memory()
        """What would be on the disk."""
        self._network = network
        self._random = random
        self._brokers: dict[str, _OrderedBroker] = {}
        self._left: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self.core: Coordinator

    async def __aenter__(self) -> Self:
        self.start()
        self._outside = [asyncio.create_task(each) for each in (self._report(), self._supervise())]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for task in self._outside:
            task.cancel()
        await self.crash()
        for ended in await asyncio.gather(*self._outside, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended

    def start(self) -> None:
        """Begin, or go on from the record."""
        self.core = Coordinator(
            CoordinatorSettings(report_s=REPORT_S),
            self.memory,
            random=self._random,
            now_s=time.time(),
        )
        calls = _MemoryCalls(self.core.registry.brokers, self._served)
        runner = ChangeRunner(self.core, calls, self._save)
        self._requests = ChangeRequests(self.core, runner.ordering, self._save)
        self._running = asyncio.create_task(runner.run())

    async def crash(self) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    def _save(self) -> bool:
        self.core.take_changes()  # They are in the memory, which survives.
        return True

    async def begin(self, request: ChangeRequest) -> NetworkChange:
        """Raises RestError if it is refused."""
        return await self._requests.begin(request)

    async def ended(self, number: int) -> NetworkChange:
        """Wait until a change is over."""
        while not self.core.changes.change(number).is_over:  # noqa: ASYNC110  It has no event.
            await asyncio.sleep(TICK_S)
        return self.core.changes.change(number)

    # -- brokers -------------------------------------------------------------------------------

    def _ordered(self, name: str) -> _OrderedBroker | None:
        node = self._network.nodes.get(name)
        if node is None:
            return None
        known = self._brokers.get(name)
        if known is None or known.orders.node is not node:
            known = self._brokers[name] = _OrderedBroker(self._network, node)
        return known

    def _served(self, broker: str) -> list[Served]:
        known = self._ordered(broker)
        if known is None:
            raise UnreachableError(f"broker {broker} is not running")
        return known.operations

    async def _report(self) -> None:
        while True:
            for name in list(self._network.nodes):
                known = self._ordered(name)
                assert known is not None
                if known.orders.ending is not None:
                    continue
                if name not in self.core.registry.brokers:
                    url, http = f"{COORDINATED}{name}{PORT}", f"http://{name}"
                    self.core.register_broker(RegisterBroker(name, url, http), time.time())
                report = LoadReport(name, 0.0, 0.0, account=known.orders.account())
                known.orders.on_registered(self.core.report(report, time.time()).authority)
            await asyncio.sleep(REPORT_S)

    async def _supervise(self) -> None:
        """Brokers leave when they are ordered to, and come back when they are needed."""
        while True:
            for name, known in list(self._brokers.items()):
                if known.orders.ended.is_set() and self._ordered(name) is known:
                    await self._network.leave(name)
                    if name not in self._network.nodes:
                        self._left.add(name)
            self.core.startable.update(dict.fromkeys(self._left, time.time()))
            for name in sorted(self._left & self.core.changes.awaited):
                there = sorted(self._network.nodes)
                if not there:
                    break  # All others have crashed.
                self._left.discard(name)
                await self._network.add_broker(name, linked_to=self._random.choice(there))
            await asyncio.sleep(TICK_S)


class _OrderedBroker:
    """One run of a broker, as a coordinator sees it."""

    def __init__(self, network: MemoryNetwork, node: BrokerNode) -> None:
        forget = partial(network.forget, node.name)
        self.orders = BrokerOrders(node, Gateway(node), forget=forget)
        self.orders.http_url = network.url(node.name)
        self.operations = coordinated_operations(self.orders)


class _MemoryCalls(BrokerCalls):
    def __init__(
        self, brokers: Mapping[str, BrokerRecord], served: Callable[[str], list[Served]]
    ) -> None:
        super().__init__(brokers, "")
        self._served = served

    async def call(
        self, broker: str, operation: Operation[Asked, Answer], request: Asked, *, answer_s: float
    ) -> Answer:
        if broker not in self._brokers:
            raise UnreachableError(f"broker {broker} is not registered")
        (handler,) = [each.handler for each in self._served(broker) if each.operation is operation]
        try:
            async with asyncio.timeout(answer_s):
                answer: Answer = await handler(request)
        except TimeoutError:
            raise UnreachableError(f"broker {broker} has not answered") from None
        except UsageError as error:
            raise RestError(WRONG, str(error)) from None
        self._served(broker)  # It may have crashed meanwhile.
        return answer
