"""One plan at a time, executed in steps.

    reports of all live brokers --> plan --> batches, `moves_per_s` --> outcomes --> new reports

Reports from before the last plan was executed do not include its moves; planning on them would move
subscribers back and forth.  So a plan is made only when none is under way, and every live broker
has reported since.

R1  A subscriber is asked at most once in `hold_s`.
R2  No subscriber is sent to a broker that is not live; only the live broker where it is, is asked.
R3  A broker has one batch at a time.
R4  Every move of a plan gets an outcome, whether or not brokers answer.
R5  Over any time t, at most (t + 1) * moves_per_s + 1 moves are requested.
R6  A dry run requests no move.
R7  No move is requested from or to a broker that is being drained or joins.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import msgspec

from godwit.api.broker_api import MoveOutcome
from godwit.api.coordinator_api import MoveRecord, Outcome, PlanRecord
from godwit.coordinator.broker_records import Change, Forgotten, Memory
from godwit.coordinator.deciding import BalancingDecision
from godwit.coordinator.settings import CoordinatorSettings
from godwit.errors import UsageError

#: The most subscribers in one request to a broker.
BATCH_MAX = 50
#: Time for a broker's answer beyond the time for its subscribers.
ANSWER_GRACE_S = 5.0
#: Moves that are kept; more if hold times need them.
MOVES_KEPT = 10_000

RESTARTED = "the coordinator was restarted"

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Batch:
    """Subscribers of `source` that should move to `target`."""

    source: str
    target: str
    moves: tuple[int, ...]
    clients: tuple[str, ...]
    answer_s: float
    """The time that the broker has to answer."""


class Surroundings(Protocol):
    """What moves depend on."""

    def is_live(self, broker: str, now_s: float) -> bool: ...

    def can_be_asked(self, broker: str) -> bool: ...

    def is_closed(self, broker: str) -> bool:
        """Whether a change of the network has the broker's clients in its hands."""
        ...

    def home(self, client: str) -> str | None:
        """The broker that reports the client as online, if any."""
        ...


class Rounds:
    def __init__(
        self, memory: Memory, keep: Callable[[Change], None], settings: CoordinatorSettings
    ) -> None:
        self._memory = memory
        self._keep = keep
        self._settings = settings
        self._waiting: dict[Pair, deque[int]] = {}
        self._asked: dict[str, tuple[Batch, float]] = {}
        """Batches by source, with their deadlines."""
        self._allowance = 0.0
        self._allowance_s: float | None = None
        self._held_until_s: dict[str, float] = {}
        self.outcomes: Counter[Outcome] = Counter(m.outcome for m in memory.moves.values())
        for move in memory.moves.values():
            if move.asked_s is not None:
                self._hold(move.client, move.asked_s)
            elif move.outcome is Outcome.REJECTED and move.ended_s is not None:
                self._hold(move.client, move.ended_s)

    def recover(self, now_s: float) -> None:
        """Give up a plan that was under way when the process ended: its loads are old."""
        for move in list(self._memory.moves.values()):
            if move.outcome is Outcome.ASKED:
                self._end(move, Outcome.UNKNOWN, RESTARTED, now_s)
            elif move.outcome is Outcome.WAITING:
                self._end(move, Outcome.DROPPED, RESTARTED, now_s)
        plan = self._memory.plan
        if plan is not None and plan.ended_s is None:
            self._keep(msgspec.structs.replace(plan, ended_s=now_s))

    @property
    def is_under_way(self) -> bool:
        return bool(self._waiting or self._asked)

    def held(self, now_s: float) -> frozenset[str]:
        """Subscribers that must not be moved now."""
        return frozenset(c for c, until_s in self._held_until_s.items() if until_s > now_s)

    def adopt(self, decision: BalancingDecision, now_s: float) -> None:
        """Start to execute a decision, if it has moves."""
        assert not self.is_under_way, "one plan at a time"
        if not decision.moves:
            return
        brokers, before = decision.situation.brokers, decision.situation.loads
        number = 1 if self._memory.plan is None else self._memory.plan.number + 1
        is_dry_run = self._settings.dry_run
        if is_dry_run:  # The next is similar, and due soon: only the last is kept.
            self._forget(lambda move: move.outcome is Outcome.PROPOSED)
        self._keep(
            PlanRecord(
                number=number,
                made_s=now_s,
                stage=decision.stage.value,
                why=decision.why,
                is_dry_run=is_dry_run,
                cov_before=before.cov,
                cov_after=decision.after.cov,
                load_before=dict(zip(brokers, before.total.tolist(), strict=True)),
                load_after=dict(zip(brokers, decision.after.total.tolist(), strict=True)),
                ended_s=now_s if is_dry_run else None,
            )
        )
        outcome = Outcome.PROPOSED if is_dry_run else Outcome.WAITING
        first = max(self._memory.moves, default=0) + 1
        for serial, move in enumerate(decision.moves, start=first):
            record = MoveRecord(
                number=serial,
                plan=number,
                client=decision.situation.clients[move.subscriber],
                source=brokers[move.source],
                target=brokers[move.target],
                why=move.why,
                outcome=outcome,
            )
            self._keep(record)
            self.outcomes[outcome] += 1
            if not is_dry_run:
                pair = record.source, record.target
                self._waiting.setdefault(pair, deque()).append(serial)

    def reject(self, number: int, because: str, now_s: float) -> MoveRecord:
        """A proposal of a dry run that is not wanted; UsageError if it is not there any more."""
        move = self._memory.moves.get(number)
        if move is None or move.outcome not in (Outcome.PROPOSED, Outcome.REJECTED):
            raise UsageError(f"move {number} is not proposed now; look again")
        if move.outcome is Outcome.PROPOSED:
            self._end(move, Outcome.REJECTED, because, now_s)
            self._hold(move.client, now_s)
        return self._memory.moves[number]

    def hand_out(self, around: Surroundings, now_s: float) -> list[Batch]:
        """The batches to send now; each ends with `carried_out`, or times out."""
        self._expire(now_s)
        self._refill(now_s)
        batches = list(self._batches(around, now_s))
        self._end_if_done(now_s)
        return batches

    def _expire(self, now_s: float) -> None:
        for source, (batch, deadline_s) in list(self._asked.items()):
            if now_s >= deadline_s:
                del self._asked[source]
                for number in batch.moves:
                    self._end_number(number, Outcome.UNKNOWN, "no answer in time", now_s)
        plan = self._memory.plan
        if self._waiting and plan is not None and now_s - plan.made_s >= self._settings.plan_s:
            for number in [n for queue in self._waiting.values() for n in queue]:
                self._end_number(number, Outcome.DROPPED, "the plan is too old", now_s)
            self._waiting.clear()

    def _refill(self, now_s: float) -> None:
        rate = self._settings.moves_per_s
        if self._allowance_s is not None:
            self._allowance += max(0.0, now_s - self._allowance_s) * rate
        self._allowance = min(self._allowance, max(1.0, rate))
        self._allowance_s = now_s

    def _batches(self, around: Surroundings, now_s: float) -> Iterator[Batch]:
        for pair in list(self._waiting):
            if self._allowance < 1:
                return
            if pair[0] not in self._asked:
                records = self._take(pair, around, now_s)
                if records:
                    yield self._ask(pair, records, now_s)

    def _take(self, pair: Pair, around: Surroundings, now_s: float) -> list[MoveRecord]:
        """The moves that may be requested now; those that are no longer possible are dropped."""
        taken: list[MoveRecord] = []
        queue = self._waiting[pair]
        while queue and len(taken) < min(BATCH_MAX, int(self._allowance)):
            move = self._memory.moves[queue.popleft()]
            obstacle = self._obstacle(move, around, now_s)
            if obstacle is None:
                taken.append(move)
            else:
                self._end(move, Outcome.DROPPED, obstacle, now_s)
        del self._waiting[pair]
        if queue:  # Pairs take turns, so that no broker is filled before it is emptied.
            self._waiting[pair] = queue
        return taken

    def _obstacle(self, move: MoveRecord, around: Surroundings, now_s: float) -> str | None:
        for broker in (move.source, move.target):
            if not around.is_live(broker, now_s):
                return f"broker {broker} is silent"
            if around.is_closed(broker):
                return f"broker {broker} is being drained, or joins"
        if not around.can_be_asked(move.source):
            return f"broker {move.source} has no HTTP address"
        if around.home(move.client) != move.source:
            return f"it has left {move.source}"
        return None

    def _ask(self, pair: Pair, records: list[MoveRecord], now_s: float) -> Batch:
        self._allowance -= len(records)
        for move in records:
            self._change(move, outcome=Outcome.ASKED, asked_s=now_s)
            self._hold(move.client, now_s)
        batch = Batch(
            source=pair[0],
            target=pair[1],
            moves=tuple(move.number for move in records),
            clients=tuple(move.client for move in records),
            answer_s=len(records) * self._settings.move_timeout_s + ANSWER_GRACE_S,
        )
        self._asked[batch.source] = batch, now_s + batch.answer_s + ANSWER_GRACE_S
        return batch

    def carried_out(self, batch: Batch, came_of_it: MoveOutcome | str, now_s: float) -> None:
        """A broker's answer, or why there is none."""
        known = self._asked.get(batch.source)
        if known is None or known[0] is not batch:
            return  # Too late: it has timed out.
        del self._asked[batch.source]
        for number, client in zip(batch.moves, batch.clients, strict=True):
            outcome, because = _outcome(client, came_of_it)
            self._end_number(number, outcome, because, now_s)
        self._end_if_done(now_s)

    def _end_if_done(self, now_s: float) -> None:
        plan = self._memory.plan
        if plan is not None and plan.ended_s is None and not self.is_under_way:
            self._keep(msgspec.structs.replace(plan, ended_s=now_s))
            self._held_until_s = {c: self._held_until_s[c] for c in self.held(now_s)}
            surplus = len(self._memory.moves) - MOVES_KEPT
            oldest = set(sorted(self._memory.moves)[: max(0, surplus)])
            self._forget(lambda move: move.number in oldest and not self._holds(move, now_s))

    def _forget(self, is_old: Callable[[MoveRecord], bool]) -> None:
        for move in [move for move in self._memory.moves.values() if is_old(move)]:
            self._keep(Forgotten(move.number))

    def _end_number(self, number: int, outcome: Outcome, because: str, now_s: float) -> None:
        self._end(self._memory.moves[number], outcome, because, now_s)

    def _end(self, move: MoveRecord, outcome: Outcome, because: str, now_s: float) -> None:
        self._change(move, outcome=outcome, because=because, ended_s=now_s)

    def _change(self, move: MoveRecord, **fields: object) -> None:
        changed = msgspec.structs.replace(move, **fields)
        self._keep(changed)
        self.outcomes[move.outcome] -= 1
        self.outcomes[changed.outcome] += 1

    def _holds(self, move: MoveRecord, now_s: float) -> bool:
        return move.asked_s is not None and move.asked_s + self._settings.hold_s > now_s

    def _hold(self, client: str, asked_s: float) -> None:
        until_s = asked_s + self._settings.hold_s
        self._held_until_s[client] = max(until_s, self._held_until_s.get(client, until_s))


def _outcome(client: str, came_of_it: MoveOutcome | str) -> tuple[Outcome, str]:
    if isinstance(came_of_it, str):
        return Outcome.UNKNOWN, came_of_it
    if client in came_of_it.moved:
        return Outcome.MOVED, ""
    if client in came_of_it.stayed:
        return Outcome.STAYED, came_of_it.stayed[client]
    return Outcome.DROPPED, "the broker does not have it"
