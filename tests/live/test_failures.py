"""Brokers crash, links and connections break, and what was promised still holds."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Coroutine
from functools import partial
from random import Random
from typing import Any

import msgspec
import pytest
import uvloop
from tests.live.tick_clients import TickPublisher, TickSubscriber, tick_publisher, tick_subscriber
from tests.live.watching import is_healthy, metric, tables_become_right, until

from godwit.client import connect
from godwit.errors import UnreachableError
from godwit.overlay.topology import Topology, chain
from godwit.runtime.processes import Processes
from godwit.runtime.settings import Limits, NetworkSettings, network_of
from godwit.simulation.oracle import Oracle
from godwit.testing import play_through, random_script
from godwit.testing.nemesis.tcp_proxy import Proxy

TEST_S = 90.0
PAYLOAD = bytes(300)


def run(test: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(TEST_S):
            await test

    uvloop.run(bounded())


@contextlib.asynccontextmanager
async def proxied(
    topology: Topology, limits: Limits | None = None
) -> AsyncIterator[tuple[Processes, dict[tuple[str, str], Proxy]]]:
    """A network whose every link goes through a proxy."""
    async with contextlib.AsyncExitStack() as stack:
        network = network_of(topology, http_port=0)
        proxies: dict[tuple[str, str], Proxy] = {}
        brokers = []
        for broker in network.broker:
            for link in broker.links:
                proxies[broker.id, link] = await stack.enter_async_context(Proxy())
            links = [proxies[broker.id, link].url for link in broker.links]
            brokers.append(msgspec.structs.replace(broker, links=links))
        running = Processes(NetworkSettings(broker=brokers, limits=limits or Limits()))
        for (_, link), proxy in proxies.items():
            proxy.target = running.network.of(link).listen
        yield await stack.enter_async_context(running), proxies


async def tables_are_right(
    topology: Topology, running: Processes, *clients: tuple[TickPublisher | TickSubscriber, str]
) -> None:
    homes = ((person.client, broker) for person, broker in clients)
    await tables_become_right(topology, running, homes)


# -- a broker crashes --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("by", "link_s", "down_s"),
    [
        pytest.param(signal.SIGKILL, 30.0, 0.0, id="and is back before the links are given up"),
        pytest.param(signal.SIGKILL, 0.5, 2.0, id="and is back after the links were given up"),
        pytest.param(signal.SIGHUP, 30.0, 0.0, id="no, it makes room for its successor"),
    ],
)
def test_a_broker_in_the_middle_crashes(by: signal.Signals, link_s: float, down_s: float) -> None:
    run(_broker_crashes(by, link_s, down_s))


async def _broker_crashes(by: signal.Signals, link_s: float, down_s: float) -> None:
    topology = chain(3)
    limits = Limits(link_s=link_s)
    network = msgspec.structs.replace(network_of(topology, http_port=0), limits=limits)
    async with (
        Processes(network) as running,
        tick_publisher(running.url("B1"), "paul") as paul,
        tick_publisher(running.url("B2"), "petra") as petra,
        tick_subscriber(running.url("B2"), "bob") as bob,
        tick_subscriber(running.url("B3"), "alice") as alice,
    ):
        everybody = ((paul, "B1"), (petra, "B2"), (bob, "B2"), (alice, "B3"))
        await paul.publish(100)
        await petra.publish(100)
        for person in (alice, bob):
            await person.has_received(paul)
            await person.has_received(petra)
        await tables_are_right(topology, running, *everybody)

        async with paul.publishing(), petra.publishing():
            assert await running.kill("B2", by) == (0 if by == signal.SIGHUP else -by)
            if down_s:
                await asyncio.sleep(down_s)
            await running.start("B2")
            for broker in topology.brokers:
                await until(partial(is_healthy, running, broker))
            await tables_are_right(topology, running, *everybody)

        is_promised = down_s < link_s  # Else something may be missing up to here.
        since = {person: 0 if is_promised else person.published for person in (paul, petra)}
        for each in (paul, petra):
            await each.publish(200)
            await each.client.flush()  # Nothing was refused meanwhile.
            for person in (alice, bob):
                await person.has_received(each)
                assert person.has_received_all(each, since=since[each])
                assert person.received[each.client.name][:100] == list(range(100))
        await tables_are_right(topology, running, *everybody)
        restarts = [person.client.session.restarts for person in (paul, petra, bob, alice)]
        assert restarts == [0, 1, 1, 0]


# -- a link breaks -----------------------------------------------------------------------------


async def _dropped(proxy: Proxy) -> None:
    for _ in range(8):
        proxy.drop()
        await asyncio.sleep(0.3)


async def _cut_in_the_middle(proxy: Proxy) -> None:
    random = Random(1)
    for _ in range(8):
        proxy.cut_after(random.randint(1, 100_000))
        await asyncio.sleep(0.3)


async def _stalled(proxy: Proxy) -> None:
    proxy.stall()
    await asyncio.sleep(3.0)
    proxy.flow()


async def _stalled_for_too_long(proxy: Proxy) -> None:
    """Longer than the heartbeat puts up with."""
    calls = proxy.calls
    proxy.stall()
    await asyncio.sleep(9.0)
    assert proxy.calls > calls, "nobody noticed the silence"
    proxy.flow()


async def _refused(proxy: Proxy) -> None:
    proxy.refuse()
    await asyncio.sleep(3.0)
    await proxy.accept()


async def _refused_for_long(proxy: Proxy) -> None:
    proxy.refuse()
    await asyncio.sleep(10.0)
    await proxy.accept()


@pytest.mark.parametrize(
    "breaks",
    [_dropped, _cut_in_the_middle, _stalled, _stalled_for_too_long, _refused],
    ids=lambda f: f.__name__[1:],
)
def test_a_link_breaks_and_nothing_is_lost(breaks: Any) -> None:
    run(_link_breaks(breaks))


async def _link_breaks(breaks: Any) -> None:
    topology = chain(3)
    async with (
        proxied(topology, Limits(link_s=20.0)) as (running, proxies),
        tick_publisher(running.url("B1"), "paul") as paul,
        tick_publisher(running.url("B3"), "petra") as petra,
        tick_subscriber(running.url("B1"), "bob") as bob,
        tick_subscriber(running.url("B3"), "alice") as alice,
    ):
        # Large bursts: connections break in the middle of them.
        paul.payload = petra.payload = PAYLOAD
        async with (
            paul.publishing(burst=200),
            petra.publishing(burst=200),
        ):
            await breaks(proxies["B2", "B1"])
        for each in (paul, petra):
            for person in (alice, bob):
                await person.has_received(each)
                assert person.has_received_all(each)
        clients = ((paul, "B1"), (petra, "B3"), (bob, "B1"), (alice, "B3"))
        await tables_are_right(topology, running, *clients)
        assert [person.client.session.deliveries.duplicates for person in (alice, bob)] == [0, 0]


@pytest.mark.parametrize("asleep", ["B2", "B3"], ids=["in the middle", "of the subscriber"])
def test_a_broker_that_is_asleep_for_a_while_loses_nothing(asleep: str) -> None:
    run(_falls_asleep(asleep))


async def _falls_asleep(asleep: str) -> None:
    limits = Limits(heartbeat_s=0.3, link_s=20.0)
    network = msgspec.structs.replace(network_of(chain(3)), limits=limits)
    async with (
        Processes(network) as running,
        tick_publisher(running.url("B1"), "paul") as paul,
        tick_subscriber(running.url("B3"), "alice") as alice,
    ):
        async with paul.publishing():
            os.kill(running.pid(asleep), signal.SIGSTOP)
            try:
                await asyncio.sleep(2.0)  # Longer than a silent peer is put up with.
            finally:
                os.kill(running.pid(asleep), signal.SIGCONT)
            await asyncio.sleep(0.5)
        await alice.has_received(paul)
        assert alice.has_received_all(paul)
        assert alice.client.restarts == 0


@pytest.mark.parametrize("first_seed", [0, 10])
def test_links_break_at_random_while_everything_changes(first_seed: int) -> None:
    """Clients of one script have the names of those before, and are at other brokers."""
    run(_links_break_at_random(first_seed))


async def _links_break_at_random(first_seed: int) -> None:
    scripts = [random_script(first_seed + n, brokers=4, is_quiet=False) for n in range(6)]
    random = Random(first_seed)
    async with proxied(scripts[0].topology) as (running, proxies):

        async def break_links() -> None:
            while True:
                await asyncio.sleep(random.expovariate(40.0))
                random.choice(list(proxies.values())).drop()

        breaking = asyncio.create_task(break_links())
        try:
            for script in scripts:
                oracle = Oracle(settle_s=60.0)
                await play_through(running.url, script, oracle)
                oracle.finish(0.0)
                assert oracle.is_satisfied, f"seed {script.seed}: {oracle.violations}"
                assert oracle.deliveries > 20, "a script without deliveries proves nothing"
        finally:
            breaking.cancel()
    calls = sum(proxy.calls for proxy in proxies.values())
    assert calls > 2 * len(proxies), "links did not break often"


# -- a client's connection breaks --------------------------------------------------------------


@pytest.mark.parametrize(
    "breaks",
    [_dropped, _cut_in_the_middle, _stalled, _refused, _refused_for_long],
    ids=lambda f: f.__name__[1:],
)
def test_connections_of_clients_break_and_nothing_is_lost(breaks: Any) -> None:
    run(_connections_break(breaks))


async def _connections_break(breaks: Any) -> None:
    topology = chain(2)
    async with (
        Processes(network_of(topology, http_port=0)) as running,
        Proxy() as to_b1,
        Proxy() as to_b2,
    ):
        to_b1.target, to_b2.target = (
            running.network.of("B1").listen,
            running.network.of("B2").listen,
        )
        async with (
            tick_publisher(to_b1.url, "paul") as paul,
            tick_subscriber(to_b2.url, "alice") as alice,
            tick_publisher(running.url("B2"), "petra") as petra,
            tick_subscriber(running.url("B1"), "bob") as bob,
        ):
            paul.payload = petra.payload = PAYLOAD
            async with (
                paul.publishing(burst=200),
                petra.publishing(burst=200),
            ):
                await asyncio.gather(breaks(to_b1), breaks(to_b2))
            for each in (paul, petra):
                for person in (alice, bob):
                    await person.has_received(each)
                    assert person.has_received_all(each)
            clients = ((paul, "B1"), (petra, "B2"), (bob, "B1"), (alice, "B2"))
            await tables_are_right(topology, running, *clients)
            sessions = [each.client.session for each in (paul, petra, alice, bob)]
            assert [(s.restarts, s.deliveries.duplicates) for s in sessions] == 4 * [(0, 0)]


def test_a_client_that_comes_back_at_another_broker_is_served_there() -> None:
    run(_comes_back_elsewhere())


async def _comes_back_elsewhere() -> None:
    """Its first broker still waits for it, and has told the others what it wanted."""
    topology = chain(2)
    async with (
        Processes(network_of(topology)) as running,
        Proxy() as to_b1,
        tick_publisher(running.url("B1"), "paul") as paul,
    ):
        to_b1.target = running.network.of("B1").listen
        gone = await connect(to_b1.url, name="alice", connect_s=0.5).__aenter__()
        async with gone.subscribe("class = 'TICK'") as events:
            await events.in_effect()
            to_b1.refuse()
            async with tick_subscriber(running.url("B2"), "alice") as alice:
                await paul.publish(10)
                await alice.has_received(paul)
                assert alice.has_received_all(paul)
        with contextlib.suppress(UnreachableError):
            await gone.close()


def test_a_subscriber_whose_broker_is_gone_need_not_wait_to_close() -> None:
    run(_closes_alone())


async def _closes_alone() -> None:
    async with Processes(network_of(chain(1))) as running:
        client = await connect(running.url("B1"), name="alice").__aenter__()
        async with client.subscribe("n is present") as events:
            await events.in_effect()
            await running.kill("B1")
        async with asyncio.timeout(5.0):  # A publisher would wait twice as long for the broker.
            await client.close()


# -- a broker is told to stop ------------------------------------------------------------------


def test_a_broker_that_is_told_to_stop_passes_on_what_it_took_in() -> None:
    run(_stop_one())


async def _stop_one() -> None:
    topology = chain(3)
    async with Processes(network_of(topology, http_port=0)) as running:
        async with (
            tick_publisher(running.url("B1"), "paul") as paul,
            tick_subscriber(running.url("B3"), "alice") as alice,
        ):
            await paul.publish(5_000)
            await paul.client.flush()  # Acknowledged: from here on B1 answers for it.
            taken = paul.published
            async with paul.publishing():
                os.kill(running.pid("B1"), signal.SIGTERM)
                async with asyncio.timeout(10):
                    assert await running.first_end() == "broker B1 ended with code 0"
            assert await metric(running, "B2", "godwit_advertisements") == 0.0
            assert alice.received["paul"][:taken] == list(range(taken))

            # When it is back, so is its client, with what it could not get rid of.
            await running.start("B1")
            await tables_are_right(topology, running, (paul, "B1"), (alice, "B3"))
            since = paul.published
            await paul.publish(100)
            await alice.has_received(paul)
            assert alice.has_received_all(paul, since=since)
        assert await running.stop() == {"B1": 0, "B2": 0, "B3": 0}
