"""What a broker says leaves in its order, and counts once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace
from tests.asynchronous import run

from godwit.broker.effects import Deliver, Effect, Notify, Send
from godwit.broker.stimuli import Hop, LocalClient, Neighbour
from godwit.content.messages import AdvertisementId, Letter, Mark, Publication, Refusal
from godwit.overlay.topology import chain
from godwit.protocol.frames import HEADER, Dropped, Frame, decode_from_broker, decode_to_client
from godwit.protocol.frames import encode_body as body_of
from godwit.protocol.stamps import stamp_of
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.outbox import HOPS_MAX
from godwit.runtime.settings import Limits
from godwit.testing.memory_network import MemoryNetwork

ANN, BOB, B2 = LocalClient("ann"), LocalClient("bob"), Neighbour("B2")
NOTICE = Refusal(about="something", reason="none")
LETTER = Letter(module="pop", body=b"")
ACCEPTED_S = 12.5


def came(sequence: int) -> Publication:
    return Publication(
        publisher="paul",
        sequence=sequence,
        advertisement=AdvertisementId("paul/a"),
        content={"x": sequence},
    )


def stamped(sequence: int) -> Publication:
    return replace(came(sequence), accepted_s=ACCEPTED_S)


@asynccontextmanager
async def stage(limits: Limits | None = None) -> AsyncIterator[BrokerNode]:
    """B1, with B2, Ann and Bob."""
    async with (
        MemoryNetwork(chain(2), limits=limits) as network,
        network.connect("B1", name="ann"),
        network.connect("B1", name="bob"),
    ):
        yield network.nodes["B1"]


def perform(node: BrokerNode, *wanted: list[Effect]) -> None:
    """What is asked for publications 0, 1, 2 ... of a client."""
    bodies = [body_of(came(sequence)) for sequence in range(len(wanted))]
    node.outbox.perform_run(zip(wanted, bodies, strict=True), stamp_of(ACCEPTED_S))


def queued(node: BrokerNode, hop: Hop) -> list[tuple[Frame, int]]:
    """What waits for a peer, and the links it says it has crossed."""
    decode = decode_from_broker if isinstance(hop, Neighbour) else decode_to_client
    return [
        (decode(frame[HEADER.size :]), HEADER.unpack_from(frame)[1])
        for frame in node.ports[hop].stream.frames()
    ]


def test_publications_of_a_run_go_to_each_peer_in_their_order() -> None:
    async def scenario() -> None:
        async with stage() as node:
            perform(
                node,
                [Send(B2, stamped(0), 1), Deliver((ANN, BOB), stamped(0), 0)],
                [],
                [Deliver((BOB,), stamped(2), 0)],
                [Deliver((ANN, BOB), stamped(3), 0)],
            )
            assert queued(node, B2) == [(stamped(0), 1)]
            assert queued(node, ANN) == [(stamped(0), 0), (stamped(3), 0)]
            assert queued(node, BOB) == [(stamped(0), 0), (stamped(2), 0), (stamped(3), 0)]
            assert node.outbox.deliveries == 5
            assert set(node.outbox.write()) == {node.ports[hop] for hop in (B2, ANN, BOB)}

    run(scenario())


def test_anything_else_keeps_its_place_among_the_publications() -> None:
    async def scenario() -> None:
        async with stage() as node:
            perform(
                node,
                [Deliver((ANN,), stamped(0), 0), Send(B2, stamped(0), 1), Send(B2, LETTER)],
                [Notify(ANN, NOTICE)],
                [Deliver((ANN,), stamped(2), 0), Send(B2, stamped(2), 1)],
            )
            assert [said for said, _ in queued(node, B2)] == [stamped(0), LETTER, stamped(2)]
            assert [said for said, _ in queued(node, ANN)] == [stamped(0), NOTICE, stamped(2)]

    run(scenario())


def test_control_overtakes_and_counts_once() -> None:
    async def scenario() -> None:
        async with stage() as node:
            urgent = replace(stamped(1), is_control=True)
            wanted: list[list[Effect]] = [
                [Deliver((ANN,), stamped(0), 0)],
                [Deliver((ANN,), urgent, 0), Send(B2, urgent, 1)],
            ]
            bodies = [body_of(stamped(0)), body_of(urgent)]
            node.outbox.perform_run(zip(wanted, bodies, strict=True), stamp=None)
            port = node.ports[ANN]
            assert queued(node, ANN) == [(urgent, 0), (stamped(0), 0)]
            assert port.stream.position == 1, "nobody asks whether control has arrived"
            assert node.outbox.deliveries == 2
            assert queued(node, B2) == [(urgent, 1)]

    run(scenario())


def test_what_goes_round_in_circles_is_not_sent_on() -> None:
    async def scenario() -> None:
        async with stage() as node:
            perform(
                node,
                [Send(B2, stamped(0), HOPS_MAX)],
                [Deliver((ANN,), stamped(1), HOPS_MAX), Send(B2, stamped(1), HOPS_MAX + 1)],
                [Deliver((ANN,), stamped(2), HOPS_MAX + 1)],
            )
            assert queued(node, B2) == [(stamped(0), HOPS_MAX)]
            assert queued(node, ANN) == [(stamped(1), HOPS_MAX), (stamped(2), HOPS_MAX + 1)]
            assert node.dropped["too many hops"] == 1

    run(scenario())


def test_copies_of_a_publication_are_framed_once_for_as_many_links() -> None:
    async def scenario() -> None:
        async with stage() as node:
            traced = replace(stamped(0), marks=(Mark("grape", 2**40),))
            perform(
                node, [Send(B2, traced, 1), Send(B2, traced, 1), Deliver((ANN, BOB), traced, 0)]
            )
            assert queued(node, B2) == [(traced, 1), (traced, 1)]
            assert queued(node, ANN) == queued(node, BOB) == [(traced, 0)]
            one, other = node.ports[B2].stream._pending
            assert one is other

    run(scenario())


def test_publications_before_one_that_cannot_be_handled_go_out() -> None:
    async def scenario() -> None:
        async with stage() as node:

            def wanted() -> Iterator[tuple[list[Effect], bytes]]:
                yield [Deliver((ANN,), stamped(0), 0)], body_of(came(0))
                raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                node.outbox.perform_run(wanted(), stamp_of(ACCEPTED_S))
            assert queued(node, ANN) == [(stamped(0), 0)]

    run(scenario())


def test_a_subscriber_that_is_away_is_told_what_it_missed() -> None:
    async def scenario() -> None:
        async with stage(Limits(client_queue_bytes=1)) as node:
            port = node.ports[ANN]
            connection, port.connection = port.connection, None
            perform(node, [Deliver((ANN,), stamped(0), 0)], [Deliver((ANN,), stamped(1), 0)])
            assert not queued(node, ANN)
            assert port.traffic.dropped == 2
            port.connection = connection
            perform(node, [Deliver((ANN,), stamped(0), 0)])
            assert queued(node, ANN) == [(Dropped(count=2), 0), (stamped(0), 0)]

    run(scenario())
