"""Ports for processes that are about to start."""

from __future__ import annotations

import socket

import pytest

from godwit.runtime.processes import QUIET_PORTS, free_port


def test_a_free_port_is_one_that_no_connection_takes_by_chance() -> None:
    assert {free_port() in QUIET_PORTS for _ in range(100)} == {True}


def test_a_port_that_is_taken_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    free = free_port()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ports = iter([listener.getsockname()[1], free])
        monkeypatch.setattr("secrets.choice", lambda _: next(ports))
        assert free_port() == free
