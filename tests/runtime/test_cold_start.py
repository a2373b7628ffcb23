"""A network whose brokers start one after the other: what is in effect, and who waits for whom."""

from __future__ import annotations

import asyncio
import random as global_random
from contextlib import AsyncExitStack
from random import Random

import pytest

from godwit.client import Client
from godwit.content.filters import Filter
from godwit.content.link_messages import MissingBroker
from godwit.errors import NotReadyError
from godwit.overlay.topology import chain, random_tree
from godwit.runtime.settings import Limits
from godwit.testing import MemoryNetwork, Oracle, WitnessedClient, run_in_virtual_time

NUMBERS = "x is a number"
#: Less than `link_s`.
LATE_S = 6.0


def test_nothing_is_in_effect_and_nothing_acknowledged_before_a_broker_in_between_is_up() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3), absent=["B2"]) as network,
            network.connect("B1", name="paul") as paul,
            network.connect("B3", name="alice") as alice,
            alice.subscribe(NUMBERS) as events,
        ):
            advertising = asyncio.create_task(paul.advertise(NUMBERS))
            subscribing = asyncio.create_task(events.in_effect())
            await asyncio.sleep(LATE_S)
            assert not advertising.done(), "B2 and B3 do not know of it"
            assert not subscribing.done(), "there may be publishers behind B2"
            await network.restart("B2")
            await advertising
            await subscribing
            for x in range(100):
                await paul.publish({"x": x})
            await paul.flush()
            assert [(await anext(events)).content["x"] for _ in range(100)] == [*range(100)]

    run_in_virtual_time(scenario())


def test_a_client_sees_which_part_of_the_network_is_missing() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(4), absent=["B3"]) as network,
            network.connect("B1") as paul,
            network.connect("B4") as alice,
        ):
            status = await paul.status()
            assert (status.is_complete, status.missing) == (False, (MissingBroker("B3", "B2"),))
            with pytest.raises(NotReadyError, match=r"B3 \(behind B2\) is missing") as caught:
                await paul.ready(timeout_s=2.0)
            assert caught.value.missing == ("B3",)
            with pytest.raises(NotReadyError, match=r"B3 \(behind B4\)"):
                await alice.ready(timeout_s=2.0)
            waiting = [asyncio.create_task(client.ready()) for client in (paul, alice)]
            await network.restart("B3")
            await asyncio.gather(*waiting)
            assert (await paul.status()).missing == ()
            network.crash("B3")
            await asyncio.sleep(0.1)
            with pytest.raises(NotReadyError):
                await paul.ready(timeout_s=1.0)

    run_in_virtual_time(scenario())


def test_a_complete_network_is_ready_at_once() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(3)) as network, network.connect("B2") as client:
            await client.ready(timeout_s=1.0)

    run_in_virtual_time(scenario())


def test_a_client_whose_broker_is_gone_is_told_so() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(2)) as network, network.connect("B2") as client:
            network.crash("B2")
            with pytest.raises(NotReadyError, match="the broker does not answer"):
                await client.ready(timeout_s=1.0)
            await network.restart("B2")
            await client.ready()

    run_in_virtual_time(scenario())


def test_a_broker_that_does_not_come_is_given_up_after_link_s() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        async with (
            MemoryNetwork(chain(3), absent=["B3"], limits=Limits(link_s=4.0)) as network,
            network.connect("B1", name="paul") as paul,
            network.connect("B2", name="alice") as alice,
            alice.subscribe(NUMBERS) as events,
        ):
            await paul.advertise(NUMBERS)
            await events.in_effect()
            assert 3.0 < loop.time() - began_s < 5.0, "it waits for B3 just so long"
            await paul.publish({"x": 1})
            await paul.flush()
            assert (await anext(events)).content == {"x": 1}
            assert [each.name for each in (await paul.status()).missing] == ["B3"]
            await network.restart("B3")
            await paul.ready(timeout_s=10.0)
            async with network.connect("B3") as late, late.subscribe(NUMBERS) as heard:
                await heard.in_effect()
                await paul.publish({"x": 2})
                assert (await anext(heard)).content == {"x": 2}

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("was_linked", [False, True], ids=["never linked", "lost"])
def test_who_is_told_of_a_gap_learns_why_the_link_could_not_be_made(
    was_linked: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """By the client and in the log of the broker that calls, which knows why."""

    async def scenario() -> None:
        limits = Limits(link_s=4.0)
        absent = [] if was_linked else ["B1"]
        async with (
            MemoryNetwork(chain(2), absent=absent, limits=limits) as network,
            network.connect("B2", name="alice") as alice,
        ):
            if was_linked:
                network.crash("B1")
            gap = await alice.gaps.next()
            assert gap.broker == "B1"
            wanted = "did not come back within 4 s" if was_linked else "no link within 4 s"
            assert gap.detail == f"{wanted}: broker B1 is not running"
            reasons = [getattr(record, "reason", "") for record in caplog.records]
            assert gap.detail in reasons

    run_in_virtual_time(scenario())


def test_a_network_is_not_ready_before_a_part_that_was_given_up_is_back() -> None:
    """Links are up again before all that is behind them can be reached."""

    async def scenario() -> None:
        limits = Limits(link_s=4.0)
        async with (
            MemoryNetwork(chain(4), absent=["B2"], limits=limits, latency_s=lambda: 0.3) as network,
            network.connect("B1", name="paul") as paul,
            network.connect("B4", name="alice") as alice,
            alice.subscribe(NUMBERS) as events,
        ):
            await paul.advertise(NUMBERS)
            await events.in_effect()
            assert paul.gaps.open
            await network.restart("B2")
            await paul.ready(timeout_s=60.0)
            assert not paul.gaps.open
            await paul.publish({"x": 1})
            await paul.flush()
            assert (await anext(events)).content == {"x": 1}

    run_in_virtual_time(scenario())


def test_a_broker_that_was_removed_or_drained_is_not_missing() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(4)) as network, network.connect("B1") as client:
            await network.remove_broker("B4")
            await client.ready(timeout_s=5.0)
            network.nodes["B3"].is_draining = True  # As POST /drain does.
            await stopped(network, "B3")
            await client.ready(timeout_s=5.0)
            await stopped(network, "B2")
            assert [each.name for each in (await client.status()).missing] == ["B2"]

    run_in_virtual_time(scenario())


async def stopped(network: MemoryNetwork, broker: str) -> None:
    """As SIGTERM does it: the configuration still has the broker."""
    from godwit.runtime.stopping import say_goodbye  # noqa: PLC0415

    node = network.nodes[broker]
    node.is_stopping = True
    await say_goodbye(node)
    network.crash(broker)


@pytest.mark.parametrize("seed", range(60))
def test_brokers_start_in_any_order_and_nothing_is_lost(seed: int) -> None:
    """The oracle knows what is in effect, and what must be delivered because of that."""
    global_random.seed(seed)
    run_in_virtual_time(_start_at_random(Random(seed)))


async def _start_at_random(random: Random) -> None:
    topology = random_tree(random.randint(2, 7), random)
    late = [broker for broker in topology.brokers if random.random() < 0.5]
    oracle = Oracle(settle_s=1e9)
    async with AsyncExitStack() as stack:
        network = await stack.enter_async_context(
            MemoryNetwork(topology, absent=late, latency_s=lambda: random.uniform(0.0, 0.01))
        )

        async def at(broker: str) -> WitnessedClient:
            if broker in late:
                await asyncio.sleep(random.uniform(0.0, LATE_S))
                await network.restart(broker)
            client = network.connect(broker, name=f"at-{broker}")
            return await stack.enter_async_context(WitnessedClient(client, oracle))

        async def use(broker: str) -> Client:
            client = await at(broker)
            if random.random() < 0.7:
                await client.subscribe(Filter.parse(NUMBERS))
            await client.advertise(Filter.parse(NUMBERS))
            for x in range(20):
                await client.publish({"x": x})
                await asyncio.sleep(random.uniform(0.0, 0.1))
            await client.client.flush()
            return client.client

        clients = await asyncio.gather(*map(use, topology.brokers))
        await clients[0].ready(timeout_s=1.0)
        assert not oracle.is_owed, "acknowledged, and not delivered"
        assert oracle.is_satisfied, [str(each) for each in oracle.violations]
