"""An event loop whose clock jumps to the next thing to do.  Minutes of waiting take no time.

For programs that wait for nothing outside of the process.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _NothingOutside(selectors.SelectSelector):
    """Where a loop waits for files and sockets: there are none, and the time is over at once."""

    slept_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everybody waits for somebody else")
        self.slept_s += max(timeout, 0.0)
        return []


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._outside = _NothingOutside()
        super().__init__(self._outside)

    def time(self) -> float:
        return self._outside.slept_s


def run_at_once(scenario: Coroutine[Any, Any, T]) -> T:
    """The result of `scenario`, however long it sleeps."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(scenario)
