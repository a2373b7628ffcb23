"""Subscribers: each logs in, publishes its location, subscribes, and records what it receives."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from godwit.client import ChannelEvent, ChannelEvents, Client, connect
from godwit.content.channel_messages import Position
from godwit.content.values import Record, Value
from godwit.demos.emergencies.pacing import Pacing
from godwit.demos.emergencies.scenario import EmergencyScenario
from godwit.workloads.emergencies import EmergencySubscriber, EmergencySubscription
from godwit.workloads.emergency_channels import CHANNELS, LOCATION

PARAMETERS = {channel.name: [name for name, _ in channel.parameters] for channel in CHANNELS}
#: Generous, for a busy machine.
CONNECT_S = 120.0


@dataclass(slots=True, eq=False)
class SubscriptionLog:
    """One subscription: where it starts, and all that it received."""

    user: str
    channel: str
    arguments: Mapping[str, Value]
    start: Position
    events: list[ChannelEvent] = field(default_factory=list)
    delays_s: list[float] = field(default_factory=list)
    """For each row, the time since the start of its execution."""


class LiveSubscriber:
    def __init__(
        self, subscriber: EmergencySubscriber, scenario: EmergencyScenario, coordinator: str
    ) -> None:
        self.logs: list[SubscriptionLog] = []
        self._subscriber = subscriber
        self._scenario = scenario
        self._coordinator = coordinator
        self._client: Client | None = None

    async def run(self, pacing: Pacing, is_over: asyncio.Event) -> None:
        """From the login to the end of the scenario."""
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
                events, log = await self._subscribe(stack, client, subscription)
                reading.append(asyncio.create_task(_read(events, log)))
            pacing.subscribed()
            await is_over.wait()
            self._client = None
            for task in reading:
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)

    async def _subscribe(
        self, stack: contextlib.AsyncExitStack, client: Client, wanted: EmergencySubscription
    ) -> tuple[ChannelEvents, SubscriptionLog]:
        names = PARAMETERS[wanted.channel]
        arguments = dict(zip(names, wanted.arguments, strict=True))
        events = client.subscribe_channel(wanted.channel, **arguments)
        await stack.enter_async_context(events)
        await events.in_effect()
        assert events.start is not None, "it is in effect"
        log = SubscriptionLog(self._subscriber.user, wanted.channel, arguments, events.start)
        self.logs.append(log)
        return events, log

    async def publish_location(self, record: Record) -> None:
        """Ignored unless logged in."""
        if self._client is not None:
            await self._client.publish(record)


async def _read(events: ChannelEvents, log: SubscriptionLog) -> None:
    async for event in events:
        log.events.append(event)
        log.delays_s.append(time.time() - event.executed_s)


def all_deliveries(subscribers: Sequence[LiveSubscriber]) -> list[SubscriptionLog]:
    return [log for subscriber in subscribers for log in subscriber.logs]
