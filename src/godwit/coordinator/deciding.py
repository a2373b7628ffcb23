"""The decision for a situation: policies/staged/planning.py, without subscribers that are held.

D1  No subscriber within its hold time is moved.
D2  A decision lowers the loads: sorted from the highest down, they are lexicographically lower than
    before, if every move is made.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from godwit.coordinator.settings import CoordinatorSettings
from godwit.coordinator.situation import Situation
from godwit.policies.staged.loads import ROUNDING, BrokerLoads, loads
from godwit.policies.staged.planning import (
    BalancingStage,
    Shuffle,
    Shuffler,
    SubscriberMove,
    plan,
)


@dataclass(frozen=True)
class BalancingDecision:
    situation: Situation
    stage: BalancingStage
    why: str
    moves: tuple[SubscriberMove, ...]
    after: BrokerLoads


def decide(
    situation: Situation,
    held: AbstractSet[str],
    settings: CoordinatorSettings,
    on_spark: Shuffler | None = None,
) -> BalancingDecision:
    """Takes a while for many subscribers; all arguments are immutable.

    `on_spark` shuffles `spark_from` subscribers or more.
    """
    shuffle: Shuffle | Shuffler = settings.shuffle
    if on_spark and settings.spark_from and len(situation.clients) >= settings.spark_from:
        shuffle = on_spark
    made = plan(
        situation.subscribers,
        situation.home,
        len(situation.brokers),
        settings.thresholds,
        settings.strategy,
        shuffle,
    )
    free = tuple(move for move in made.moves if situation.clients[move.subscriber] not in held)
    if len(free) == len(made.moves):
        return BalancingDecision(situation, made.stage, made.why, made.moves, made.after)
    after = _after(situation, free)
    why = f"{made.why}; {len(made.moves) - len(free)} of its subscribers are held"
    if free and _falls(made.before, after):
        return BalancingDecision(situation, made.stage, why, free, after)
    return BalancingDecision(
        situation,
        BalancingStage.BALANCED,
        f"{why}, and the other moves do not help",
        (),
        made.before,
    )


def _after(situation: Situation, moves: tuple[SubscriberMove, ...]) -> BrokerLoads:
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
