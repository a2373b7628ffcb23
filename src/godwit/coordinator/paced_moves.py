"""Clients are moved at a limited rate, and asked again if they stay.  Pure; time is an argument.

    moves.see("B3", names)           # who is there and shall move
    batches = moves.hand_out(now_s)  # whom to ask now
    moves.carried_out(batch, outcome, now_s)

P1  Over any time t at most (t + BURST_S) * per_s + 1 clients are asked.
P2  A client is not asked while it is asked, nor again before RETRY_S, nor after TRIES answers, or
    SILENCES times that there was none, or no broker for it.
P3  A client that stayed is sent elsewhere the next time, if there is another broker for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from godwit.api.broker_api import MoveOutcome

BURST_S = 1.0
RETRY_S = 2.0
TRIES, SILENCES = 3, 10
#: Clients in one request, and in all that are not answered.
BATCH_MAX, ASKED_MAX = 50, 500

NO_ROOM = "no other broker has room for it"


@dataclass(frozen=True, slots=True)
class MoveBatch:
    """Clients of `source` that should move to `target`."""

    source: str
    target: str
    clients: tuple[str, ...]


@dataclass(slots=True)
class _Client:
    source: str
    not_before_s: float = float("-inf")
    tries: int = 0
    silences: int = 0
    avoided: set[str] = field(default_factory=set)
    """Brokers it was sent to in vain."""

    is_waiting: bool = True
    is_asked: bool = False

    @property
    def is_given_up(self) -> bool:
        return self.tries >= TRIES or self.silences >= SILENCES


class PacedMoves:
    def __init__(
        self,
        per_s: float,
        choose: Callable[[str, AbstractSet[str]], str | None],
        *,
        now_s: float,
    ) -> None:
        """`choose(client, avoided)` is the broker for a client; None if there is no room."""
        self.moved: dict[str, str] = {}
        """Where each client went."""
        self.stayed: dict[str, str] = {}
        """Why a client has not moved yet."""
        self.last_moved_s = now_s
        self._per_s = per_s
        self._choose = choose
        self._clients: dict[str, _Client] = {}
        self._allowance = 1.0
        self._allowance_s = now_s

    @property
    def is_idle(self) -> bool:
        """Whether there is no client left to ask or to wait for."""
        return not any(each.is_asked or each.is_waiting for each in self._clients.values())

    @property
    def asked(self) -> int:
        return sum(each.is_asked for each in self._clients.values())

    def see(self, source: str, present: Iterable[str]) -> None:
        """These clients of a broker shall move; others that were to move from there are gone."""
        here = set(present)
        for name, each in list(self._clients.items()):
            if each.source == source and name not in here and not each.is_asked:
                del self._clients[name]
                self.stayed.pop(name, None)
        for name in sorted(here - self._clients.keys()):
            self._clients[name] = _Client(source)

    def hand_out(self, now_s: float) -> list[MoveBatch]:
        self._refill(now_s)
        room = min(int(self._allowance), ASKED_MAX - self.asked)
        found: dict[tuple[str, str], list[str]] = {}
        for name, each in self._clients.items():
            if room <= 0:
                break
            if not each.is_waiting or each.not_before_s > now_s:
                continue
            target = self._choose(name, each.avoided)
            if target is None:
                each.silences += 1  # A broker that is restarted is there again soon.
                self._again(name, each, self.stayed.get(name, NO_ROOM), now_s)
                continue
            each.is_waiting, each.is_asked = False, True
            found.setdefault((each.source, target), []).append(name)
            self._allowance -= 1
            room -= 1
        return [
            MoveBatch(source, target, tuple(names[first : first + BATCH_MAX]))
            for (source, target), names in found.items()
            for first in range(0, len(names), BATCH_MAX)
        ]

    def _refill(self, now_s: float) -> None:
        self._allowance += max(0.0, now_s - self._allowance_s) * self._per_s
        self._allowance = min(self._allowance, max(1.0, self._per_s * BURST_S))
        self._allowance_s = now_s

    def carried_out(self, batch: MoveBatch, came_of_it: MoveOutcome | str, now_s: float) -> None:
        """The broker's answer, or why there is none."""
        for name in batch.clients:
            each = self._clients[name]
            each.is_asked = False
            if isinstance(came_of_it, str):
                each.silences += 1
                self._again(name, each, came_of_it, now_s)
            elif name in came_of_it.moved:
                self.moved[name], self.last_moved_s = batch.target, now_s
                self.stayed.pop(name, None)
                del self._clients[name]
            elif name in came_of_it.stayed:
                each.tries += 1
                each.avoided.add(batch.target)
                self._again(name, each, came_of_it.stayed[name], now_s)
            else:  # It has left, or is away: who is there is seen again.
                del self._clients[name]

    def _again(self, name: str, each: _Client, why: str, now_s: float) -> None:
        self.stayed[name] = why
        each.is_waiting = not each.is_given_up
        each.not_before_s = now_s + RETRY_S

    def stays(self) -> Counter[str]:
        """How many clients stayed, by reason."""
        return Counter(self.stayed.values())
