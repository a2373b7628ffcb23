"""A broker that is back after a failure keeps publications until it knows again where they belong.

It finds out that it has failed from its first caller that remembers it.  Then it waits

    for clients        `restart_s`: they call again and ask for what they had
    for neighbours     until each that it should have is linked and has told all it knows
    and not longer     than `link_s`, after which neighbours give a broker up, too

What comes in meanwhile is not acknowledged: if this broker fails again, it will be sent again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from godwit.broker.stimuli import Neighbour
from godwit.content.messages import Publication, Sweep
from godwit.network.port import UNANSWERED_BYTES_SPARE, Port

#: A message, the links it has crossed, and the bytes it came as.
Held: TypeAlias = tuple[Publication | Sweep, int, bytes]


class Recovery:
    def __init__(self, expected: frozenset[Neighbour], *, window_bytes: int) -> None:
        self.clients_are_back = False
        self.has_taken_too_long = False
        self._expected = expected
        self._limit_bytes = window_bytes + UNANSWERED_BYTES_SPARE
        self._held: dict[Port, list[Held]] = {}
        self._held_bytes: dict[Port, int] = {}

    def is_over(self, linked: set[Neighbour], *, is_complete: bool) -> bool:
        if self.has_taken_too_long:
            return True
        return self.clients_are_back and is_complete and self._expected <= linked

    def hold(self, source: Port, held: Held) -> None:
        self._held.setdefault(source, []).append(held)
        held_bytes = self._held_bytes.get(source, 0) + len(held[2])
        self._held_bytes[source] = held_bytes
        if held_bytes > self._limit_bytes and source.connection is not None:
            source.connection.pause_reading()  # It was told to stop, and does not.

    def holds(self, source: Port) -> bool:
        return source in self._held

    def forget(self, source: Port) -> None:
        """The peer is gone, or will send it all again."""
        self._held.pop(source, None)
        self._held_bytes.pop(source, None)

    def all(self) -> Iterator[tuple[Port, list[Held]]]:
        yield from self._held.items()
