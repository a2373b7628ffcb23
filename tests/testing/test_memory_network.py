"""A network in memory: what an application sees of the real brokers and the real client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from tests.asynchronous import run, until

from godwit.client import Client, Event, Events, dispatch
from godwit.errors import ContentError, RefusedError, UsageError
from godwit.overlay.topology import chain, star
from godwit.runtime.settings import Limits
from godwit.testing.memory_network import MemoryNetwork

NUMBERS = "x is a number"


@asynccontextmanager
async def pair(
    network: MemoryNetwork, publisher: str = "B1", subscriber: str = "B1"
) -> AsyncIterator[tuple[Client, Client]]:
    """A publisher of numbers, and somebody else."""
    async with network.connect(publisher, name="paul") as paul:
        await paul.advertise(NUMBERS)
        async with network.connect(subscriber, name="alice") as alice:
            yield paul, alice


async def take(events: Events, count: int) -> list[Event]:
    return [await anext(events) for _ in range(count)]


async def numbers(events: Events, count: int) -> list[object]:
    return [event.content["x"] for event in await take(events, count)]


def test_a_publication_crosses_the_network() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3)) as network,
            pair(network, "B1", "B3") as (paul, alice),
            alice.subscribe("x > 5") as events,
        ):
            await events.in_effect()
            await paul.publish({"x": 3})
            await paul.publish({"x": 7}, payload=b"abc")
            event = await anext(events)

        assert event.content == {"x": 7}
        assert (event.payload, event.publisher, event.hops) == (b"abc", "paul", 2)
        assert event.sequence == paul.session.next_sequence - 1
        assert event.accepted_s > 1.7e9

    run(scenario())


def test_each_event_goes_to_the_subscriptions_that_it_matches_and_to_no_other() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(2)) as network, pair(network, "B1", "B2") as (paul, alice):
            copies = []
            alice.on_publication = lambda publication, _: copies.append(publication.content["x"])
            async with (
                alice.subscribe("x > 5") as high,
                alice.subscribe("x < 8") as low,
                alice.subscribe("x = 1", "x = 2", "x < 3") as small,
            ):
                for events in (high, low, small):
                    await events.in_effect()
                for x in range(10):
                    await paul.publish({"x": x})
                assert await numbers(high, 4) == [6, 7, 8, 9]
                assert await numbers(low, 8) == list(range(8))
                assert await numbers(small, 3) == [0, 1, 2], "once, however many filters match"
                assert not any(events.waiting for events in (high, low, small))
            assert copies == list(range(10)), "one copy of each over the wire"

    run(scenario())


def test_a_subscription_hears_nothing_from_before_it_was_in_effect_and_all_from_then_on() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(2)) as network, pair(network, "B1", "B2") as (paul, alice):
            await paul.publish({"x": 1})
            await paul.flush()
            async with alice.subscribe(NUMBERS) as events:
                await events.in_effect()
                await paul.publish({"x": 2})
                await paul.publish({"x": 3})
                assert await numbers(events, 2) == [2, 3]

    run(scenario())


def test_a_subscription_may_be_left_while_events_arrive() -> None:
    """What it does not want any more does not turn up elsewhere."""

    async def scenario() -> None:
        async with MemoryNetwork() as network, pair(network) as (paul, alice):
            async with alice.subscribe("x >= 0") as every:
                async with alice.subscribe("x >= 50") as high:
                    await high.in_effect()
                    for x in range(100):
                        await paul.publish({"x": x})
                    assert await numbers(high, 3) == [50, 51, 52]
                    assert await numbers(every, 10) == list(range(10))
                async with alice.subscribe("x < 0") as negative:
                    await negative.in_effect()
                    await paul.publish({"x": -1})
                    assert await numbers(negative, 1) == [-1]
                    assert await numbers(every, 90) == list(range(10, 100))
                left = [event.content["x"] async for event in high]
                assert left == list(range(53, 53 + len(left))), "what had arrived, and then the end"
            node = network.nodes["B1"]
            await until(lambda: not node.broker.routing.tables().subscriptions)

    run(scenario())


def test_an_event_of_a_subscription_that_was_left_is_not_for_the_only_one_that_remains() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork() as network,
            pair(network) as (paul, alice),
            alice.subscribe("x > 5") as high,
        ):
            async with alice.subscribe("x < 3") as low:
                await low.in_effect()
                await paul.publish({"x": 1})
                await paul.publish({"x": 9})
                await paul.flush()  # The broker has queued both for Alice.
            assert await numbers(high, 1) == [9]

    run(scenario())


def test_nobody_hears_himself() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork() as network,
            pair(network) as (paul, alice),
            paul.subscribe(NUMBERS) as own,
            alice.subscribe(NUMBERS) as events,
        ):
            await own.in_effect()
            await events.in_effect()
            await paul.publish({"x": 1})
            assert await numbers(events, 1) == [1]
            assert not own.waiting

    run(scenario())


def test_flush_returns_when_the_broker_has_taken_everything_in() -> None:
    async def scenario() -> None:
        async with MemoryNetwork() as network, pair(network) as (paul, _):
            for x in range(500):
                await paul.publish({"x": x})
            await paul.flush()
            assert network.nodes["B1"].handled["Publication"] == 500
            assert paul.session.is_idle

    run(scenario())


# -- mistakes --------------------------------------------------------------------------------------


def test_mistakes_are_explained_where_they_are_made() -> None:
    async def scenario() -> None:
        async with MemoryNetwork() as network, pair(network) as (paul, alice):
            with pytest.raises(ContentError, match="nothing is advertised; call advertise"):
                await alice.publish({"x": 1})
            with pytest.raises(ContentError, match="x is a number fails: x is 'one'"):
                await paul.publish({"x": "one"})
            with pytest.raises(UsageError, match="at least one filter"):
                alice.subscribe()
            with pytest.raises(ContentError, match="column 4"):
                alice.subscribe("x =")
            with pytest.raises(UsageError, match="nothing can match"):
                alice.subscribe("x > 1", "x > 5 and x < 3")
            assert not alice.session.subscriptions
            with pytest.raises(UsageError, match="there is no broker 'B9'; there are B1"):
                network.connect("B9")

    run(scenario())


def test_what_the_broker_refuses_is_raised_where_it_was_asked() -> None:
    async def scenario() -> None:
        async with MemoryNetwork() as network, network.connect(name="paul") as paul:
            with pytest.raises(RefusedError, match=r"paul/\w+~a[0-9]+: control classes"):
                await paul.advertise("class = '$LOAD'")
            await paul.advertise("class is present")
            await paul.publish({"class": "$LOAD"})
            with pytest.raises(RefusedError, match=r"paul#[0-9]+: control classes"):
                await paul.flush()
            await paul.publish({"class": "STOCK"})
            await paul.flush()

    run(scenario())


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("alice", "the name alice belongs to a client that is connected to broker B1"),
        ("$alice", "names that start with '\\$'"),
        ("al ice", "'al ice' cannot be a client's name"),
    ],
)
def test_a_name_that_is_taken_or_strange_is_refused(name: str, reason: str) -> None:
    async def scenario() -> None:
        async with MemoryNetwork() as network, network.connect(name="alice"):
            with pytest.raises((RefusedError, UsageError), match=reason):
                async with network.connect(name=name):
                    pass

    run(scenario())


# -- the end ---------------------------------------------------------------------------------------


def test_closing_a_client_lets_what_was_published_leave() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(2)) as network, network.connect("B2") as alice:
            async with alice.subscribe(NUMBERS) as events:
                await events.in_effect()
                async with network.connect("B1") as paul:
                    await paul.advertise(NUMBERS)
                    for x in range(100):
                        await paul.publish({"x": x})
                assert await numbers(events, 100) == list(range(100))
            tables = network.nodes["B2"].broker.routing.tables
            await until(lambda: not tables().advertisements)

    run(scenario())


def test_closing_a_client_ends_its_iterators_after_what_has_arrived() -> None:
    async def scenario() -> None:
        async with MemoryNetwork() as network, pair(network) as (paul, alice):
            async with alice.subscribe(NUMBERS) as events, alice.subscribe("x > 9") as silent:
                await silent.in_effect()
                await paul.publish({"x": 1})
                await until(lambda: bool(events.waiting))
                waiting = asyncio.create_task(anext(silent, None))
                await asyncio.sleep(0)
                await alice.close()
                assert [event.content["x"] async for event in events] == [1]
                assert await waiting is None
            for usage in (alice.advertise(NUMBERS), alice.publish({"x": 1})):
                with pytest.raises(UsageError, match="the client was closed"):
                    await usage
            with pytest.raises(UsageError, match="the client was closed"):
                async with alice.subscribe(NUMBERS):
                    pass
            await alice.close()

    run(scenario())


def test_closing_a_client_ends_every_wait() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(2)) as network,
            network.connect("B2") as paul,
            network.connect("B1") as alice,
        ):
            await paul.advertise(NUMBERS)
            (link,) = (p for p in network.nodes["B2"].ports.values() if p.hop.name == "B1")
            assert link.connection is not None
            link.connection.pause_reading()  # B2 confirms nothing any more.
            events = alice.subscribe(NUMBERS)
            advertising = asyncio.create_task(alice.advertise(NUMBERS))
            async with events:
                waiting = asyncio.create_task(events.in_effect())
                await asyncio.sleep(0)
                await alice.close()
            for wait in (advertising, waiting):
                with pytest.raises(UsageError, match="the client was closed"):
                    await wait

    run(scenario())


def test_what_a_client_held_is_withdrawn_everywhere_when_it_leaves() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(star(3)) as network:
            async with pair(network, "B2", "B3") as (_, alice), alice.subscribe(NUMBERS) as events:
                await events.in_effect()
                tables = [node.broker.routing.tables() for node in network.nodes.values()]
                assert all(table.advertisements for table in tables)
                assert sum(len(table.subscriptions) for table in tables) == 3

            def is_empty() -> bool:
                routings = [node.broker.routing for node in network.nodes.values()]
                return not any(r.advertisement_count + r.subscription_count for r in routings)

            await until(is_empty)
            assert not any(
                port.hop.name in ("paul", "alice")
                for node in network.nodes.values()
                for port in node.ports.values()
            )

    run(scenario())


def test_an_advertisement_that_nobody_waits_for_any_more_is_withdrawn() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(2)) as network, network.connect("B1") as paul:
            b1, b2 = network.nodes.values()
            (link,) = b2.ports.values()
            assert link.connection is not None
            link.connection.pause_reading()  # B2 confirms nothing.
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(paul.advertise(NUMBERS), 0.01)
            assert not paul.session.advertisements
            await paul.flush()
            assert not b1.broker.routing.tables().advertisements

    run(scenario())


def test_several_tasks_may_read_from_one_subscription() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork() as network,
            pair(network) as (paul, alice),
            alice.subscribe(NUMBERS) as events,
        ):
            await events.in_effect()
            readers = [asyncio.create_task(numbers(events, 10)) for _ in range(3)]
            for x in range(30):
                await paul.publish({"x": x})
                await asyncio.sleep(0)
            read = await asyncio.gather(*readers)
            assert sorted(str(x) for part in read for x in part) == sorted(map(str, range(30)))

    run(scenario())


def test_a_read_that_was_given_up_loses_no_event() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork() as network,
            pair(network) as (paul, alice),
            alice.subscribe(NUMBERS) as events,
        ):
            await events.in_effect()
            for x in range(3):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(events), 0.001)
                await paul.publish({"x": x})
                assert await numbers(events, 1) == [x]

    run(scenario())


# -- a slow application ----------------------------------------------------------------------------


@pytest.mark.parametrize("feeds", [1, 2])
def test_an_application_that_is_slow_to_read_loses_nothing(
    feeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "EVENTS_WAITING_MAX", 10)

    async def scenario() -> None:
        async with (
            MemoryNetwork() as network,
            pair(network) as (paul, alice),
            alice.subscribe(NUMBERS) as events,
            alice.subscribe("x < 0") as others,
        ):
            await others.in_effect()
            if feeds == 1:
                await others.__aexit__(None, None, None)
            for x in range(1_000):
                await paul.publish({"x": x})
            await paul.flush()
            port = next(p for p in network.nodes["B1"].ports.values() if p.hop.name == "alice")
            assert port.stream.unacknowledged_bytes > 0, "nothing is confirmed meanwhile"
            assert await numbers(events, 1_000) == list(range(1_000))
            await until(lambda: port.stream.is_idle)
            assert events.dropped == 0

    run(scenario())


@pytest.mark.parametrize("request_", ["publish", "advertise", "subscribe"])
def test_an_application_that_is_behind_may_wait_for_its_broker(
    request_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answers come behind the events that it has not read, and come all the same."""
    monkeypatch.setattr(dispatch, "EVENTS_WAITING_MAX", 10)

    async def ask(alice: Client) -> None:
        match request_:
            case "publish":
                await alice.publish({"y": 1})
                await alice.flush()
            case "advertise":
                await alice.unadvertise(await alice.advertise("z is present"))
            case _:
                async with alice.subscribe("z is present") as more:
                    await more.in_effect()

    async def scenario() -> None:
        async with MemoryNetwork() as network, pair(network) as (paul, alice):
            await alice.advertise("y is a number")
            async with alice.subscribe(NUMBERS) as events:
                await events.in_effect()
                for x in range(100):
                    await paul.publish({"x": x})
                await paul.flush()
                for x in range(100):
                    assert await numbers(events, 1) == [x]
                    await ask(alice)

    run(scenario())


def test_a_client_beats_as_often_as_its_broker_wants() -> None:
    async def scenario() -> None:
        limits = Limits(heartbeat_s=0.05)
        async with MemoryNetwork(limits=limits) as network, network.connect() as alice:
            connection = alice.broker_connection.connection
            await asyncio.sleep(0.6)  # Four times as long as a silent peer is put up with.
            assert alice.broker_connection.connection is connection

    run(scenario())


def test_a_client_is_used_once_and_inside_its_context() -> None:
    async def scenario() -> None:
        async with MemoryNetwork() as network:
            alice = network.connect()
            with pytest.raises(UsageError, match="is not connected yet"):
                await alice.publish({"x": 1})
            async with alice:
                pass
            with pytest.raises(UsageError, match="a client can be entered once"):
                async with alice:
                    pass

    run(scenario())


def test_a_client_whose_closing_is_interrupted_is_closed() -> None:
    async def scenario() -> None:
        async with MemoryNetwork() as network, pair(network) as (paul, _):
            connection = paul.broker_connection.connection
            assert connection is not None
            connection.pause_reading()  # No acknowledgement is heard any more.
            await paul.publish({"x": 1})
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await paul.close()
            assert paul.broker_connection._keeper is not None
            assert paul.broker_connection._keeper.done()

    run(scenario())


def test_links_beat_as_often_as_the_more_impatient_end_wants() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(2)) as network:
            slow, quick = network.nodes["B2"], network.nodes["B1"]
            for node, heartbeat_s in ((slow, 60.0), (quick, 0.05)):
                node.limits = msgspec.structs.replace(node.limits, heartbeat_s=heartbeat_s)
            (link,) = slow.ports.values()
            assert link.connection is not None
            link.connection.lose()  # It is dialled again, with the new settings.
            await until(lambda: not link.is_connected)
            await until(lambda: link.is_connected)
            connection = link.connection
            await asyncio.sleep(0.5)
            assert link.connection is connection

    run(scenario())
