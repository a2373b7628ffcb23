"""What fails in a storm: a broker, a link, a connection or a client, in a phase of a move."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum
from random import Random

from godwit.broker.stimuli import Neighbour
from godwit.migration.move import Phase
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.storms.storm_clients import StormClient

#: How long a broker is down.  Neighbours wait for ten seconds.
DOWN_S = (0.0, 0.03, 0.3, 3.0)
#: How often the phase is polled, and how long after it has begun the fault happens at most.
POLL_S = 0.0002
LATE_S = 0.004


class StormFault(Enum):
    SOURCE = "the old broker crashes"
    TARGET = "the new broker crashes"
    BETWEEN = "a broker on the path crashes"
    ANYWHERE = "some broker crashes"
    LINK = "a link on the path breaks"
    CONNECTION = "the client's connection breaks"
    CLIENT = "the client dies"


class FaultInjector:
    """Injects faults, and restarts brokers."""

    def __init__(self, network: MemoryNetwork, random: Random) -> None:
        self.happened: list[str] = []
        self._network = network
        self._random = random
        self._restarting: list[asyncio.Task[None]] = []

    async def inject_during(
        self,
        move: asyncio.Task[None],
        phase: Phase | None,
        fault: StormFault,
        client: StormClient,
        source: str,
        target: str,
    ) -> None:
        """Wait for that phase of the client's move, or for its end, and inject the fault."""
        while not move.done() and (  # noqa: ASYNC110  Phases have no event.
            phase is None or client.client.move_phase is not phase
        ):
            await asyncio.sleep(POLL_S)
        await asyncio.sleep(self._random.uniform(0.0, LATE_S))
        now = client.client.move_phase
        moment = "afterwards" if now is None else f"while {now.value}"
        self.happened.append(f"{client.name} {source}->{target}: {fault.value} {moment}")
        self._inject(fault, client, source, target)

    def _inject(self, fault: StormFault, client: StormClient, source: str, target: str) -> None:
        path = self._network.topology.path(source, target)
        match fault:
            case StormFault.SOURCE:
                self.crash(source)
            case StormFault.TARGET:
                self.crash(target)
            case StormFault.BETWEEN:
                self.crash(self._random.choice(path))
            case StormFault.ANYWHERE:
                self.crash(self._random.choice(self._network.topology.brokers))
            case StormFault.LINK if len(path) > 1:
                at = self._random.randrange(len(path) - 1)
                self._network.cut(path[at], Neighbour(path[at + 1]))
            case StormFault.CLIENT:
                client.kill()
            case _:
                if client.client.broker_connection.connection is not None:
                    client.client.broker_connection.connection.lose()

    def crash(self, broker: str, down_s_of: Sequence[float] = DOWN_S) -> None:
        if broker in self._network.nodes:
            self._network.crash(broker)
            down_s = self._random.choice(down_s_of)
            self.happened.append(f"{broker} is down for {down_s:g} s")
            self._restarting.append(asyncio.create_task(self._restart(broker, down_s)))

    async def _restart(self, broker: str, down_s: float) -> None:
        await asyncio.sleep(down_s)
        await self._network.restart(broker)

    async def all_restarted(self) -> None:
        """Wait until all brokers are running."""
        await asyncio.gather(*self._restarting)
