"""Processes that are started again whenever they end, but not for ever.

A process that ends by itself, whatever its exit code, is started again at once; one that ends again
soon, after a short wait.  One that needs more restarts than allowed within a time is given up.  A
broker that has left the network, by order of a coordinator, is started when that needs it again.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from godwit.errors import GodwitError
from godwit.protocol.backoff import backoff_s
from godwit.runtime.broker_orders import LEFT

log = logging.getLogger("godwit.restarting")

FIRST_S, MAX_S = 0.1, 0.5


class RestartLimit(NamedTuple):
    """How often a process may be started again."""

    restarts: int = 5
    within_s: float = 60.0


class Supervised(NamedTuple):
    """A process that runs, and how to start it again."""

    name: str
    wait: Callable[[], Awaitable[int]]
    """Returns its exit code when it has ended by itself."""

    start: Callable[[], Awaitable[None]]
    """Starts it and waits until it works; GodwitError if it ends before."""

    on_left: Callable[[], Awaitable[None]] | None = None
    """Called when it has ended for good, if that is possible; returns when it is needed again."""


async def supervise(processes: Sequence[Supervised], limit: RestartLimit) -> str:
    """Start every process again that ends; return, and say why, when one is given up."""
    tasks = [asyncio.create_task(_keep_running(process, limit)) for process in processes]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return ", ".join(task.result() for task in done)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _keep_running(process: Supervised, limit: RestartLimit) -> str:
    loop = asyncio.get_running_loop()
    restarts_s: deque[float] = deque()
    while True:
        code = await process.wait()
        if code == LEFT and process.on_left is not None:
            log.warning("left", extra={"what": process.name})
            await process.on_left()
        trouble = "is needed again" if code == LEFT else f"ended with {exit_text(code)}"
        while trouble:
            while restarts_s and loop.time() - restarts_s[0] > limit.within_s:
                restarts_s.popleft()
            count = len(restarts_s)
            if count >= limit.restarts:
                times = f"{count} restarts within {limit.within_s:g} s"
                return f"{process.name} {trouble}, and is given up after {times}"
            facts = {"what": process.name, "reason": trouble}
            log.warning("restarting", extra=facts | {"restart": count + 1, "of": limit.restarts})
            if count:
                await asyncio.sleep(backoff_s(count, first_s=FIRST_S, max_s=MAX_S))
            restarts_s.append(loop.time())
            try:
                await process.start()
                trouble = ""
            except (GodwitError, OSError) as error:
                trouble = f"did not start ({error})"
        log.warning("restarted", extra={"what": process.name})


def exit_text(code: int) -> str:
    """The exit code of a process, with the name of the signal if one ended it."""
    try:
        return f"code {code} ({signal.Signals(-code).name})" if code < 0 else f"code {code}"
    except ValueError:
        return f"code {code}"
