"""A client through all its lives: acts by its plan, crashes, and comes back under its name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import assert_never

from godwit.content.filters import Filter
from godwit.simulation.oracle import Oracle
from godwit.testing.nemesis.journal import CONTEST_S, Journal
from godwit.testing.nemesis.lives import FENCE_FILTER, POLL_S, Life, LifeObserver
from godwit.testing.nemesis.memory_fleet import Fleet
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
        fleet: Fleet,
        journal: Journal,
        oracle: Oracle,
        on_fence: Callable[[str, str, int], None],
    ) -> None:
        self.name = plan.name
        self.life: Life | None = None
        """None while it is down, and until it has connected."""
        self._plan = plan
        self._fleet = fleet
        self._journal = journal
        self._oracle = oracle
        self._on_fence = on_fence
        self._lives = 0
        self._contested_s = -inf
        self._untold: set[Life] = set()
        self._watching: set[asyncio.Task[None]] = set()
        self._advertised: dict[int, Filter] = {_FENCE: FENCE_FILTER}
        self._subscribed: dict[int, Filter] = {_FENCE: FENCE_FILTER}
        self._next_advertisement = self._next_subscription = 0
        self._one_at_a_time = asyncio.Lock()

    async def begin_life(self, broker: str) -> None:
        """Connect under its name, and ask for all that it advertises and subscribes to."""
        life = self._new_life()
        await life.connect(self._fleet.url(broker), broker)
        await self._continue_as(life)

    def _new_life(self) -> Life:
        self._lives += 1
        key = f"{self.name}~{self._lives}"
        observer = LifeObserver(key, self._oracle, self._on_fence)
        return Life(key, self.name, self._journal, observer, self._fleet)

    async def _continue_as(self, life: Life) -> None:
        asked: set[int] = set()
        while missing := self._advertised.keys() - asked:
            for number in missing:
                life.advertise(number, self._advertised[number])
            asked |= missing
            await asyncio.sleep(0)  # Asked for, though not in effect.  The script may go on.
        for number in asked - self._advertised.keys():
            life.unadvertise(number)
        for number, filter in self._subscribed.items():
            life.subscribe(number, filter)
        self.life = life
        watching = asyncio.create_task(self._on_taken_over(life))
        self._watching.add(watching)
        watching.add_done_callback(self._watching.discard)

    async def _on_taken_over(self, life: Life) -> None:
        """A life that has lost its name ends; if there is no other one, the next one begins."""
        await life.is_taken_over.wait()
        self._untold.discard(life)
        await life.crash()
        if self.life is not life:
            return
        self.life = None
        if self._journal.now_s() > self._contested_s + CONTEST_S and not self._untold:
            self._journal.problem(f"{life.key} was taken over, and there is no other {self.name}")
        async with self._one_at_a_time:
            if self.life is None:
                await self._end_others()
                await self.begin_life(life.broker)

    async def _end_others(self) -> None:
        """Where two had the name in two parts of the network, either may have kept it."""
        for other in self._untold:
            await other.crash()
        self._untold.clear()

    async def meet_rival(self, broker: str, *, take_over: bool) -> None:
        """Another client of this name connects; if it may, it goes on in place of this one."""
        async with self._one_at_a_time:
            first, life = self.life, self._new_life()
            if first is None:
                return
            self._contested_s = self._journal.now_s()
            # While the network is in parts both may have the name; one loses it when they meet.
            for each in (first, life):
                each.record.contests_s.append(self._contested_s)
            url = self._fleet.url(broker)
            if await life.try_to_connect(url, broker, take_over=take_over):
                self._journal.counts["took over"] += 1
                if not first.is_over:
                    self._untold.add(first)
                    first.stop_expecting()
                await self._continue_as(life)
            else:
                self._journal.counts["refused"] += 1

    async def is_up(self, *, within_s: float) -> bool:
        """Whether it is connected, or will be before long."""
        until_s = self._journal.now_s() + within_s
        while self.life is None and self._journal.now_s() < until_s:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
        return self.life is not None

    async def is_alone(self, broker: str) -> bool:
        """Whether a second client of this name is refused, as it must be when all is quiet."""
        life = self._new_life()
        if not await life.try_to_connect(self._fleet.url(broker), broker):
            return True
        await life.crash()
        return False

    @property
    def untold(self) -> list[str]:
        """Lives that have lost their name, and were not told."""
        return [life.key for life in self._untold]

    async def crash(self, *, down_s: float, back_at: str | None) -> None:
        """Crash, and come back: where it was, unless another broker is given."""
        async with self._one_at_a_time:
            if self.life is None:
                return
            life, self.life = self.life, None
            self._journal.note(f"{life.key} crashes")
            await life.crash()
            await self._end_others()
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
                    life.move(self._fleet.url(broker), broker)
            case _:
                assert_never(step)

    async def close(self) -> None:
        for task in self._watching:
            task.cancel()
        if self.life is not None:
            await self.life.close()
