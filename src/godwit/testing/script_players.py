"""Plays a script in the simulator, and through live brokers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import assert_never

from godwit.client import connect
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Publication, SubscriptionId
from godwit.overlay import Overlay
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.runtime.processes import Processes
from godwit.runtime.settings import network_of
from godwit.simulation.observers import Observer, Observers
from godwit.simulation.simulated_client import SimulatedClient
from godwit.simulation.simulator import Simulator
from godwit.testing.overlay_shapes import clusters_for, has_clusters, shape_for
from godwit.testing.scripts import (
    AdvertiseStep,
    Pairs,
    Phase,
    PublishStep,
    Script,
    Step,
    SubscribeStep,
    UnadvertiseStep,
    UnsubscribeStep,
)
from godwit.testing.witness import WitnessedClient

#: For one phase, on a busy machine.
PHASE_S = 30.0

# What a live player sends after a phase: when it has arrived, all that was sent before has, too.
_FENCE = "FENCE"
_FENCE_FILTER = Filter.parse(f"class = '{_FENCE}' and after is present")


class Deliveries(Observer):
    """Records which client received what, in order of arrival."""

    def __init__(self) -> None:
        self.by_pair: Pairs = {}
        self._numbers: dict[str, dict[int, int]] = {}

    def on_published(self, publication: Publication, now_s: float) -> None:
        if publication.content.get("class") != _FENCE:
            numbers = self._numbers.setdefault(publication.publisher, {})
            numbers[publication.sequence] = len(numbers)

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        if publication.content.get("class") == _FENCE:
            return
        number = self._numbers[publication.publisher][publication.sequence]
        for client in clients:
            self.by_pair.setdefault((client, publication.publisher), []).append(number)


# -- simulated ---------------------------------------------------------------------------------


def play_simulated(
    script: Script, *observers: Observer, overlay: Overlay = TreeRouting
) -> Simulator:
    topology, settings, modules = shape_for(overlay, script.topology, seed=script.seed)
    simulator = Simulator(
        topology,
        seed=script.seed,
        observers=observers,
        overlay=overlay,
        settings=settings,
        modules=modules,
    )
    actors = {
        name: _SimulatedActor(simulator.client(name, at=at))
        for name, at in script.broker_of.items()
    }
    for phase in script.phases:
        for name, step in phase:
            actors[name].act(step)
        simulator.run()
    return simulator


class _SimulatedActor:
    def __init__(self, client: SimulatedClient) -> None:
        self._client = client
        self._advertisements: list[AdvertisementId] = []
        self._subscriptions: list[SubscriptionId] = []

    def act(self, step: Step) -> None:
        client = self._client
        match step:
            case AdvertiseStep(filter=filter):
                self._advertisements.append(client.advertise(filter))
            case UnadvertiseStep(number=number):
                client.unadvertise(self._advertisements[number])
            case SubscribeStep(filter=filter):
                self._subscriptions.append(client.subscribe(filter))
            case UnsubscribeStep(number=number):
                client.unsubscribe(self._subscriptions[number])
            case PublishStep(content=content, number=number):
                client.publish(self._advertisements[number], content)
            case _:
                assert_never(step)


# -- live --------------------------------------------------------------------------------------


async def play_live(
    script: Script, *observers: Observer, overlay: Overlay = TreeRouting
) -> dict[str, int]:
    """Play through new broker processes; returns their exit codes."""
    clusters = None
    if has_clusters(overlay):
        clusters = clusters_for(script.topology, seed=script.seed)
    async with Processes(network_of(script.topology, clusters=clusters)) as running:
        await play_through(running.url, script, *observers)
        return await running.stop()


async def play_through(url_of: Callable[[str], str], script: Script, *observers: Observer) -> None:
    """Play through brokers that are running, at these addresses."""
    fence = _Fence()
    observer = Observers((*observers, fence))
    async with contextlib.AsyncExitStack() as clients:
        actors: dict[str, _LiveActor] = {}
        for name, at in script.broker_of.items():
            client = WitnessedClient(connect(url_of(at), name=name), observer)
            actors[name] = _LiveActor(await clients.enter_async_context(client))
        async with asyncio.timeout(PHASE_S):
            await asyncio.gather(*(a.client.subscribe(_FENCE_FILTER) for a in actors.values()))
            await asyncio.gather(*(a.client.advertise(_FENCE_FILTER) for a in actors.values()))
        for number, phase in enumerate(script.phases):
            async with asyncio.timeout(PHASE_S):
                await asyncio.gather(
                    *(actor.act_all(_steps(phase, name)) for name, actor in actors.items())
                )
                await fence.pass_all([actor.client for actor in actors.values()], number)


def _steps(phase: Phase, name: str) -> list[Step]:
    return [step for actor, step in phase if actor == name]


class _LiveActor:
    def __init__(self, client: WitnessedClient) -> None:
        self.client = client
        self._advertisements: list[AdvertisementId] = []
        self._subscriptions: list[SubscriptionId] = []

    async def act_all(self, steps: Sequence[Step]) -> None:
        for step in steps:
            await self._act(step)
        await self.client.client.flush()  # Withdrawals are not confirmed; this waits for them.

    async def _act(self, step: Step) -> None:
        client = self.client
        match step:
            case AdvertiseStep(filter=filter):
                self._advertisements.append(await client.advertise(filter))
            case UnadvertiseStep(number=number):
                await client.unadvertise(self._advertisements[number])
            case SubscribeStep(filter=filter):
                self._subscriptions.append(await client.subscribe(filter))
            case UnsubscribeStep(number=number):
                await client.unsubscribe(self._subscriptions[number])
            case PublishStep(content=content):  # The client finds the advertisement.
                await client.publish(content)
            case _:
                assert_never(step)


class _Fence(Observer):
    """Each client sends all others a publication; when all have arrived, the network is quiet."""

    def __init__(self) -> None:
        self._missing = 0
        self._passed = asyncio.Event()

    async def pass_all(self, clients: Sequence[WitnessedClient], number: int) -> None:
        self._missing = len(clients) * (len(clients) - 1)
        self._passed.clear()
        for client in clients:
            await client.publish({"class": _FENCE, "after": number})
        await self._passed.wait()

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        if publication.content.get("class") == _FENCE:
            self._missing -= len(clients)
            if not self._missing:
                self._passed.set()
