"""How long to wait between attempts."""

from __future__ import annotations

import asyncio

import pytest

from godwit.protocol.backoff import Backoff, backoff_s
from godwit.testing.virtual_time import run_in_virtual_time


def test_each_wait_is_twice_as_long_up_to_the_longest() -> None:
    waits_s = [backoff_s(failures, first_s=0.5, max_s=3.0) for failures in range(1, 6)]
    assert waits_s == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_any_number_of_failures_has_a_wait() -> None:
    assert backoff_s(1_000_000, first_s=0.001, max_s=30.0) == 30.0


async def waited_s(backoff: Backoff) -> float:
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    await backoff.wait()
    return loop.time() - start_s


def test_success_makes_the_next_wait_the_first_again() -> None:
    async def scenario() -> list[float]:
        backoff = Backoff(first_s=1.0, max_s=4.0, jitter=0.0)
        before = [await waited_s(backoff) for _ in range(4)]
        backoff.reset()
        return [*before, await waited_s(backoff)]

    assert run_in_virtual_time(scenario()) == pytest.approx([1.0, 2.0, 4.0, 4.0, 1.0])


def test_waits_are_shortened_at_random() -> None:
    async def scenario() -> list[float]:
        return [await waited_s(Backoff(first_s=1.0, max_s=1.0)) for _ in range(100)]

    waits_s = run_in_virtual_time(scenario())
    assert len(set(waits_s)) > 50
    assert 0.49 < min(waits_s) < max(waits_s) < 1.01
