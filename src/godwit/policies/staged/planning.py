"""Which stage is needed, and the plan: the multistage algorithm of BAD Pub/Sub.

Paper    Nguyen, Uddin, Venkatasubramanian, DEBS 2019, algorithm 1.
Words    alpha, beta, gamma, theta -> BalancingThresholds; M -> Plan.moves.
Departs  1. A shuffle is the whole plan: migration after it would use the loads before it (E26).
         2. A subscriber that would move several times moves once, to its last target; if that is
            its present broker, it stays.
         3. gamma and theta have no values in the paper: gamma is above alpha, theta is beta.
Tested   tests/policies/staged/test_staged.py.

S1  No subscriber is in a plan twice, and none moves to its present broker.
S2  The moves of a plan, executed on `before`, give `after`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import numpy as np

from godwit.errors import UsageError
from godwit.policies.staged.improving import improved
from godwit.policies.staged.loads import BrokerLoads, Ints, Subscribers, loads
from godwit.policies.staged.migrating import Step, Strategy, migrating
from godwit.policies.staged.shuffle import greedy_shuffle

__all__ = [
    "BalancingStage",
    "BalancingThresholds",
    "Plan",
    "Shuffle",
    "Shuffler",
    "Strategy",
    "SubscriberMove",
    "plan",
]


class BalancingStage(Enum):
    BALANCED = "balanced"
    """No move is needed, or none helps."""

    MIGRATING = "migrating"
    SHUFFLE = "shuffle"


class Shuffle(Enum):
    """How all subscribers are assigned anew."""

    GREEDY = "greedy"
    IMPROVED = "improved"


#: The new home of each subscriber, among so many brokers.
Shuffler: TypeAlias = Callable[[Subscribers, int], Ints]

SHUFFLERS: Mapping[Shuffle, Shuffler] = {
    Shuffle.GREEDY: greedy_shuffle,
    Shuffle.IMPROVED: improved,
}


@dataclass(frozen=True, slots=True)
class BalancingThresholds:
    """Imbalance (cov) and mean load, in bytes per second, above which a stage starts."""

    alpha: float = 0.15
    beta: float = 0.0
    gamma: float = 0.5
    theta: float | None = None
    """None: the same as beta."""

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < self.gamma:
            raise UsageError(
                f"alpha {self.alpha}, gamma {self.gamma}: gamma must be above alpha, "
                "and alpha not below 0"
            )
        if self.beta < 0 or self.shuffle_load < 0:
            raise UsageError("beta, theta: a mean load must not be negative")

    @property
    def shuffle_load(self) -> float:
        return self.beta if self.theta is None else self.theta


@dataclass(frozen=True, slots=True)
class SubscriberMove:
    """`subscriber` moves from broker `source` to broker `target`."""

    subscriber: int
    source: int
    target: int
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    stage: BalancingStage
    why: str
    moves: tuple[SubscriberMove, ...]
    before: BrokerLoads
    after: BrokerLoads


def plan(
    subscribers: Subscribers,
    home: Ints,
    m: int,
    thresholds: BalancingThresholds,
    strategy: Strategy = Strategy.LDM,
    shuffle: Shuffle | Shuffler = Shuffle.GREEDY,
) -> Plan:
    """The plan for an assignment."""
    before = loads(subscribers, home, m)
    cov, mean = before.cov, before.mean
    if cov > thresholds.gamma and mean > thresholds.shuffle_load:
        why = f"cov {cov:.3f} is above gamma {thresholds.gamma:g}"
        return _shuffled(subscribers, home, m, shuffle, before, why)
    if cov > thresholds.alpha and mean > thresholds.beta:
        why = f"cov {cov:.3f} is above alpha {thresholds.alpha:g}"
        steps = migrating(subscribers, home, m, thresholds.alpha, thresholds.beta, strategy)
        return _migrated(subscribers, home, m, steps, before, why)
    reason = (
        f"cov {cov:.3f} is not above alpha {thresholds.alpha:g}"
        if cov <= thresholds.alpha
        else f"mean load {mean:.4g} bytes/s is not above beta {thresholds.beta:g}"
    )
    return Plan(BalancingStage.BALANCED, reason, (), before, before)


def _migrated(
    subscribers: Subscribers, home: Ints, m: int, steps: Sequence[Step], before: BrokerLoads,
    why: str,
) -> Plan:  # fmt: skip
    last = {step.subscriber: step for step in steps}
    moves = tuple(
        SubscriberMove(i, int(home[i]), step.target, step.why)
        for i, step in last.items()
        if step.target != home[i]
    )
    if not moves:
        return Plan(BalancingStage.BALANCED, f"{why}, and no move helps", (), before, before)
    return _plan(subscribers, home, m, BalancingStage.MIGRATING, why, moves, before)


def _shuffled(
    subscribers: Subscribers, home: Ints, m: int, shuffle: Shuffle | Shuffler,
    before: BrokerLoads, why: str,
) -> Plan:  # fmt: skip
    shuffler = SHUFFLERS[shuffle] if isinstance(shuffle, Shuffle) else shuffle
    new_home = shuffler(subscribers, m)
    after = loads(subscribers, new_home, m)
    if after.maximum >= before.maximum:
        return Plan(BalancingStage.BALANCED, f"{why}, and no shuffle helps", (), before, before)
    weights = subscribers.weights
    moves = tuple(
        SubscriberMove(i, int(home[i]), int(new_home[i]), f"shuffle: u {weights[i]:.4g} bytes/s")
        for i in np.flatnonzero(new_home != home).tolist()
    )
    return Plan(BalancingStage.SHUFFLE, why, moves, before, after)


def _plan(
    subscribers: Subscribers, home: Ints, m: int, stage: BalancingStage, why: str,
    moves: tuple[SubscriberMove, ...], before: BrokerLoads,
) -> Plan:  # fmt: skip
    new_home = home.copy()
    for move in moves:
        new_home[move.subscriber] = move.target
    return Plan(stage, why, moves, before, loads(subscribers, new_home, m))
