"""Connections that are lost, and peers that come back, or do not."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from tests.asynchronous import run, until
from tests.runtime.scenes import (
    NUMBERS,
    client_port,
    cut,
    line_of,
    link_port,
    numbers,
    port_of,
    publish,
    publishing,
    subscribed,
)

from godwit.broker.stimuli import Neighbour
from godwit.overlay.topology import chain
from godwit.runtime.dialling import Dialler
from godwit.runtime.port import LinkPort
from godwit.runtime.settings import Limits
from godwit.testing.memory_network import MemoryNetwork

QUICK = Limits(session_s=0.05, link_s=0.05)


def is_empty(network: MemoryNetwork) -> bool:
    routings = [node.broker.routing for node in network.nodes.values()]
    return not any(r.advertisement_count + r.subscription_count for r in routings)


@pytest.mark.parametrize("seed", range(6))
def test_connections_that_are_cut_lose_nothing_and_repeat_nothing(seed: int) -> None:
    random = Random(seed)

    async def cutting(network: MemoryNetwork) -> None:
        for _ in range(12):
            broker = random.choice(list(network.nodes.values()))
            cut(random.choice(list(broker.ports.values())).connection)
            await asyncio.sleep(random.choice((0, 0.001, 0.02)))

    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3)) as network,
            publishing(network, "B1") as paul,
            subscribed(network, "B3", "alice") as (alice, events),
        ):
            async with asyncio.TaskGroup() as jobs:
                jobs.create_task(publish(paul, range(3_000)))
                jobs.create_task(cutting(network))
                heard = await numbers(events, 3_000)
            assert heard == list(range(3_000))
            assert not events.waiting
            sessions = (paul.session, alice.session)
            assert [s.restarts + s.deliveries.duplicates for s in sessions] == [0, 0], (
                "they were resumed"
            )

    run(scenario())


def test_what_is_published_without_a_connection_leaves_when_there_is_one() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork() as network,
            publishing(network) as paul,
            subscribed(network, "B1", "alice") as (_, events),
        ):
            cut(line_of(paul))
            await publish(paul, range(10))
            assert await numbers(events, 10) == list(range(10))

    run(scenario())


def test_what_is_published_while_a_subscriber_is_away_waits_for_it() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork() as network,
            publishing(network) as paul,
            subscribed(network, "B1", "alice") as (alice, events),
        ):
            cut(line_of(alice))
            await until(lambda: not client_port(network, "B1", "alice").is_connected)
            await publish(paul, range(100))
            assert await numbers(events, 100) == list(range(100))

    run(scenario())


def test_a_subscriber_that_is_away_for_too_much_hears_how_much_it_missed() -> None:
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
            await until(lambda: events.dropped > 0)
            assert events.dropped == port.traffic.dropped
            assert await numbers(events, 100 - events.dropped) == list(range(100 - events.dropped))

    run(scenario())


@pytest.mark.parametrize("broker_forgets", ["once", "twice"])
def test_a_publisher_that_the_broker_has_forgotten_starts_again_without_loss(
    broker_forgets: str,
) -> None:
    times = 1 if broker_forgets == "once" else 2

    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(2)) as network,
            publishing(network, "B1") as paul,
            subscribed(network, "B2", "alice") as (_, events),
        ):
            job = asyncio.create_task(publish(paul, range(2_000), payload_bytes=1_000))
            heard = []
            for time in range(times):
                heard += await numbers(events, 500)
                network.nodes["B1"].remove(port_of(network, "B1", "paul"), "forgotten")
                await until(lambda: paul.session.restarts == time + 1)  # noqa: B023
            heard += await numbers(events, 2_000 - 500 * times)
            await job
            assert heard == list(range(2_000))
            assert not events.waiting

    run(scenario())


def test_a_subscriber_that_the_broker_has_forgotten_asks_again() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(2)) as network,
            publishing(network, "B1") as paul,
            subscribed(network, "B2", "alice") as (alice, events),
        ):
            b1, b2 = network.nodes.values()
            b2.remove(port_of(network, "B2", "alice"), "forgotten")
            await until(lambda: b1.handled["Subscription"] == 2)
            await publish(paul, range(5))
            assert await numbers(events, 5) == list(range(5))
            assert alice.session.restarts == 1

    run(scenario())


def test_a_session_that_is_not_resumed_in_time_is_withdrawn_everywhere() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(3), limits=QUICK) as network:
            paul = await network.connect("B1").__aenter__()
            await paul.advertise(NUMBERS)
            alice = await network.connect("B3").__aenter__()
            async with alice.subscribe(NUMBERS) as events:
                await events.in_effect()
                for client in (paul, alice):
                    assert client.broker_connection._keeper is not None
                    client.broker_connection._keeper.cancel()  # They will not call again.
                    cut(line_of(client))
                await until(lambda: is_empty(network))
            assert [len(node.ports) for node in network.nodes.values()] == [1, 2, 1], "links only"
            for client in (paul, alice):
                await client.broker_connection.close()

    run(scenario())


def test_nothing_is_kept_for_a_client_that_holds_nothing() -> None:
    async def scenario() -> None:
        async with MemoryNetwork() as network, network.connect(name="alice") as alice:
            assert alice.broker_connection._keeper is not None
            alice.broker_connection._keeper.cancel()
            cut(line_of(alice))
            await until(lambda: not network.nodes["B1"].ports)

    run(scenario())


def test_a_link_that_is_not_resumed_in_time_is_down_and_heals_when_it_is_back() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(2), limits=QUICK) as network,
            publishing(network, "B1") as paul,
            subscribed(network, "B2", "alice") as (_, events),
        ):
            b1, b2 = network.nodes.values()
            network._dialling["B2"]["B1"].cancel()
            cut(link_port(network, "B1", "B2").connection)
            await until(lambda: not b2.broker.routing.tables().advertisements)
            await until(lambda: not b1.broker.routing.tables().subscriptions)
            await publish(paul, range(5))  # They reach nobody, and hold nobody up.

            dialler = network._dial("B2", "B1")
            await until(lambda: bool(b1.broker.routing.tables().subscriptions))
            assert dialler.trouble is None
            await publish(paul, range(5, 10))
            assert await numbers(events, 5) == list(range(5, 10))

    run(scenario())


def test_a_neighbour_that_is_away_while_too_much_waits_for_it_is_given_up() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(2), limits=Limits(link_queue_bytes=8192)) as network,
            publishing(network, "B1") as paul,
            subscribed(network, "B2", "alice"),
        ):
            b1 = network.nodes["B1"]
            network._dialling["B2"]["B1"].cancel()
            cut(link_port(network, "B1", "B2").connection)
            await until(lambda: not link_port(network, "B1", "B2").is_connected)
            await publish(paul, range(100))
            await until(lambda: not b1.broker.routing.subscription_count)
            assert b1.dropped["link lost"] > 8192 / 400

    run(scenario())


def test_a_call_that_goes_wrong_as_nobody_has_thought_of_is_not_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call, wrong = Dialler._call, iter([True])

    async def once_wrong(dialler: Dialler) -> LinkPort:
        if next(wrong, False):
            raise LookupError("nobody has thought of that")
        return await call(dialler)

    async def scenario() -> None:
        async with MemoryNetwork(chain(2)) as network:
            while Neighbour("B2") not in network.nodes["B1"].ports:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    monkeypatch.setattr(Dialler, "_call", once_wrong)
    run(scenario())
