"""Channels at a live broker: shared subscriptions between outlets and the data cluster.

    subscriber --> SharedSubscriptions --> outbox --> subscribe, unsubscribe --> data cluster
    its outlet <-- SharedSubscriptions <-- pull <-- notices <------------------- data cluster

The data cluster may be unreachable: requests wait and are retried, and subscriptions are in effect
later.  Nothing is lost: results are kept there until brokers have acknowledged them, and clients
keep their positions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import takewhile
from typing import Protocol

from godwit.api.datacluster_api import (
    BATCH_MAX,
    BrokerCreated,
    CreateBroker,
    Notices,
    NoticesAfter,
    Pull,
    PullAnswer,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Wanted,
)
from godwit.content.channel_messages import ChannelRequest, ChannelSubscription
from godwit.protocol.supervision import Supervisor
from godwit.sharing.outlets import Outlet, Positions
from godwit.sharing.rates import Rates
from godwit.sharing.shared_subscriptions import Ask, End, Order, Push, SharedSubscriptions, Tell

log = logging.getLogger("godwit.channels")

NOTICES_S = 20.0
"""How long the data cluster may wait for notices before it answers."""
TIDY_S = 1.0
PULLS_MAX = 1_000


class DataCluster(Protocol):
    async def create_broker(self, request: CreateBroker) -> BrokerCreated: ...

    async def subscribe(self, request: Subscribe) -> Subscribed: ...

    async def unsubscribe(self, request: Unsubscribe) -> None: ...

    async def notices(self, request: NoticesAfter) -> Notices: ...

    async def pull(self, request: Pull) -> PullAnswer: ...


class LiveChannels:
    def __init__(self, broker: str, cluster: DataCluster, *, now_s: Callable[[], float]) -> None:
        self.desk = SharedSubscriptions()
        self.rates = Rates()
        self.bytes_in = 0
        self.bytes_out = 0
        self.rows_out = 0
        self._broker = broker
        self._now_s = now_s
        self._cluster = cluster
        self._heard: int | None = None
        """The number of the last notice."""
        self._outbox: list[Ask | End] = []
        self._is_known = asyncio.Event()
        """To the data cluster: what a broker held before it introduced itself is no longer its."""
        self._has_post = asyncio.Event()
        self._may_pull = asyncio.Event()
        self._outlets: dict[str, Outlet] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._supervisor = Supervisor(
            log,
            "data cluster",
            trouble="has not been asked yet",
            broker=broker,
        )

    @property
    def trouble(self) -> str | None:
        """Why the data cluster does not answer; None if it does."""
        return self._supervisor.trouble

    def start(self) -> None:
        steps = (self._listen, self._post, self._pull, self._tidy)
        self._tasks = [asyncio.create_task(self._supervisor.run(step)) for step in steps]

    def abort(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def stop(self) -> None:
        self.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- subscribers ---------------------------------------------------------------------------

    def has(self, subscriber: str) -> bool:
        return subscriber in self._outlets

    def enter(self, subscriber: str, outlet: Outlet) -> None:
        """Add a subscriber, until it leaves."""
        self._outlets[subscriber] = outlet

    def ask(self, subscriber: str, request: ChannelRequest) -> None:
        if isinstance(request, ChannelSubscription):
            self._carry_out(self.desk.subscribe(subscriber, request))
        else:
            self._carry_out(self.desk.unsubscribe(subscriber, request.id))

    def leave(self, subscriber: str) -> None:
        """A subscriber is not coming back to this broker."""
        self._outlets.pop(subscriber, None)
        self._carry_out(self.desk.leave(subscriber))

    def go_on(self, subscriber: str) -> None:
        """A subscriber is back, or has read something: it may take more."""
        if self.desk.wake(subscriber):
            self._may_pull.set()

    def begin_again(self, subscriber: str, arrived: Positions) -> None:
        """Send a subscriber all results behind these positions, whatever it was sent before."""
        self.desk.begin_again(subscriber, arrived)
        self._may_pull.set()

    def _carry_out(self, orders: list[Order]) -> None:
        touched: dict[Outlet, None] = {}
        for order in orders:
            if isinstance(order, End):
                self.rates.end(order.id)
            if isinstance(order, Ask | End):
                self._outbox.append(order)
                self._has_post.set()
                continue
            outlet = self._outlets.get(order.client)
            if outlet is None:
                continue
            touched[outlet] = None
            if isinstance(order, Tell):
                outlet.tell(order.notice)
            else:
                self._push(outlet, order)
        for outlet in touched:
            outlet.flush()
        self._may_pull.set()

    def _push(self, outlet: Outlet, push: Push) -> None:
        outlet.push(push.results, push.size_bytes)
        self.bytes_out += push.size_bytes
        self.rows_out += len(push.results.rows)

    def _can_take(self, subscriber: str) -> bool:
        outlet = self._outlets.get(subscriber)
        return outlet is not None and outlet.can_take

    def online(self) -> dict[str, list[int]]:
        """Subscribers that can be asked to move, and their back-end subscriptions."""
        held = self.desk.subscribers()
        return {name: ids for name, ids in held.items() if self._outlets[name].can_move}

    def rates_of(self, held: dict[str, list[int]], now_s: float) -> dict[int, float]:
        """Bytes per second of each of these back-end subscriptions."""
        return self.rates.bytes_per_s({id for ids in held.values() for id in ids}, now_s)

    # -- the data cluster ----------------------------------------------------------------------

    async def _listen(self) -> None:
        """Wait for notices of new results and of dropped channels."""
        name = self._broker
        if self._heard is None:
            self._heard = (await self._cluster.create_broker(CreateBroker(broker=name))).notices
            self._is_known.set()
        asked = NoticesAfter(broker=name, after=self._heard, wait_s=NOTICES_S)
        answer = await self._cluster.notices(asked)
        self._supervisor.recover()
        self._heard = answer.through
        for notice in answer.notices:
            self.desk.ready(notice.subscriptions, notice.execution)
        self._carry_out([o for each in answer.dropped for o in self.desk.channel_dropped(each)])

    async def _post(self) -> None:
        """Ask the data cluster for what clients want, in the order in which they did."""
        await self._is_known.wait()
        await self._has_post.wait()
        batch = self._outbox[:BATCH_MAX]
        kind = type(batch[0])
        batch = [*takewhile(lambda order: type(order) is kind, batch)]
        orders = await self._ask(batch) if kind is Ask else await self._end(batch)
        del self._outbox[: len(batch)]
        if not self._outbox:
            self._has_post.clear()
        self._carry_out(orders)

    async def _ask(self, batch: list[Ask | End]) -> list[Order]:
        asks = [ask for ask in batch if isinstance(ask, Ask)]
        wanted = [Wanted(channel=ask.channel, arguments=ask.arguments) for ask in asks]
        request = Subscribe(broker=self._broker, subscriptions=wanted)
        answer = await self._cluster.subscribe(request)
        orders: list[Order] = []
        for ask, granted in zip(asks, answer.subscriptions, strict=True):
            orders += self.desk.granted(ask.key, granted)
            if granted.id is not None:
                self.rates.begin(granted.id, self._now_s())
        return orders

    async def _end(self, batch: list[Ask | End]) -> list[Order]:
        ends = [end for end in batch if isinstance(end, End)]
        request = Unsubscribe(
            broker=self._broker,
            ended=[end.id for end in ends if not end.may_come_back],
            released=[end.id for end in ends if end.may_come_back],
        )
        await self._cluster.unsubscribe(request)
        return []

    async def _pull(self) -> None:
        """Fetch what there is for those who can take it, as long as there is something."""
        pulls = self.desk.pulls(self._can_take, PULLS_MAX)
        if not pulls:
            self._may_pull.clear()
            await self._may_pull.wait()
            return
        try:
            answer = await self._cluster.pull(Pull(broker=self._broker, pulls=pulls))
        finally:
            self.desk.may_pull_again(pulls)
        now_s = self._now_s()
        orders: list[Order] = []
        for pulled in answer.pulled:
            size_bytes = sum(rows.size_bytes for rows in pulled.results)
            self.bytes_in += size_bytes
            self.rates.add(pulled.id, size_bytes, now_s)
            orders += self.desk.pulled(pulled, self._can_take)
        for id in answer.unknown:
            orders += self.desk.unknown(id)
        self._carry_out(orders)

    # -- how far clients are -------------------------------------------------------------------

    async def _tidy(self) -> None:
        """Acknowledge results that every subscriber has."""
        await asyncio.sleep(TIDY_S)
        for name, outlet in self._outlets.items():
            self.desk.acknowledge(name, outlet.arrived(self.desk.positions(name)))
        done = self.desk.done(BATCH_MAX)
        if done:
            await self._cluster.pull(Pull(broker=self._broker, pulls=[], acknowledged=done))
