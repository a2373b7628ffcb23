"""After a failure a broker holds publications until its routing tables are complete again.

It learns of its failure from the first caller that remembers it.  Then it waits

    for clients        `restart_s`: they reconnect and repeat what they hold
    for neighbours     until each expected one is linked and its resync is complete
    at most            `link_s` from then on: neighbours give a broker up after that time, too

What is held is not acknowledged: if this broker fails again, it will be sent again.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from godwit.broker.stimuli import Neighbour
from godwit.runtime.held_messages import HeldMessage, HeldMessages
from godwit.runtime.peer_reader import MessageHandler
from godwit.runtime.port import Port


class Recovery:
    def __init__(self, *, window_bytes: int) -> None:
        self.clients_are_back = False
        self.has_taken_too_long = False
        self._held = HeldMessages(window_bytes=window_bytes)

    def is_over(
        self, expected: AbstractSet[Neighbour], linked: set[Neighbour], *, is_complete: bool
    ) -> bool:
        """`is_complete`: has every linked neighbour completed its resync?"""
        if self.has_taken_too_long:
            return True
        return self.clients_are_back and is_complete and expected <= linked

    def hold(self, source: Port, held: HeldMessage) -> None:
        self._held.hold(source, held)

    def holds(self, source: Port) -> bool:
        return source in self._held

    def forget(self, source: Port) -> None:
        """The peer is gone, or will send it all again."""
        self._held.forget(source)

    def hand_over(self, handler: MessageHandler) -> None:
        """It is over: what was held is handled as if it came now."""
        for source in self._held:
            self._held.hand_over(source, handler)
