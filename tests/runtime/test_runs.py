"""What comes in one read is handled in its order, whatever ends a run of publications."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from tests.asynchronous import run

from godwit.broker.meters import Meters
from godwit.broker.stimuli import Hop, LocalClient
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    Mark,
    Pause,
    Paused,
    Publication,
    Refusal,
    Unadvertisement,
)
from godwit.content.values import Value
from godwit.overlay.topology import chain
from godwit.protocol.frames import (
    FRAME_BYTES_MAX,
    HEADER,
    Acknowledge,
    Frame,
    Goodbye,
    decode_to_client,
    encode,
    framed,
)
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.peer_reader import RUN_MAX
from godwit.testing.memory_network import MemoryNetwork

ANN, PAUL = LocalClient("ann"), LocalClient("paul")
OF_PAUL = AdvertisementId("paul/a")
#: What Paul has said before a test begins.
SAID_BEFORE = Advertisement(id=OF_PAUL, filter=Filter.parse("x is present"))
A_WHILE_S = 1_000.0


def publication(sequence: int, **more: Value) -> Publication:
    content: dict[str, Value] = {"x": sequence, **more}
    return Publication(publisher="paul", sequence=sequence, advertisement=OF_PAUL, content=content)


@asynccontextmanager
async def stage() -> AsyncIterator[BrokerNode]:
    """A broker where Paul publishes, and Ann reads."""
    async with (
        MemoryNetwork(chain(1)) as network,
        network.connect("B1", name="ann") as ann,
        network.connect("B1", name="paul"),
        ann.subscribe("x is present") as events,
    ):
        await events.in_effect()
        node = network.nodes["B1"]
        read(node, SAID_BEFORE)
        yield node


def read(node: BrokerNode, *said: Frame, end: bytes = b"") -> None:
    """Paul's connection brings all of this at once."""
    connection = node.ports[PAUL].connection
    assert connection is not None
    connection.data_received(b"".join(map(encode, said)) + end)


def sent(node: BrokerNode, hop: Hop) -> list[tuple[Frame, int]]:
    """What a peer was sent and has not acknowledged, and the links it says it has crossed."""
    return [
        (decode_to_client(frame[HEADER.size :]), HEADER.unpack_from(frame)[1])
        for frame in node.ports[hop].stream.frames()
    ]


def delivered(node: BrokerNode) -> list[Publication]:
    return [said for said, _ in sent(node, ANN) if isinstance(said, Publication)]


def numbers(node: BrokerNode) -> list[int]:
    return [each.sequence for each in delivered(node)]


def test_a_pause_is_confirmed_when_all_before_it_was_handled() -> None:
    async def scenario() -> None:
        async with stage() as node:
            refused = publication(2, y=1)
            read(node, publication(0), publication(1), refused, Pause(move=7), publication(3))
            answers = [said for said, _ in sent(node, PAUL)][-2:]
            assert [type(answer) for answer in answers] == [Refusal, Paused]
            assert numbers(node) == [0, 1, 3]
            assert node.ports[PAUL].stream.received == 6

    run(scenario())


def test_a_withdrawal_ends_what_comes_behind_it() -> None:
    async def scenario() -> None:
        async with stage() as node:
            read(node, publication(0), Unadvertisement(id=OF_PAUL), publication(1))
            assert numbers(node) == [0]

    run(scenario())


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(encode(Goodbye(reason="done")), id="says goodbye"),
        pytest.param(framed(b"\xff"), id="sends garbage"),
        pytest.param(encode(Acknowledge(received=10**6)), id="breaks the rules"),
        pytest.param(HEADER.pack(FRAME_BYTES_MAX + 1, 0), id="sends too much"),
    ],
)
def test_who_ends_the_connection_has_published_what_it_said_before(end: bytes) -> None:
    async def scenario() -> None:
        async with stage() as node:
            read(node, publication(0), publication(1), end=end)
            assert numbers(node) == [0, 1]
            assert PAUL not in node.ports

    run(scenario())


@pytest.mark.parametrize("count", [1, RUN_MAX - 1, RUN_MAX, RUN_MAX + 1, 2 * RUN_MAX + 3])
def test_a_read_may_be_of_many_runs(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with stage() as node:
            metered: list[tuple[float, ...]] = []
            monkeypatch.setattr(Meters, "on_handled", lambda _, *read: metered.append(read))
            before_s = node.now_s()
            read(node, *map(publication, range(count)), end=encode(publication(count))[:-1])
            assert numbers(node) == list(range(count))
            (accepted_s,) = {each.accepted_s for each in delivered(node)}
            assert before_s <= accepted_s <= node.now_s()
            assert node.ports[PAUL].stream.received == 1 + count
            assert node.handled["Publication"] == count
            bodies_bytes = sum(
                len(encode(each)) - HEADER.size for each in map(publication, range(count))
            )
            ((publications, size_bytes, _, _, messages),) = metered
            assert (publications, size_bytes, messages) == (count, bodies_bytes, count)

    run(scenario())


def test_clients_do_not_say_how_far_a_publication_has_come_nor_when() -> None:
    async def scenario() -> None:
        async with stage() as node:
            pretended = replace(
                publication(0),
                accepted_s=5.0,
                size_bytes=-1,
                marks=(Mark("grape", 2**40),),
                is_control=True,
            )
            read(node, end=encode(pretended, 9))
            (found,) = delivered(node)
            assert found == replace(publication(0), accepted_s=found.accepted_s)
            assert found.accepted_s > A_WHILE_S
            assert (found, 0) in sent(node, ANN)

    run(scenario())


def test_a_broker_that_recovers_keeps_publications_in_their_order() -> None:
    async def scenario() -> None:
        async with stage() as node:
            node.recovery._may_have_failed = True
            node.recovery.begin()
            read(node, *map(publication, range(3)))
            assert numbers(node) == []
            assert node.ports[PAUL].stream.received == 4
            node.recovery.on_took_too_long()
            assert numbers(node) == [0, 1, 2]
            assert node.ports[PAUL].stream.received == 4

    run(scenario())


def test_of_a_run_with_one_that_cannot_be_handled_only_that_one_is_lost() -> None:
    async def scenario() -> None:
        async with stage() as node:
            routing = node.broker.routing
            destinations = routing.destinations

            def fails_once(asked: Publication, *where: Any) -> object:
                if asked.sequence == 2:
                    raise ZeroDivisionError
                return destinations(asked, *where)

            routing.destinations = fails_once  # type: ignore[method-assign,assignment]
            with pytest.raises(ZeroDivisionError):
                read(node, *map(publication, range(5)))
            assert numbers(node) == [0, 1]
            received = node.ports[PAUL].stream.received
            assert received == 1 + 3, "Paul is told to go on with publication 3"

    run(scenario())
