"""A live client that reports its steps to observers, so that the simulator's oracle can check it.

    oracle = Oracle(settle_s=5.0)
    async with WitnessedClient(godwit.connect(url, name="alice"), oracle) as alice:
        await alice.subscribe(Filter.parse("volume > 5"))
        ...
        await wait_for_deliveries(oracle, within_s=5.0)

All clients of a run report to the same observers, in one process, so that reports are in the order
in which things happened.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from godwit.client import Client, Events
from godwit.content.filters import Filter
from godwit.content.messages import (
    INCARNATION_END,
    AdvertisementId,
    Publication,
    Subscription,
    SubscriptionId,
)
from godwit.content.values import Value
from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle

POLL_S = 0.05


class WitnessedClient:
    def __init__(
        self, client: Client, observer: Observer, *, now_s: Callable[[], float] = time.time
    ) -> None:
        """`client` is connected when this is entered, and closed when it is left."""
        self.client = client
        self.name = client.name
        self._observer = observer
        self._now_s = now_s
        # Which of its advertisements it publishes under, the client decides.
        incarnation = client.session.incarnation
        word = f"{incarnation}{INCARNATION_END}" if incarnation else ""
        self._any_advertisement = AdvertisementId(f"{self.name}/{word}")
        self._reading: dict[SubscriptionId, tuple[Events, asyncio.Task[None]]] = {}
        client.on_publication = self._on_publication

    async def __aenter__(self) -> Self:
        await self.client.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop_reading()
        await self.client.__aexit__(kind, error, traceback)

    async def advertise(self, filter: Filter) -> AdvertisementId:
        return await self.client.advertise(filter)

    async def unadvertise(self, id: AdvertisementId) -> None:
        await self.client.unadvertise(id)

    async def publish(self, content: dict[str, Value], *, payload: bytes = b"") -> None:
        publication = Publication(
            publisher=self.name,
            sequence=self.client.session.next_sequence,
            advertisement=self._any_advertisement,
            content=content,
            payload=payload,
        )
        self._observer.on_published(publication, self._now_s())
        await self.client.publish(content, payload=payload)

    async def subscribe(self, filter: Filter) -> SubscriptionId:
        """Subscribe, and wait until that is in effect."""
        events = self.client.subscribe(filter)
        await events.__aenter__()
        (id,) = events.ids
        self._observer.on_subscribing(self.name, Subscription(id=id, filter=filter), self._now_s())
        self._reading[id] = events, asyncio.create_task(self._read(events))
        await events.in_effect()
        self._observer.on_in_effect(self.name, id, self._now_s())
        return id

    async def unsubscribe(self, id: SubscriptionId) -> None:
        events, task = self._reading.pop(id)
        self._observer.on_unsubscribing(self.name, id, self._now_s())
        await events.__aexit__(None, None, None)
        await task

    async def stop_reading(self) -> None:
        for _, task in self._reading.values():
            task.cancel()
        await asyncio.gather(*(t for _, t in self._reading.values()), return_exceptions=True)
        self._reading.clear()

    async def _read(self, events: Events) -> None:
        (filter,) = events.filters
        async for event in events:
            assert filter.matches_checked(event.content), f"{event} does not match {filter}"

    def _on_publication(self, publication: Publication, hops: int) -> None:
        self._observer.on_delivered([self.name], publication, hops, self._now_s())


async def wait_for_deliveries(oracle: Oracle, *publishers: Client, within_s: float) -> None:
    """Wait until brokers have what was published, then until no delivery is outstanding.

    For the latter only `within_s`: what has not arrived then, the oracle reports.
    """
    for publisher in publishers:
        await publisher.flush()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while oracle.is_owed:  # noqa: ASYNC110  The oracle has no event for that.
                await asyncio.sleep(POLL_S)
