"""Runs an asynchronous scenario of a test in a new loop, with a timeout."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

SCENARIO_S = 20.0


def run(scenario: Coroutine[Any, Any, T], *, within_s: float = SCENARIO_S) -> T:
    """The result of `scenario`; TimeoutError if it takes too long."""

    async def bounded() -> T:
        async with asyncio.timeout(within_s):
            return await scenario

    return asyncio.run(bounded())


async def until(done: Callable[[], bool]) -> None:
    """Poll until `done()` is true; the timeout of `run` bounds this."""
    while not done():  # noqa: ASYNC110  There is no event for it.
        await asyncio.sleep(0.001)
