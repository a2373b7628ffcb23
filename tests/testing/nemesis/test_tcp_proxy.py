"""The proxy loses nothing of a way that is stalled, and passes on nothing meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from godwit.testing.nemesis.tcp_proxy import Proxy, Way

WAIT_S = 5.0


class Ends:
    """Both ends of one connection through a proxy."""

    def __init__(self) -> None:
        self.accepted: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = (
            asyncio.get_running_loop().create_future()
        )

    def on_call(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted.set_result((reader, writer))


@contextlib.asynccontextmanager
async def connected() -> AsyncIterator[
    tuple[
        Proxy,
        tuple[asyncio.StreamReader, asyncio.StreamWriter],
        tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ]
]:
    ends = Ends()
    server = await asyncio.start_server(ends.on_call, "127.0.0.1", 0)
    async with asyncio.timeout(WAIT_S), Proxy() as proxy:
        proxy.target = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        caller = await asyncio.open_connection("127.0.0.1", proxy.port)
        target = await ends.accepted
        try:
            yield proxy, caller, target
        finally:
            for _, writer in (caller, target):
                writer.transport.abort()
            server.close()


@pytest.mark.parametrize("way", Way)
def test_one_way_is_cut_and_the_other_is_not(way: Way) -> None:
    async def scene() -> None:
        async with connected() as (proxy, caller, target):
            sender, receiver = (caller, target) if way is Way.FORTH else (target, caller)
            proxy.stall(way)
            sender[1].write(b"waits")
            receiver[1].write(b"passes")
            assert await sender[0].readexactly(6) == b"passes"
            assert not receiver[0].at_eof()
            proxy.flow()
            assert await receiver[0].readexactly(5) == b"waits"

    asyncio.run(scene())


def test_the_end_of_a_connection_waits_as_well() -> None:
    async def scene() -> None:
        async with connected() as (proxy, caller, target):
            proxy.stall(Way.FORTH)
            caller[1].write(b"last words")
            caller[1].write_eof()
            target[1].write(b"still here")
            assert await caller[0].readexactly(10) == b"still here"
            proxy.flow()
            assert await target[0].read() == b"last words"

    asyncio.run(scene())


def test_connections_that_are_dropped_end_although_the_way_is_cut() -> None:
    async def scene() -> None:
        async with connected() as (proxy, caller, target):
            proxy.stall()
            caller[1].write(b"lost")
            proxy.drop()
            with contextlib.suppress(ConnectionResetError):
                assert await target[0].read() == b""
            with contextlib.suppress(ConnectionResetError):
                assert await caller[0].read() == b""

    asyncio.run(scene())
