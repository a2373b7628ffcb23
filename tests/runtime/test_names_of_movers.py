"""The name of a client that moves: it has two sessions, and either may have lost its connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.asynchronous import until
from tests.runtime.scenes import NUMBERS, cut, numbers, port_of, publish, publishing

from godwit.broker.stimuli import LocalClient
from godwit.client import Client, Events
from godwit.client.broker_connection import BrokerPlace
from godwit.errors import RefusedError, TakenOverError
from godwit.migration.move import Phase
from godwit.overlay.topology import chain
from godwit.protocol.connection import Connection
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.virtual_time import run_in_virtual_time

FEED = LocalClient("feed")


def _cut_off(client: Client) -> None:
    """End the connection to the broker that it moves to, and let it make no other one."""

    async def refuse(_: Connection) -> None:
        raise ConnectionRefusedError

    move = client._mover._move
    assert move is not None
    move._new.places[0] = BrokerPlace("nowhere", refuse)
    cut(move._new.connection)


@contextlib.asynccontextmanager
async def cut_off_while_moving() -> AsyncIterator[tuple[MemoryNetwork, Client, Events]]:
    """A client of B3 that moves to B2, which has its subscription and no connection to it."""
    async with (
        MemoryNetwork(chain(3), latency_s=lambda: 0.01) as network,
        network.connect("B3", name="feed") as feed,
        feed.subscribe(NUMBERS) as events,
    ):
        await events.in_effect()
        moving = asyncio.create_task(feed.move(network.url("B2")))
        await until(lambda: feed.move_phase is Phase.SUBSCRIBING)
        await until(lambda: port_of(network, "B2", "feed").stream.received > 0)
        _cut_off(feed)
        try:
            yield network, feed, events
        finally:
            await asyncio.gather(moving, return_exceptions=True)


def test_a_client_that_is_taken_over_while_it_moves_is_told_by_the_broker_that_it_leaves() -> None:
    """Also if the broker of the other client dies: nobody else could tell it then."""

    async def scenario() -> None:
        async with cut_off_while_moving() as (network, feed, events):
            other = network.connect("B1", name="feed", take_over=True)
            calling = asyncio.create_task(other.__aenter__())
            await until(lambda: FEED not in network.nodes["B3"].ports)
            network.crash("B1")
            calling.cancel()
            await asyncio.sleep(5.0)
            assert not feed.gaps.seen
            with pytest.raises(TakenOverError, match="another client has taken over"):
                await anext(events)

    run_in_virtual_time(scenario())


def test_a_client_that_moves_is_connected_if_it_is_to_the_broker_that_it_leaves() -> None:
    async def scenario() -> None:
        async with cut_off_while_moving() as (network, feed, events):
            with pytest.raises(RefusedError, match="feed belongs to a client that is connected"):
                await network.connect("B1", name="feed").__aenter__()
            async with publishing(network, "B1") as paul:
                await publish(paul, range(3))
            assert await numbers(events, 3) == [0, 1, 2]
            assert not feed.gaps.seen

    run_in_virtual_time(scenario())
