"""A network of brokers and clients of two minor versions, during an upgrade."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.asynchronous import run, until

from godwit.broker.stimuli import LocalClient, Neighbour
from godwit.client import broker_connection
from godwit.errors import RefusedError
from godwit.overlay.topology import chain
from godwit.protocol.frames import HEADER, Hello, Welcome, framed
from godwit.protocol.versions import PROTOCOL, ProtocolVersion
from godwit.runtime import broker_node, dialling
from godwit.runtime.port import Port
from godwit.testing import MemoryNetwork

NEXT = ProtocolVersion(PROTOCOL.major, PROTOCOL.minor + 1)
UNKNOWN = framed(msgspec.msgpack.encode([200, "of the next version", {"x": 1}]))
SKIPPED = "of a later version"


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of brokers and clients that say in the handshake that they are of the next one."""
    names: set[str] = set()

    def hello(**fields: Any) -> Hello:
        return Hello(**fields, minor=(NEXT if fields["name"] in names else PROTOCOL).minor)

    def welcome(**fields: Any) -> Welcome:
        return Welcome(**fields, minor=(NEXT if fields["name"] in names else PROTOCOL).minor)

    monkeypatch.setattr(dialling, "Hello", hello)
    monkeypatch.setattr(broker_connection, "Hello", hello)
    monkeypatch.setattr(broker_node, "Welcome", welcome)
    return names


def extended(frame: bytes) -> bytes:
    """The frame with another field at its end."""
    body = [*msgspec.msgpack.decode(frame[HEADER.size :]), ["more"]]
    return framed(msgspec.msgpack.encode(body), HEADER.unpack_from(frame)[1])


def speak_next_version(port: Port) -> None:
    """Let a broker add a field to everything that it sends there, and unknown frames between."""
    put, put_publications, put_publication = port.put, port.put_publications, port.put_publication

    def put_more(frame: bytes) -> None:
        put(UNKNOWN)
        put(extended(frame))

    def put_more_publications(frames: list[bytes]) -> None:
        for frame in frames:
            put_publications([extended(frame)])
            put(UNKNOWN)

    def put_one_more(frame: bytes, *, is_control: bool) -> None:
        put_publication(extended(frame), is_control=is_control)
        put(UNKNOWN)

    port.put = put_more  # type: ignore[method-assign]
    port.put_publications = put_more_publications  # type: ignore[method-assign]
    port.put_publication = put_one_more  # type: ignore[method-assign]


@pytest.mark.parametrize("newer", [{"B2"}, {"B1"}, {"B3"}, {"B1", "B3"}], ids=sorted)
def test_brokers_of_two_minor_versions_link_and_lose_nothing(
    newer: set[str], next_version: set[str]
) -> None:
    """B2 dials B1, and B3 dials B2, so both ends of the handshake are of either version."""
    next_version |= newer

    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3)) as network,
            network.connect("B3", name="alice") as alice,
            network.connect("B1", name="paul") as paul,
        ):
            for name in newer:
                for port in network.nodes[name].ports.values():
                    speak_next_version(port)
            await paul.advertise("x > 0")
            async with alice.subscribe("x > 0") as events:
                await events.in_effect()
                for number in range(1, 21):
                    await paul.publish({"x": number})
                await paul.flush()  # All is acknowledged, what was skipped, too.
                assert [(await anext(events)).content["x"] for _ in range(20)] == [*range(1, 21)]
                network.cut("B2", Neighbour("B1"))  # Both count alike: the stream is resumed.
                network.cut("B2", Neighbour("B3"))
                network.cut("B3", LocalClient("alice"))
                await paul.publish({"x": 21})
                assert (await anext(events)).content["x"] == 21
                await paul.flush()
                assert alice.restarts == paul.restarts == 0
                # No frame is left over that one side has counted and the other has not.
                ports = [port for node in network.nodes.values() for port in node.ports.values()]
                await until(lambda: all(port.stream.is_idle for port in ports))
            older = [node for name, node in network.nodes.items() if name not in newer]
            if newer == {"B2"}:
                assert all(node.handled[SKIPPED] for node in older)
            assert all(node.refused == 0 for node in network.nodes.values())
            if "B3" in newer:
                assert alice.session.skipped

    run(scenario())


def test_a_client_of_the_next_minor_version_is_understood(next_version: set[str]) -> None:
    next_version.add("paul")

    async def scenario() -> None:
        async with (
            MemoryNetwork() as network,
            network.connect(name="alice") as alice,
            network.connect(name="paul") as paul,
            alice.subscribe("x > 0") as events,
        ):
            await events.in_effect()
            paul.session.stream.put(UNKNOWN)
            await paul.advertise("x > 0")
            paul.session.stream.put(UNKNOWN)
            await paul.publish({"x": 1})
            await paul.flush()
            assert (await anext(events)).content == {"x": 1}
            assert network.nodes["B1"].handled[SKIPPED] == 2

    run(scenario())


def test_an_unknown_frame_of_our_own_version_is_refused() -> None:
    async def scenario() -> None:
        async with MemoryNetwork() as network, network.connect(name="paul") as paul:
            paul.session.stream.put(UNKNOWN)
            paul.flush_soon()
            await until(lambda: network.nodes["B1"].refused == 1)
            assert not network.nodes["B1"].handled[SKIPPED]

    run(scenario())


def test_a_client_of_another_major_version_is_told_both_versions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hello(**fields: Any) -> Hello:
        return Hello(**fields, version=PROTOCOL.major + 1, minor=4)

    monkeypatch.setattr(broker_connection, "Hello", hello)

    async def scenario() -> None:
        async with MemoryNetwork() as network:
            with pytest.raises(RefusedError, match=rf"protocol 2\.4, the other {PROTOCOL}"):
                await network.connect(name="paul").__aenter__()

    run(scenario())


def test_a_broker_of_another_major_version_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would refuse us itself; should it not, we do."""

    def welcome(**fields: Any) -> Welcome:
        return Welcome(**fields, version=PROTOCOL.major + 1)

    monkeypatch.setattr(broker_node, "Welcome", welcome)

    async def scenario() -> None:
        async with MemoryNetwork() as network:
            with pytest.raises(RefusedError, match=r"protocol 2\.\d, the other"):
                await network.connect(name="paul").__aenter__()

    run(scenario())
