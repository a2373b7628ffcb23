"""Clients of broker processes move while they publish and subscribe; nobody misses anything."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random

import msgspec
from benchmarks.moving import travel
from tests.live.test_failures import proxied, run, tables_are_right
from tests.live.tick_clients import TickPublisher, TickSubscriber, tick_publisher, tick_subscriber
from tests.live.watching import tables_become_right

from godwit.client import Client, Moved
from godwit.errors import StayedError
from godwit.overlay.topology import balanced_tree, chain
from godwit.runtime.processes import Processes
from godwit.runtime.settings import Limits, network_of
from godwit.testing.nemesis.tcp_proxy import Proxy

SEVEN = balanced_tree(7, fanout=2)


def tables_know_where_all_are(running: Processes) -> Callable[[list[Client]], Awaitable[None]]:
    """Every broker knows where everybody is, and nothing of where they were."""

    async def check(clients: list[Client]) -> None:
        await tables_become_right(SEVEN, running, [(c, c.session.broker) for c in clients])

    return check


def test_many_clients_move_about_a_network_that_never_rests() -> None:
    run(_travel(seed=1))


async def _travel(seed: int) -> None:
    async with Processes(network_of(SEVEN, http_port=0)) as running:
        travelled = await travel(
            running,
            SEVEN,
            subscriber_moves=60,
            publisher_moves=20,
            per_s=400.0,
            seed=seed,
            when_quiet=tables_know_where_all_are(running),
        )
    assert travelled.oracle.is_satisfied, f"seed {seed}: {travelled.oracle.violations[:5]}"
    assert travelled.oracle.deliveries > travelled.oracle.publications > 300
    assert len(travelled.subscribers) >= 60
    assert len(travelled.publishers) >= 20
    assert not travelled.stayed
    assert not travelled.restarts


def test_clients_move_about_while_brokers_are_killed() -> None:
    run(_travel_among_the_dying(seed=3))


async def _travel_among_the_dying(seed: int) -> None:
    async with Processes(network_of(SEVEN, http_port=0)) as running:
        travelled = await travel(
            running,
            SEVEN,
            subscriber_moves=20,
            publisher_moves=5,
            kills=3,
            per_s=200.0,
            seed=seed,
            when_quiet=tables_know_where_all_are(running),
        )
    assert travelled.oracle.is_satisfied, f"seed {seed}: {travelled.oracle.violations[:5]}"
    assert travelled.oracle.deliveries > travelled.oracle.publications > 300
    assert (travelled.kills, travelled.restarts > 0) == (3, True)


def test_clients_move_about_while_connections_of_clients_and_links_break() -> None:
    run(_travel_on_bad_lines(seed=2))


async def _travel_on_bad_lines(seed: int) -> None:
    random = Random(seed)
    async with contextlib.AsyncExitStack() as stack:
        running, links = await stack.enter_async_context(proxied(SEVEN))
        doors = {broker: await stack.enter_async_context(Proxy()) for broker in SEVEN.brokers}
        for broker, door in doors.items():
            door.target = running.network.of(broker).listen

        async def break_lines() -> None:
            while True:
                await asyncio.sleep(random.expovariate(50.0))
                proxy = random.choice([*doors.values(), *links.values()])
                if random.random() < 0.5:
                    proxy.drop()
                else:
                    proxy.cut_after(random.randint(1, 3_000))

        breaking = asyncio.create_task(break_lines())
        try:
            travelled = await travel(
                running,
                SEVEN,
                subscriber_moves=30,
                publisher_moves=15,
                per_s=200.0,
                seed=seed,
                url=lambda broker: doors[broker].url,
                when_quiet=tables_know_where_all_are(running),
            )
        finally:
            breaking.cancel()
    assert travelled.oracle.is_satisfied, f"seed {seed}: {travelled.oracle.violations[:5]}"
    assert travelled.oracle.deliveries > travelled.oracle.publications > 100
    assert len(travelled.subscribers) + len(travelled.publishers) > 30, travelled.stayed
    connected = 15 + len(travelled.subscribers) + len(travelled.publishers)
    assert sum(proxy.calls for proxy in doors.values()) > connected + 30, "they rarely broke"


# -- brokers that die --------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def three_brokers() -> AsyncIterator[tuple[Processes, TickPublisher, TickSubscriber]]:
    """Paul at B1 speaks, Alice at B2 listens; B3 is free."""
    limits = Limits(link_s=1.0, session_s=5.0)
    network = msgspec.structs.replace(network_of(chain(3), http_port=0), limits=limits)
    async with (
        Processes(network) as running,
        tick_publisher(running.url("B1"), "paul") as paul,
        tick_subscriber(running.url("B2"), "alice") as alice,
    ):
        yield running, paul, alice


def test_a_target_that_dies_is_not_moved_to() -> None:
    run(_target_dies())


async def _target_dies() -> None:
    async with three_brokers() as (running, paul, alice), paul.publishing():
        for delay_s in (0.001, 0.004):
            if paul.client.session.broker == "B3":
                await paul.client.move(running.url("B1"))
            restarts, since = paul.client.restarts, paul.published
            moving = asyncio.create_task(paul.client.move(running.url("B3"), within_s=1.0))
            await asyncio.sleep(delay_s)
            await running.kill("B3")
            (ended,) = await asyncio.gather(moving, return_exceptions=True)
            assert isinstance(ended, Moved | StayedError)
            if isinstance(ended, StayedError):
                await asyncio.sleep(0.3)
                await alice.has_received(paul)
                assert alice.has_received_all(paul, since=since), "nothing is lost"
                assert paul.client.restarts == restarts
            await running.start("B3")
            home = paul.client.session.broker
            await tables_are_right(chain(3), running, (paul, home), (alice, "B2"))
        since = paul.published
        await paul.publish(50)
        await alice.has_received(paul)
        assert alice.has_received_all(paul, since=since)


def test_a_source_that_dies_is_left_behind() -> None:
    run(_source_dies())


async def _source_dies() -> None:
    async with three_brokers() as (running, paul, alice):
        async with tick_subscriber(running.url("B1"), "bob") as bob, paul.publishing():
            moving = [
                asyncio.create_task(person.client.move(running.url("B3"), within_s=3.0))
                for person in (paul, bob)
            ]
            await asyncio.sleep(0.002)
            await running.kill("B1")
            ended = await asyncio.gather(*moving, return_exceptions=True)
            assert all(isinstance(each, Moved | StayedError) for each in ended)
            await running.start("B1")
            clients = [(each, each.client.session.broker) for each in (paul, bob)]
            await tables_are_right(chain(3), running, *clients, (alice, "B2"))
            since = paul.published
            await asyncio.sleep(0.3)
        await alice.has_received(paul)
        assert alice.has_received_all(paul, since=since)


# -- an operator -------------------------------------------------------------------------------


def test_an_operator_sends_clients_elsewhere() -> None:
    run(_operator())


async def _operator() -> None:
    async with three_brokers() as (running, paul, alice):
        async with tick_subscriber(running.url("B1"), "bob") as bob, paul.publishing():
            at, to = running.http("B1"), running.url("B3")
            done = await _godwit("move", "paul", "nobody", "--at", at, "--to", to)
            assert done == (1, "paul moved\n", "nobody is not a client of this broker\n")
            done = await _godwit("move", "--count", "5", "--at", at, "--to", to, "--broker", "B3")
            assert done == (0, "bob moved\n", "")
            wrong = await _godwit(
                "move", "alice", "--at", running.http("B2"), "--to", to, "--broker", "B7"
            )
            assert (wrong[0], wrong[2].startswith("alice stayed: B3 answers at")) == (1, True)
        for person in (alice, bob):
            await person.has_received(paul)
            assert person.has_received_all(paul)
        clients = ((paul, "B3"), (bob, "B3"), (alice, "B2"))
        await tables_are_right(chain(3), running, *clients)


async def _godwit(*arguments: str) -> tuple[int | None, str, str]:
    """A command, run as a user runs it: its exit code and what it says."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "godwit",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    return process.returncode, out.decode(), errors.decode()
