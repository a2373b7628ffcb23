"""A name belongs to one session in the whole network, and a publisher that starts again is news."""

from __future__ import annotations

import asyncio
import contextlib
import time
from random import Random

import pytest
from tests.asynchronous import run, until
from tests.runtime.scenes import NUMBERS, numbers, publish, publishing, subscribed

from godwit.broker.stimuli import LocalClient, Neighbour
from godwit.client import Client
from godwit.content.messages import MoveTo
from godwit.errors import RefusedError, TakenOverError, UsageError
from godwit.overlay.topology import chain, random_tree
from godwit.protocol.call import Call
from godwit.protocol.frames import Hello
from godwit.runtime.settings import Limits
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.virtual_time import run_in_virtual_time

FEED = LocalClient("feed")


def feeds(network: MemoryNetwork) -> list[str]:
    """Brokers with a session of the name."""
    return [name for name, node in network.nodes.items() if FEED in node.ports]


def check_tables(network: MemoryNetwork) -> None:
    for node in network.nodes.values():
        node.broker.routing.check()


@pytest.mark.parametrize("other", ["B1", "B3"])
def test_a_second_client_of_the_name_is_refused_and_the_first_is_not_harmed(other: str) -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3)) as network,
            subscribed(network, "B2", "alice") as (_, events),
            publishing(network, "B1", "feed") as feed,
        ):
            reason = (
                "name feed belongs to a client that is connected to broker B1; .*take_over=True"
            )
            with pytest.raises(RefusedError, match=reason) as error:
                async with network.connect(other, name="feed"):
                    pass
            assert not isinstance(error.value, TakenOverError)
            await publish(feed, range(1_000))
            assert await numbers(events, 1_000) == list(range(1_000))
            assert feeds(network) == ["B1"]
            check_tables(network)

    run(scenario())


@pytest.mark.parametrize("other", ["B1", "B3"])
def test_a_take_over_tells_the_first_and_the_second_is_heard_at_once(other: str) -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3)) as network,
            subscribed(network, "B2", "alice") as (_, events),
        ):
            first = await network.connect("B1", name="feed").__aenter__()
            await first.advertise(NUMBERS)
            own = await first.subscribe("y is a number").__aenter__()
            await publish(first, range(5))
            advertising = asyncio.create_task(first.advertise("x > 7"))
            listening = asyncio.create_task(anext(own))
            watching = asyncio.create_task(first.gaps.next())
            async with network.connect(other, name="feed", take_over=True) as second:
                await second.advertise(NUMBERS)
                await publish(second, range(10, 12))
                assert second.session.next_sequence < first.session.next_sequence
                assert await numbers(events, 7) == [0, 1, 2, 3, 4, 10, 11]
                assert not events.waiting
                with contextlib.suppress(TakenOverError):  # It may have been in effect before.
                    await advertising
                for waiting in (listening, watching):
                    with pytest.raises(TakenOverError):
                        await waiting
                for use in (first.publish({"x": 1}), first.flush(), first.advertise("x > 1")):
                    with pytest.raises(TakenOverError, match="taken over the name feed"):
                        await use
                with pytest.raises(TakenOverError):
                    await first.subscribe(NUMBERS).__aenter__()
                await first.close()
                assert feeds(network) == [other]
                check_tables(network)

    run(scenario())


def test_a_client_that_was_taken_over_does_not_come_back() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(2)) as network:
            first = await network.connect("B1", name="feed").__aenter__()
            await first.advertise(NUMBERS)
            await first.publish({"x": 1})
            await first.flush()
            connection = first.broker_connection.connection
            assert connection is not None
            connection.lose()  # So that it cannot be told.
            async with network.connect("B2", name="feed", take_over=True) as second:
                await first.publish({"x": 1})
                with pytest.raises(TakenOverError):
                    await first.flush()
                await asyncio.sleep(100.0)
                assert feeds(network) == ["B2"]
                await second.advertise(NUMBERS)
            with pytest.raises(TakenOverError):
                await first.close()

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("other", ["B1", "B3"])
@pytest.mark.parametrize("says_goodbye", [True, False])
def test_a_publisher_that_starts_again_is_heard_at_once_whatever_its_clock_says(
    other: str, says_goodbye: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, now_ns = time.time, time.time_ns

    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3)) as network,
            subscribed(network, "B2", "alice") as (_, events),
        ):
            first = await network.connect("B1", name="feed").__aenter__()
            await first.advertise(NUMBERS)
            await publish(first, range(5))
            if says_goodbye:
                await first.close()
            else:
                first.abort()
            with monkeypatch.context() as patch:  # Not for pytest, which reads the clock, too.
                patch.setattr(time, "time", lambda: now_s() - 3_600)
                patch.setattr(time, "time_ns", lambda: now_ns() - 3_600 * 10**9)
                async with publishing(network, other, "feed") as second:
                    await publish(second, range(5, 10))
                    async with asyncio.timeout(5.0):
                        assert await numbers(events, 10) == list(range(10))
            check_tables(network)

    run(scenario())


def test_a_name_is_free_again_after_its_client_has_left() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(3)) as network:
            for broker in ("B1", "B3", "B2", "B2", "B1"):
                async with network.connect(broker, name="feed"):
                    assert feeds(network) == [broker]
                await until(lambda: not feeds(network))
            tables = [node.broker.routing.names for node in network.nodes.values()]
            await until(lambda: all(table.holder("feed") is None for table in tables))

    run(scenario())


def test_clients_that_move_resume_or_fall_back_keep_their_name() -> None:
    async def scenario() -> None:
        limits = Limits(session_s=5.0, link_s=20.0)
        async with MemoryNetwork(chain(3), limits=limits) as network:
            feed = network.connect("B1", name="feed", fall_back_s=1.0)
            async with subscribed(network, "B2", "alice") as (_, events), feed:
                await feed.advertise(NUMBERS)
                await publish(feed, range(3))
                network.cut("B1", FEED)
                await publish(feed, range(3, 6))
                await feed.move(network.url("B3"))
                await asyncio.sleep(1.0)
                assert feeds(network) == ["B3"]
                assert network.nodes["B1"].broker.routing.names.holder("feed") == Neighbour("B2")
                await refused(network, "B1")
                await publish(feed, range(6, 9))
                network.crash("B3")
                await asyncio.sleep(10.0)  # It falls back to B1, where it was before.
                assert feeds(network) == ["B1"]
                await refused(network, "B2")
                await publish(feed, range(9, 12))
                assert await numbers(events, 12) == list(range(12))
                assert feed.session.deliveries.duplicates == 0
                check_tables(network)

    run_in_virtual_time(scenario())


async def refused(network: MemoryNetwork, broker: str) -> None:
    with pytest.raises(RefusedError, match="feed"):
        async with network.connect(broker, name="feed"):
            pass


def test_a_client_that_stays_keeps_its_name() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(3)) as network, publishing(network, "B1", "feed") as feed:
            request = MoveTo(address=network.url("B3"), broker="B9")  # Another one answers there.
            network.nodes["B1"].ask_to_move(FEED, request)
            await asyncio.sleep(1.0)
            assert "not B9" in (network.nodes["B1"].ports[FEED].stayed_reason or "")
            assert network.nodes["B3"].handled["NameClaim"] == 2, "as it left, B1 claimed again"
            await refused(network, "B3")
            await publish(feed, range(3))

    run_in_virtual_time(scenario())


def test_a_broker_that_is_down_does_not_keep_clients_out() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with (
            MemoryNetwork(chain(3), limits=Limits(link_s=60.0)) as network,
            network.connect("B3", name="feed"),
        ):
            network.crash("B3")
            await asyncio.sleep(0.1)
            start_s = loop.time()
            async with network.connect("B1", name="other"), network.connect("B1", name="feed"):
                assert loop.time() - start_s < 0.5
                await network.restart("B3")
                await asyncio.sleep(30.0)
                assert feeds(network) == ["B1"]

    run_in_virtual_time(scenario())


def test_a_broker_that_does_not_answer_is_waited_for_a_second() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with MemoryNetwork(chain(2)) as network:
            stuck = network.nodes["B2"].ports[Neighbour("B1")].connection
            assert stuck is not None
            stuck.pause_reading()
            start_s = loop.time()
            client = await network.connect("B1", name="feed").__aenter__()
            assert loop.time() - start_s == pytest.approx(Limits().claim_s)
            stuck.resume_reading()
            names = network.nodes["B2"].broker.routing.names
            await until(lambda: names.holder("feed") is not None)
            client.abort()

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("seed", range(40))
def test_of_many_that_connect_at_the_same_time_exactly_one_stays(seed: int) -> None:
    async def scenario() -> None:
        random = Random(seed)
        topology = random_tree(random.randint(1, 6), random)
        async with MemoryNetwork(topology, latency_s=lambda: random.uniform(0.0, 0.1)) as network:
            takes_over = random.random() < 0.3

            async def connect() -> Client | None:
                await asyncio.sleep(random.uniform(0.0, 0.3))
                broker = random.choice(topology.brokers)
                client = network.connect(broker, name="feed", take_over=takes_over)
                try:
                    return await client.__aenter__()
                except RefusedError:
                    return None

            count = random.randint(2, 6)
            found = await asyncio.gather(*(connect() for _ in range(count)))
            await asyncio.sleep(10.0)
            left: list[Client] = []
            for client in filter(None, found):
                with contextlib.suppress(TakenOverError):
                    client.check_open()
                    left.append(client)
            assert len(left) == 1
            (broker,) = feeds(network)
            assert left[0].session.broker == broker
            check_tables(network)
            await left[0].close()

    run_in_virtual_time(scenario())


def test_a_partition_that_heals_leaves_one_of_two() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(4)) as network:
            await network.remove_link("B2", "B3")
            async with (
                subscribed(network, "B2", "alice") as (_, events),
                contextlib.AsyncExitStack() as stack,
            ):
                one = await stack.enter_async_context(network.connect("B1", name="feed"))
                two = await stack.enter_async_context(network.connect("B4", name="feed"))
                await network.add_link("B2", "B3")
                await asyncio.sleep(5.0)
                assert len(feeds(network)) == 1
                stays, goes = (one, two) if feeds(network) == ["B1"] else (two, one)
                with pytest.raises(TakenOverError):
                    await goes.flush()
                await stays.advertise(NUMBERS)
                await publish(stays, range(3))
                assert await numbers(events, 3) == [0, 1, 2]
                check_tables(network)

    run_in_virtual_time(scenario())


def incarnation(client: Client) -> str:
    claimed = client.broker_connection.endpoint.claimed
    assert claimed is not None
    return claimed.incarnation


def test_the_one_of_two_that_loses_keeps_the_name_if_the_other_is_gone() -> None:
    """Their claims meet when a partition heals, and the client of the higher one has crashed."""

    async def scenario() -> None:
        async with MemoryNetwork(chain(4)) as network:
            await network.remove_link("B2", "B3")
            one = await network.connect("B1", name="feed").__aenter__()
            two = await network.connect("B4", name="feed").__aenter__()
            low, high = sorted((one, two), key=incarnation)
            for client in (low, high):
                await client.advertise(NUMBERS)
            high.abort()
            await network.add_link("B2", "B3")
            await asyncio.sleep(5.0)
            async with subscribed(network, "B2", "alice") as (_, events):
                await publish(low, range(3))
                assert await numbers(events, 3) == [0, 1, 2]
                assert feeds(network) == ["B1" if low is one else "B4"]
                check_tables(network)
            await low.close()

    run_in_virtual_time(scenario())


def test_a_client_that_waits_for_the_name_itself_refuses_others_for_now_only() -> None:
    """It may hang up: a client that asks again, because two claims have met, asks until then."""

    async def scenario() -> None:
        async with MemoryNetwork(chain(3), limits=Limits(claim_s=4.0)) as network:
            hello = Hello(role="client", name="feed", incarnation="other", attachment=1)

            async def call() -> RefusedError:
                opener = network._opener("B1")
                with pytest.raises(RefusedError, match="name feed belongs to") as refused:
                    await Call(hello, lambda welcome, _: welcome).make(opener)
                return refused.value

            stuck = network.nodes["B3"].ports[Neighbour("B2")].connection
            assert stuck is not None
            stuck.pause_reading()  # It does not confirm the claim.
            calling = asyncio.create_task(network.connect("B2", name="feed").__aenter__())
            await asyncio.sleep(1.0)
            assert not isinstance(await call(), TakenOverError)
            client = await calling
            assert isinstance(await call(), TakenOverError)
            client.abort()

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("latency_s", [0.0, 0.05])
@pytest.mark.parametrize("link_s", [60.0, 2.0])
def test_a_broker_that_has_just_started_asks_its_neighbours_first(
    latency_s: float, link_s: float
) -> None:
    """Whether it was given up or not: it does not know the names of others before it is linked."""

    async def scenario() -> None:
        limits = Limits(link_s=link_s)
        async with (
            MemoryNetwork(chain(3), limits=limits, latency_s=lambda: latency_s) as network,
            publishing(network, "B1", "feed") as feed,
        ):
            network.crash("B3")
            await asyncio.sleep(5.0)
            starting = asyncio.create_task(network.restart("B3"))
            await asyncio.sleep(0)
            await refused(network, "B3")
            await starting
            await publish(feed, range(3))
            assert feeds(network) == ["B1"]
            async with network.connect("B3", name="another"):
                check_tables(network)

    run_in_virtual_time(scenario())


def test_a_broker_whose_neighbours_do_not_come_welcomes_clients_after_a_second() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with MemoryNetwork(chain(3), absent=["B2"]) as network:
            start_s = loop.time()
            async with network.connect("B3", name="feed"):
                assert loop.time() - start_s == pytest.approx(Limits().claim_s)
                check_tables(network)

    run_in_virtual_time(scenario())


def test_names_survive_the_restart_of_a_broker() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(3)) as network, publishing(network, "B1", "feed") as feed:
            for broker in ("B2", "B1", "B3"):
                network.crash(broker)
                await network.restart(broker)
                await asyncio.sleep(5.0)
                await refused(network, "B3")
                await publish(feed, range(3))
            check_tables(network)

    run_in_virtual_time(scenario())


def test_to_take_over_needs_a_name() -> None:
    async def scenario() -> None:
        async with MemoryNetwork() as network:
            with pytest.raises(UsageError, match="needs a name"):
                network.connect(take_over=True)

    run(scenario())


def test_random_names_claim_nothing() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(2)) as network, network.connect() as client:
            assert network.nodes["B2"].broker.routing.names.holder(client.name) is None
            assert network.nodes["B2"].handled["NameClaim"] == 0
            id = await client.advertise(NUMBERS)
            assert id == f"{client.name}/a1"

    run(scenario())
