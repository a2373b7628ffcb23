"""Networks in memory with a few clients, and what tests do to their connections."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from godwit.client import Client, Events
from godwit.protocol.connection import Connection
from godwit.runtime.port import ClientPort, LinkPort, Port
from godwit.testing.memory_network import MemoryNetwork

NUMBERS = "x is a number"


@asynccontextmanager
async def subscribed(
    network: MemoryNetwork, broker: str, name: str, filter: str = NUMBERS
) -> AsyncIterator[tuple[Client, Events]]:
    """A client with one subscription in effect."""
    async with network.connect(broker, name=name) as client, client.subscribe(filter) as events:
        await events.in_effect()
        yield client, events


@asynccontextmanager
async def publishing(
    network: MemoryNetwork, broker: str = "B1", name: str = "paul"
) -> AsyncIterator[Client]:
    """A client that may publish numbers."""
    async with network.connect(broker, name=name) as client:
        await client.advertise(NUMBERS)
        yield client


async def publish(client: Client, numbers: range, *, payload_bytes: int = 200) -> None:
    for x in numbers:
        await client.publish({"x": x}, payload=bytes(payload_bytes))
    await client.flush()


async def numbers(events: Events, count: int) -> list[object]:
    return [(await anext(events)).content["x"] for _ in range(count)]


def port_of(network: MemoryNetwork, broker: str, peer: str) -> Port:
    (port,) = (p for p in network.nodes[broker].ports.values() if p.hop.name == peer)
    return port


def client_port(network: MemoryNetwork, broker: str, peer: str) -> ClientPort:
    port = port_of(network, broker, peer)
    assert isinstance(port, ClientPort)
    return port


def link_port(network: MemoryNetwork, broker: str, peer: str) -> LinkPort:
    port = port_of(network, broker, peer)
    assert isinstance(port, LinkPort)
    return port


def waiters(network: MemoryNetwork, broker: str, peer: str) -> Collection[Port]:
    """Ports whose acknowledgement waits for this peer."""
    return network.nodes[broker].outbox.acks.waiters(port_of(network, broker, peer))


def line_of(client: Client) -> Connection:
    connection = client.broker_connection.connection
    assert connection is not None
    return connection


def cut(connection: Connection | None) -> None:
    """End a connection as a broken cable would; neither side has asked for it."""
    if connection is not None:
        connection.lose()
