"""Who waits for whom: publishers for a slow subscriber, for a while, and nobody for ever."""

from __future__ import annotations

import asyncio

import pytest
from tests.asynchronous import run, until
from tests.runtime.scenes import (
    NUMBERS,
    client_port,
    line_of,
    link_port,
    numbers,
    port_of,
    publish,
    publishing,
    subscribed,
    waiters,
)

from godwit.client import Client, Events
from godwit.content.filters import Filter
from godwit.overlay.topology import chain, star
from godwit.protocol import connection
from godwit.runtime.settings import Limits
from godwit.testing.memory_network import MemoryNetwork

#: Everything is congested soon, and a slow subscriber is never isolated.
PATIENT = Limits(window_bytes=1024, patience_s=60)
#: ... is isolated at once, and keeps little.
IMPATIENT = Limits(window_bytes=1024, patience_s=0.02, client_queue_bytes=8192)


@pytest.fixture(autouse=True)
def _brief_farewells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LINGER_S", 0.01)


@pytest.mark.parametrize("home", ["B1", "B2"])
def test_a_slow_subscriber_within_patience_loses_nothing(home: str) -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(2), limits=PATIENT) as network,
            publishing(network, "B1") as paul,
            subscribed(network, home, "alice") as (alice, events),
        ):
            line_of(alice).pause_reading()
            job = asyncio.create_task(publish(paul, range(5_000)))
            source = port_of(network, "B1", "paul")
            acks = network.nodes["B1"].outbox.acks
            await until(lambda: paul.session.waiting_bytes > 1_000_000 and acks.reads(source) > 0)
            assert not job.done()

            line_of(alice).resume_reading()
            assert await numbers(events, 5_000) == list(range(5_000))
            await job
            await until(lambda: not acks.reads(source))
            assert events.dropped == 0

    run(scenario())


def test_a_subscriber_that_does_not_read_is_isolated_and_told_what_it_missed() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(limits=IMPATIENT) as network,
            publishing(network) as paul,
            subscribed(network, "B1", "alice") as (alice, slow),
            subscribed(network, "B1", "bob") as (_, quick),
        ):
            port = client_port(network, "B1", "alice")
            line_of(alice).pause_reading()
            await publish(paul, range(300))
            assert await numbers(quick, 300) == list(range(300)), "others do not wait for long"
            assert (port.traffic.isolations, port.traffic.dropped) == (1, 0)
            await publish(paul, range(300, 600))
            assert await numbers(quick, 300) == list(range(300, 600)), "nor miss anything"
            assert port.traffic.dropped > 0

            # What was kept comes in order, and the gap where it is.
            line_of(alice).resume_reading()
            kept = 600 - port.traffic.dropped
            assert await numbers(slow, kept) == list(range(kept))
            await until(lambda: slow.dropped > 0)
            assert slow.dropped == port.traffic.dropped

            # From now on it is like any other.
            await publish(paul, range(600, 610))
            assert await numbers(slow, 10) == list(range(600, 610))
            await until(lambda: port.stream.is_idle)
            assert not port.is_isolated

    run(scenario())


def test_a_subscriber_that_has_caught_up_may_hold_its_publishers_back_again() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(limits=IMPATIENT) as network,
            publishing(network) as paul,
            subscribed(network, "B1", "alice") as (alice, events),
        ):
            port = client_port(network, "B1", "alice")
            for turn in (1, 2):
                line_of(alice).pause_reading()
                await publish(paul, range(300))
                assert port.traffic.isolations == turn
                await publish(paul, range(300))
                assert port.traffic.dropped >= turn
                line_of(alice).resume_reading()
                await until(lambda: port.stream.is_idle and not port._missing)
            total = len(events.waiting) + events.dropped
            assert total == 1_200
            assert events.dropped == port.traffic.dropped

    run(scenario())


def test_the_drops_of_a_client_that_left_are_still_counted() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(limits=IMPATIENT) as network, publishing(network) as paul:
            node = network.nodes["B1"]
            async with subscribed(network, "B1", "alice") as (alice, _):
                port = client_port(network, "B1", "alice")
                line_of(alice).pause_reading()
                await publish(paul, range(300))
                await publish(paul, range(300))
                node.remove(port, "enough")
            assert node.dropped["slow subscriber"] == port.traffic.dropped > 0
            assert node.isolations == 1
            assert node.meters.last.output_utilisation == 0.0

    run(scenario())


def test_a_client_that_asks_and_does_not_read_the_answers_is_sent_away() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(limits=IMPATIENT) as network,
            network.connect(name="alice") as alice,
        ):
            node, port = network.nodes["B1"], client_port(network, "B1", "alice")
            node.limits = Limits()  # For the next port: all answers fit.
            node.recovery.on_known()  # It has not failed if it does not know the client's stream.
            line_of(alice).pause_reading()
            for _ in range(2):
                for number in range(500):
                    alice.session.subscribe(Filter.parse(f"x = {number}"))
                alice.broker_connection.flush()
                await asyncio.sleep(0.01)
            await until(lambda: node.ports.get(port.hop) is not port)
            # It may come back, and ask for everything again, if it listens now.
            await alice.flush()
            ports = node.ports
            await until(lambda: port.hop in ports and ports[port.hop].stream.is_idle)

    run(scenario())


async def talk(speaker: Client, listener: Events, count: int) -> None:
    """Publish, and at the same time hear as much from somebody else."""
    job = asyncio.create_task(publish(speaker, range(count), payload_bytes=500))
    assert await numbers(listener, count) == list(range(count))
    await job


@pytest.mark.parametrize(
    ("first", "second"), [("B1", "B1"), ("B1", "B2"), ("B1", "B3")], ids=["0", "1", "2 links"]
)
def test_traffic_in_both_directions_does_not_lock_up(first: str, second: str) -> None:
    """Each side is congested because of the other, and has to hear the other to be relieved."""

    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3), limits=PATIENT) as network,
            publishing(network, first, "ann") as ann,
            publishing(network, second, "ben") as ben,
            ann.subscribe(NUMBERS) as to_ann,
            ben.subscribe(NUMBERS) as to_ben,
        ):
            await to_ann.in_effect()
            await to_ben.in_effect()
            await asyncio.gather(talk(ann, to_ann, 2_000), talk(ben, to_ben, 2_000))
            for node in network.nodes.values():
                ports, acks = node.ports.values(), node.outbox.acks
                await until(lambda: not any(acks.reads(p) or acks.waiters(p) for p in ports))  # noqa: B023
                assert not any(port.traffic.isolations for port in node.ports.values())

    run(scenario())


def test_everybody_talks_to_everybody_and_nobody_waits_for_ever() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(star(3), limits=PATIENT) as network:
            speakers = [
                await network.connect(b, name=f"at-{b}").__aenter__() for b in network.nodes
            ]
            feeds = []
            for speaker in speakers:
                await speaker.advertise(NUMBERS)
                feeds.append(await speaker.subscribe(NUMBERS).__aenter__())
            for feed in feeds:
                await feed.in_effect()

            async def hear(feed: Events) -> None:
                heard: dict[str, list[object]] = {}
                for _ in range(3 * 500):
                    event = await anext(feed)
                    heard.setdefault(event.publisher, []).append(event.content["x"])
                assert list(heard.values()) == [list(range(500))] * 3

            jobs = [publish(speaker, range(500), payload_bytes=500) for speaker in speakers]
            await asyncio.gather(*jobs, *map(hear, feeds))
            for speaker in speakers:
                await speaker.close()

    run(scenario())


def test_a_peer_that_does_not_stop_when_nothing_is_confirmed_is_not_read_from() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(limits=PATIENT) as network,
            publishing(network) as paul,
            subscribed(network, "B1", "alice") as (alice, events),
        ):
            source = port_of(network, "B1", "paul")
            line_of(alice).pause_reading()
            count = 20
            for x in range(count):  # Our own client would wait; this one does not.
                paul.session.publish({"x": x}, bytes(1_000_000))
                line_of(paul).write(paul.session.stream.take())
                await asyncio.sleep(0)
            await until(lambda: source.connection is not None and not source.connection._is_reading)
            assert network.nodes["B1"].handled["Publication"] < count

            line_of(alice).resume_reading()
            assert await numbers(events, count) == list(range(count))
            await paul.flush()

    run(scenario())


def test_a_link_that_is_back_does_not_hold_back_whom_it_held_back_before() -> None:
    """The neighbour calls again before we notice that its connection is gone."""

    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(2), limits=Limits(window_bytes=1024, heartbeat_s=3600)) as network,
            publishing(network, "B1") as paul,
            subscribed(network, "B2", "alice") as (_, events),
        ):
            link = link_port(network, "B1", "B2")
            far = link_port(network, "B2", "B1")
            assert link.connection is not None
            link.connection.pause_reading()  # Its acknowledgements are lost.
            job = asyncio.create_task(publish(paul, range(100)))
            await until(lambda: bool(waiters(network, "B1", "B2")))
            assert far.connection is not None
            await until(lambda: link.stream.taken == far.stream.received)
            far.connection.close()
            far.connection.receiver.on_lost("a broken cable", broke_rules=False)
            assert await numbers(events, 100) == list(range(100))
            await job

    run(scenario())
