"""Clients that must not be asked to move for a while, and pairs of brokers that must not try again.

A client that has just moved, or was asked and did not, is left alone for a time.  A broker with
which a session found nothing to move is left out of the next detection, and after the next failure
of twice as many: sampling again and again would cost more than it finds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from godwit.policies.offload.broker_load import OffloadAction
from godwit.policies.offload.detection import Candidate

#: Detections that a pair is blocked for at most.
BLOCKED_MAX = 16


class Holds:
    """Clients that are left alone."""

    def __init__(self) -> None:
        self._until_s: dict[str, float] = {}

    def hold(self, clients: Iterable[str], now_s: float, for_s: float) -> None:
        for client in clients:
            self._until_s[client] = now_s + for_s

    def drop(self, client: str) -> None:
        self._until_s.pop(client, None)

    def held(self, now_s: float) -> frozenset[str]:
        """The clients that are held now."""
        for client, until_s in list(self._until_s.items()):
            if now_s >= until_s:
                del self._until_s[client]
        return frozenset(self._until_s)


@dataclass(slots=True)
class _Blocked:
    detections: int
    next_time: int


class BlockedPairs:
    """Partners and actions that led to nothing."""

    def __init__(self) -> None:
        self._blocked: dict[tuple[str, OffloadAction], _Blocked] = {}

    def block(self, partner: str, action: OffloadAction) -> None:
        known = self._blocked.get((partner, action))
        detections = 1 if known is None else known.next_time
        self._blocked[partner, action] = _Blocked(detections, min(2 * detections, BLOCKED_MAX))

    def free(self, partner: str) -> None:
        """A session with this partner has moved clients."""
        self._blocked = {key: kept for key, kept in self._blocked.items() if key[0] != partner}

    def next_detection(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """The candidates that may be asked in this detection."""
        wanted = list(candidates)
        free = [c for c in wanted if not self._is_blocked(c)]
        for blocked in self._blocked.values():
            blocked.detections -= 1
        # A difference that has gone away is forgotten with its failures.
        still = {(c.partner, c.action) for c in wanted}
        self._blocked = {
            key: kept for key, kept in self._blocked.items() if key in still or kept.detections > 0
        }
        return free

    def _is_blocked(self, candidate: Candidate) -> bool:
        blocked = self._blocked.get((candidate.partner, candidate.action))
        return blocked is not None and blocked.detections > 0
