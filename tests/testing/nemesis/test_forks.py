"""Processes that are forked are like others: output, exit codes, signals, environment, leash."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.asynchronous import run

from godwit.testing.nemesis.forks import ForkedProcess, Forks

WITHIN_S = 60.0


def with_forks(scenario: Callable[[Forks], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with Forks({}) as forks:
            await scenario(forks)

    run(bounded(), within_s=WITHIN_S)


async def broker(forks: Forks, log: Path, **environment: str) -> ForkedProcess:
    arguments = ["broker", "--leash", "--id", "B1", "--listen", "127.0.0.1:0"]
    process = await forks.start(arguments, environment, log)
    assert b"listens on" in await process.stdout.readline()
    return process


def test_a_command_prints_and_ends(tmp_path: Path) -> None:
    async def scenario(forks: Forks) -> None:
        process = await forks.start(["--version"], {}, tmp_path / "log")
        assert b"protocol" in await process.stdout.read()
        assert await process.wait() == 0

    with_forks(scenario)


def test_a_command_that_fails_has_its_exit_code_and_says_why_in_the_log(tmp_path: Path) -> None:
    async def scenario(forks: Forks) -> None:
        arguments = ["broker", "--id", "B1", "--config", str(tmp_path / "missing.toml")]
        process = await forks.start(arguments, {}, tmp_path / "log")
        assert await process.wait() == 2
        assert "missing.toml" in (tmp_path / "log").read_text()

    with_forks(scenario)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 0)])
def test_signals_reach_it(tmp_path: Path, number: signal.Signals, code: int) -> None:
    async def scenario(forks: Forks) -> None:
        one = await broker(forks, tmp_path / "one")
        other = await broker(forks, tmp_path / "other")
        one.send_signal(number)
        assert await one.wait() == code
        assert other.returncode is None
        other.send_signal(signal.SIGKILL)
        assert await other.wait() == -9

    with_forks(scenario)


def test_each_has_an_environment_of_its_own(tmp_path: Path) -> None:
    async def scenario(forks: Forks) -> None:
        arguments = ["broker", "--id", "B1", "--listen", "127.0.0.1:0", "--help"]
        narrow = await forks.start(arguments, {"COLUMNS": "60"}, tmp_path / "log")
        wide = await forks.start(arguments, {"COLUMNS": "120"}, tmp_path / "log")
        widths = [
            max(map(len, (await p.stdout.read()).decode().splitlines())) for p in (narrow, wide)
        ]
        assert widths == [60, 120]

    with_forks(scenario)


def test_what_is_left_ends_with_the_server(tmp_path: Path) -> None:
    pids: list[int] = []

    async def scenario(forks: Forks) -> None:
        pids.append((await broker(forks, tmp_path / "log")).pid)

    with_forks(scenario)

    async def gone() -> None:
        while _exists(pids[0]):  # noqa: ASYNC110  Not our child.
            await asyncio.sleep(0.01)

    run(gone(), within_s=WITHIN_S)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
