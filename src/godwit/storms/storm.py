"""One storm: a random tree of brokers, people who move about in it, and faults on their way.

The promise, of which `docs/applications.md` says what it takes: whatever fails, everything that is
published reaches everybody who asked for it, once and in publisher order.  Of a client that dies,
everything that was acknowledged does.  Every move ends at one of its two brokers, and when all is
quiet the tables of all brokers are those of a network in which nothing ever failed.
"""

from __future__ import annotations

import asyncio
import random as everybody
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from godwit.migration.moving import Phase
from godwit.network.settings import Limits
from godwit.overlay.topology import Topology, random_tree
from godwit.storms.checking import flaws, in_two_places, wrong_tables
from godwit.storms.clock import run_at_once
from godwit.storms.faults import Fault, Weather
from godwit.storms.people import Person
from godwit.testing import MemoryNetwork

TALK_S = 1.0
#: For everything that waits to give up; much longer than any limit of a broker.
QUIET_S = 300.0
PHASES = (Phase.SUBSCRIBING, Phase.SWEEPING, Phase.PAUSING, Phase.TURNING, None)


@dataclass
class Storm:
    seed: int
    brokers: int = 0
    publications: int = 0
    deliveries: int = 0
    moved: int = 0
    stayed: int = 0
    happened: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def is_flawless(self) -> bool:
        return not self.wrong

    def __str__(self) -> str:
        counts = (
            f"storm {self.seed}: {self.brokers} brokers, {self.publications} publications,"
            f" {self.deliveries} deliveries, {self.moved} moves, {self.stayed} that led nowhere"
        )
        return "\n".join([counts, *self.happened, *(f"WRONG: {each}" for each in self.wrong)])


def storm(seed: int, *, limits: Limits | None = None) -> Storm:
    """The storm of this seed, always the same, and what it broke."""
    everybody.seed(seed)  # Pauses between calls are drawn from there.
    return run_at_once(_storm(Storm(seed), Random(seed), limits))


async def _storm(result: Storm, random: Random, limits: Limits | None) -> Storm:
    topology = random_tree(random.randint(2, 7), random)
    result.brokers = len(topology.brokers)
    latency_s = random.choice((0.0001, 0.002))
    async with MemoryNetwork(
        topology, limits=limits, latency_s=lambda: random.uniform(0.0, latency_s)
    ) as network:
        names = [f"c{number}" for number in range(random.randint(2, 5))]
        people = [Person(name, network, random.choice(topology.brokers), random) for name in names]
        weather = Weather(topology, network, random)
        for person in people:
            await person.settle_in(names)
        until_s = asyncio.get_running_loop().time() + TALK_S
        async with asyncio.TaskGroup() as group:
            for person in people:
                group.create_task(person.talk(until_s))
            group.create_task(_moves(people, topology, weather, random))
        await weather.clear_up()
        result.happened = weather.happened
        await _until_quiet(result, topology, network, people)
        if result.is_flawless:
            await _once_more(result, topology, people, random)
            await _until_quiet(result, topology, network, people)
        _count(result, people)
        for person in people:
            await person.leave()
    return result


async def _moves(
    people: list[Person], topology: Topology, weather: Weather, random: Random
) -> None:
    """A few moves, some at the same time; one of them meets a fault, others may."""
    moves = random.randint(2, 4)
    is_struck = False
    async with asyncio.TaskGroup() as group:
        while moves and not all(person.is_gone for person in people):
            await asyncio.sleep(random.uniform(0.0, TALK_S / 3))
            at_home = [p for p in people if not p.is_gone and p.client.move_phase is None]
            if not at_home:
                continue
            moves -= 1
            person = random.choice(at_home)
            source = person.client.session.broker
            target = random.choice([b for b in topology.brokers if b != source])
            move = group.create_task(person.move(target))
            if random.random() < 0.3 or (moves == 0 and not is_struck):
                is_struck = True
                fault, phase = random.choice(list(Fault)), random.choice(PHASES)
                journey = (person, source, target)
                group.create_task(weather.strike_during(move, phase, fault, *journey))


async def _once_more(
    result: Storm, topology: Topology, people: list[Person], random: Random
) -> None:
    """Everybody says a word, moves and says another one: there is nothing in the way any more."""
    for person in people:
        if person.is_gone:
            continue
        source, stayed = person.client.session.broker, person.stayed
        await person.talk(asyncio.get_running_loop().time() + 0.1)
        await person.move(random.choice([b for b in topology.brokers if b != source]), within_s=5.0)
        await person.talk(asyncio.get_running_loop().time() + 0.1)
        if person.stayed > stayed:
            result.wrong.append(f"{person.name} cannot leave {source} though nothing fails")


async def _until_quiet(
    result: Storm, topology: Topology, network: MemoryNetwork, people: list[Person]
) -> None:
    """Wait until all is acknowledged and every table is right; note what is not in the end."""
    present = [person for person in people if not person.is_gone]
    sessions = [person.client.session for person in present]

    def trouble() -> list[str]:
        busy = [f"{s.name} waits" for s in sessions if not s.is_idle or s.is_moving]
        return busy or wrong_tables(topology, network, sessions) or in_two_places(network, sessions)

    if await _comes_true(lambda: not trouble()):
        # What was acknowledged has been received, but maybe not read.
        await asyncio.sleep(1.0)
    else:
        result.wrong += trouble()
    for hearer in present:
        for speaker in people:
            said, heard = speaker.words_for(hearer), hearer.heard.get(speaker.name, [])
            may_miss = 0
            if speaker.is_gone:
                first = len(speaker.said) - speaker.unacknowledged_at_end
                may_miss = sum(1 for number in said if number >= first)
            found = flaws(heard, said, may_miss=may_miss)
            result.wrong += [f"{hearer.name} heard {speaker.name}: {flaw}" for flaw in found]


async def _comes_true(is_so: Callable[[], bool]) -> bool:
    loop = asyncio.get_running_loop()
    end_s = loop.time() + QUIET_S
    while not is_so():
        if loop.time() > end_s:
            return False
        await asyncio.sleep(0.5)
    return True


def _count(result: Storm, people: list[Person]) -> None:
    result.publications = sum(len(person.said) for person in people)
    result.deliveries = sum(len(each) for person in people for each in person.heard.values())
    result.moved = sum(person.moved for person in people)
    result.stayed = sum(person.stayed for person in people)
