"""A broker's listening socket."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

import pytest
from tests.asynchronous import run

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
