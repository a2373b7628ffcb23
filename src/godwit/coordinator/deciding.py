"""What to do about a situation: the plan of balance/staged.py, without those who are held.

D1  Nobody who is held is moved.
D2  What is decided makes the loads fall: sorted from the highest down, they are lexicographically
    lower than before, if every move is made.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from godwit.balance.model import ROUNDING, BrokerLoads, loads
from godwit.balance.staged import Move, Stage, plan
from godwit.coordinator.settings import CoordinatorSettings
from godwit.coordinator.situation import Situation


@dataclass(frozen=True)
class Decision:
    situation: Situation
    stage: Stage
    why: str
    moves: tuple[Move, ...]
    after: BrokerLoads


def decide(situation: Situation, held: AbstractSet[str], settings: CoordinatorSettings) -> Decision:
    """Takes a while for many subscribers; uses nothing that changes."""
    made = plan(
        situation.subscribers,
        situation.home,
        len(situation.brokers),
        settings.thresholds,
        settings.strategy,
        settings.shuffle,
    )
    free = tuple(move for move in made.moves if situation.clients[move.subscriber] not in held)
    if len(free) == len(made.moves):
        return Decision(situation, made.stage, made.why, made.moves, made.after)
    after = _after(situation, free)
    why = f"{made.why}; {len(made.moves) - len(free)} who would move are held"
    if free and _falls(made.before, after):
        return Decision(situation, made.stage, why, free, after)
    return Decision(situation, Stage.BALANCED, f"{why}, and no others help", (), made.before)


def _after(situation: Situation, moves: tuple[Move, ...]) -> BrokerLoads:
    home = situation.home.copy()
    for move in moves:
        home[move.subscriber] = move.target
    return loads(situation.subscribers, home, len(situation.brokers))


def _falls(before: BrokerLoads, after: BrokerLoads) -> bool:
    for old, new in zip(_sorted(before), _sorted(after), strict=True):
        if abs(new - old) > ROUNDING * old:
            return new < old
    return False


def _sorted(loads: BrokerLoads) -> list[float]:
    return sorted(loads.total.tolist(), reverse=True)
