"""A data cluster of a few lines: what brokers see of one, without Spark."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import msgspec

from godwit.api.datacluster_api import (
    BrokerCreated,
    ChannelDropped,
    CreateBroker,
    ExecutionRows,
    Granted,
    Notice,
    Notices,
    NoticesAfter,
    Pull,
    PullAnswer,
    Pulled,
    Subscribe,
    Subscribed,
    Unsubscribe,
)
from godwit.content.channel_messages import Position, Row
from godwit.content.values import Value
from godwit.errors import UnreachableError

CHANNEL = "Numbers"


class MemoryCluster:
    """One channel, whose executions are given; keeps everything."""

    def __init__(self) -> None:
        self.execution = 0
        self.ids: dict[str, int] = {}
        self.holders: defaultdict[int, set[str]] = defaultdict(set)
        self.released: set[int] = set()
        self.rows: defaultdict[int, dict[int, list[Row]]] = defaultdict(dict)
        self.acknowledged: dict[tuple[str, int], Position] = {}
        self.dropped: set[str] = set()
        """Channels that there were."""
        self.is_away = False
        self.rows_per_pull = 1_000
        self.first: Position = (0, 0)
        self._last_id = -1
        self._number = 0
        """Of the last notice or drop."""
        self._notices: list[Notice] = []
        self._drops: list[ChannelDropped] = []
        self._is_news = asyncio.Event()

    def execute(self, results: dict[int, list[Row]]) -> None:
        """One execution, with these rows for back-end subscriptions."""
        self.execution += 1
        for id, rows in results.items():
            if rows:
                self.rows[id][self.execution] = rows
        some = [id for id, rows in results.items() if rows]
        self._number += 1
        self._notices.append(
            Notice(
                number=self._number,
                channel=CHANNEL,
                execution=self.execution,
                subscriptions=some,
            )
        )
        self._announce()

    def _announce(self) -> None:
        self._is_news.set()
        self._is_news = asyncio.Event()

    def drop(self, channel: str) -> None:
        """A channel is dropped, with all subscriptions; a notice tells brokers."""
        self.dropped.add(channel)
        self.ids.clear()
        self._number += 1
        self._drops.append(
            ChannelDropped(number=self._number, channel=channel, through=self._last_id)
        )
        self._announce()

    def create(self, channel: str) -> None:
        """A channel is created again."""
        self.dropped.discard(channel)
        self.execution += 1
        self.first = (self.execution + 1, 0)

    def forget(self, channel: str) -> None:
        """A channel is dropped, with all subscriptions; brokers hear so when they pull."""
        self.dropped.add(channel)
        self.execute({id: [{}] for id in self.ids.values()})

    def _check(self) -> None:
        if self.is_away:
            raise UnreachableError("the data cluster is away")

    async def create_broker(self, request: CreateBroker) -> BrokerCreated:
        self._check()
        for holders in self.holders.values():
            holders.discard(request.broker)
        return BrokerCreated(notices=self._number)

    async def subscribe(self, request: Subscribe) -> Subscribed:
        self._check()
        return Subscribed(
            subscriptions=[
                self._grant(request.broker, wanted.channel, wanted.arguments)
                for wanted in request.subscriptions
            ]
        )

    def _grant(self, broker: str, channel: str, arguments: dict[str, Value]) -> Granted:
        if channel in self.dropped:
            return Granted(error=f"channel {channel} was dropped")
        if channel != CHANNEL:
            return Granted(error=f"there is no channel {channel}")
        n = arguments["n"]
        assert isinstance(n, int | float)
        id = self.ids.setdefault(msgspec.json.encode(float(n)).decode(), self._last_id + 1)
        self._last_id = max(id, self._last_id)
        self.holders[id].add(broker)
        return Granted(id=id, start=(self.execution + 1, 0), first=self.first)

    async def unsubscribe(self, request: Unsubscribe) -> None:
        self._check()
        for id in (*request.ended, *request.released):
            self.holders[id].discard(request.broker)
        self.released |= set(request.released)

    async def notices(self, request: NoticesAfter) -> Notices:
        self._check()
        if self._number <= request.after:
            try:
                async with asyncio.timeout(request.wait_s):
                    await self._is_news.wait()
            except TimeoutError:
                pass
        self._check()
        return Notices(
            notices=[each for each in self._notices if each.number > request.after],
            dropped=[each for each in self._drops if each.number > request.after],
            through=self._number,
        )

    async def pull(self, request: Pull) -> PullAnswer:
        await asyncio.sleep(0)
        self._check()
        for done in request.acknowledged:
            self.acknowledged[request.broker, done.id] = done.start
        known = set() if self.dropped else set(self.ids.values())
        return PullAnswer(
            pulled=[
                self._pulled(pull.id, pull.start) for pull in request.pulls if pull.id in known
            ],
            unknown=[pull.id for pull in request.pulls if pull.id not in known],
        )

    def _pulled(self, id: int, start: Position) -> Pulled:
        results, end, left = list[ExecutionRows](), start, self.rows_per_pull
        for execution, rows in sorted(self.rows[id].items()):
            if execution < start[0] or not left:
                continue
            first = start[1] if execution == start[0] else 0
            part = rows[first : first + left]
            left -= len(part)
            end = (execution, first + len(part))
            if part:
                results.append(
                    ExecutionRows(
                        execution=execution,
                        first=first,
                        rows=part,
                        executed_s=float(execution),
                        size_bytes=len(msgspec.json.encode(part)),
                    )
                )
        if left:
            end = (self.execution + 1, 0)
        return Pulled(id=id, start=start, end=max(end, start), results=results)
