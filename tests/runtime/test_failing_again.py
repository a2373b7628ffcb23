"""A broker that fails again, soon after it has come back, beside one that has failed as well."""

from __future__ import annotations

import asyncio

from tests.asynchronous import until
from tests.runtime.scenes import numbers, publishing, subscribed

from godwit.broker.stimuli import Neighbour
from godwit.client import Client
from godwit.client.broker_connection import BrokerFinder, BrokerPlace
from godwit.overlay.topology import chain
from godwit.protocol.connection import Connection
from godwit.runtime.settings import Limits
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.virtual_time import run_in_virtual_time

LIMITS = Limits(link_s=90.0, session_s=90.0, restart_s=8.0)


async def _refuse(_: Connection) -> None:
    raise ConnectionRefusedError


def keep_out(client: Client) -> BrokerPlace | BrokerFinder:
    """Let a client that is away reach no broker; returns where it would be."""
    places = client.broker_connection.places
    home, places[0] = places[0], BrokerPlace("nowhere", _refuse)
    return home


def test_a_broker_that_fails_twice_learns_of_it_from_a_neighbour_that_failed_with_it() -> None:
    """The neighbour does not remember it, and nothing that it sent in between has arrived."""

    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3), limits=LIMITS, latency_s=lambda: 0.01) as network,
            subscribed(network, "B3", "alice") as (alice, events),
            publishing(network, "B1") as paul,
        ):
            network.crash("B2")
            network.crash("B3")
            home = keep_out(alice)
            for x in range(10):
                await paul.publish({"x": x})
            starting = [asyncio.create_task(network.restart("B2"))]
            await until(lambda: "B2" in network.nodes and network.nodes["B2"].is_recovering)
            b2 = network.nodes["B2"]
            await asyncio.sleep(LIMITS.restart_s - 0.1)
            starting.append(asyncio.create_task(network.restart("B3")))
            await until(lambda: Neighbour("B3") in b2.ports)
            assert not b2.ports[Neighbour("B3")].stream.received
            network.crash("B3")
            starting.append(asyncio.create_task(network.restart("B3")))
            await asyncio.sleep(1.0)  # The client has the rest of `restart_s` for its back-off.
            alice.broker_connection.places[0] = home
            await paul.flush()
            await until(lambda: alice.broker_connection.connection is not None)
            await asyncio.sleep(20.0)
            assert len(events.waiting) == 10
            assert await numbers(events, 10) == list(range(10))
            await asyncio.gather(*starting)

    run_in_virtual_time(scenario())
