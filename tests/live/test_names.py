"""One name, several processes: refused, taken over, killed and started again."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Coroutine
from typing import Any

import pytest
import uvloop

from godwit.client import Events, connect
from godwit.errors import RefusedError, TakenOverError
from godwit.overlay.topology import chain
from godwit.runtime.processes import Processes
from godwit.runtime.settings import network_of

TEST_S = 90.0
TICKS = "tick is a number"


def run(test: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(TEST_S):
            await test

    uvloop.run(bounded())


async def ticks(events: Events, count: int) -> list[object]:
    return [(await anext(events)).content["tick"] for _ in range(count)]


def test_a_second_feed_is_refused_and_a_take_over_is_told() -> None:
    run(_a_second_feed())


async def _a_second_feed() -> None:
    async with (
        Processes(network_of(chain(3))) as running,
        connect(running.url("B2"), name="alice") as alice,
        alice.subscribe(TICKS) as events,
        connect(running.url("B1"), name="feed") as first,
    ):
        await events.in_effect()
        await first.advertise(TICKS)
        for tick in range(500):
            await first.publish({"tick": tick})
        with pytest.raises(RefusedError, match="connected to broker B1"):
            async with connect(running.url("B3"), name="feed"):
                pass
        for tick in range(500, 1_000):
            await first.publish({"tick": tick})
        await first.flush()
        assert await ticks(events, 1_000) == list(range(1_000))
        async with connect(running.url("B3"), name="feed", take_over=True) as second:
            await second.advertise(TICKS)
            await second.publish({"tick": -1})
            assert await ticks(events, 1) == [-1]
            with pytest.raises(TakenOverError):
                await first.flush()


def test_a_feed_that_is_killed_and_started_again_is_heard_at_once() -> None:
    run(_a_feed_is_killed())


async def _a_feed_is_killed() -> None:
    async with (
        Processes(network_of(chain(3))) as running,
        connect(running.url("B2"), name="alice") as alice,
        alice.subscribe(TICKS) as events,
    ):
        await events.in_effect()
        for number, broker in enumerate(("B1", "B1", "B3", "B2")):
            feed = await _feed(running.url(broker))
            assert feed.stdin is not None
            for tick in range(number, number + 3):
                feed.stdin.write(f"[tick,{tick}]\n".encode())
            assert await ticks(events, 3) == list(range(number, number + 3))
            feed.kill()
            await feed.wait()


async def _feed(url: str) -> Process:
    """A process that publishes what is written to it."""
    command = (sys.executable, "-m", "godwit", "adv", url, TICKS, "--name", "feed")
    while True:  # Until its broker has noticed that the one before it is dead.
        feed = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=DEVNULL, stderr=PIPE
        )
        assert feed.stderr is not None
        said = await feed.stderr.readline()
        if b"advertises" in said:
            return feed
        assert b"belongs to a client" in said
        await feed.wait()
