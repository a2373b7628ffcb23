"""An event loop in virtual time: when every task waits, its clock jumps to the next timer.

    run_in_virtual_time(scenario())      # Minutes of `asyncio.sleep` take milliseconds.

For programs that wait for nothing outside the process, such as those on a `MemoryNetwork`.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.SelectSelector):
    """Reports no I/O, and lets the time that the loop would wait pass at once."""

    slept_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("deadlock: every task waits, and there is no timer")
        self.slept_s += max(timeout, 0.0)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.slept_s


def run_in_virtual_time(scenario: Coroutine[Any, Any, T]) -> T:
    """The result of `scenario`, however long it sleeps."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(scenario)
