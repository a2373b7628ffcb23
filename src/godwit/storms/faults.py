"""What goes wrong in a storm: a broker, a link, a connection or a client, in a phase of a move."""

from __future__ import annotations

import asyncio
from enum import Enum
from random import Random

from godwit.broker.stimuli import Neighbour
from godwit.migration.moving import Phase
from godwit.overlay.topology import Topology
from godwit.storms.people import Person
from godwit.testing import MemoryNetwork

#: How long a broker is gone.  Neighbours wait for ten seconds.
AWAY_S = (0.0, 0.03, 0.3, 3.0)
#: How closely phases are watched, and how long after the beginning of one it strikes at most.
WATCH_S = 0.0002
LATE_S = 0.004


class Fault(Enum):
    SOURCE = "the broker it leaves crashes"
    TARGET = "the broker it moves to crashes"
    BETWEEN = "a broker on its way crashes"
    ANYWHERE = "some broker crashes"
    LINK = "a link on its way breaks"
    LINE = "its connection breaks"
    CLIENT = "it dies"


class Weather:
    """Lets faults happen, and brings brokers back."""

    def __init__(self, topology: Topology, network: MemoryNetwork, random: Random) -> None:
        self.happened: list[str] = []
        self._topology = topology
        self._network = network
        self._random = random
        self._returning: list[asyncio.Task[None]] = []

    async def strike_during(
        self,
        move: asyncio.Task[None],
        phase: Phase | None,
        fault: Fault,
        person: Person,
        source: str,
        target: str,
    ) -> None:
        """Wait for that phase of the person's move, or for its end, and strike."""
        while not move.done() and (  # noqa: ASYNC110  A phase has no event of its own.
            phase is None or person.client.move_phase is not phase
        ):
            await asyncio.sleep(WATCH_S)
        await asyncio.sleep(self._random.uniform(0.0, LATE_S))
        now = person.client.move_phase
        moment = "afterwards" if now is None else f"while {now.value}"
        self.happened.append(f"{person.name} {source}->{target}: {fault.value} {moment}")
        self._strike(fault, person, source, target)

    def _strike(self, fault: Fault, person: Person, source: str, target: str) -> None:
        way = self._topology.path(source, target)
        match fault:
            case Fault.SOURCE:
                self.crash(source)
            case Fault.TARGET:
                self.crash(target)
            case Fault.BETWEEN:
                self.crash(self._random.choice(way))
            case Fault.ANYWHERE:
                self.crash(self._random.choice(self._topology.brokers))
            case Fault.LINK if len(way) > 1:
                at = self._random.randrange(len(way) - 1)
                self._network.cut(way[at], Neighbour(way[at + 1]))
            case Fault.CLIENT:
                person.perish()
            case _:
                if person.client.line.connection is not None:
                    person.client.line.connection.lose()

    def crash(self, broker: str) -> None:
        if broker in self._network.nodes:
            self._network.crash(broker)
            away_s = self._random.choice(AWAY_S)
            self.happened.append(f"{broker} is gone for {away_s:g} s")
            self._returning.append(asyncio.create_task(self._bring_back(broker, away_s)))

    async def _bring_back(self, broker: str, away_s: float) -> None:
        await asyncio.sleep(away_s)
        await self._network.restart(broker)

    async def clear_up(self) -> None:
        """Wait until all brokers are back."""
        await asyncio.gather(*self._returning)
