"""Which stage the brokers need, and the plan: the multistage algorithm of BAD Pub/Sub.

Paper    Nguyen, Uddin, Venkatasubramanian, DEBS 2019, algorithm 1.
Words    alpha, beta, gamma, theta -> Thresholds; M -> Plan.moves.
Departs  1. A shuffle is the whole plan: migration would go on from loads of before it (E26).
         2. Who would move several times moves once, to where it ends; who ends where it is, stays.
         3. gamma and theta have no values in the paper: gamma is above alpha, theta is beta.
Tested   tests/balance/test_staged.py.

S1  No subscriber is in a plan twice, and none moves to where it is.
S2  The moves of a plan, carried out on `before`, give `after`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from godwit.balance.improving import improved
from godwit.balance.migrating import Step, Strategy, migrating
from godwit.balance.model import BrokerLoads, Ints, Subscribers, loads
from godwit.balance.shuffle import greedy_shuffle
from godwit.errors import UsageError

__all__ = ["Move", "Plan", "Shuffle", "Stage", "Strategy", "Thresholds", "plan"]


class Stage(Enum):
    BALANCED = "balanced"
    """Nothing to do, or nothing that would help."""

    MIGRATING = "migrating"
    SHUFFLE = "shuffle"


class Shuffle(Enum):
    """How everybody is assigned anew."""

    GREEDY = "greedy"
    IMPROVED = "improved"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From which imbalance (cov) and mean load, in bytes per second, on a stage is entered."""

    alpha: float = 0.15
    beta: float = 0.0
    gamma: float = 0.5
    theta: float | None = None
    """None: as beta."""

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < self.gamma:
            raise UsageError(
                f"alpha {self.alpha}, gamma {self.gamma}: a shuffle is for more imbalance than "
                "migration is, and neither is below 0"
            )
        if self.beta < 0 or self.shuffle_load < 0:
            raise UsageError("beta, theta: a mean load is not negative")

    @property
    def shuffle_load(self) -> float:
        return self.beta if self.theta is None else self.theta


@dataclass(frozen=True, slots=True)
class Move:
    """`subscriber` goes from broker `source` to broker `target`."""

    subscriber: int
    source: int
    target: int
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    stage: Stage
    why: str
    moves: tuple[Move, ...]
    before: BrokerLoads
    after: BrokerLoads


def plan(
    subscribers: Subscribers,
    home: Ints,
    m: int,
    thresholds: Thresholds,
    strategy: Strategy = Strategy.LDM,
    shuffle: Shuffle = Shuffle.GREEDY,
) -> Plan:
    """What to do about the loads of this assignment."""
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
    return Plan(Stage.BALANCED, reason, (), before, before)


def _migrated(
    subscribers: Subscribers, home: Ints, m: int, steps: Sequence[Step], before: BrokerLoads,
    why: str,
) -> Plan:  # fmt: skip
    last = {step.subscriber: step for step in steps}
    moves = tuple(
        Move(i, int(home[i]), step.target, step.why)
        for i, step in last.items()
        if step.target != home[i]
    )
    if not moves:
        return Plan(Stage.BALANCED, f"{why}, and no move helps", (), before, before)
    return _plan(subscribers, home, m, Stage.MIGRATING, why, moves, before)


def _shuffled(
    subscribers: Subscribers, home: Ints, m: int, shuffle: Shuffle, before: BrokerLoads, why: str
) -> Plan:
    if shuffle is Shuffle.GREEDY:
        new_home = greedy_shuffle(subscribers, m)
    else:
        new_home = improved(subscribers, m)
    after = loads(subscribers, new_home, m)
    if after.maximum >= before.maximum:
        return Plan(Stage.BALANCED, f"{why}, and no shuffle helps", (), before, before)
    weights = subscribers.weights
    moves = tuple(
        Move(i, int(home[i]), int(new_home[i]), f"shuffle: u {weights[i]:.4g} bytes/s")
        for i in np.flatnonzero(new_home != home).tolist()
    )
    return Plan(Stage.SHUFFLE, why, moves, before, after)


def _plan(
    subscribers: Subscribers, home: Ints, m: int, stage: Stage, why: str,
    moves: tuple[Move, ...], before: BrokerLoads,
) -> Plan:  # fmt: skip
    new_home = home.copy()
    for move in moves:
        new_home[move.subscriber] = move.target
    return Plan(stage, why, moves, before, loads(subscribers, new_home, m))
