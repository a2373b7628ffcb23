"""What an application may write: what works, and what is refused at once with what to write."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

import pytest
from tests.asynchronous import run, until
from tests.sharing.clusters import CHANNEL, MemoryCluster

from godwit import (
    ChannelEvents,
    Client,
    ContentError,
    EndedError,
    Events,
    Filter,
    RefusedError,
    UnreachableError,
    UsageError,
)
from godwit.content.messages import AdvertisementId, Refusal
from godwit.overlay.topology import chain
from godwit.testing.memory_network import MemoryNetwork

X = "x is a number"


class Scene(NamedTuple):
    network: MemoryNetwork
    alice: Client
    paul: Client


def play(history: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    """With a subscriber, and a publisher of x."""

    async def within_time() -> None:
        async with (
            MemoryNetwork(chain(2), cluster=MemoryCluster()) as network,
            network.connect("B1", name="alice") as alice,
            network.connect("B2", name="paul") as paul,
        ):
            await paul.advertise(X)
            await history(Scene(network, alice, paul))

    run(within_time())


def subscriptions(network: MemoryNetwork) -> int:
    return len(network.tables()["B1"].subscriptions)


async def publish_from(paul: Client, first: int, count: int) -> None:
    for x in range(first, first + count):
        await paul.publish({"x": x})
    await paul.flush()


# -- subscriptions that are not entered ------------------------------------------------------------


def test_a_subscription_can_be_iterated_as_it_is() -> None:
    async def history(scene: Scene) -> None:
        async def read() -> list[object]:
            taken: list[object] = []
            async for event in scene.alice.subscribe(X):
                taken.append(event.content["x"])
                if len(taken) == 3:
                    break
            return taken

        reading = asyncio.create_task(read())
        await until(lambda: subscriptions(scene.network) == 1)
        for x in range(100):  # Until some are read: the subscription is in effect some time.
            await publish_from(scene.paul, x, 1)
            if reading.done():
                break
        taken = await reading
        assert taken == list(range(int(str(taken[0])), int(str(taken[0])) + 3))
        await until(lambda: subscriptions(scene.network) == 0)

    play(history)


def test_in_effect_subscribes_too() -> None:
    async def history(scene: Scene) -> None:
        events = scene.alice.subscribe(X)
        assert subscriptions(scene.network) == 0
        await events.in_effect()
        await publish_from(scene.paul, 0, 3)
        assert [(await anext(events)).content["x"] for _ in range(3)] == [0, 1, 2]
        await events.in_effect()
        async for event in events:
            raise AssertionError(event)
            break

    async def without_more(scene: Scene) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await history(scene)
        await until(lambda: subscriptions(scene.network) == 0)

    play(without_more)


def test_a_channel_can_be_iterated_as_it_is() -> None:
    async def history(scene: Scene) -> None:
        cluster = scene.network._cluster
        assert isinstance(cluster, MemoryCluster)

        async def read() -> object:
            async for event in scene.alice.subscribe_channel(CHANNEL, n=1):
                return event.content["k"]
            return None

        reading = asyncio.create_task(read())
        await until(lambda: bool(cluster.ids))
        while not reading.done():
            cluster.execute({0: [{"k": 5}]})
            await asyncio.sleep(0.01)
        assert await reading == 5
        await until(lambda: cluster.holders[0] == set())
        events = scene.alice.subscribe_channel(CHANNEL, n=1)
        await events.in_effect()
        assert events.start is not None

    play(history)


def test_a_loop_that_was_left_can_be_entered_again() -> None:
    async def history(scene: Scene) -> None:
        events = scene.alice.subscribe(X)
        await events.in_effect()
        await publish_from(scene.paul, 0, 4)
        for expected in (0, 1, 2, 3):
            async for event in events:
                assert event.content["x"] == expected
                break
        assert subscriptions(scene.network) == 1, "the application still has it"
        del events
        await until(lambda: subscriptions(scene.network) == 0)

    play(history)


@pytest.mark.parametrize("in_a_thread", [False, True])
def test_who_drops_the_iterator_unsubscribes(in_a_thread: bool) -> None:
    """Also if another thread collects the garbage."""

    async def history(scene: Scene) -> None:
        cycle: dict[str, object] = {}
        cycle["events"], cycle["self"] = scene.alice.subscribe(X), cycle
        events = cycle["events"]
        assert isinstance(events, Events)
        await events.in_effect()
        await publish_from(scene.paul, 0, 20)  # Nobody will read them.
        del events, cycle
        if in_a_thread:
            collecting = threading.Thread(target=gc.collect)
            collecting.start()
            collecting.join()
        else:
            gc.collect()
        await until(lambda: subscriptions(scene.network) == 0)
        assert scene.alice.session.subscriptions == {}

    play(history)


def test_who_has_entered_it_need_not_keep_it() -> None:
    async def history(scene: Scene) -> None:
        await scene.alice.subscribe(X).__aenter__()
        gc.collect()
        await until(lambda: subscriptions(scene.network) == 1)
        await scene.alice.flush()
        assert len(scene.alice.session.subscriptions) == 1

    play(history)


# -- used twice, or after the end ------------------------------------------------------------------


def test_a_subscription_can_be_entered_once() -> None:
    async def history(scene: Scene) -> None:
        events = scene.alice.subscribe(X)
        await events.in_effect()
        async with events:
            with pytest.raises(UsageError, match="can be entered once; subscribe again"):
                await events.__aenter__()
            await publish_from(scene.paul, 0, 2)
        with pytest.raises(UsageError, match="can be entered once; subscribe again"):
            await events.__aenter__()
        assert [event.content["x"] async for event in events] == [0, 1], "what has arrived is left"
        assert [event async for event in events] == []
        with pytest.raises(UsageError, match="has ended; subscribe again"):
            await events.in_effect()

    play(history)


def test_who_waits_is_woken_when_another_task_ends_the_subscription() -> None:
    async def history(scene: Scene) -> None:
        scene.network.crash("B1")  # So that it is not in effect.
        events = scene.alice.subscribe(X)
        async with events:
            waits = asyncio.create_task(events.in_effect())
            reads = asyncio.create_task(anext(events, None))
            await asyncio.sleep(0)
        with pytest.raises(UsageError, match="has ended; subscribe again"):
            await waits
        assert await reads is None

    play(history)


def test_a_body_that_raises_ends_the_subscription() -> None:
    async def history(scene: Scene) -> None:
        async def body() -> None:
            async with scene.alice.subscribe(X) as events:
                await events.in_effect()
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await body()
        await until(lambda: subscriptions(scene.network) == 0)

    play(history)


def test_a_read_that_is_cancelled_loses_nothing() -> None:
    async def history(scene: Scene) -> None:
        async with scene.alice.subscribe(X) as events:
            await events.in_effect()
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await anext(events)
            await publish_from(scene.paul, 0, 2)
            assert [(await anext(events)).content["x"] for _ in range(2)] == [0, 1]

    play(history)


# -- a subscription that the broker refuses or ends ------------------------------------------------


def test_the_reason_is_raised_where_the_application_waits() -> None:
    async def history(scene: Scene) -> None:
        async with scene.alice.subscribe(X, "y > 5") as events:
            await events.in_effect()
            await publish_from(scene.paul, 0, 2)
            await until(lambda: len(events.waiting) == 2)
            scene.alice.on_message(Refusal(about=events.ids[1], reason="the table is full"), 0)
            assert [(await anext(events)).content["x"] for _ in range(2)] == [0, 1]
            said = "the subscription to x is a number or y > 5 was ended: the table is full"
            for _ in range(2):
                with pytest.raises(EndedError, match=said):
                    await anext(events)
            with pytest.raises(EndedError, match=said):
                await events.in_effect()
            await until(lambda: subscriptions(scene.network) == 0)

    play(history)


def test_a_subscription_that_is_refused_raises_in_the_loop() -> None:
    async def history(scene: Scene) -> None:
        said = "the subscription to channel Nonsense was refused: there is no channel Nonsense"
        with pytest.raises(RefusedError, match=said) as refused:
            _ = [event async for event in scene.alice.subscribe_channel("Nonsense")]
        assert not isinstance(refused.value, EndedError)

    play(history)


# -- clients that are not open ---------------------------------------------------------------------

CALLS: dict[str, Callable[[Client], Awaitable[object]]] = {
    "advertise": lambda client: client.advertise(X),
    "unadvertise": lambda client: client.unadvertise(AdvertisementId("a/a1")),
    "publish": lambda client: client.publish({"x": 1}),
    "flush": lambda client: client.flush(),
    "ready": lambda client: client.ready(),
    "status": lambda client: client.status(),
    "move": lambda client: client.move("memory://B2", within_s=60.0),
    "iterate": lambda client: anext(client.subscribe(X)),
    "in_effect": lambda client: client.subscribe(X).in_effect(),
    "enter": lambda client: client.subscribe(X).__aenter__(),
    "channel": lambda client: anext(client.subscribe_channel(CHANNEL, n=1)),
    "channel in effect": lambda client: client.subscribe_channel(CHANNEL, n=1).in_effect(),
}


def impatient(network: MemoryNetwork, connect_s: float) -> Client:
    return Client(network.url("B1"), resolve=network._resolve, connect_s=connect_s)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("state", ["new", "closed", "aborted", "failed", "closed and new"])
def test_a_client_that_is_not_open_says_so(call: str, state: str) -> None:
    async def history() -> None:
        async with MemoryNetwork(chain(2), cluster=MemoryCluster()) as network:
            client = impatient(network, 0.05)
            if state == "failed":
                network.crash("B1")
                with pytest.raises(UnreachableError):
                    await client.__aenter__()
            elif state == "closed and new":
                await client.close()
            elif state != "new":
                await client.__aenter__()
                client.abort() if state == "aborted" else await client.close()
            said = "inside `async with`" if state == "new" else r"make another one with godwit\.con"
            with pytest.raises(UsageError, match=said):
                await CALLS[call](client)
            if state != "new":
                with pytest.raises(UsageError, match="a client can be entered once"):
                    await client.__aenter__()
            await client.close()

    run(history())


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("by", ["the application", "the broker"])
def test_who_waits_is_told_when_the_client_is_closed(call: str, by: str) -> None:
    """The broker does not answer; another task closes the client, or the broker ends it."""

    async def history() -> None:
        async with MemoryNetwork(chain(2), cluster=MemoryCluster()) as network:
            client = impatient(network, 10.0)
            await client.__aenter__()
            client._connect_s = 0.05  # From now on: a slow machine needs longer to connect.
            id = await client.advertise(X)
            for broker in ("B1", "B2"):
                network.crash(broker)
            await client.publish({"x": 1})
            calls = CALLS | {"unadvertise": lambda client: client.unadvertise(id)}
            waits = asyncio.ensure_future(calls[call](client))
            await asyncio.sleep(0.01)
            assert waits.done() == (call in ("publish", "enter"))
            if by == "the broker":
                client.end(EndedError("another client has taken over"))
                with pytest.raises(EndedError, match="taken over"):
                    await client.flush()
                with pytest.raises(EndedError, match="taken over"):
                    await client.close()  # The publication is not acknowledged.
            else:
                with pytest.raises(UnreachableError, match="had acknowledged"):
                    await client.close()
            await asyncio.wait([waits])
            if waits.done() and call in ("publish", "enter"):
                return
            stops = by == "the application" and call in ("iterate", "channel")
            expected: type[BaseException] = StopAsyncIteration if stops else UsageError
            if by == "the broker":
                expected = EndedError
            with pytest.raises(expected):
                waits.result()

    run(history())


def test_a_loop_stops_when_the_application_closes_the_client() -> None:
    async def history(scene: Scene) -> None:
        async def read(events: Events | ChannelEvents) -> int:
            return len([event async for event in events])

        events = scene.alice.subscribe(X)
        await events.in_effect()
        await publish_from(scene.paul, 0, 2)
        reading = [
            asyncio.create_task(read(each))
            for each in (events, scene.alice.subscribe_channel(CHANNEL, n=1))
        ]
        await asyncio.sleep(0)
        await scene.alice.close()
        assert [await task for task in reading] == [2, 0]

    play(history)


def test_a_client_that_is_closed_while_it_connects() -> None:
    async def history() -> None:
        async with MemoryNetwork() as network:
            network.crash("B1")
            client = impatient(network, 60.0)
            entering = asyncio.create_task(client.__aenter__())
            await asyncio.sleep(0.01)
            with pytest.raises(UsageError, match="still connecting"):
                await client.flush()
            await client.close()
            with pytest.raises(UsageError, match="was closed"):
                await entering

    run(history())


def test_a_move_is_over_when_the_client_is_closed() -> None:
    async def history(scene: Scene) -> None:
        scene.network.crash("B2")
        moving = asyncio.create_task(scene.alice.move(scene.network.url("B2"), within_s=60.0))
        await asyncio.sleep(0.01)
        await scene.alice.close()
        with pytest.raises(UsageError, match="was closed"):
            await moving

    play(history)


def test_who_waits_for_gaps_is_told_that_the_client_could_not_connect() -> None:
    async def history(scene: Scene) -> None:
        scene.network.crash("B1")
        client = impatient(scene.network, 0.05)
        told = asyncio.create_task(client.gaps.next())
        with pytest.raises(UnreachableError):
            await client.__aenter__()
        with pytest.raises(UsageError, match="was closed"):
            await told

    play(history)


# -- arguments -------------------------------------------------------------------------------------


def test_what_is_not_a_filter_is_refused() -> None:
    async def history(scene: Scene) -> None:
        wrong: Any = [X, "y > 5"]
        with pytest.raises(UsageError, match="a filter is a text, or a Filter, not of type list"):
            scene.alice.subscribe(wrong)
        with pytest.raises(UsageError, match="a filter is a text, or a Filter, not of type list"):
            await scene.alice.advertise(wrong)
        with pytest.raises(ContentError, match=r"use Filter\.parse\(text\)"):
            Filter(X)  # type: ignore[arg-type]

    play(history)
