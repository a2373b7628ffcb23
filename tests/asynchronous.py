"""How a test runs a scenario of asynchronous code: in a loop of its own, and never for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

SCENARIO_S = 20.0


def run(scenario: Coroutine[Any, Any, T], *, within_s: float = SCENARIO_S) -> T:
    """The result of `scenario`; whatever it awaits, it has to be over in time."""

    async def bounded() -> T:
        async with asyncio.timeout(within_s):
            return await scenario

    return asyncio.run(bounded())


async def until(done: Callable[[], bool]) -> None:
    """Let everybody else go on until something is so; `run` sees to it that this ends."""
    while not done():  # noqa: ASYNC110  What is waited for has no event of its own.
        await asyncio.sleep(0.001)
