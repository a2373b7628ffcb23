"""Writes the trace of a run of `bad-prototype`, simulated or live: what the coordinator sees.

Times in the trace are the paper's; a run at pace 5 takes a fifth of them.  `gauges` has each
broker's bytes in and out as a moving average over a minute of that time; `decisions` has each move,
and counts with the policy `check`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

from godwit.api import coordinator_api
from godwit.trace.writer import TraceWriter

AVERAGED_S = 60.0
#: How planning explains a move of a shuffle (policies/staged/planning.py).
SHUFFLE = "shuffle"


class Notes:
    def __init__(self, writer: TraceWriter, *, pace: float) -> None:
        self._writer, self._pace = writer, pace
        self._seen: deque[tuple[float, Sequence[coordinator_api.BrokerStatus]]] = deque()
        self._fe = self._be = 0

    def look(
        self, at_s: float, brokers: Sequence[coordinator_api.BrokerStatus], fe: int, be: int
    ) -> None:
        """Call it at regular times: the reports of brokers hold until the next call."""
        at_s *= self._pace
        self._fe, self._be = max(self._fe, fe), max(self._be, be)
        self._seen.append((at_s, brokers))
        while at_s - self._seen[0][0] >= AVERAGED_S:
            self._seen.popleft()
        for broker in brokers:
            past = [b for _, seen in self._seen for b in seen if b.broker == broker.broker]
            self._writer.gauges.add((
                at_s, broker.broker, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
                sum(b.bytes_in_per_s for b in past) / len(past),
                sum(b.bytes_out_per_s for b in past) / len(past),
                0, 0, 0, broker.be_subscriptions, 0, broker.subscribers,
            ))  # fmt: skip

    def close(self, moves: Iterable[coordinator_api.MoveRecord], *, started_s: float = 0.0) -> None:
        """Write the moves that were made, and the counts."""
        for move in sorted(moves, key=lambda move: move.number):
            if move.outcome is coordinator_api.Outcome.MOVED and move.ended_s is not None:
                stage = SHUFFLE if move.why.startswith(SHUFFLE) else "migrating"
                at_s = (move.ended_s - started_s) * self._pace
                self._decide(at_s, str(move.plan), stage, move.client, move.source, move.target,
                             move.why)  # fmt: skip
        self._decide(0.0, "check", "fe", "", "", "", self._fe)
        self._decide(0.0, "check", "be", "", "", "", self._be)

    def _decide(
        self, at_s: float, policy: str, action: str, subject: str, source: str, target: str,
        reason: str | int,
    ) -> None:  # fmt: skip
        """The policy of a move is the number of its plan."""
        self._writer.decisions.add((
            at_s, "coordinator", policy, action, subject, source, target,
            msgspec.json.encode(reason).decode(),
        ))  # fmt: skip
