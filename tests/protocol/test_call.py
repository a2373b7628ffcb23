"""Calling a broker: Hello, and the possible answers."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest
from tests.asynchronous import run, until
from tests.protocol.transports import FakeTransport, Recorder

from godwit.errors import PeerError, RefusedError
from godwit.protocol.call import Call, socket_opener
from godwit.protocol.connection import Connection
from godwit.protocol.frames import (
    Acknowledge,
    Goodbye,
    Hello,
    Welcome,
    decode_hello,
    encode,
    framed,
)

HELLO = Hello(role="client", name="alice")
WELCOME = Welcome(name="B1", stream="s", received=0)


def call(
    answer: Callable[[Connection], None],
    accept: Callable[[Welcome, Connection], Welcome] = lambda welcome, _: welcome,
    *,
    heartbeat_s: float = 60.0,
) -> tuple[Welcome, FakeTransport]:
    """Call a peer that answers like that."""

    async def scenario() -> tuple[Welcome, FakeTransport]:
        transport = FakeTransport()

        async def opener(connection: Connection) -> None:
            connection.connection_made(transport)
            asyncio.get_running_loop().call_soon(answer, connection)

        result = await Call(HELLO, accept, heartbeat_s=heartbeat_s).make(opener)
        return result, transport

    return run(scenario())


def test_a_caller_says_hello_and_gets_a_welcome() -> None:
    welcome, transport = call(lambda connection: connection.data_received(encode(WELCOME)))
    assert welcome == WELCOME
    assert decode_hello(transport.bodies()[0]) == HELLO


def test_what_follows_the_welcome_goes_to_whoever_has_accepted_it() -> None:
    async def scenario() -> None:
        recorder = Recorder()

        def accept(_: Welcome, connection: Connection) -> None:
            connection.receiver = recorder

        async def opener(connection: Connection) -> None:
            connection.connection_made(FakeTransport())
            connection.data_received(encode(WELCOME) + framed(b"first") + framed(b"second"))

        await Call(HELLO, accept, heartbeat_s=60.0).make(opener)
        assert [body for _, body in recorder.frames] == [b"first", b"second"]

    run(scenario())


def test_a_goodbye_is_a_refusal_with_its_reason() -> None:
    with pytest.raises(RefusedError, match="alice is connected already"):
        call(lambda c: c.data_received(encode(Goodbye(reason="client alice is connected already"))))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(encode(Acknowledge(received=1)), "malformed frame", id="another frame"),
        pytest.param(framed(b"\xff"), "malformed frame", id="no frame"),
        pytest.param(b"HTTP/1.1 400 Bad Request", "a frame of", id="another protocol"),
    ],
)
def test_who_does_not_speak_our_language_is_no_broker(data: bytes, reason: str) -> None:
    with pytest.raises(PeerError, match=reason):
        call(lambda connection: connection.data_received(data))


@pytest.mark.parametrize("host", ["a..b", "x" * 70])
def test_a_name_that_no_host_can_have_is_an_ordinary_failure(host: str) -> None:
    async def scenario() -> None:
        made = Call(HELLO, lambda welcome, _: welcome, heartbeat_s=60.0)
        await made.make(socket_opener(host, 7401))

    with pytest.raises(OSError, match="is not a valid host name"):
        run(scenario())


def test_a_connection_that_is_lost_before_the_welcome_is_no_answer() -> None:
    with pytest.raises(PeerError, match="connection lost"):
        call(lambda connection: connection.connection_lost(None))


@pytest.mark.parametrize("is_slow_to_open", [True, False])
def test_a_caller_that_is_cancelled_leaves_no_error_behind(is_slow_to_open: bool) -> None:
    errors: list[dict[str, Any]] = []

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: errors.append(context))
        connections: list[Connection] = []

        async def opener(connection: Connection) -> None:
            connection.connection_made(FakeTransport())
            connections.append(connection)
            if is_slow_to_open:
                await asyncio.sleep(60.0)

        made = Call(HELLO, lambda welcome, _: welcome, heartbeat_s=60.0)
        calling = asyncio.create_task(made.make(opener))
        await until(lambda: bool(connections))
        if not is_slow_to_open:
            await asyncio.sleep(0)
            connections[0].connection_lost(None)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        connections[0].connection_lost(None)

    run(scenario())
    gc.collect()
    assert errors == []


def test_nobody_waits_for_ever_for_a_welcome() -> None:
    with pytest.raises(PeerError, match="silent"):
        call(lambda _: None, heartbeat_s=0.002)


def test_a_welcome_that_is_not_accepted_ends_the_connection() -> None:
    def accept(welcome: Welcome, _: Connection) -> Welcome:
        raise PeerError(f"broker {welcome.name} is linked already")

    with pytest.raises(PeerError, match="B1 is linked already"):
        call(lambda connection: connection.data_received(encode(WELCOME)), accept)
