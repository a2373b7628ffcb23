"""Feeds: publications that match a filter become records of a dataset, exactly once.

    broker --> DurableSubscription --> Inbox: on disk, with the mark --> acknowledged

A publication is acknowledged when it is on disk, so publishers wait while the disk is full,
ingestion is behind or the data cluster is down.  The mark is written to the log with the records:
after a crash the feed continues after the last record in the log.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence

from godwit.client.client_session import StreamMark
from godwit.client.durable_subscription import DurableSubscription, Keeper
from godwit.content.filters import Filter
from godwit.content.messages import Publication, incarnation_of
from godwit.datacluster.datasets.dataset_service import DatasetService
from godwit.datacluster.datasets.inbox import AcceptedRecords, Inbox, Incoming
from godwit.datacluster.log.segments import FullError
from godwit.datacluster.model.feed import Feed
from godwit.protocol.supervision import Supervisor

log = logging.getLogger("godwit.feeding")

CONNECT_S = 10.0
#: Between attempts to store records while there is no room.
FULL_S = 0.1


class Feeding:
    """All feeds, each with a durable subscription at a broker."""

    def __init__(
        self,
        datasets: DatasetService,
        *,
        name: str,
        url: str | None,
        secret: str = "",
        clock: Callable[[], float],
    ) -> None:
        """`name` is the data cluster's, `url` that of the broker where feeds subscribe."""
        self._datasets = datasets
        self._name = name
        self._url = url
        self._secret = secret
        self._clock = clock
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._feeders: dict[str, Feeder] = {}

    @property
    def troubles(self) -> dict[str, str]:
        """Why feeds do not work, by name of the feed."""
        if self._url is None:
            return {
                feed.name: "no broker is set: feeds need the setting broker"
                for feed in self._datasets.feeds()
            }
        found = {name: feeder.trouble for name, feeder in self._feeders.items()}
        return {name: trouble for name, trouble in found.items() if trouble is not None}

    def start_all(self) -> None:
        for feed in self._datasets.feeds():
            self.start(feed)

    def start(self, feed: Feed) -> None:
        if self._url is None:
            return
        inbox = self._datasets.inbox(feed.dataset)
        name = f"{self._name}.{feed.name}"
        feeder = Feeder(feed, inbox, name, self._url, self._secret, clock=self._clock)
        self._feeders[feed.name.lower()] = feeder
        self._tasks[feed.name.lower()] = asyncio.create_task(feeder.run())

    async def in_effect(self, feed: str) -> None:
        """Return when every later matching publication will become a record."""
        await self._feeders[feed.lower()].in_effect.wait()

    async def end(self, feed: str) -> None:
        """End a feed that was dropped."""
        feeder = self._feeders.pop(feed.lower(), None)
        if feeder is not None:
            feeder.hang_up()
            await self._cancel([self._tasks.pop(feed.lower())])

    async def stop(self) -> None:
        """Until the next start; meanwhile brokers keep publications, or publishers wait."""
        await self._cancel(list(self._tasks.values()))

    async def _cancel(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Feeder:
    """One feed."""

    def __init__(
        self,
        feed: Feed,
        inbox: Inbox,
        name: str,
        url: str,
        secret: str,
        *,
        clock: Callable[[], float],
    ) -> None:
        self.in_effect = asyncio.Event()
        self._feed = feed
        self._inbox = inbox
        self._name = name
        self._url = url
        self._secret = secret
        self._clock = clock
        self._follower: DurableSubscription | None = None
        self._lock = threading.Lock()
        self._mark = mark_of(inbox, feed.name)
        self._supervisor = Supervisor(log, "feed", trouble="is not connected yet", feed=feed.name)

    @property
    def trouble(self) -> str | None:
        """Why the feed does not work; None if it does."""
        return self._supervisor.trouble

    async def run(self) -> None:
        """Until cancelled."""
        await self._supervisor.run(self._follow)

    async def _follow(self) -> None:
        follower = self._follower = DurableSubscription(
            self._url,
            name=self._name,
            filter=Filter.parse(self._feed.filter),
            keeper=Keeper(self._keep, self._keep_mark),
            mark=self._mark,
            secret=self._secret,
        )
        waiting = asyncio.create_task(self._wait_for_effect(follower))
        try:
            await follower.run(CONNECT_S)
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    async def _wait_for_effect(self, follower: DurableSubscription) -> None:
        await follower.in_effect()
        self._supervisor.recover()
        self.in_effect.set()

    def hang_up(self) -> None:
        if self._follower is not None:
            self._follower.end()

    async def _keep(self, publications: Sequence[Publication], mark: StreamMark) -> None:
        """Waits while there is no room; nothing is acknowledged meanwhile."""
        now_s = self._clock()  # Those of brokers may differ.
        records = [
            Incoming(f"{self._feed.name}/{incarnation_of(p)}", p.sequence, p.content, now_s)
            for p in publications
        ]
        while True:
            try:
                await asyncio.to_thread(self._store, records, mark)
            except FullError as error:
                self._supervisor.fail(error)
                await asyncio.sleep(FULL_S)
            else:
                self._supervisor.recover()
                return

    def _keep_mark(self, mark: StreamMark) -> None:
        try:
            self._store([], mark)
        except FullError as error:
            raise OSError(str(error)) from None

    def _store(self, records: Sequence[Incoming], mark: StreamMark) -> None:
        with self._lock:  # If a new stream has begun meanwhile, its mark is the later one.
            latest = mark if self._mark is None else max(mark, self._mark)
            self._inbox.take(records, marks_of(self._feed.name, latest))
            self._mark = latest


def marks_of(feed: str, mark: StreamMark) -> dict[str, str | int]:
    return {f"{feed}.{field}": value for field, value in mark._asdict().items()}


def mark_of(inbox: Inbox, feed: str) -> StreamMark | None:
    found = {field: inbox.marks.get(f"{feed}.{field}") for field in StreamMark._fields}
    return None if None in found.values() else StreamMark(**found)  # type: ignore[arg-type]


def take_posted(
    inbox: Inbox,
    records: Sequence[bytes],
    producer: str | None,
    first_sequence: int,
    *,
    accepted_s: float,
) -> AcceptedRecords:
    """Store records posted over HTTP; those of a named producer have sequence numbers."""
    if producer is None:
        return inbox.take_unnumbered("http/", records, accepted_s)
    numbered = enumerate(records, start=first_sequence)
    source = f"http/{producer}"
    return inbox.take([Incoming(source, n, record, accepted_s) for n, record in numbered])
