"""A stage for moves: Paul publishes, subscribes, and moves from B1 over B2 to B3.

    B1 -- B2 -- B3        Alice at B2 subscribes to Paul, and Paul to Peter at B2

Messages of a kind can be held up at a broker, so that a move stops in the phase of one's choice.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import count, pairwise

from godwit.broker.effects import Effect
from godwit.broker.stimuli import (
    ClientLeft,
    Hop,
    LinkDown,
    LinkRestarted,
    LinkUp,
    Neighbour,
    Received,
    Stimulus,
)
from godwit.broker.stimuli import LocalClient as ClientHop
from godwit.client import Client, Events
from godwit.migration.move import Move, Phase
from godwit.overlay.topology import chain
from godwit.runtime.peer_reader import Arrived
from godwit.runtime.port import Port
from godwit.runtime.settings import Limits
from godwit.testing.memory_network import MemoryNetwork

#: Short, so that lost peers are given up soon.
LIMITS = Limits(link_s=0.6, restart_s=0.2, session_s=2.0, heartbeat_s=0.2)
PERIOD_S = 0.002


def _source(stimulus: Stimulus) -> Hop | None:
    match stimulus:
        case Received(last_hop=hop) | ClientLeft(client=hop) | LinkDown(neighbour=hop):
            return hop
        case LinkUp(neighbour=hop) | LinkRestarted(neighbour=hop):
            return hop
    return None


class Voice:
    """Publishes 0, 1, 2, ..., and collects what a subscriber receives of it."""

    def __init__(self, speaker: Client, letter: str, events: Events) -> None:
        self.said = 0
        self.heard: list[int] = []
        self._speaker = speaker
        self._letter = letter
        self._events = events

    async def speak(self) -> None:
        for _ in count():
            self.said += 1  # First: an interrupted publication may have been sent.
            await self._speaker.publish({self._letter: self.said - 1})
            await asyncio.sleep(PERIOD_S)

    async def listen(self) -> None:
        async for event in self._events:
            number = event.content[self._letter]
            assert isinstance(number, int)
            self.heard.append(number)

    async def has_arrived(self, *, since: int = 0) -> None:
        """Wait for the last publication; check order, and completeness from `since` on."""
        while not self.heard or self.heard[-1] < self.said - 1:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        assert all(a < b for a, b in pairwise(self.heard)), "out of order, or twice"
        missing = set(range(since, self.said)) - set(self.heard)
        assert not missing, f"lost: {sorted(missing)[:20]} of {self.said}"


class Stage:
    def __init__(
        self, network: MemoryNetwork, paul: Client, of_paul: Voice, of_peter: Voice
    ) -> None:
        self.network = network
        self.paul = paul
        self.of_paul = of_paul
        self.of_peter = of_peter
        self._talking: list[asyncio.Task[None]] = []

    def start_talking(self) -> None:
        voices = (self.of_paul, self.of_peter)
        self._talking = [asyncio.create_task(voice.speak()) for voice in voices]

    async def stop_talking(self) -> None:
        for task in self._talking:
            task.cancel()
        await asyncio.gather(*self._talking, return_exceptions=True)

    async def everything_arrives(self, *, since: tuple[int, int] = (0, 0)) -> None:
        """After a few more publications; none may be missing from `since` on."""
        await asyncio.sleep(20 * PERIOD_S)
        await self.stop_talking()
        await self.of_paul.has_arrived(since=since[0])
        await self.of_peter.has_arrived(since=since[1])

    @property
    def said(self) -> tuple[int, int]:
        return self.of_paul.said, self.of_peter.said

    @property
    def phase(self) -> Phase | None:
        """The phase of Paul's move, if there is one."""
        return None if self._move is None else self._move.phase

    @property
    def waiting(self) -> int:
        """Publications of the new broker that wait."""
        return 0 if self._move is None else self._move.waiting

    @property
    def _move(self) -> Move | None:
        move = self.paul._mover._move
        return None if move is None else move._move

    @contextlib.contextmanager
    def held_up(self, broker: str, kind: type) -> Iterator[None]:
        """Delay messages of this kind, and everything after them, inside the context."""
        node = self.network.nodes[broker]
        handle, held = node.broker.handle, dict[Hop, list[Stimulus]]()

        def handle_unless(stimulus: Stimulus, *, now_s: float) -> list[Effect]:
            source = _source(stimulus)
            if isinstance(stimulus, Received) and isinstance(stimulus.message, kind):
                held.setdefault(stimulus.last_hop, [])
            if source not in held:
                return handle(stimulus, now_s=now_s)
            held[source].append(stimulus)
            return []

        handle_run = node.broker.handle_run

        def handle_run_unless(
            run: Iterable[Arrived], last_hop: ClientHop | Neighbour, *, now_s: float
        ) -> Iterator[tuple[list[Effect], bytes]]:
            for publication, hops, body in run:
                yield handle_unless(Received(publication, last_hop, hops), now_s=now_s), body

        finish_read = node.finish_read

        def finish_unless(source: Port) -> None:
            if source.hop in held:
                node.outbox.write()  # Delayed messages are not acknowledged.
            else:
                finish_read(source)

        node.broker.handle = handle_unless  # type: ignore[method-assign]
        node.broker.handle_run = handle_run_unless  # type: ignore[method-assign,assignment]
        node.finish_read = finish_unless  # type: ignore[method-assign]
        try:
            yield
        finally:
            node.broker.handle = handle  # type: ignore[method-assign]
            node.broker.handle_run = handle_run  # type: ignore[method-assign]
            node.finish_read = finish_read  # type: ignore[method-assign]
            if self.network.nodes.get(broker) is node:  # Else it crashed.
                for source, stimuli in held.items():
                    for stimulus in stimuli:
                        node.stimulate(stimulus)
                    if source in node.ports:
                        finish_read(node.ports[source])

    def wrong_tables(self, paul_at: str) -> list[str]:
        """What is wrong in the tables of a quiet network."""
        wrong = []
        (paul_says,), (paul_wants,) = (
            self.paul.session.advertisements,
            [held.id for held in self.paul.session.subscriptions.values()],
        )
        for name, node in self.network.nodes.items():
            node.broker.routing.check()
            tables = node.broker.routing.tables()
            hop = tables.advertisements.get(paul_says)
            expected = "paul" if name == paul_at else "B2" if name != "B2" else paul_at
            if hop is None or hop.name != expected:
                wrong.append(f"{name}: {paul_says} is at {hop}, should be {expected}")
            wants = [id for id in tables.subscriptions if id.startswith("paul/")]
            should = [paul_wants] if name in ("B2", paul_at) else []
            if wants != should:
                wrong.append(f"{name}: {wants} of Paul, should be {should}")
        return wrong

    async def settles(self, paul_at: str) -> None:
        """Wait until every broker has Paul at this place, and nowhere else."""
        try:
            async with asyncio.timeout(4.0):
                while self.wrong_tables(paul_at):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError("\n".join(self.wrong_tables(paul_at))) from None


@contextlib.asynccontextmanager
async def stage(limits: Limits = LIMITS, *, fall_back_s: float = 60.0) -> AsyncIterator[Stage]:
    async with (
        MemoryNetwork(chain(3), limits=limits) as network,
        network.connect("B1", name="paul", fall_back_s=fall_back_s) as paul,
        network.connect("B2", name="alice") as alice,
        network.connect("B2", name="peter") as peter,
    ):
        await paul.advertise("x is a number")
        await peter.advertise("y is a number")
        async with alice.subscribe("x is a number") as xs, paul.subscribe("y is a number") as ys:
            await xs.in_effect()
            await ys.in_effect()
            made = Stage(network, paul, Voice(paul, "x", xs), Voice(peter, "y", ys))
            listening = [
                asyncio.create_task(voice.listen()) for voice in (made.of_paul, made.of_peter)
            ]
            made.start_talking()
            try:
                await asyncio.sleep(10 * PERIOD_S)
                yield made
            finally:
                await made.stop_talking()
                for task in listening:
                    task.cancel()
