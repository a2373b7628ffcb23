"""One life of a client: it connects, asks, publishes and receives, until it crashes or is closed.

A client that comes back under its name begins another life.  To the oracle each life is a client of
its own, `c1~2`: it has its own numbers, and is owed only what is published after it has subscribed.
Which life a publication is from, and its number, travel in the payload, so that the judgement does
not depend on the sequence numbers that are judged.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from msgspec.structs import replace

from godwit.client import Gap
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Publication, Subscription, SubscriptionId
from godwit.content.values import Value
from godwit.errors import GodwitError, RefusedError, StayedError, TakenOverError, UnreachableError
from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.testing.nemesis.journal import Journal, LifeRecord, PublicationRecord, ToldGap
from godwit.testing.nemesis.memory_fleet import Fleet
from godwit.testing.witness import WitnessedClient

#: Between two attempts to connect, and for one.
RETRY_S = 0.1
CONNECT_S = 3.0
FLUSH_EVERY_S = 0.02
POLL_S = 0.05
FENCE = "FENCE"
FENCE_FILTER = Filter.parse(f"class = '{FENCE}' and after is present")


class LifeObserver(Observer):
    """Tells the oracle what one life does, under the life's name."""

    def __init__(self, key: str, oracle: Oracle, on_fence: Callable[[str, str, int], None]) -> None:
        self.subscribed: list[SubscriptionId] = []
        self._key = key
        self._oracle = oracle
        self._on_fence = on_fence

    def on_subscribing(self, client: str, subscription: Subscription, now_s: float) -> None:
        self.subscribed.append(subscription.id)
        self._oracle.on_subscribing(self._key, subscription, now_s)

    def on_in_effect(self, client: str, id: SubscriptionId, now_s: float) -> None:
        self._oracle.on_in_effect(self._key, id, now_s)

    def on_unsubscribing(self, client: str, id: SubscriptionId, now_s: float) -> None:
        self.subscribed.remove(id)
        self._oracle.on_unsubscribing(self._key, id, now_s)

    def on_published(self, publication: Publication, now_s: float) -> None:
        if publication.content["class"] != FENCE:
            self._oracle.on_published(_of_life(publication), now_s)

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        of_life = _of_life(publication)
        if publication.content["class"] == FENCE:
            self._on_fence(of_life.publisher, self._key, of_life.sequence)
        else:
            self._oracle.on_delivered([self._key], of_life, hops, now_s)

    def end(self, now_s: float) -> None:
        """The life is over: nothing is owed to it any more."""
        for id in list(self.subscribed):
            self.on_unsubscribing("", id, now_s)


def _of_life(publication: Publication) -> Publication:
    life, number = publication.payload.decode().split()
    return replace(
        publication, publisher=life, sequence=int(number), advertisement=AdvertisementId("")
    )


class Life:
    def __init__(
        self, key: str, name: str, journal: Journal, observer: LifeObserver, fleet: Fleet
    ) -> None:
        self.key = key
        self.name = name
        self.journal = journal
        self.published = 0
        self._accepted = 0
        """Publications that the client took: the first ones, until it was taken over."""
        self._acknowledged_upto = 0
        self.is_over = False
        self.is_taken_over = asyncio.Event()
        """It was told that another client has its name."""
        self.advertisements: dict[int, asyncio.Task[AdvertisementId | None]] = {}
        self.subscriptions: dict[int, asyncio.Task[SubscriptionId | None]] = {}
        self._observer = observer
        self._fleet = fleet
        self._witness: WitnessedClient | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._has_news = asyncio.Event()
        self._told: deque[tuple[float, Gap]] = deque()
        """Gaps that were told, and not iterated over yet."""
        self.record = journal.lives[key] = LifeRecord(name)

    @property
    def witness(self) -> WitnessedClient:
        assert self._witness is not None, "connect first"
        return self._witness

    async def connect(self, url: str, broker: str) -> None:
        """Connect, again and again until it succeeds."""
        with self.journal.requesting(f"{self.key} connects to {broker}"):
            while not await self.try_to_connect(url, broker):  # noqa: ASYNC110
                await asyncio.sleep(RETRY_S)

    async def try_to_connect(self, url: str, broker: str, *, take_over: bool = False) -> bool:
        """Connect, unless the broker refuses or does not answer."""
        client = self._fleet.connect(
            url,
            name=self.name,
            take_over=take_over,
            connect_s=CONNECT_S,
            fall_back_s=3_600.0,
        )
        # When it is told counts, not when a task gets round to it.
        told = self._told = deque()
        client.gaps.on_gap = lambda gap: told.append((self.journal.now_s(), gap))
        witness = WitnessedClient(client, self._observer, now_s=self.journal.now_s)
        try:
            await witness.__aenter__()
        except (UnreachableError, RefusedError) as error:
            self.journal.note(f"{self.key} cannot connect to {broker}: {error}")
            return False
        self._witness = witness
        self.is_at(broker)
        self.begin("flushes", self._acknowledged())
        self.begin("watches gaps", self._watch_gaps())
        self.begin("watches its name", self._watch_name())
        return True

    def is_at(self, broker: str) -> None:
        self.record.brokers.append((self.journal.now_s(), broker))
        self.journal.note(f"{self.key} is at {broker}")

    @property
    def broker(self) -> str:
        return self.record.brokers[-1][1]

    @property
    def session_broker(self) -> str:
        """The broker that has its session: it may have fallen back to one where it was before."""
        return self.witness.client.session.broker

    # -- requests ------------------------------------------------------------------------------

    def begin(self, what: str, doing: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do it while the script goes on; an error is a problem of the run."""
        task = asyncio.create_task(self._do(what, doing))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _do(self, what: str, doing: Coroutine[Any, Any, Any]) -> Any:
        try:
            done = await doing
        except TakenOverError:
            return None  # Noticed by `_watch_name`.
        except GodwitError as error:
            if self.is_over:
                return None
            self.journal.problem(f"{self.key} {what}: {type(error).__name__}: {error}")
            return None
        self.journal.counts[what.split(maxsplit=1)[0]] += 1
        return done

    def advertise(self, number: int, filter: Filter) -> None:
        async def ask() -> AdvertisementId:
            with self.journal.requesting(f"{self.key} advertises {filter}"):
                return await self.witness.advertise(filter)

        self.advertisements[number] = self.begin(f"advertises {filter}", ask())

    def unadvertise(self, number: int) -> None:
        asked = self.advertisements.pop(number)

        async def withdraw() -> None:
            with self.journal.requesting(f"{self.key} withdraws advertisement {number}"):
                id = await asked
                if id is not None:
                    await self.witness.unadvertise(id)

        self.begin("unadvertises", withdraw())

    def subscribe(self, number: int, filter: Filter) -> None:
        async def ask() -> SubscriptionId:
            with self.journal.requesting(f"{self.key} subscribes to {filter}"):
                id = await self.witness.subscribe(filter)
                self.journal.note(f"{self.key} {id} in effect: {filter}")
                return id

        self.subscriptions[number] = self.begin(f"subscribes to {filter}", ask())

    def unsubscribe(self, number: int) -> None:
        asked = self.subscriptions.pop(number)

        async def withdraw() -> None:
            with self.journal.requesting(f"{self.key} withdraws subscription {number}"):
                id = await asked
                if id is not None:
                    self.journal.note(f"{self.key} unsubscribes {id}")
                    await self.witness.unsubscribe(id)

        self.begin("unsubscribes", withdraw())

    def move(self, url: str, broker: str) -> None:
        async def move() -> None:
            with self.journal.requesting(f"{self.key} moves to {broker}"):
                try:
                    await self.witness.client.move(url)
                except StayedError as error:
                    self.journal.note(f"{self.key} stayed: {error}")
                    self.journal.counts["stays"] += 1
                else:
                    self.is_at(broker)

        self.begin(f"moves to {broker}", move())

    async def publish(self, content: dict[str, Value]) -> None:
        if self.is_over:
            return
        number, self.published = self.published, self.published + 1
        key = (self.key, number)
        now_s = self.journal.now_s()
        self.journal.publications[key] = PublicationRecord(self.key, number, self.broker, now_s)
        with (
            self.journal.requesting(f"{self.key} publishes {number}"),
            contextlib.suppress(TakenOverError),
        ):
            await self.witness.publish(content, payload=f"{self.key} {number}".encode())
            self._accepted += 1
            self._has_news.set()

    async def publish_fence(self, round: int) -> None:
        payload = f"{self.key} {round}".encode()
        await self.witness.publish({"class": FENCE, "after": round}, payload=payload)

    async def _acknowledged(self) -> None:
        """Flush after each burst: what was published before is acknowledged then."""
        first = 0
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            upto = self.published
            with self.journal.requesting(f"{self.key} flushes {first} to {upto - 1}"):
                await self.witness.client.flush()
            self._note_acknowledged(upto)
            first = upto
            await asyncio.sleep(FLUSH_EVERY_S)

    def _note_acknowledged(self, upto: int) -> None:
        now_s = self.journal.now_s()
        for number in range(self._acknowledged_upto, upto):
            self.journal.publications[self.key, number].acknowledged_s = now_s
        self._acknowledged_upto = max(self._acknowledged_upto, upto)

    async def _watch_name(self) -> None:
        """Notice that another client has taken over, and at which broker this one is.

        A client that its broker refuses falls back to one where it was before.
        """
        while not self.is_over:
            try:
                self.witness.client.check_open()
            except TakenOverError as error:
                self.journal.note(f"{self.key} is told: {error}")
                self.is_taken_over.set()
                return
            if self.session_broker != self.broker:
                self.is_at(self.session_broker)
            await asyncio.sleep(POLL_S)

    async def _watch_gaps(self) -> None:
        """Every gap must come to those who iterate, too."""
        async for gap in self.witness.client.gaps:
            at_s, told = self._told.popleft()
            if told != gap:
                self.journal.problem(f"{self.key} was told {told}, and iterates over {gap}")
            key = (gap.reason, gap.broker, gap.since_s)
            told_gap = ToldGap(gap.broker, key, at_s, reason=gap.reason)
            self.record.on_gap(told_gap, is_over=gap.is_over)
            self.journal.note(f"{self.key} is told: {gap}")

    # -- the end -------------------------------------------------------------------------------

    def stop_expecting(self) -> None:
        """Another client has its name: nothing is owed to this one any more."""
        self.record.ended_s = min(self.record.ended_s, self.journal.now_s())
        self._observer.end(self.journal.now_s())

    async def crash(self) -> None:
        """End without a word, as if the process had died."""
        self.is_over = True
        self.record.ended_s = min(self.record.ended_s, self.journal.now_s())
        self._observer.end(self.journal.now_s())
        if self._witness is not None:
            client = self._witness.client
            self._note_acknowledged(self._accepted - client.session.unacknowledged)
            client.abort()
            await self._witness.stop_reading()
        await self._cancel()

    async def close(self) -> None:
        self.is_over = True
        await self._cancel()
        if self._witness is not None:
            with self.journal.requesting(f"{self.key} closes"):
                await self._witness.__aexit__(None, None, None)

    async def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)
