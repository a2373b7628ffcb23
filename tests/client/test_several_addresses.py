"""A client with several addresses: it uses them in order, and says why it could use none."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest
from tests.asynchronous import run, until

from godwit import connect
from godwit.client import Client
from godwit.errors import RefusedError, UnreachableError, UsageError
from godwit.overlay.topology import chain
from godwit.protocol.addresses import separate
from godwit.runtime.processes import free_port
from godwit.runtime.server import BrokerServer
from godwit.runtime.settings import BrokerSettings, NetworkSettings
from godwit.testing import MemoryNetwork, run_in_virtual_time

ANY = NetworkSettings(broker=[BrokerSettings(id="B1")])


def closed() -> str:
    """An address at which no broker listens."""
    return f"godwit://127.0.0.1:{free_port()}"


@contextlib.contextmanager
def silent() -> Iterator[str]:
    """An address at which connections are accepted by the system, and nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"godwit://127.0.0.1:{listener.getsockname()[1]}"


def broker_of(client: Client) -> str:
    return client.session.broker


# -- the first connection ----------------------------------------------------------------------


def test_the_first_address_comes_first() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(3)) as network:
            async with network.connect("B2", "B1", "B3") as client:
                assert broker_of(client) == "B2"
            network.crash("B2")
            async with network.connect("B2", "B1", "B3") as client:
                assert broker_of(client) == "B1"
            network.crash("B1")
            async with network.connect("B2", "B1", "B3") as client:
                assert broker_of(client) == "B3"

    run(scenario())


def test_one_that_refuses_is_followed_by_the_next() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(2)) as network:
            network.nodes["B1"].is_draining = True
            async with network.connect("B1", "B2") as client:
                assert broker_of(client) == "B2"

    run(scenario())


def test_if_all_refuse_all_reasons_are_given_at_once() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(2)) as network, network.connect("B2", name="paul"):
            network.nodes["B1"].is_draining = True
            with pytest.raises(RefusedError) as refused:
                await network.connect("B1", "B2", name="paul").__aenter__()
            first, second = str(refused.value).split("; ", 1)[0], str(refused.value)
            assert first.startswith("memory://B1: broker B1 is being drained")
            assert "; memory://B2: " in second

    run(scenario())


def test_if_none_answers_all_reasons_are_given() -> None:
    first, second = closed(), closed()

    async def scenario() -> None:
        await connect(first, second, connect_s=0.5).__aenter__()

    with pytest.raises(UnreachableError) as unreachable:
        run(scenario())
    said = str(unreachable.value)
    assert said.startswith(f"no broker at {first}: ")
    assert f"; {second}: " in said


def test_a_refusal_and_a_silence_are_both_told() -> None:
    async def scenario(url: str) -> None:
        async with BrokerServer(ANY, ANY.broker[0]) as server:
            server.node.is_draining = True
            await connect(server.url, url, connect_s=0.5).__aenter__()

    with silent() as url, pytest.raises(UnreachableError) as unreachable:
        run(scenario(url))
    assert "broker B1 is being drained" in str(unreachable.value)
    assert f"{url}: no answer" in str(unreachable.value)


def test_one_that_does_not_answer_leaves_time_for_the_next() -> None:
    """Without that, the whole `connect_s` would pass."""

    async def scenario(url: str) -> None:
        async with (
            BrokerServer(ANY, ANY.broker[0]) as server,
            connect(url, server.url, connect_s=2.0) as client,
        ):
            assert broker_of(client) == "B1"

    with silent() as url:
        run(scenario(url))


@pytest.mark.parametrize("form", ["arguments", "list", "text"])
def test_addresses_are_given_in_any_form(form: str) -> None:
    async def scenario() -> None:
        async with BrokerServer(ANY, ANY.broker[0]) as server:
            urls = [closed(), server.url]
            forms = {
                "arguments": lambda: connect(*urls),
                "list": lambda: connect(urls),
                "text": lambda: connect(", ".join(urls)),
            }
            async with forms[form]() as client:
                assert broker_of(client) == "B1"

    run(scenario())


def test_each_address_is_checked_before_anything_is_called() -> None:
    with pytest.raises(UsageError, match="'http://x' is not the address of a broker"):
        connect("godwit://127.0.0.1:7401", "http://x")
    with pytest.raises(UsageError, match="'' is not the address of a broker"):
        connect("godwit://127.0.0.1:7401,")
    with pytest.raises(UsageError, match="there is no address"):
        connect()
    assert separate(["godwit://a:1,godwit://b:2", ["godwit://a:1"]]) == [
        "godwit://a:1", "godwit://b:2",
    ]  # fmt: skip


# -- later -------------------------------------------------------------------------------------


def test_a_broker_that_comes_back_keeps_its_client() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(2)) as network,
            network.connect("B1", "B2", name="alice") as alice,
            network.connect("B2", name="paul") as paul,
            alice.subscribe("x > 0") as events,
        ):
            await paul.advertise("x > 0")
            await events.in_effect()
            network.crash("B1")
            await paul.publish({"x": 1})
            await network.restart("B1")
            assert (await anext(events)).content == {"x": 1}
            assert broker_of(alice) == "B1"

    run_in_virtual_time(scenario())


def test_after_fall_back_s_the_next_one_is_used_and_what_was_not_acknowledged_is_sent() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3)) as network,
            network.connect("B1", "B2", name="paul", fall_back_s=30.0) as paul,
            network.connect("B3", name="alice") as alice,
            alice.subscribe("x > 0") as events,
        ):
            await paul.advertise("x > 0")
            await events.in_effect()
            network.crash("B1")
            await paul.publish({"x": 1})
            assert (await anext(events)).content == {"x": 1}
            assert broker_of(paul) == "B2"
            assert paul.restarts == 1

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("goes", ["goodbye", "refusal"])
def test_a_broker_that_ends_the_session_is_left_at_once(goes: str) -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(2)) as network,
            network.connect("B2", name="alice") as alice,
            network.connect("B1", "B2", name="paul", fall_back_s=10**6) as paul,
            alice.subscribe("x > 0") as events,
        ):
            await paul.advertise("x > 0")
            await events.in_effect()
            if goes == "goodbye":
                await network.remove_broker("B1")
            else:
                network.crash("B1")
                await network.restart("B1")
                network.nodes["B1"].is_stopping = True
            await until(lambda: broker_of(paul) == "B2")
            await paul.publish({"x": 1})
            assert (await anext(events)).content == {"x": 1}

    run(scenario())


def test_closing_without_a_broker_says_why() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(2)) as network:
            client = network.connect("B1", name="paul")
            await client.__aenter__()
            await client.advertise("x > 0")
            network.crash("B1")
            await client.publish({"x": 1})
            with pytest.raises(UnreachableError, match="memory://B1: broker B1 is not running"):
                await client.close()

    run_in_virtual_time(scenario())
