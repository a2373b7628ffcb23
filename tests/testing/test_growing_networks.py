"""Brokers and links join and leave a network in memory; every delivery is checked by the oracle."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from random import Random

import pytest
from tests.asynchronous import run, until
from tests.sweeps import seeds

from godwit.content.filters import Filter
from godwit.errors import UsageError
from godwit.overlay.topology import chain, random_tree
from godwit.testing import MemoryNetwork, Oracle, WitnessedClient, run_in_virtual_time, table_errors

NUMBERS = Filter.parse("x is a number")


async def tables_are_right(network: MemoryNetwork, *clients: WitnessedClient) -> None:
    sessions = [each.client.session for each in clients]
    await until(lambda: not table_errors(network.topology, network.tables(), sessions))


async def publish(publisher: WitnessedClient, count: int) -> None:
    for x in range(count):
        await publisher.publish({"x": x})
    await publisher.client.flush()


def test_a_broker_joins_and_its_clients_publish_and_subscribe() -> None:
    async def scenario() -> None:
        oracle = Oracle()
        async with (
            MemoryNetwork(chain(2)) as network,
            WitnessedClient(network.connect("B1", name="paul"), oracle) as paul,
        ):
            await paul.advertise(NUMBERS)
            await network.add_broker("B9", linked_to="B2")
            assert network.topology.neighbours("B9") == ("B2",)
            await tables_are_right(network, paul)
            async with WitnessedClient(network.connect("B9", name="petra"), oracle) as petra:
                await petra.advertise(NUMBERS)
                await petra.subscribe(NUMBERS)
                await paul.subscribe(NUMBERS)
                await tables_are_right(network, paul, petra)
                await publish(paul, 10)
                await publish(petra, 10)
                await until(lambda: not oracle.is_owed)
        assert oracle.is_satisfied, oracle.violations
        assert oracle.deliveries == 20

    run(scenario())


def test_a_broker_leaves_and_the_others_go_on() -> None:
    async def scenario() -> None:
        oracle = Oracle()
        async with (
            MemoryNetwork(chain(3)) as network,
            WitnessedClient(network.connect("B1", name="paul"), oracle) as paul,
            WitnessedClient(network.connect("B3", name="alice"), oracle) as alice,
        ):
            await paul.advertise(NUMBERS)
            await alice.subscribe(NUMBERS)
            await publish(paul, 10)
            await alice.client.move(network.url("B2"))
            await network.remove_broker("B3")
            assert list(network.nodes) == list(network.topology.brokers) == ["B1", "B2"]
            await tables_are_right(network, paul, alice)
            await publish(paul, 10)
            await until(lambda: not oracle.is_owed)
            with pytest.raises(UsageError, match="there is no broker 'B3'"):
                network.connect("B3")
        assert oracle.is_satisfied, oracle.violations
        assert oracle.deliveries == 20

    run(scenario())


def test_what_a_leaving_broker_holds_for_a_neighbour_arrives() -> None:
    async def scenario() -> None:
        oracle = Oracle()
        async with (
            MemoryNetwork(chain(2), latency_s=lambda: 0.5) as network,
            WitnessedClient(network.connect("B1", name="alice"), oracle) as alice,
            WitnessedClient(network.connect("B2", name="paul"), oracle) as paul,
        ):
            await paul.advertise(NUMBERS)
            await alice.subscribe(NUMBERS)
            for x in range(100):
                await paul.publish({"x": x})
            await asyncio.sleep(0.6)  # Accepted by B2, and on the way to B1.
            assert oracle.is_owed
            await network.remove_broker("B2")
            await asyncio.sleep(60.0)
            paul.client.abort()
            assert not oracle.is_owed
        assert oracle.is_satisfied, oracle.violations
        assert oracle.deliveries == 100

    run_in_virtual_time(scenario())


def test_a_link_is_replaced() -> None:
    """Between the two halves of a network, which do not reach each other meanwhile."""

    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(4)) as network,
            network.connect("B1", name="paul") as paul,
            network.connect("B4", name="alice") as alice,
            alice.subscribe("x is a number") as events,
        ):
            await paul.advertise("x is a number")
            await events.in_effect()
            await network.remove_link("B2", "B3")
            halves = network.tables()
            assert not halves["B3"].advertisements
            assert not halves["B2"].subscriptions
            await paul.publish({"x": 1})
            await paul.flush()
            await network.add_link("B4", "B1")
            sessions = [paul.session, alice.session]
            await until(lambda: not table_errors(network.topology, network.tables(), sessions))
            await paul.publish({"x": 2})
            assert (await anext(events)).content == {"x": 2}

    run(scenario())


def test_a_link_is_removed_from_either_end_and_while_it_is_down() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(3)) as network:
            await network.remove_link("B2", "B1")
            network.crash("B3")
            await network.remove_link("B2", "B3")
            assert not network.topology.links
            assert not network.tables()["B2"].told
            await network.restart("B3")
            assert not network.tables()["B3"].told

    run(scenario())


def test_what_cannot_be_changed() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(2)) as network:
            with pytest.raises(UsageError, match="two brokers have the id 'B2'"):
                await network.add_broker("B2", linked_to="B1")
            with pytest.raises(UsageError, match="there is no broker 'B7'"):
                await network.add_broker("B9", linked_to="B7")
            with pytest.raises(UsageError, match="there is no broker 'B7'"):
                await network.remove_broker("B7")
            with pytest.raises(UsageError, match="form a cycle"):
                await network.add_link("B1", "B2")
            await network.add_broker("B3")
            with pytest.raises(UsageError, match="B1 and B3 are not linked"):
                await network.remove_link("B1", "B3")
            await network.remove_broker("B3")
            await network.remove_broker("B2")
            with pytest.raises(UsageError, match="is the last one"):
                await network.remove_broker("B1")

    run(scenario())


def test_a_broker_that_crashed_can_be_removed() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(3)) as network:
            network.crash("B3")
            await network.remove_broker("B3")
            assert network.topology == chain(2)
            with pytest.raises(UsageError, match="there is no broker 'B3'"):
                await network.restart("B3")

    run(scenario())


# -- at random -------------------------------------------------------------------------------------


class Nomad:
    """A client that publishes all the time, and lives at one broker after the other."""

    def __init__(self, client: WitnessedClient, random: Random) -> None:
        self.client = client
        self._random = random

    async def publish(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + seconds
        while loop.time() < end_s:
            await self.client.publish({"x": self._random.randrange(10)})
            await asyncio.sleep(self._random.expovariate(200.0))


async def grow_and_shrink(seed: int) -> Oracle:
    """Leaves join and leave while clients publish; a client moves to each and away again."""
    random, oracle = Random(seed), Oracle()
    topology = random_tree(random.randint(1, 4), random)
    latency_s = random.choice((0.0001, 0.01))
    async with (
        MemoryNetwork(topology, latency_s=lambda: random.uniform(0.0, latency_s)) as network,
        AsyncExitStack() as stack,
    ):
        nomads = []
        for number in range(3):
            connected = network.connect(random.choice(topology.brokers), name=f"c{number}")
            client = await stack.enter_async_context(WitnessedClient(connected, oracle))
            await client.advertise(NUMBERS)
            await client.subscribe(Filter.parse(f"x < {random.choice((5, 10))}"))
            nomads.append(Nomad(client, random))
        clients = [each.client for each in nomads]
        async with asyncio.TaskGroup() as publishing:
            for each in nomads:
                publishing.create_task(each.publish(5.0))
            for number in range(6):
                name, guest = f"N{number}", random.choice(clients)
                await network.add_broker(name, linked_to=random.choice(list(network.nodes)))
                await tables_are_right(network, *clients)
                home = guest.client.session.broker
                await guest.client.move(network.url(name), within_s=60.0)
                await asyncio.sleep(random.uniform(0.0, 0.5))
                if random.random() < 0.7:
                    await guest.client.move(network.url(home), within_s=60.0)
                    await network.remove_broker(name)
        await asyncio.sleep(10.0)
        await tables_are_right(network, *clients)
    oracle.finish(0.0)
    return oracle


@pytest.mark.parametrize("seed", range(seeds(5, whole=10)))
def test_a_network_grows_and_shrinks_while_clients_publish(seed: int) -> None:
    oracle = run_in_virtual_time(grow_and_shrink(seed))
    assert oracle.is_satisfied, oracle.violations[:5]
    assert oracle.deliveries > 1_000
