"""Stopping a long-running command."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def stop_event(*, leash: bool = False) -> asyncio.Event:
    """Set by SIGTERM, by SIGINT, and with `leash` when standard input is closed."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    if leash:
        loop.add_reader(sys.stdin.fileno(), stopped.set)
    return stopped


async def unless_stopped(stopped: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`; None if it was cancelled because of `stopped`."""
    done, stopping = asyncio.create_task(work), asyncio.create_task(stopped.wait())
    await asyncio.wait({done, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if done.done():
        return await done
    done.cancel()
    await asyncio.gather(done, return_exceptions=True)
    return None
