"""A broker's listening socket."""

from __future__ import annotations

import asyncio
import socket
import struct
from pathlib import Path

import pytest
from tests.asynchronous import run

from godwit.client import connect
from godwit.policies.allocation.cbc_settings import ProfilingSettings
from godwit.runtime.server import CALLERS_MAX, BrokerServer
from godwit.runtime.settings import BrokerSettings, NetworkSettings

#: Of a socket that listens: how many connections may wait to be accepted.
BACKLOG_MAX = struct.Struct("28xI")


@pytest.mark.parametrize("is_given", [False, True])
def test_all_clients_may_call_at_once(is_given: bool) -> None:
    allowed = int(Path("/proc/sys/net/core/somaxconn").read_text())

    async def scenario() -> None:
        listener = socket.create_server(("127.0.0.1", 0)) if is_given else None
        settings = BrokerSettings(id="B1")
        network = NetworkSettings(broker=[settings])
        async with BrokerServer(network, settings, listener=listener) as server:
            assert server._listener is not None
            (listening,) = server._listener.sockets
            found = listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BACKLOG_MAX.size)
            assert BACKLOG_MAX.unpack(found) == (min(CALLERS_MAX, allowed),)

    run(scenario())


def test_clients_are_served_when_the_modules_have_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of a broker that restarts calls as soon as there is a socket."""

    async def scenario() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        url = f"godwit://127.0.0.1:{listener.getsockname()[1]}"
        settings = BrokerSettings(id="B1")
        network = NetworkSettings(broker=[settings], profiling=ProfilingSettings())
        server = BrokerServer(network, settings, listener=listener)

        async def serve_http_slowly() -> None:
            await asyncio.sleep(0.3)
            assert not server.node.ports

        monkeypatch.setattr(server, "_serve_http", serve_http_slowly)
        client = connect(url, name="alice")
        calling = asyncio.create_task(client.__aenter__())
        async with server:
            await calling
            async with client.subscribe("x > 0") as events:
                await events.in_effect()
            await client.__aexit__(None, None, None)

    run(scenario())
