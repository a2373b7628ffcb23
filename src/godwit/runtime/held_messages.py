"""Messages that a live broker holds, peer by peer, in the order in which they came.

What is held is not acknowledged: if this broker fails, it will be sent again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TypeAlias

from godwit.content.messages import OtherMessage, Publication
from godwit.runtime.peer_reader import MessageHandler
from godwit.runtime.port import UNACKNOWLEDGED_BYTES_SPARE, Port

#: A message, the links it has crossed, and the bytes it came as.
HeldMessage: TypeAlias = tuple[Publication | OtherMessage, int, bytes]


class HeldMessages:
    def __init__(self, *, window_bytes: int) -> None:
        self._limit_bytes = window_bytes + UNACKNOWLEDGED_BYTES_SPARE
        self._held: dict[Port, list[HeldMessage]] = {}
        self._held_bytes: dict[Port, int] = {}

    def __contains__(self, source: Port) -> bool:
        return source in self._held

    def __iter__(self) -> Iterator[Port]:
        """Over the peers; what is held may change meanwhile."""
        return iter(tuple(self._held))

    def __bool__(self) -> bool:
        return bool(self._held)

    def count(self, source: Port) -> int:
        return len(self._held.get(source, ()))

    def first(self, source: Port) -> Publication | OtherMessage:
        return self._held[source][0][0]

    def hold(self, source: Port, held: HeldMessage) -> None:
        self._held.setdefault(source, []).append(held)
        held_bytes = self._held_bytes.get(source, 0) + len(held[2])
        self._held_bytes[source] = held_bytes
        if held_bytes > self._limit_bytes and source.connection is not None:
            source.connection.pause_reading()  # The peer ignores that its window is full.

    def forget(self, source: Port) -> None:
        """The peer is gone, or will send it all again."""
        self._held.pop(source, None)
        self._held_bytes.pop(source, None)

    def hand_over(self, source: Port, handler: MessageHandler) -> None:
        """Handle what was held as if it came now; the handler may hold some of it again."""
        messages = self._held.pop(source, [])
        self._held_bytes.pop(source, None)
        if not messages:
            return
        if source.connection is not None:
            source.connection.read_start_s = time.monotonic()
        for message, hops, body in messages:
            if isinstance(message, Publication):  # One by one: they are not sent again.
                handler.receive_run(source, [(message, hops, body)])
            else:
                handler.receive(source, message, hops, body)
        handler.finish_read(source)
