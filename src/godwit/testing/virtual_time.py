"""An event loop in virtual time: when every task waits, its clock jumps to the next timer.

    run_in_virtual_time(scenario())      # Minutes of `asyncio.sleep` take milliseconds.

For programs that wait for nothing outside the process, such as those on a `MemoryNetwork`.  Brokers
that measure their load over time need its clocks as well: `clocks=True` lets `time.time` and
`time.monotonic` follow the loop.
"""

from __future__ import annotations

import asyncio
import random
import selectors
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
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

        self.failure: BaseException | None = None
        """Of a callback: no task sees it, and what it should have done may be awaited for ever."""

    def time(self) -> float:
        return self._jumping.slept_s

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if "handle" in context and self.failure is None:
            self.failure = context.get("exception")
            self.stop()
        super().call_exception_handler(context)


def run_in_virtual_time(
    scenario: Coroutine[Any, Any, T], *, seed: int | None = None, clocks: bool = False
) -> T:
    """The result of `scenario`, however long it sleeps; a callback that fails ends it.

    With a `seed` it is always the same: back-off between connection attempts is drawn by `random`.
    """
    if seed is not None:
        random.seed(seed)
    loop = VirtualTimeLoop()
    follow = _virtual_clocks(loop.time) if clocks else nullcontext()
    with asyncio.Runner(loop_factory=lambda: loop) as runner, follow:
        try:
            return runner.run(scenario)
        except RuntimeError:
            if loop.failure is None:
                raise
            raise loop.failure from None


@contextmanager
def _virtual_clocks(now_s: Callable[[], float]) -> Iterator[None]:
    """Let the clocks of the process follow the loop, also where modules have imported them."""
    began_s, monotonic = time.time(), time.monotonic
    replaced: list[tuple[Any, str, Any]] = [
        (time, "time", time.time),
        (time, "monotonic", monotonic),
    ]
    replaced += [
        (module, "monotonic", monotonic)
        for name, module in list(sys.modules.items())
        if name.startswith("godwit.") and getattr(module, "monotonic", None) is monotonic
    ]
    for module, name, _ in replaced:
        setattr(module, name, now_s if name == "monotonic" else lambda: began_s + now_s())
    try:
        yield
    finally:
        for module, name, original in replaced:
            setattr(module, name, original)
