"""Links that would close a cycle are refused at the end that made them; nothing else notices."""

from __future__ import annotations

import asyncio
import random as global_random
from contextlib import AsyncExitStack
from random import Random

import pytest
from tests.asynchronous import until
from tests.runtime.scenes import cut, link_port

from godwit.client import Client, Events
from godwit.overlay.topology import Topology, chain, topology
from godwit.runtime.dialling import Dialler
from godwit.testing import MemoryNetwork, run_in_virtual_time

NUMBERS = "x is a number"
#: Much more than it takes.
SETTLE_S = 60.0


class Links:
    """Links that brokers of a network in memory dial, whether they close a cycle or not."""

    def __init__(self, network: MemoryNetwork) -> None:
        self.network = network
        self.diallers: dict[tuple[str, str], Dialler] = {}

    def dial(self, *links: tuple[str, str]) -> None:
        for link in links:
            self.diallers[link] = self.network._dial(*link)

    async def settle(self) -> None:
        async with asyncio.timeout(SETTLE_S):
            await until(
                lambda: all(self.is_up(link) or self.is_refused(link) for link in self.diallers)
            )

    def is_up(self, link: tuple[str, str]) -> bool:
        return self.diallers[link].trouble is None

    def is_refused(self, link: tuple[str, str]) -> bool:
        return "would close a cycle" in (self.diallers[link].trouble or "")

    @property
    def up(self) -> list[tuple[str, str]]:
        return [link for link in self.diallers if self.is_up(link)]


def parts(names: tuple[str, ...], links: list[tuple[str, str]]) -> set[frozenset[str]]:
    found: Topology = topology(names, links)
    return {frozenset(found.distances(name)) for name in names}


async def check_use(network: MemoryNetwork, groups: set[frozenset[str]]) -> None:
    """Everyone advertises, subscribes and publishes, and receives what its part publishes."""
    async with AsyncExitStack() as stack:

        async def start(broker: str) -> tuple[Client, Events]:
            client = await stack.enter_async_context(network.connect(broker))
            events = await stack.enter_async_context(client.subscribe(NUMBERS))
            await events.in_effect()
            await client.advertise(NUMBERS)
            return client, events

        async with asyncio.timeout(SETTLE_S):
            users = dict(
                zip(network.nodes, await asyncio.gather(*map(start, network.nodes)), strict=True)
            )
            for number, (client, _) in enumerate(users.values()):
                await client.publish({"x": number})
                await client.flush()
            for group in groups:
                for broker in group:
                    events = users[broker][1]
                    got = {(await anext(events)).publisher for _ in range(len(group) - 1)}
                    assert got == {users[other][0].name for other in group if other != broker}


def test_a_link_that_closes_a_cycle_is_refused_with_its_way() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(3)) as network:
            links = Links(network)
            links.dial(("B3", "B1"))
            await links.settle()
            assert links.diallers["B3", "B1"].trouble == (
                "a link from B3 to B1 would close a cycle: they are linked by B3 - B2 - B1;"
                " remove one of these links, or do not make this one"
            )
            await check_use(network, {frozenset(network.nodes)})
            await network.remove_link("B1", "B2")
            async with asyncio.timeout(SETTLE_S):
                await until(lambda: links.is_up(("B3", "B1")))
            await check_use(network, {frozenset(network.nodes)})

    run_in_virtual_time(scenario())


def test_two_links_between_two_parts_race(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        two_parts = topology("ABCD", [("A", "B"), ("C", "D")])
        async with MemoryNetwork(two_parts, latency_s=lambda: 0.01) as network:
            links = Links(network)
            links.dial(("A", "C"), ("D", "B"))
            await links.settle()
            # Each may have been refused in favour of the other; then the first to try again is up.
            async with asyncio.timeout(SETTLE_S):
                await until(lambda: len(links.up) == 1)
            assert {record.message for record in caplog.records} == {"link refused"}
            await links.settle()
            assert len(links.up) == 1
            await check_use(network, {frozenset(network.nodes)})

    run_in_virtual_time(scenario())


def test_a_link_waits_for_those_that_are_expected_and_is_refused_for_their_sake() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(3), absent=["B2"]) as network:
            links = Links(network)
            links.dial(("B3", "B1"))
            await asyncio.sleep(network.nodes["B1"].limits.link_s / 2)
            assert not links.is_up(("B3", "B1"))
            await network.restart("B2")
            await links.settle()
            assert "B3 - B2 - B1" in str(links.diallers["B3", "B1"].trouble)
            await check_use(network, {frozenset(network.nodes)})

    run_in_virtual_time(scenario())


def test_both_ends_of_a_way_have_restarted_and_do_not_know_it_yet() -> None:
    """X calls B1 and B2 before their neighbours, which dial them, have called again."""

    async def scenario() -> None:
        tree = topology(("B1", "B2", "B3", "B4"), [("B1", "B3"), ("B3", "B4"), ("B2", "B4")])
        async with MemoryNetwork(tree) as network:
            await network.add_broker("X")
            network.crash("B1")
            network.crash("B2")
            await asyncio.sleep(3.0)
            await asyncio.gather(network.restart("B1"), network.restart("B2"))
            assert not network.nodes["B1"].ports
            assert not network.nodes["B2"].ports
            links = Links(network)
            links.dial(("X", "B1"), ("X", "B2"))
            await links.settle()
            assert len(links.up) == 1, "the other one would close a cycle"
            await check_use(network, {frozenset(network.nodes)})

    run_in_virtual_time(scenario())


def test_what_is_known_of_a_broker_that_has_left_refuses_no_link() -> None:
    """C has heard of the links of X while it was cut off from A, which knows that X has left."""

    async def scenario() -> None:
        tree = topology("ABCD", [("A", "B"), ("B", "C"), ("C", "D")])
        async with MemoryNetwork(tree) as network:
            await network.add_broker("X", linked_to="C")
            links = Links(network)
            for dialling, dialled in (("C", "B"), ("B", "A")):
                network._dialling[dialling][dialled].cancel()
                port = link_port(network, dialling, dialled)
                cut(port.connection)
                for name, other in ((dialling, dialled), (dialled, dialling)):
                    network.nodes[name].remove(link_port(network, name, other), "did not come back")
            links.dial(("X", "A"))
            await links.settle()
            assert links.up == [("X", "A")]
            await network.remove_broker("X")
            del links.diallers["X", "A"]
            links.dial(("B", "A"))
            await links.settle()
            links.dial(("C", "B"))
            async with asyncio.timeout(SETTLE_S):
                await until(lambda: len(links.up) == 2)
            await check_use(network, {frozenset("ABCD")})

    run_in_virtual_time(scenario())


def test_a_link_is_made_beside_a_broker_that_waits_for_one_that_does_not_come() -> None:
    """Waves wait for configured neighbours until these are given up, after `link_s`."""

    async def scenario() -> None:
        async with MemoryNetwork(chain(3), absent=["B1"]) as network:
            await network.add_broker("X")
            await network.add_broker("Y", linked_to="X")
            links = Links(network)
            links.dial(("X", "B3"))
            async with asyncio.timeout(SETTLE_S):
                await links.diallers["X", "B3"].linked.wait()
            assert asyncio.get_running_loop().time() >= network.nodes["B2"].limits.link_s
            await check_use(network, {frozenset(network.nodes)})

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("age_s", [0.0, 20.0], ids=["new brokers", "old brokers"])
def test_links_that_one_end_has_given_up_come_back_while_another_has_taken_their_place(
    age_s: float,
) -> None:
    """B2 was asleep: both neighbours have given it up, and it has not noticed."""

    async def scenario() -> None:
        async with MemoryNetwork(chain(3), latency_s=lambda: 0.01) as network:
            links = Links(network)
            await asyncio.sleep(age_s)
            for dialling, dialled in (("B2", "B1"), ("B3", "B2")):
                network._dialling[dialling][dialled].cancel()
            for awake in ("B1", "B3"):
                port = link_port(network, awake, "B2")
                cut(port.connection)
                network.nodes[awake].remove(port, "did not come back")
            links.dial(("B3", "B1"))
            await links.settle()
            assert links.up == [("B3", "B1")]
            assert not any(port.is_connected for port in network.nodes["B2"].ports.values())
            links.dial(("B2", "B1"), ("B3", "B2"))
            links.diallers["B2", "B1"]._link = link_port(network, "B2", "B1")
            await links.settle()
            await asyncio.sleep(5.0)
            assert len(links.up) == 2, "one of the three would close a cycle"
            await check_use(network, {frozenset(network.nodes)})

    run_in_virtual_time(scenario())


def test_a_second_broker_of_a_name_is_refused() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(3)) as network, MemoryNetwork(chain(1)) as others:
            stranger = others.nodes["B1"]
            stranger.name = "B3"
            dialler = Dialler(stranger, network._opener("B1"), where="B1")
            task = asyncio.create_task(dialler.run())
            async with asyncio.timeout(SETTLE_S):
                await until(lambda: "would close a cycle" in str(dialler.trouble))
            task.cancel()
            await check_use(network, {frozenset(network.nodes)})

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("seed", range(60))
def test_random_links_that_are_dialled_together_become_a_spanning_forest(seed: int) -> None:
    global_random.seed(seed)
    run_in_virtual_time(_dial_at_random(Random(seed), with_crash=seed % 2 == 1))


async def _dial_at_random(random: Random, *, with_crash: bool) -> None:
    names = tuple(f"B{number}" for number in range(random.randint(2, 7)))
    pairs = [(a, b) for a in names for b in names if a < b]
    wanted = [
        pair if random.random() < 0.5 else pair[::-1]
        for pair in random.sample(pairs, random.randint(1, len(pairs)))
    ]
    longest_s = random.choice((0.0, 0.01, 0.2))
    async with MemoryNetwork(
        topology(names, []), latency_s=lambda: random.uniform(0.0, longest_s)
    ) as network:
        links = Links(network)
        for link in wanted:
            links.dial(link)
            if random.random() < 0.3:
                await asyncio.sleep(random.uniform(0.0, 2 * longest_s))
        if with_crash:
            await asyncio.sleep(random.uniform(0.0, 8 * longest_s))
            victim = random.choice(names)
            network.crash(victim)
            await asyncio.sleep(random.uniform(0.0, 2.0))
            await network.restart(victim)
            links.dial(*(link for link in wanted if link[0] == victim))
            await asyncio.sleep(15.0)  # Until neighbours have given its first run up, if they do.
        await links.settle()
        await asyncio.sleep(5.0)  # Links that were refused for others that then failed come up.
        groups = parts(names, links.up)
        assert groups == parts(names, wanted), "connected as it was asked for"
        assert len(links.up) == len(names) - len(groups), "a forest"
        for link in wanted:
            if not links.is_up(link):
                assert all(end in str(links.diallers[link].trouble) for end in link)
        await check_use(network, groups)
