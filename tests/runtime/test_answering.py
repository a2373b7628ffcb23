"""Who answers for what: reads are confirmed when their outputs are."""

from __future__ import annotations

import asyncio

from tests.asynchronous import run, until
from tests.runtime.scenes import client_port, line_of, numbers, publishing, subscribed, waiters

from godwit.client.broker_connection import BrokerPlace
from godwit.overlay.topology import chain
from godwit.runtime.settings import Limits
from godwit.testing.memory_network import MemoryNetwork


def test_a_publication_is_acknowledged_when_its_subscriber_has_it() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3)) as network,
            publishing(network, "B1") as paul,
            subscribed(network, "B3", "alice") as (alice, events),
        ):
            line_of(alice).pause_reading()
            await paul.publish({"x": 1})
            await until(lambda: bool(waiters(network, "B3", "alice")))
            for broker, neighbour in (("B1", "B2"), ("B2", "B3")):
                assert waiters(network, broker, neighbour)
            assert paul.session.unacknowledged == 1
            line_of(alice).resume_reading()
            await paul.flush()
            assert paul.session.unacknowledged == 0
            assert await numbers(events, 1) == [1]

    run(scenario())


def test_a_subscriber_that_is_away_is_answered_for_by_its_broker() -> None:
    async def scenario() -> None:
        limits = Limits(patience_s=0.05, session_s=5.0)
        async with (
            MemoryNetwork(chain(2), limits=limits) as network,
            publishing(network, "B1") as paul,
            subscribed(network, "B2", "alice") as (alice, events),
        ):
            home = alice.broker_connection.places[0]

            async def nowhere(_connection: object) -> None:
                raise ConnectionRefusedError

            alice.broker_connection.places[0] = BrokerPlace(home.where, nowhere)
            line_of(alice).lose()
            await paul.publish({"x": 1})
            await asyncio.sleep(0.01)
            assert paul.session.unacknowledged == 1, "it may be back in a moment"
            await paul.flush()
            port = client_port(network, "B2", "alice")
            assert port.traffic.isolations == 0, "it is away, and not slow"
            alice.broker_connection.places[0] = home
            assert await numbers(events, 1) == [1]
            await paul.publish({"x": 2})
            await paul.flush()
            assert await numbers(events, 1) == [2]
            assert not waiters(network, "B2", "alice")

    run(scenario())
