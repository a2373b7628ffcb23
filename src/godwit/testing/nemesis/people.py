"""A client through all its lives: acts by its plan, crashes, and comes back under its name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import assert_never

from godwit.content.filters import Filter
from godwit.simulation.oracle import Oracle
from godwit.testing.nemesis.journal import Journal
from godwit.testing.nemesis.lives import FENCE_FILTER, Life, LifeObserver
from godwit.testing.nemesis.nemesis_plan import MoveStep, NemesisStep, PersonPlan
from godwit.testing.scripts import (
    AdvertiseStep,
    PublishStep,
    SubscribeStep,
    UnadvertiseStep,
    UnsubscribeStep,
)

#: The number of the fence among advertisements and subscriptions.
_FENCE = -1


class Person:
    def __init__(
        self,
        plan: PersonPlan,
        url_of: Callable[[str], str],
        journal: Journal,
        oracle: Oracle,
        on_fence: Callable[[str, str, int], None],
    ) -> None:
        self.name = plan.name
        self.life: Life | None = None
        """None while it is down, and until it has connected."""
        self._plan = plan
        self._url_of = url_of
        self._journal = journal
        self._oracle = oracle
        self._on_fence = on_fence
        self._lives = 0
        self._advertised: dict[int, Filter] = {_FENCE: FENCE_FILTER}
        self._subscribed: dict[int, Filter] = {_FENCE: FENCE_FILTER}
        self._next_advertisement = self._next_subscription = 0
        self._one_at_a_time = asyncio.Lock()

    async def begin_life(self, broker: str) -> None:
        """Connect under its name, and ask for all that it advertises and subscribes to."""
        self._lives += 1
        key = f"{self.name}~{self._lives}"
        observer = LifeObserver(key, self._oracle, self._on_fence)
        life = Life(key, self.name, self._journal, observer)
        await life.connect(self._url_of(broker), broker)
        for number, filter in self._advertised.items():
            life.advertise(number, filter)
        for number, filter in self._subscribed.items():
            life.subscribe(number, filter)
        await asyncio.sleep(0)  # Asked for, though not in effect.
        self.life = life

    async def crash(self, *, down_s: float, back_at: str | None) -> None:
        """Crash, and come back: where it was, unless another broker is given."""
        async with self._one_at_a_time:
            if self.life is None:
                return
            life, self.life = self.life, None
            self._journal.note(f"{life.key} crashes")
            await life.crash()
            await asyncio.sleep(down_s)
            await self.begin_life(back_at or life.broker)

    async def act_all(self) -> None:
        """The whole plan, from the start on."""
        start_s = self._journal.now_s()
        async with self._one_at_a_time:
            await self.begin_life(self._plan.home)
        for at_s, step in self._plan.steps:
            await asyncio.sleep(max(0.0, start_s + at_s - self._journal.now_s()))
            await self._act(step)

    async def _act(self, step: NemesisStep) -> None:
        life = self.life
        match step:
            case AdvertiseStep(filter=filter):
                number = self._next_advertisement
                self._next_advertisement += 1
                self._advertised[number] = filter
                if life is not None:
                    life.advertise(number, filter)
                    await asyncio.sleep(0)
            case UnadvertiseStep(number=number):
                del self._advertised[number]
                if life is not None:
                    life.unadvertise(number)
            case SubscribeStep(filter=filter):
                number = self._next_subscription
                self._next_subscription += 1
                self._subscribed[number] = filter
                if life is not None:
                    life.subscribe(number, filter)
            case UnsubscribeStep(number=number):
                del self._subscribed[number]
                if life is not None:
                    life.unsubscribe(number)
            case PublishStep(content=content):
                if life is not None:
                    await life.publish(content)
            case MoveStep(broker=broker):
                if life is not None:
                    life.move(self._url_of(broker), broker)
            case _:
                assert_never(step)

    async def close(self) -> None:
        if self.life is not None:
            await self.life.close()
