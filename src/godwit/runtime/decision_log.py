"""The decisions of a broker's policies: logged with their reasons, counted, and added up.

What the load balancer reports of its sessions (policies/offload) is added up for /metrics: sessions
by how they ended, clients by what became of them, and what the last session should have done to the
load of this broker, and did.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque

from msgspec.structs import asdict

from godwit.broker.effects import Decision
from godwit.policies.offload.offload_module import Offload
from godwit.policies.offload.outcomes import ACHIEVED

log = logging.getLogger("godwit.node")

#: Actions of the decision at the end of a session.
ENDS = ("ended", "gave up")
#: Decisions that are kept for GET /decisions.
RECENT = 200
#: What is reported of a load: before a session, as it was expected, and as it became.
STAGES_OF_LOAD = ("before", "predicted", "achieved", "error")


class Decisions(Counter[tuple[str, str]]):
    """Decisions by policy and action."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions: Counter[tuple[str, str]] = Counter()
        """Sessions of the load balancer that are over, by side and ending."""
        self.moves: Counter[str] = Counter()
        """Clients by what became of them: `asked`, then `left` for the acceptor, `closed` their
        session, or `stayed`; at the acceptor `arrived`."""
        self.differences: dict[str, float] = {}
        """Of the last session as the offloader: the difference before, and as it was predicted."""
        self.outcome: dict[tuple[str, str], float] = {}
        """Of the last session whose load has settled: loads by metric and stage."""

        self.recent: deque[tuple[int, float, str, Decision]] = deque(maxlen=RECENT)
        """The last ones: number, time, policy, decision."""

    def record(self, policy: str, decision: Decision) -> None:
        self[policy, decision.action] += 1
        number = self.recent[-1][0] + 1 if self.recent else 1
        self.recent.append((number, time.time(), policy, decision))
        log.info("decided", extra={"policy": policy, **asdict(decision)})
        if policy == Offload.name:
            self._add_up(decision)

    def _add_up(self, decision: Decision) -> None:
        reason = decision.reason
        if decision.action == "asked":
            self.moves["asked"] += 1
        elif decision.action in ENDS and "side" in reason:
            self._add_session(decision)
        elif decision.action == ACHIEVED:
            self.outcome = {
                (metric, stage): float(reason[f"{metric}_{stage}"])
                for metric in ("input", "match", "output")
                for stage in STAGES_OF_LOAD
            }

    def _add_session(self, decision: Decision) -> None:
        reason = decision.reason
        side, moved = str(reason["side"]), int(reason["moved"])
        ending = "gave up" if decision.action != "ended" else "moved" if moved else "nothing moved"
        self.sessions[side, ending] += 1
        if side == "acceptor":
            self.moves["arrived"] += moved
            return
        self.moves["left"] += moved
        closed = int(reason["closed"])
        self.moves["closed"] += closed
        self.moves["stayed"] += int(reason["asked"]) - moved - closed
        if "difference_before" in reason:
            self.differences = {
                "before": float(reason["difference_before"]),
                "predicted": float(reason["difference_after"]),
            }
