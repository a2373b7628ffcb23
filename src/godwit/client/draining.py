"""Leaving a broker: close the connection once the broker has acknowledged everything.

Withdrawals of what the client held there are in the stream, which survives lost connections.  A
broker that cannot be reached for too long ends the session by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from godwit.client.broker_connection import BrokerConnection
from godwit.client.stream_endpoint import NumberedFrame
from godwit.errors import TakenOverError

#: As long as a broker keeps a session, by default.
DRAIN_S = 60.0


class DrainingConnection:
    """Takes a connection over, and calls `on_end` when it is closed."""

    def __init__(
        self, connection: BrokerConnection, on_end: Callable[[DrainingConnection], None]
    ) -> None:
        self.connection = connection
        self.is_over = False
        self._on_end = on_end
        self._timer = asyncio.get_running_loop().call_later(DRAIN_S, self.end)
        connection.listener = self
        connection.flush()
        self.on_progress()

    def on_message(self, message: NumberedFrame, hops: int) -> None:
        """Ignored: the client is at another broker."""

    def on_progress(self) -> None:
        endpoint = self.connection.endpoint
        if endpoint.is_forgotten or endpoint.stream.is_idle:
            self.end()

    def on_taken_over(self, error: TakenOverError) -> None:
        self.end()

    def end(self) -> None:
        self.is_over = True
        self._timer.cancel()
        self.connection.leave("the client is at another broker")
        self._on_end(self)
