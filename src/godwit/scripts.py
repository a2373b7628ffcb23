"""A play as data: who is where, and what each client does, in phases.  Two stages play it.

    script = random_script(17)
    play_simulated(script, seen := Deliveries())       # virtual time
    asyncio.run(play_live(script, seen := Deliveries()))    # broker processes on loopback
    seen.by_pair == expected(script)                   # brute force

In a quiet script the network is quiet between phases, and a phase either changes what clients want
and announce or publishes, so what must be delivered is exact.  In a hurried one there is a single
phase, everything overtakes everything, and only the oracle can judge what came of it.

A client does its steps of a phase in order; different clients act at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias, assert_never

from godwit.client import connect
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Publication, SubscriptionId
from godwit.content.values import Value
from godwit.network.processes import Processes
from godwit.network.settings import network_of
from godwit.overlay import Overlay
from godwit.overlay.topology import Topology, random_tree
from godwit.overlay.tree import TreeRouting
from godwit.simulation.clients import SimulatedClient
from godwit.simulation.observers import Observer, Observers
from godwit.simulation.random_content import RandomContent
from godwit.simulation.simulator import Simulator
from godwit.witness import WitnessedClient

ROUNDS = 4
CHANGES_MAX = 16
BURSTS_MAX = 24
#: For one phase, on a machine that is busy with other things.
PHASE_S = 30.0

# What a live stage sends after a phase: when it has come, all that was before it has come too.
_FENCE = "FENCE"
_FENCE_FILTER = Filter.parse(f"class = '{_FENCE}' and after is present")


@dataclass(frozen=True, slots=True)
class Advertise:
    filter: Filter


@dataclass(frozen=True, slots=True)
class Unadvertise:
    number: int
    """Which of the client's advertisements, counted from 0."""


@dataclass(frozen=True, slots=True)
class Subscribe:
    filter: Filter


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    number: int
    """Which of the client's subscriptions, counted from 0."""


@dataclass(frozen=True, slots=True)
class Publish:
    content: dict[str, Value]
    number: int
    """Under which of the client's advertisements, counted from 0."""


Step: TypeAlias = Advertise | Unadvertise | Subscribe | Unsubscribe | Publish
Phase: TypeAlias = Sequence[tuple[str, Step]]
"""Who does what."""

Pairs: TypeAlias = dict[tuple[str, str], list[int]]
"""(Subscriber, publisher) -> which of the publisher's publications came, counted from 0."""


@dataclass(frozen=True, slots=True)
class Script:
    seed: int
    topology: Topology
    broker_of: dict[str, str]
    """Client -> where it is attached."""

    phases: Sequence[Phase]


def random_script(seed: int, *, brokers: int | None = None, is_quiet: bool = True) -> Script:
    random = Random(seed)
    topology = random_tree(brokers or random.randint(2, 12), random)
    names = [f"c{number}" for number in range(random.randint(3, 8))]
    author = _Author(names, random)
    phases = [author.opening()]
    for _ in range(ROUNDS):
        phases += [author.changes(), author.publications()]
    if not is_quiet:
        phases = [[step for phase in phases for step in phase]]
    return Script(seed, topology, {name: random.choice(topology.brokers) for name in names}, phases)


class _Author:
    """Writes phases, and knows what its characters hold."""

    def __init__(self, names: Sequence[str], random: Random) -> None:
        self._names = names
        self._random = random
        self._content = RandomContent(random.choice((("class", "name", "size"), ("size",))), random)
        self._advertised: dict[str, dict[int, Filter]] = {name: {} for name in names}
        self._subscribed: dict[str, list[int]] = {name: [] for name in names}
        self._serial: defaultdict[tuple[str, type[Step]], int] = defaultdict(int)

    def opening(self) -> Phase:
        """Half of them advertise, or half of the play would pass before anyone can publish."""
        phase = []
        for name in self._names[::2]:
            filter = self._content.filter(every_attribute=True)
            if filter.is_satisfiable:
                phase.append((name, self._advertise(name, filter)))
        return phase

    def changes(self) -> Phase:
        phase = []
        for _ in range(self._random.randint(CHANGES_MAX // 2, CHANGES_MAX)):
            name = self._random.choice(self._names)
            step = self._change(name)
            if step is not None:
                phase.append((name, step))
        return phase

    def _change(self, name: str) -> Step | None:
        draw = self._random
        kind = draw.choices((Subscribe, Unsubscribe, Advertise, Unadvertise), (6, 3, 3, 1))[0]
        subscribed, advertised = self._subscribed[name], self._advertised[name]
        if kind is Unsubscribe and subscribed:
            return Unsubscribe(subscribed.pop(draw.randrange(len(subscribed))))
        if kind is Unadvertise and advertised:
            number = draw.choice(list(advertised))
            del advertised[number]
            return Unadvertise(number)
        filter = self._content.filter(every_attribute=kind is Advertise)
        if not filter.is_satisfiable:
            return None
        if kind is Advertise:
            return self._advertise(name, filter)
        subscribed.append(self._next(name, Subscribe))
        return Subscribe(filter)

    def _advertise(self, name: str, filter: Filter) -> Advertise:
        self._advertised[name][self._next(name, Advertise)] = filter
        return Advertise(filter)

    def _next(self, name: str, kind: type[Step]) -> int:
        self._serial[name, kind] += 1
        return self._serial[name, kind] - 1

    def publications(self) -> Phase:
        phase = []
        for _ in range(self._random.randint(BURSTS_MAX // 2, BURSTS_MAX)):
            name = self._random.choice(self._names)
            if not self._advertised[name]:
                continue
            number, filter = self._random.choice(list(self._advertised[name].items()))
            for _ in range(self._random.randint(1, 8)):
                content = self._content.content(filter)
                if filter.permits(content):
                    phase.append((name, Publish(content, number)))
        return phase


def expected(script: Script) -> Pairs:
    """What a quiet script must deliver, by evaluating every filter for every publication."""
    subscribed: dict[str, list[Filter | None]] = {name: [] for name in script.broker_of}
    published: defaultdict[str, int] = defaultdict(int)
    pairs: Pairs = {}
    for name, step in (acted for phase in script.phases for acted in phase):
        match step:
            case Subscribe(filter=filter):
                subscribed[name].append(filter)
            case Unsubscribe(number=number):
                subscribed[name][number] = None
            case Publish(content=content):
                for other, filters in subscribed.items():
                    if other != name and any(f is not None and f.matches(content) for f in filters):
                        pairs.setdefault((other, name), []).append(published[name])
                published[name] += 1
            case Advertise() | Unadvertise():
                pass
            case _:
                assert_never(step)
    return pairs


class Deliveries(Observer):
    """Notes who received what, in the order in which it came."""

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


# -- the simulated stage -----------------------------------------------------------------------


def play_simulated(
    script: Script, *observers: Observer, overlay: Overlay = TreeRouting
) -> Simulator:
    simulator = Simulator(script.topology, seed=script.seed, observers=observers, overlay=overlay)
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
            case Advertise(filter=filter):
                self._advertisements.append(client.advertise(filter))
            case Unadvertise(number=number):
                client.unadvertise(self._advertisements[number])
            case Subscribe(filter=filter):
                self._subscriptions.append(client.subscribe(filter))
            case Unsubscribe(number=number):
                client.unsubscribe(self._subscriptions[number])
            case Publish(content=content, number=number):
                client.publish(self._advertisements[number], content)
            case _:
                assert_never(step)


# -- the live stage ----------------------------------------------------------------------------


async def play_live(script: Script, *observers: Observer) -> dict[str, int]:
    """Play through broker processes of its own; the answer is their exit codes."""
    async with Processes(network_of(script.topology)) as running:
        await play_through(running.url, script, *observers)
        return await running.stop()


async def play_through(url_of: Callable[[str], str], script: Script, *observers: Observer) -> None:
    """Play through brokers that run already, at these addresses."""
    fence = _Fence()
    observer = Observers((*observers, fence))
    async with contextlib.AsyncExitStack() as clients:
        actors: dict[str, _LiveActor] = {}
        for name, at in script.broker_of.items():
            client = await clients.enter_async_context(connect(url_of(at), name=name))
            actors[name] = _LiveActor(WitnessedClient(client, observer))
            clients.push_async_callback(actors[name].client.close)
        async with asyncio.timeout(PHASE_S):
            await _together(actor.client.subscribe(_FENCE_FILTER) for actor in actors.values())
            await _together(actor.client.advertise(_FENCE_FILTER) for actor in actors.values())
        for number, phase in enumerate(script.phases):
            async with asyncio.timeout(PHASE_S):
                await _together(
                    actor.act_all(_steps(phase, name)) for name, actor in actors.items()
                )
                await fence.pass_all(list(actors.values()), number)


def _steps(phase: Phase, name: str) -> list[Step]:
    return [step for actor, step in phase if actor == name]


async def _together(doings: Iterable[Awaitable[object]]) -> None:
    await asyncio.gather(*doings)


class _LiveActor:
    def __init__(self, client: WitnessedClient) -> None:
        self.client = client
        self._advertisements: list[AdvertisementId] = []
        self._subscriptions: list[SubscriptionId] = []

    async def act_all(self, steps: Sequence[Step]) -> None:
        for step in steps:
            await self._act(step)
        await self.client.client.flush()  # What was withdrawn is withdrawn now.

    async def _act(self, step: Step) -> None:
        client = self.client
        match step:
            case Advertise(filter=filter):
                self._advertisements.append(await client.advertise(filter))
            case Unadvertise(number=number):
                await client.unadvertise(self._advertisements[number])
            case Subscribe(filter=filter):
                self._subscriptions.append(await client.subscribe(filter))
            case Unsubscribe(number=number):
                await client.unsubscribe(self._subscriptions[number])
            case Publish(content=content):  # A client finds the advertisement by itself.
                await client.publish(content)
            case _:
                assert_never(step)


class _Fence(Observer):
    """Everybody sends everybody a last word: when all have come, nothing else is under way."""

    def __init__(self) -> None:
        self._missing = 0
        self._passed = asyncio.Event()

    async def pass_all(self, actors: Sequence[_LiveActor], number: int) -> None:
        self._missing = len(actors) * (len(actors) - 1)
        self._passed.clear()
        for actor in actors:
            await actor.client.publish({"class": _FENCE, "after": number})
        await self._passed.wait()

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        if publication.content.get("class") == _FENCE:
            self._missing -= len(clients)
            if not self._missing:
                self._passed.set()
