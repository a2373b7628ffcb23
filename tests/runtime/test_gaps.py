"""A part of the network is given up: clients know, before anything is acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest
from tests.asynchronous import until
from tests.runtime.scenes import (
    NUMBERS,
    client_port,
    cut,
    line_of,
    link_port,
    numbers,
    publish,
    publishing,
    subscribed,
)

from godwit.client import Client, Event, Events, Gap, GapReason
from godwit.client.broker_connection import BrokerPlace
from godwit.errors import UsageError
from godwit.overlay.topology import Topology, chain, random_tree
from godwit.runtime.settings import Limits
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.virtual_time import run_in_virtual_time

LIMITS = Limits(link_s=5.0, restart_s=2.0, heartbeat_s=1.0)
DOWN_S = 2 * LIMITS.link_s


def run(scenario: Coroutine[Any, Any, None]) -> None:
    run_in_virtual_time(asyncio.wait_for(scenario, 600.0))


async def gap_of(client: Client, broker: str, *, is_over: bool = False) -> Gap:
    """The gap about a broker, once the client is told."""
    async for gap in client.gaps:
        if gap.broker == broker and gap.is_over is is_over:
            return gap
    raise AssertionError("the client was closed")


def fall_asleep(network: MemoryNetwork, broker: str, neighbour: str) -> None:
    """The neighbour gives a broker up; that one notices no more than a lost connection."""
    port = link_port(network, neighbour, broker)
    port.hang_up()
    network.nodes[neighbour].remove(port, "it was asleep")


# -- publishers --------------------------------------------------------------------------------


def test_a_publisher_knows_of_a_gap_before_what_was_lost_is_acknowledged() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3), limits=LIMITS) as network,
            publishing(network, "B1", "paul") as paul,
            publishing(network, "B2", "petra") as petra,
            subscribed(network, "B3", "alice"),
        ):
            network.crash("B3")
            await petra.publish({"x": 7})
            await publish(paul, range(10))
            (gap,) = paul.gaps.seen
            assert (gap.reason, gap.broker, gap.is_over) == (GapReason.PART_LOST, "B3", False)
            assert (gap.own_lost, gap.lost) == (10, 11), "its own, and those of all publishers"
            assert petra.gaps.seen[0].own_lost == 1
            assert abs(gap.since_s - network.nodes["B2"].now_s()) < 60.0

            await publish(paul, range(3))  # They reach no one, and the gap is still open.
            assert paul.gaps.open == [gap]
            assert network.nodes["B2"].dropped["link lost"] == 11

    run(scenario())


@pytest.mark.parametrize("window_bytes", [1024, 4 * 1024 * 1024], ids=["narrow", "wide"])
def test_the_gap_overtakes_what_is_queued(window_bytes: int) -> None:
    """An acknowledgement does so too: with a full window it would come first."""

    async def scenario() -> None:
        limits = Limits(link_s=5.0, window_bytes=window_bytes, patience_s=60.0)
        async with (
            MemoryNetwork(chain(3), limits=limits) as network,
            publishing(network, "B1", "paul") as paul,
            network.connect("B2", name="petra") as petra,
            subscribed(network, "B1", "bob", "y is a number") as (bob, _),
            subscribed(network, "B3", "alice"),
        ):
            await petra.advertise("y is a number")
            line_of(bob).pause_reading()  # So that B1 does not acknowledge what petra publishes.
            for y in range(100):
                await petra.publish({"y": y}, payload=bytes(1_000))
            network.crash("B3")
            await publish(paul, range(10))
            assert [gap.broker for gap in paul.gaps.seen] == ["B3"]
            line_of(bob).resume_reading()

    run(scenario())


def test_a_publisher_that_was_away_knows_of_the_gap_first() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3), limits=LIMITS) as network,
            publishing(network, "B1", "paul") as paul,
            subscribed(network, "B3", "alice"),
        ):
            network.crash("B3")
            told: list[bool] = []
            paul.gaps.on_gap = lambda _gap: told.append(paul.session.is_idle)
            await paul.publish({"x": 1})
            await until(lambda: link_port(network, "B2", "B3").stream.outstanding > 0)
            home = network.url("B1")
            paul.broker_connection.places[0] = BrokerPlace(home, _never)
            cut(line_of(paul))
            await until(lambda: bool(network.nodes["B1"].broker.parts.missing))
            assert not paul.gaps.seen
            paul.broker_connection.places[0] = BrokerPlace(home, network._resolve(home))
            await paul.flush()
            assert told == [False], "it was told before the acknowledgement"

    run(scenario())


async def _never(_connection: object) -> None:
    raise ConnectionRefusedError


def test_a_client_that_connects_while_a_part_is_missing_is_told() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3), limits=LIMITS) as network,
            publishing(network, "B1", "paul") as paul,
            subscribed(network, "B3", "alice"),
        ):
            network.crash("B3")
            await publish(paul, range(4))
            async with publishing(network, "B1", "petra") as petra:
                await publish(petra, range(2))
                assert [(gap.broker, gap.own_lost) for gap in petra.gaps.seen] == [("B3", 0)]
            with pytest.raises(UsageError, match="closed"):
                await petra.gaps.next()

    run(scenario())


# -- subscribers -------------------------------------------------------------------------------


def test_a_subscriber_on_the_other_side_is_told_as_well() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3), limits=LIMITS) as network,
            publishing(network, "B1", "paul") as paul,
            subscribed(network, "B3", "alice") as (alice, events),
        ):
            network.crash("B2")
            assert (await gap_of(alice, "B2")).reason is GapReason.PART_LOST
            await publish(paul, range(3))
            assert [gap.broker for gap in paul.gaps.open] == ["B2"]

            await network.restart("B2")
            assert (await gap_of(alice, "B2", is_over=True)).broker == "B2"
            await gap_of(paul, "B2", is_over=True)
            assert not alice.gaps.open
            assert not paul.gaps.open
            await publish(paul, range(3, 6))
            assert await numbers(events, 3) == [3, 4, 5]

    run(scenario())


def test_a_subscriber_of_the_broker_that_was_given_up_is_told_when_it_is_back() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3), limits=LIMITS) as network,
            publishing(network, "B1", "paul") as paul,
            subscribed(network, "B3", "alice") as (alice, events),
        ):
            network.crash("B3")
            await publish(paul, range(3))
            await network.restart("B3")
            gap = await anext(aiter(alice.gaps))  # It depends on who is back first.
            assert (gap.reason, gap.broker) in (
                (GapReason.PART_LOST, "B2"),
                (GapReason.SESSION_ENDED, "B3"),
            )
            await gap_of(paul, "B3", is_over=True)
            await until_virtual(lambda: not alice.gaps.open)
            await publish(paul, range(3, 6))
            assert await numbers(events, 3) == [3, 4, 5]

    run(scenario())


def test_a_broker_that_was_asleep_is_told_that_it_was_given_up() -> None:
    """It takes its neighbour for one that has restarted: only that one knows of the gap."""

    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(2), limits=LIMITS) as network,
            publishing(network, "B1", "paul") as paul,
            publishing(network, "B2", "petra") as petra,
            subscribed(network, "B1", "bob"),
            subscribed(network, "B2", "alice") as (alice, _),
        ):
            await publish(paul, range(3))
            fall_asleep(network, "B2", "B1")
            assert link_port(network, "B2", "B1"), "B2 has not given up B1"
            told = await gap_of(alice, "B1")
            assert "given up" in told.detail
            await publish(petra, range(3))
            assert {gap.broker for gap in petra.gaps.seen if not gap.is_over} == {"B1"}
            for client, broker in ((alice, "B1"), (petra, "B1"), (paul, "B2")):
                await gap_of(client, broker, is_over=True)

    run(scenario())


def test_a_subscriber_that_was_too_slow_finds_it_among_its_gaps() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(limits=Limits(client_queue_bytes=8192)) as network,
            publishing(network) as paul,
            subscribed(network, "B1", "alice") as (alice, events),
        ):
            port = client_port(network, "B1", "alice")
            cut(line_of(alice))
            await until(lambda: not port.is_connected)
            await publish(paul, range(100))
            gap = await gap_of(alice, "B1", is_over=True)
            assert (gap.reason, gap.lost) == (GapReason.TOO_SLOW, events.dropped)

    run(scenario())


def test_a_subscriber_whose_session_has_ended_finds_it_among_its_gaps() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork() as network,
            publishing(network) as paul,
            subscribed(network, "B1", "alice") as (alice, events),
        ):
            b1 = network.nodes["B1"]
            for name in ("alice", "paul"):
                b1.remove(client_port(network, "B1", name), "was away for too long")
            gap = await gap_of(alice, "B1")
            assert gap.reason is GapReason.SESSION_ENDED
            await gap_of(alice, "B1", is_over=True)
            await publish(paul, range(3))
            assert await numbers(events, 3) == [0, 1, 2], "over means in effect again"
            assert paul.restarts == 1
            assert not paul.gaps.seen, "it has no subscriptions, so it misses nothing"

    run(scenario())


# -- no gaps -----------------------------------------------------------------------------------


async def _crash_and_come_back(network: MemoryNetwork, _clients: list[Client]) -> None:
    for broker in ("B2", "B3", "B1"):
        network.crash(broker)
        await asyncio.sleep(1.0)
        await network.restart(broker)
        await until(lambda: not any(node.is_recovering for node in network.nodes.values()))


async def _move(network: MemoryNetwork, clients: list[Client]) -> None:
    for client in clients:
        await client.move(network.url("B2"))


async def _drain_a_leaf(network: MemoryNetwork, _clients: list[Client]) -> None:
    await network.add_broker("B9", linked_to="B2")
    async with network.connect("B9", name="eve") as eve, eve.subscribe(NUMBERS) as events:
        await events.in_effect()
        await eve.move(network.url("B2"))
        network.nodes["B9"].is_draining = True
        await network.remove_broker("B9")
        assert not eve.gaps.seen


@pytest.mark.parametrize("happens", [_crash_and_come_back, _move, _drain_a_leaf])
def test_what_loses_nothing_is_no_gap(
    happens: Callable[[MemoryNetwork, list[Client]], Coroutine[Any, Any, None]],
) -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3), limits=LIMITS) as network,
            publishing(network, "B1", "paul") as paul,
            subscribed(network, "B3", "alice") as (alice, events),
        ):
            await publish(paul, range(5))
            await happens(network, [paul, alice])
            await publish(paul, range(5, 10))
            assert await numbers(events, 10) == list(range(10))
            assert [*paul.gaps.seen, *alice.gaps.seen] == []
            assert not any(node.broker.parts.gaps for node in network.nodes.values())

    run(scenario())


# -- a broker leaves ---------------------------------------------------------------------------


def test_a_broker_that_leaves_while_others_rely_on_it_is_a_gap() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3), limits=LIMITS) as network,
            publishing(network, "B1", "paul") as paul,
            subscribed(network, "B3", "alice") as (alice, events),
        ):
            await network.remove_broker("B2")
            await publish(paul, range(3))
            assert [gap.broker for gap in paul.gaps.open] == ["B2"]
            assert "goodbye" in (await gap_of(alice, "B2")).detail
            await network.add_link("B1", "B3")
            await publish(paul, range(3, 6))
            assert not events.waiting or (await anext(events)).content["x"] in (3, 4, 5)

    run(scenario())


def test_a_broker_that_comes_back_elsewhere_ends_the_gap() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3), limits=LIMITS) as network,
            publishing(network, "B1", "paul") as paul,
            subscribed(network, "B3", "alice") as (alice, events),
        ):
            await network.remove_link("B2", "B3")
            await publish(paul, range(3))
            assert [gap.broker for gap in paul.gaps.open] == ["B3"]
            await gap_of(alice, "B2")
            await network.add_link("B3", "B1")
            await gap_of(paul, "B3", is_over=True)
            await gap_of(alice, "B2", is_over=True)  # It is behind B1 now.
            await publish(paul, range(3, 6))
            assert await numbers(events, 3) == [3, 4, 5]
            assert not paul.gaps.open
            assert not alice.gaps.open
            assert not any(node.broker.parts.missing for node in network.nodes.values())

    run(scenario())


def test_a_neighbour_that_does_not_come_after_a_failure_is_a_gap() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3), limits=LIMITS) as network,
            publishing(network, "B1", "paul") as paul,
            subscribed(network, "B3", "alice"),
        ):
            await publish(paul, range(3))
            network.crash("B2")
            network.crash("B3")
            await paul.publish({"x": 3})
            await network.restart("B2")
            await paul.flush()
            assert [gap.broker for gap in paul.gaps.open] == ["B3"]
            await network.restart("B3")
            await gap_of(paul, "B3", is_over=True)

    run(scenario())


# -- the promise, on random networks -----------------------------------------------------------


class Person:
    """Publishes and subscribes, and notes what it was told about each publication."""

    def __init__(self, client: Client, broker: str, events: Events) -> None:
        self.client, self.broker, self.events = client, broker, events
        self.heard: set[tuple[str, object]] = set()
        self.unwarned: list[int] = []
        """Acknowledged, and no gap was open at any time from `publish` to the end of `flush`."""
        self.published = 0
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        event: Event
        async for event in self.events:
            self.heard.add((event.publisher, event.content["x"]))

    async def publish_one(self) -> None:
        gaps, x = self.client.gaps, self.published
        self.published += 1
        was_open, seen = bool(gaps.open), len(gaps.seen)
        await self.client.publish({"x": x}, payload=bytes(100))
        await self.client.flush()
        if not was_open and len(gaps.seen) == seen:
            self.unwarned.append(x)

    async def publish_until(self, end: asyncio.Event, random: Random) -> None:
        while not end.is_set():
            await asyncio.gather(*(self.publish_one() for _ in range(random.randint(1, 5))))
            await asyncio.sleep(random.random() / 2)


async def _disturb(network: MemoryNetwork, topology: Topology, random: Random) -> None:
    for _ in range(4):
        await asyncio.sleep(random.uniform(0.0, 2.0))
        broker = random.choice(topology.brokers)
        down_s = random.choice((1.0, LIMITS.link_s + 0.1, DOWN_S))
        kind = random.choice(("crash", "crash two", "sleep", "cut"))
        if kind.startswith("crash"):
            others = [each for each in topology.brokers if each != broker]
            victims = [broker, *(random.sample(others, 1) if kind == "crash two" else ())]
            for victim in victims:
                network.crash(victim)
            await asyncio.sleep(down_s)
            await asyncio.gather(*map(network.restart, victims))
        elif kind == "sleep":  # The neighbours give it up, and it does not notice.
            (neighbour, *_) = topology.neighbours(broker)
            if any(hop.name == broker for hop in network.nodes[neighbour].ports):
                fall_asleep(network, broker, neighbour)
        else:
            for port in list(network.nodes[broker].ports.values()):
                cut(port.connection)


async def _agree(network: MemoryNetwork, people: list[Person]) -> None:
    """Wait until the network is whole again, and everything has arrived."""
    nodes = network.nodes.values()
    await until_virtual(lambda: not any(n.is_recovering or n.broker.parts.missing for n in nodes))
    await until_virtual(lambda: not any(person.client.gaps.open for person in people))
    await asyncio.sleep(5.0)


async def until_virtual(done: Callable[[], bool]) -> None:
    while not done():  # noqa: ASYNC110  There is no event for it.
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("seed", range(25))
def test_what_was_acknowledged_without_a_gap_has_arrived(seed: int) -> None:
    random = Random(seed)
    topology = random_tree(random.randint(2, 6), random)
    limits = Limits(
        link_s=LIMITS.link_s,
        restart_s=LIMITS.restart_s,
        heartbeat_s=LIMITS.heartbeat_s,
        window_bytes=random.choice((1024, 100_000)),
        patience_s=60.0,
    )

    async def scenario() -> None:
        latency_s = random.choice((0.0, 0.01, 0.1))
        network = MemoryNetwork(
            topology, limits=limits, latency_s=lambda: random.random() * latency_s
        )
        async with network:
            people = [await _person(network, f"c{n}", random) for n in range(4)]
            end = asyncio.Event()
            async with asyncio.TaskGroup() as jobs:
                for person in people:
                    jobs.create_task(person.publish_until(end, random))
                await _disturb(network, topology, random)
                end.set()
            await _agree(network, people)
            for person in people:
                assert len(person.unwarned) + len(person.client.gaps.seen) > 0
                for other in people:
                    assert _is_promised(person, other)
            for person in people:
                await person.client.close()

    run(scenario())


async def _person(network: MemoryNetwork, name: str, random: Random) -> Person:
    broker = random.choice(network.topology.brokers)
    client = await network.connect(broker, name=name).__aenter__()
    await client.advertise(NUMBERS)
    events = await client.subscribe(NUMBERS).__aenter__()
    await events.in_effect()
    return Person(client, broker, events)


def _is_promised(publisher: Person, subscriber: Person) -> bool:
    """Everything that was acknowledged without a gap has arrived, or the subscriber knows."""
    if publisher is subscriber:
        return True
    if any(gap.reason is GapReason.SESSION_ENDED for gap in subscriber.client.gaps.seen):
        return True
    name = publisher.client.name
    missing = [x for x in publisher.unwarned if (name, x) not in subscriber.heard]
    assert not missing, f"{name} was not told that {subscriber.client.name} misses {missing}"
    return True
