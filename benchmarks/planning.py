"""Staged balancing of BS3: duration of a plan, and distance of a shuffle from the optimum.

The reference is the paper's algorithm in plain Python: loads of source and target are summed again
after each step, with dictionaries and sets.  For LDM and SDM it is so slow that only the first
steps are measured, as time for each step.  CPU time of the shortest of several runs, because
machines are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import process_time

import numpy as np

from benchmarks.report import Row
from godwit.policies.staged.bounds import lower_bound
from godwit.policies.staged.improving import improved
from godwit.policies.staged.loads import Ints, Subscribers, loads
from godwit.policies.staged.migrating import Strategy, migrating
from godwit.policies.staged.planning import BalancingStage, BalancingThresholds, plan
from godwit.policies.staged.shuffle import greedy_shuffle
from godwit.workloads.audience import audience

BROKERS, SUBSCRIBERS, BE = 10, 10_000, 1_000
ALPHA = 0.05
PLAN_BAR_S, DISTANCE_BAR = 1.0, 0.02
REPEATS, PLAIN_STEPS = 5, 20


def rows(*, quick: bool) -> Iterator[list[Row]]:
    n, be = (SUBSCRIBERS // 10, BE // 10) if quick else (SUBSCRIBERS, BE)
    people = audience(
        np.random.default_rng(1), brokers=BROKERS, subscribers=n, be=be, rate_mean=20e3
    )
    subscribers = Subscribers(people.starts, people.held, people.rates)
    towns = np.arange(1, BROKERS + 1) ** -0.8
    home = np.random.default_rng(2).choice(BROKERS, n, p=towns / towns.sum()).astype(np.int32)
    for strategy in Strategy:
        yield _migrating(subscribers, home, strategy)
    yield _shuffling(subscribers, home)
    yield _distances(subscribers)


def _row(name: str, measure: str, measured: float, bar: float | None, reference: float | None,
         size: int) -> Row:  # fmt: skip
    return Row(
        measure=measure, workload=name, size=size, reference=reference, measured=measured,
        compared=measured, bar=bar, is_at_most=True,
    )  # fmt: skip


def _shortest_s(act: Callable[[], object], repeats: int = REPEATS) -> float:
    taken = []
    for _ in range(repeats):
        start = process_time()
        act()
        taken.append(process_time() - start)
    return min(taken)


def _uncached(subscribers: Subscribers) -> Subscribers:
    """A copy without cached results."""
    return Subscribers(subscribers.starts, subscribers.held, subscribers.rates)


def _migrating(subscribers: Subscribers, home: Ints, strategy: Strategy) -> list[Row]:
    thresholds = BalancingThresholds(ALPHA, gamma=9.0)
    made = plan(subscribers, home, BROKERS, thresholds, strategy)
    assert made.stage is BalancingStage.MIGRATING
    taken_s = _shortest_s(lambda: plan(_uncached(subscribers), home, BROKERS, thresholds, strategy))
    steps = len(migrating(subscribers, home, BROKERS, ALPHA, 0.0, strategy))
    plain_s = _shortest_s(lambda: _Plain(subscribers, home).migrate(strategy, PLAIN_STEPS), 1)
    name, size = strategy.value.upper(), len(subscribers.held)
    return [
        _row(name, "plan, s", taken_s, PLAN_BAR_S, None, size),
        _row(name, "a step, ms", 1e3 * taken_s / steps, None, 1e3 * plain_s / PLAIN_STEPS, size),
    ]


def _shuffling(subscribers: Subscribers, home: Ints) -> list[Row]:
    thresholds = BalancingThresholds(0.05, gamma=0.1)
    assert plan(subscribers, home, BROKERS, thresholds).stage is BalancingStage.SHUFFLE
    taken_s = _shortest_s(lambda: plan(_uncached(subscribers), home, BROKERS, thresholds))
    plain_s = _shortest_s(lambda: _Plain(subscribers, home).shuffle(), 1)
    improving_s = _shortest_s(lambda: improved(_uncached(subscribers), BROKERS), 1)
    bound_s = _shortest_s(lambda: lower_bound(_uncached(subscribers), BROKERS), 1)
    size = len(subscribers.held)
    return [
        _row("GSH", "plan, s", taken_s, PLAN_BAR_S, plain_s, size),
        _row("improved", "shuffle, s", improving_s, None, None, size),
        _row("lower bound", "compute, s", bound_s, None, None, size),
    ]


def _distances(subscribers: Subscribers) -> list[Row]:
    bound, size = lower_bound(subscribers, BROKERS), len(subscribers.held)
    greedy = loads(subscribers, greedy_shuffle(subscribers, BROKERS), BROKERS).maximum
    better = loads(subscribers, improved(subscribers, BROKERS), BROKERS).maximum
    measure = "above the lower bound, %"
    return [
        _row("GSH", measure, 100 * bound.distance(greedy), None, None, size),
        _row("improved", measure, 100 * bound.distance(better), 100 * DISTANCE_BAR, None, size),
    ]


class _Plain:
    """Algorithm 1, written directly."""

    def __init__(self, subscribers: Subscribers, home: Ints) -> None:
        self.rates: list[float] = subscribers.rates.tolist()
        self.held: list[list[int]] = [
            subscribers.holdings(i).tolist() for i in range(subscribers.n)
        ]
        self.weights: list[float] = [sum(self.rates[k] for k in held) for held in self.held]
        self.home = home.tolist()
        self.at: list[list[int]] = [[] for _ in range(BROKERS)]
        for i, j in enumerate(self.home):
            self.at[j].append(i)

    def load(self, who: Sequence[int]) -> float:
        entering = {k for i in who for k in self.held[i]}
        return sum(self.rates[k] for k in entering) + sum(self.weights[i] for i in who)

    def migrate(self, strategy: Strategy, steps: int) -> None:
        f = [self.load(who) for who in self.at]
        for _ in range(steps):
            b = f.index(max(f))
            for i in sorted(self.at[b], key=lambda i: -self.weights[i]):
                d = f.index(min(f)) if strategy is Strategy.LDM else self.most_similar(i, f)
                after = self.load([*self.at[d], i])
                if after < f[b]:
                    self.at[b].remove(i)
                    self.at[d].append(i)
                    f[b], f[d] = self.load(self.at[b]), after
                    break

    def most_similar(self, i: int, f: Sequence[float]) -> int:
        mean = sum(f) / len(f)

        def similarity(j: int) -> float:
            there = {k for other in self.at[j] for k in self.held[other]}
            return sum(self.rates[k] for k in self.held[i] if k in there)

        return max((j for j in range(len(f)) if f[j] < mean), key=lambda j: (similarity(j), -f[j]))

    def shuffle(self) -> None:
        f = [0.0] * BROKERS
        there: list[set[int]] = [set() for _ in range(BROKERS)]
        for i in sorted(range(len(self.held)), key=lambda i: -self.weights[i]):
            j = f.index(min(f))
            new = [k for k in self.held[i] if k not in there[j]]
            there[j].update(new)
            f[j] += self.weights[i] + sum(self.rates[k] for k in new)
