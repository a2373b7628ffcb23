"""Feeds: publications that match a filter become records of a dataset, once each.

    broker --> Follower --> Inbox: on the disk, with the mark --> acknowledged

Nothing is acknowledged before it is on the disk, so publishers wait while the disk is full or
ingestion is behind, and while the data cluster is away.  The mark goes into the log with the
records: after a crash the feed goes on behind the last record that is there.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Sequence

from godwit.client.following import Follower, Keeper
from godwit.client.session import Mark
from godwit.content.filters import Filter
from godwit.content.messages import Publication
from godwit.datacluster.feed import Feed
from godwit.datacluster.inbox import Inbox, Incoming
from godwit.datacluster.landing import Landing
from godwit.datacluster.segments import FullError
from godwit.errors import GodwitError
from godwit.wire.call import Pauses

log = logging.getLogger("godwit.feeding")

CONNECT_S = 10.0
#: Between attempts to put away what there is no room for.
FULL_S = 0.1


class Feeding:
    """All feeds, each with a durable subscription at a broker."""

    def __init__(self, landing: Landing, *, name: str, url: str | None, secret: str = "") -> None:
        """`name` is the data cluster's, `url` that of the broker where feeds subscribe."""
        self._landing = landing
        self._name = name
        self._url = url
        self._secret = secret
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._feeders: dict[str, Feeder] = {}

    @property
    def troubles(self) -> dict[str, str]:
        """Why feeds do not work, by name."""
        if self._url is None:
            return {feed.name: "no broker is set" for feed in self._landing.feeds()}
        found = {name: feeder.trouble for name, feeder in self._feeders.items()}
        return {name: trouble for name, trouble in found.items() if trouble is not None}

    def start_all(self) -> None:
        for feed in self._landing.feeds():
            self.start(feed)

    def start(self, feed: Feed) -> None:
        if self._url is None:
            return
        inbox = self._landing.inbox(feed.dataset)
        feeder = Feeder(feed, inbox, f"{self._name}.{feed.name}", self._url, self._secret)
        self._feeders[feed.name.lower()] = feeder
        self._tasks[feed.name.lower()] = asyncio.create_task(feeder.run())

    async def in_effect(self, feed: str) -> None:
        """Return when every matching publication from now on will become a record."""
        await self._feeders[feed.lower()].in_effect.wait()

    async def end(self, feed: str) -> None:
        """For good: the feed was dropped."""
        feeder = self._feeders.pop(feed.lower(), None)
        if feeder is not None:
            feeder.hang_up()
            await self._cancel([self._tasks.pop(feed.lower())])

    async def stop(self) -> None:
        """Until the next start; brokers keep what comes meanwhile, or publishers wait."""
        await self._cancel(list(self._tasks.values()))

    async def _cancel(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Feeder:
    """One feed."""

    def __init__(self, feed: Feed, inbox: Inbox, name: str, url: str, secret: str) -> None:
        self.trouble: str | None = "is not connected yet"
        self.in_effect = asyncio.Event()
        self._feed = feed
        self._inbox = inbox
        self._name = name
        self._url = url
        self._secret = secret
        self._follower: Follower | None = None
        self._lock = threading.Lock()
        self._mark = mark_of(inbox, feed.name)

    async def run(self) -> None:
        pauses = Pauses()
        while True:
            try:
                await self._follow()
            except (GodwitError, OSError) as error:
                self.trouble = str(error)
                log.warning("feed", extra={"feed": self._feed.name, "error": str(error)})
            except Exception as error:  # The feed must not die of what nobody has thought of.
                self.trouble = f"{type(error).__name__}: {error}"
                log.exception("feed", extra={"feed": self._feed.name})
            await pauses.take()

    async def _follow(self) -> None:
        follower = self._follower = Follower(
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

    async def _wait_for_effect(self, follower: Follower) -> None:
        await follower.in_effect()
        self.trouble = None
        self.in_effect.set()

    def hang_up(self) -> None:
        if self._follower is not None:
            self._follower.end()

    async def _keep(self, publications: Sequence[Publication], mark: Mark) -> None:
        """Wait as long as there is no room: meanwhile nothing is acknowledged."""
        records = [
            Incoming(f"{self._feed.name}/{p.publisher}", p.sequence, p.content, p.accepted_s)
            for p in publications
        ]
        while True:
            try:
                await asyncio.to_thread(self._put_away, records, mark)
            except FullError as error:
                self.trouble = str(error)
                await asyncio.sleep(FULL_S)
            else:
                self.trouble = None
                return

    def _keep_mark(self, mark: Mark) -> None:
        try:
            self._put_away([], mark)
        except FullError as error:
            raise OSError(str(error)) from None

    def _put_away(self, records: Sequence[Incoming], mark: Mark) -> None:
        with self._lock:  # A new stream may have begun meanwhile; its mark is the later one.
            latest = mark if self._mark is None else max(mark, self._mark)
            self._inbox.take(records, marks_of(self._feed.name, latest))
            self._mark = latest


def marks_of(feed: str, mark: Mark) -> dict[str, str | int]:
    return {f"{feed}.{field}": value for field, value in mark._asdict().items()}


def mark_of(inbox: Inbox, feed: str) -> Mark | None:
    found = {field: inbox.marks.get(f"{feed}.{field}") for field in Mark._fields}
    return None if None in found.values() else Mark(**found)  # type: ignore[arg-type]


def posted(records: Sequence[bytes], producer: str, first_sequence: int) -> list[Incoming]:
    """Records that came over HTTP."""
    now_s = time.time()
    return [
        Incoming(f"http/{producer}", first_sequence + place, record, now_s)
        for place, record in enumerate(records)
    ]
