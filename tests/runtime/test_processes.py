"""Processes that are about to start: their ports, and those that start too late."""

from __future__ import annotations

import os
import socket
from typing import Any

import pytest
from tests.asynchronous import run

from godwit.errors import GodwitError
from godwit.overlay.topology import chain
from godwit.runtime.forks import ForkedProcess, shared_forks
from godwit.runtime.processes import QUIET_PORTS, Processes, free_port
from godwit.runtime.settings import network_of


def test_a_free_port_is_one_that_no_connection_takes_by_chance() -> None:
    assert {free_port() in QUIET_PORTS for _ in range(100)} == {True}


def test_a_port_that_is_taken_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    free = free_port()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ports = iter([listener.getsockname()[1], free])
        monkeypatch.setattr("secrets.choice", lambda _: next(ports))
        assert free_port() == free


def test_a_broker_that_is_forked_while_the_network_stops_is_stopped_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        forked: list[int] = []
        forks = shared_forks()
        start = forks.start

        async def slow_start(*arguments: Any, **options: Any) -> ForkedProcess:
            process = await start(*arguments, **options)
            forked.append(process.pid)
            await running.stop()
            return process

        async with Processes(network_of(chain(1))) as running:
            monkeypatch.setattr(forks, "start", slow_start)
            with pytest.raises(GodwitError, match="while the network was stopped"):
                await running.start("B1")
        (pid,) = forked
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    run(scenario(), within_s=60.0)
