"""After a failure a broker holds publications until its routing tables are complete again.

It learns of its failure from the first caller that remembers it.  Then it waits

    for clients        `restart_s`: they reconnect and repeat what they hold
    for neighbours     until each expected one is linked and its resync is complete
    at most            `link_s`, after which neighbours give a broker up, too

What is held is not acknowledged: if this broker fails again, it will be sent again.
"""

from __future__ import annotations

import time
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from godwit.broker.stimuli import Neighbour
from godwit.content.messages import Last, Publication, Sweep
from godwit.runtime.peer_reader import MessageHandler
from godwit.runtime.port import UNACKNOWLEDGED_BYTES_SPARE, Port

#: A message, the links it has crossed, and the bytes it came as.
Held: TypeAlias = tuple[Publication | Sweep | Last, int, bytes]


class Recovery:
    def __init__(self, *, window_bytes: int) -> None:
        self.clients_are_back = False
        self.has_taken_too_long = False
        self._limit_bytes = window_bytes + UNACKNOWLEDGED_BYTES_SPARE
        self._held: dict[Port, list[Held]] = {}
        self._held_bytes: dict[Port, int] = {}

    def is_over(
        self, expected: AbstractSet[Neighbour], linked: set[Neighbour], *, is_complete: bool
    ) -> bool:
        """`is_complete`: has every linked neighbour completed its resync?"""
        if self.has_taken_too_long:
            return True
        return self.clients_are_back and is_complete and expected <= linked

    def hold(self, source: Port, held: Held) -> None:
        self._held.setdefault(source, []).append(held)
        held_bytes = self._held_bytes.get(source, 0) + len(held[2])
        self._held_bytes[source] = held_bytes
        if held_bytes > self._limit_bytes and source.connection is not None:
            source.connection.pause_reading()  # The peer ignores that its window is full.

    def holds(self, source: Port) -> bool:
        return source in self._held

    def forget(self, source: Port) -> None:
        """The peer is gone, or will send it all again."""
        self._held.pop(source, None)
        self._held_bytes.pop(source, None)

    def hand_over(self, handler: MessageHandler) -> None:
        """It is over: what was held is handled as if it came now."""
        for source, messages in self._held.items():
            if source.connection is not None:
                source.connection.read_start_s = time.monotonic()
            for message, hops, body in messages:
                if isinstance(message, Publication):  # One by one: they are not sent again.
                    handler.receive_run(source, [(message, hops, body)])
                else:
                    handler.receive(source, message, hops, body)
            handler.finish_read(source)
