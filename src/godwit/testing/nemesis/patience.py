"""Time-outs that a busy machine makes longer.

A hang is a violation; a machine that is busy with something else is not.  The time of a time-out
passes more slowly while there are more processes that want to run than processors, and while this
process is woken up late.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable

TICK_S = 0.1
#: A hang is noticed at last, however busy the machine is.
SLOWER_MAX = 6.0


def slowness(waited_s: float) -> float:
    """How many times slower than usual this machine is, if TICK_S took so long."""
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    return min(SLOWER_MAX, max(1.0, load, waited_s / TICK_S))


async def in_time(doing: Awaitable[object], within_s: float) -> None:
    """Await it; TimeoutError if it takes longer, on a machine that is not busy."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(doing)
    left_s = within_s
    try:
        while not task.done():
            start_s = loop.time()
            await asyncio.wait([task], timeout=TICK_S)
            waited_s = loop.time() - start_s
            left_s -= min(waited_s, TICK_S) / slowness(waited_s)
            if left_s <= 0.0 and not task.done():
                raise TimeoutError
        await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
