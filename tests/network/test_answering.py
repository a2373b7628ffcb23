"""Who answers for what: reads are confirmed when their outputs are."""

from __future__ import annotations

import asyncio

from tests.asynchronous import run, until
from tests.network.scenes import (
    client_port,
    line_of,
    link_port,
    numbers,
    publishing,
    subscribed,
)

from godwit.client.line import Place
from godwit.network.answering import Unanswered
from godwit.network.settings import Limits
from godwit.overlay.topology import chain
from godwit.testing import MemoryNetwork


class Peer:
    def __init__(self) -> None:
        self.answered = 0

    def has_answered(self, position: int) -> bool:
        return self.answered >= position


def test_a_read_is_confirmed_when_all_have_answered() -> None:
    reads, a, b = Unanswered[Peer](), Peer(), Peer()
    reads.add(7, 100, {a: 3, b: 5})
    assert reads.settle() == (0, a)
    a.answered = 3
    assert reads.settle() == (0, b)
    assert reads.size_bytes == 100
    b.answered = 6
    assert reads.settle() == (7, None)
    assert (len(reads), reads.size_bytes) == (0, 0)


def test_reads_are_confirmed_in_their_order() -> None:
    reads, a, b = Unanswered[Peer](), Peer(), Peer()
    reads.add(1, 10, {a: 1})
    reads.add(2, 10, {})
    reads.add(3, 10, {b: 1})
    assert reads.settle() == (0, a), "A1: also what nobody has to answer for"
    a.answered = 1
    assert reads.settle() == (2, b)
    assert reads.settle() == (0, b), "the others were said"


def test_a_publication_is_acknowledged_when_its_subscriber_has_it() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3)) as network,
            publishing(network, "B1") as paul,
            subscribed(network, "B3", "alice") as (alice, events),
        ):
            line_of(alice).pause_reading()
            await paul.publish({"x": 1})
            await until(lambda: bool(client_port(network, "B3", "alice").waiters))
            for broker, neighbour in (("B1", "B2"), ("B2", "B3")):
                assert link_port(network, broker, neighbour).waiters
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
            home = alice.line.places[0]

            async def nowhere(_connection: object) -> None:
                raise ConnectionRefusedError

            alice.line.places[0] = Place(home.where, nowhere)
            line_of(alice).lose()
            await paul.publish({"x": 1})
            await asyncio.sleep(0.01)
            assert paul.session.unacknowledged == 1, "it may be back in a moment"
            await paul.flush()
            port = client_port(network, "B2", "alice")
            assert port.traffic.isolations == 0, "it is away, and not slow"
            alice.line.places[0] = home
            assert await numbers(events, 1) == [1]
            await paul.publish({"x": 2})
            await paul.flush()
            assert await numbers(events, 1) == [2]
            assert not port.waiters

    run(scenario())
