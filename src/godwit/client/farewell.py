"""Leaving a broker: say goodbye when it has heard all that it should.

What we hold there no longer is withdrawn in the stream, which survives lost connections.  If the
broker cannot be reached for too long, it will give the session up by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from godwit.client.line import Line
from godwit.client.post import Arrived

#: As long as a broker keeps a session, unless it is told otherwise.
FAREWELL_S = 60.0


class Farewell:
    """Takes a line over; `on_end` is told when it is no more."""

    def __init__(self, line: Line, on_end: Callable[[Farewell], None]) -> None:
        self.line = line
        self.is_over = False
        self._on_end = on_end
        self._timer = asyncio.get_running_loop().call_later(FAREWELL_S, self.end)
        line.listener = self
        line.flush()
        self.on_progress()

    def on_arrived(self, frame: Arrived, hops: int) -> None:
        """Whatever still comes, we are elsewhere."""

    def on_progress(self) -> None:
        post = self.line.post
        if post.is_forgotten or post.stream.is_idle:
            self.end()

    def end(self) -> None:
        self.is_over = True
        self._timer.cancel()
        self.line.hang_up("the client is elsewhere")
        self._on_end(self)
