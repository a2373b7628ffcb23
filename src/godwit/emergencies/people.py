"""Subscribers: each logs in, says where it is, subscribes, and notes what it is told."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from godwit.client import ChannelEvent, ChannelEvents, Client, connect
from godwit.content.channels import Position
from godwit.content.values import Record, Value
from godwit.emergencies.pacing import Pacing
from godwit.emergencies.scenario import EmergencyScenario
from godwit.workloads.emergencies import ChannelSubscription, EmergencySubscriber
from godwit.workloads.emergency_channels import CHANNELS, LOCATION

PARAMETERS = {channel.name: [name for name, _ in channel.parameters] for channel in CHANNELS}
#: On a busy machine everything takes its time.
CONNECT_S = 120.0


@dataclass(slots=True, eq=False)
class Told:
    """One subscription: from where on, and all that came."""

    user: str
    channel: str
    arguments: Mapping[str, Value]
    start: Position
    events: list[ChannelEvent] = field(default_factory=list)
    delays_s: list[float] = field(default_factory=list)
    """From the beginning of an execution to each row of it."""


class Person:
    def __init__(
        self, subscriber: EmergencySubscriber, scenario: EmergencyScenario, coordinator: str
    ) -> None:
        self.told: list[Told] = []
        self._subscriber = subscriber
        self._scenario = scenario
        self._coordinator = coordinator
        self._client: Client | None = None

    async def live(self, pacing: Pacing, is_over: asyncio.Event) -> None:
        """From the login on, until it is over."""
        await pacing.until(self._subscriber.login_s / self._scenario.pace)
        place = self._subscriber.place
        async with contextlib.AsyncExitStack() as stack:
            client = await stack.enter_async_context(
                connect(
                    self._coordinator,
                    name=self._subscriber.user,
                    location=(place.latitude, place.longitude),
                    connect_s=CONNECT_S,
                )
            )
            await client.advertise(
                f"class = '{LOCATION}' and user_id = '{self._subscriber.user}' and"
                " latitude is a number and longitude is a number and at is a number"
            )
            self._client = client
            reading = []
            for subscription in self._subscriber.subscriptions:
                await pacing.until(subscription.at_s / self._scenario.pace)
                events, told = await self._subscribe(stack, client, subscription)
                reading.append(asyncio.create_task(_read(events, told)))
            pacing.subscribed()
            await is_over.wait()
            self._client = None
            for task in reading:
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)

    async def _subscribe(
        self, stack: contextlib.AsyncExitStack, client: Client, wanted: ChannelSubscription
    ) -> tuple[ChannelEvents, Told]:
        names = PARAMETERS[wanted.channel]
        arguments = dict(zip(names, wanted.arguments, strict=True))
        events = client.subscribe_channel(wanted.channel, **arguments)
        await stack.enter_async_context(events)
        await events.in_effect()
        assert events.start is not None, "it is in effect"
        told = Told(self._subscriber.user, wanted.channel, arguments, events.start)
        self.told.append(told)
        return events, told

    async def be_at(self, record: Record) -> None:
        """Say so, if logged in."""
        if self._client is not None:
            await self._client.publish(record)


async def _read(events: ChannelEvents, told: Told) -> None:
    async for event in events:
        told.events.append(event)
        told.delays_s.append(time.time() - event.executed_s)


def all_told(people: Sequence[Person]) -> list[Told]:
    return [told for person in people for told in person.told]
