"""Processes are started again when they end, until they end too often."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.asynchronous import run

from godwit.errors import GodwitError
from godwit.runtime.restarting import RestartLimit, Supervised, exit_text, supervise
from godwit.testing import run_in_virtual_time


class FakeProcess:
    """Ends after each of these times; a time of 0 does not even start."""

    def __init__(self, *lives_s: float) -> None:
        self.starts_s: list[float] = []
        self._lives_s: Iterator[float] = iter(lives_s)

    async def wait(self) -> int:
        life_s = next(self._lives_s, None)
        await asyncio.sleep(10**9 if life_s is None else life_s)
        return -9

    async def start(self) -> None:
        self.starts_s.append(asyncio.get_running_loop().time())

    @property
    def supervised(self) -> Supervised:
        return Supervised("broker B1", self.wait, self.start)


async def given_up(process: Supervised, limit: RestartLimit) -> str:
    """What is said when it is given up, which is soon."""
    async with asyncio.timeout(600.0):
        return await supervise([process], limit)


def test_one_that_ends_too_often_is_given_up() -> None:
    process = FakeProcess(1.0, 1.0, 1.0, 1.0)
    said = run_in_virtual_time(given_up(process.supervised, RestartLimit(3, 60.0)))
    assert said == (
        "broker B1 ended with code -9 (SIGKILL), and is given up after 3 restarts within 60 s"
    )
    assert len(process.starts_s) == 3


def test_restarts_that_are_far_apart_do_not_count() -> None:
    process = FakeProcess(*[31.0] * 20)

    async def scenario() -> str:
        try:
            async with asyncio.timeout(3_600.0):
                return await supervise([process.supervised], RestartLimit(2, 60.0))
        except TimeoutError:
            return "goes on"

    assert run_in_virtual_time(scenario()) == "goes on"
    assert len(process.starts_s) == 20


def test_each_restart_comes_within_a_second() -> None:
    process = FakeProcess(*[0.0] * 6)

    async def scenario() -> float:
        start_s = asyncio.get_running_loop().time()
        await given_up(process.supervised, RestartLimit(5, 60.0))
        return start_s

    last_s = run_in_virtual_time(scenario())
    for start_s in process.starts_s:
        assert start_s - last_s < 1.0
        last_s = start_s


def test_a_start_that_fails_counts() -> None:
    async def cannot_start() -> None:
        raise GodwitError("broker B1 ended with code 2")

    process = Supervised("broker B1", FakeProcess(0.0).wait, cannot_start)
    said = run_in_virtual_time(given_up(process, RestartLimit(2, 60.0)))
    assert said.startswith("broker B1 did not start (broker B1 ended with code 2), and is given up")


def test_when_it_is_cancelled_nothing_is_started_any_more() -> None:
    process = FakeProcess(0.0)

    async def scenario() -> None:
        task = asyncio.create_task(supervise([process.supervised], RestartLimit()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        started = len(process.starts_s)
        await asyncio.sleep(0.01)
        assert len(process.starts_s) == started

    run(scenario())


def test_exit_codes_in_words() -> None:
    assert exit_text(3) == "code 3"
    assert exit_text(-15) == "code -15 (SIGTERM)"
    assert exit_text(-99) == "code -99"
