"""How `bad-simulation` is run: channels execute, brokers pull and push, a coordinator plans.

Simulated in steps of 5 s: a channel executes at its period, and each of its BE
subscriptions has as many bytes of results as its rate gave since; every broker with a holder pulls
them once and pushes them to each of its holders.  Every 10 s brokers report what went in and out
and the rate of each BE subscription, as averages over the last 60 s, and the production code of
`godwit.policies.staged` plans from these rates.  Moves take effect immediately; the coordinator's
limits on their speed are left out.

The trace has a row of `gauges` for each broker and report, and a row of `decisions` for each move;
decisions of the policy `check` have the counts of `Checks`.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from random import Random

import numpy as np
from msgspec import json

from godwit.content.geography import GeoPoint
from godwit.lab.declaration import Case
from godwit.policies.staged import (
    BalancingStage,
    BalancingThresholds,
    Plan,
    Strategy,
    Subscribers,
    loads,
    lower_bound,
    plan,
)
from godwit.policies.staged.improving import improved
from godwit.policies.staged.initial import (
    Placement,
    at_random,
    least_loaded,
    nearest,
    round_robin,
)
from godwit.policies.staged.loads import Floats, Ints, Loads
from godwit.policies.staged.migrating import migrating
from godwit.policies.staged.planning import Shuffle
from godwit.policies.staged.shuffle import greedy_shuffle
from godwit.trace.writer import TraceWriter
from godwit.workloads.audience import Audience, RateChange, audience, rate_changes

BROKERS = 10
STEP_S, REPORT_S, WINDOW_S, END_S = 5, 10, 60, 1800
#: All sizes have the mean load of 10,000 subscribers with 20 kB/s at 10 brokers.
RATE_TIMES_SUBSCRIBERS = 20e3 * 10_000
NEVER = 1e9
MB = 1e6


def run(case: Case, seed: int, folder: Path) -> None:
    with TraceWriter(folder) as writer:
        _Rounds(case, seed, writer).play()


def made(case: Case, seed: int) -> tuple[Audience, list[RateChange]]:
    """Subscribers and changes of rates; the same for all schemes and placements of a seed."""
    random = np.random.default_rng(seed)
    n, be = int(case["subscribers"]), int(case["be"])
    people = audience(
        random, brokers=int(case["brokers"]), subscribers=n, be=be,
        rate_mean=RATE_TIMES_SUBSCRIBERS / n,
    )  # fmt: skip
    return people, rate_changes(random, be=be, until_s=END_S)


class _Rounds:
    def __init__(self, case: Case, seed: int, writer: TraceWriter) -> None:
        self._case, self._writer = case, writer
        self._people, changes = made(case, seed)
        self._changes = deque(changes)
        self._m, n, q = int(case["brokers"]), int(case["subscribers"]), int(case["be"])
        self._random = Random(seed)
        self._home: Ints = np.zeros(n, dtype=np.int32)
        self._is_in = np.zeros(n, dtype=bool)
        self._factors = np.ones(q)
        self._waiting = np.zeros(q)
        """Bytes of results since the last execution."""
        self._results: deque[Floats] = deque(maxlen=WINDOW_S // STEP_S)
        self._moved_bytes: deque[Floats] = deque(maxlen=WINDOW_S // STEP_S)
        self._reported = [0.0] * self._m
        self._whole = Subscribers(self._people.starts, self._people.held, self._people.rates)
        self._checks = Checks()
        self._logins = 0
        gamma = float(case["gamma"]) if case["scheme"] in ("gsh", "improved") else NEVER
        self._thresholds = BalancingThresholds(
            float(case["alpha"]), float(case["beta"]) * MB, gamma
        )

    def play(self) -> None:
        for now_s in range(STEP_S, END_S + 1, STEP_S):
            self._waiting += self._people.rates * self._factors * STEP_S
            while self._changes and self._changes[0].at_s <= now_s:
                change = self._changes.popleft()
                self._factors[change.subscription] = change.factor
            self._log_in(now_s)
            subscribers = self._subscribers(now_s)
            self._execute(now_s, subscribers)
            if now_s % REPORT_S == 0:
                self._report(now_s, subscribers)
        self._write_checks()

    # -- subscribers and channels --------------------------------------------------------------

    def _log_in(self, now_s: int) -> None:
        people = self._people
        new = np.flatnonzero(~self._is_in & (people.login_s <= now_s))
        for i in new[np.argsort(people.login_s[new], kind="stable")].tolist():
            self._home[i] = self._placed(people.places[i])
            self._logins += 1
        self._is_in[new] = True

    def _placed(self, place: Floats) -> int:
        match Placement(self._case["placement"]):
            case Placement.NEAREST:
                brokers = [GeoPoint(*degrees) for degrees in self._people.broker_places.tolist()]
                return nearest(GeoPoint(*place.tolist()), brokers)
            case Placement.ROUND_ROBIN:
                return round_robin(self._logins, self._m)
            case Placement.RANDOM:
                return at_random(self._random, self._m)
            case Placement.LEAST_LOADED:
                return least_loaded(self._reported)

    def _subscribers(self, now_s: float) -> Subscribers:
        """All subscribers with their current subscriptions."""
        is_made = self._people.since_s <= now_s
        if is_made.all():
            return self._whole
        starts = np.concatenate(([0], np.cumsum(is_made)))[self._people.starts]
        return Subscribers(starts, self._people.held[is_made], self._people.rates)

    def _execute(self, now_s: int, subscribers: Subscribers) -> None:
        due = now_s % self._people.periods_s == 0
        results = np.where(due, self._waiting, 0.0)
        self._waiting[due] = 0.0
        self._results.append(results)
        moved = loads(subscribers.with_rates(results), self._home, self._m)
        self._moved_bytes.append(np.stack((moved.incoming, moved.outgoing)))

    # -- the coordinator -----------------------------------------------------------------------

    def _report(self, now_s: int, subscribers: Subscribers) -> None:
        seconds = len(self._results) * STEP_S
        rates = np.sum(self._results, axis=0) / seconds
        incoming, outgoing = np.sum(self._moved_bytes, axis=0) / seconds
        self._reported = (incoming + outgoing).tolist()
        held = loads(subscribers.with_rates(np.ones(len(rates))), self._home, self._m)
        clients = np.bincount(self._home[self._is_in], minlength=self._m)
        for j in range(self._m):
            self._writer.gauges.add((
                float(now_s), f"B{j + 1}", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
                float(incoming[j]), float(outgoing[j]), 0, 0, 0, int(held.incoming[j]), 0,
                int(clients[j]),
            ))  # fmt: skip
        if self._case["scheme"] != "none":
            self._plan(now_s, subscribers.with_rates(rates))
        if now_s == END_S:
            self._checks.count_held(subscribers)
            self._checks.measure_distances(self._whole, self._whole.with_rates(rates), self._case)

    def _plan(self, now_s: int, subscribers: Subscribers) -> None:
        scheme = str(self._case["scheme"])
        strategy = Strategy.SDM if scheme == "sdm" else Strategy.LDM
        shuffle = Shuffle.IMPROVED if scheme == "improved" else Shuffle.GREEDY
        made = plan(subscribers, self._home, self._m, self._thresholds, strategy, shuffle)
        if made.stage is BalancingStage.MIGRATING:
            self._checks.count_steps(subscribers, self._home, self._m, self._thresholds, strategy)
        self._carry_out(now_s, made)

    def _carry_out(self, now_s: int, made: Plan) -> None:
        for move in made.moves:
            self._home[move.subscriber] = move.target
            self._writer.decisions.add((
                float(now_s), "coordinator", str(self._case["scheme"]), made.stage.value,
                f"s{move.subscriber}", f"B{move.source + 1}", f"B{move.target + 1}",
                json.encode(move.why).decode(),
            ))  # fmt: skip

    def _write_checks(self) -> None:
        for name, value in self._checks.values().items():
            self._writer.decisions.add((
                float(END_S), "coordinator", "check", name, "", "", "", json.encode(value).decode()
            ))  # fmt: skip


class Checks:
    """Counts beside the run: steps of migration that violate B13 or B14; distances to the bound."""

    def __init__(self) -> None:
        self._counts = {"steps": 0, "not_falling": 0, "not_alike": 0}
        self._distances: dict[str, float] = {}

    def values(self) -> dict[str, float]:
        return {**self._counts, **self._distances}

    def count_steps(
        self, subscribers: Subscribers, home: Ints, m: int, thresholds: BalancingThresholds,
        strategy: Strategy,
    ) -> None:  # fmt: skip
        """Check that each step lowers the sorted loads (B13), and adds what B14 states."""
        state = Loads(subscribers, home, m)
        steps = migrating(subscribers, home, m, thresholds.alpha, thresholds.beta, strategy)
        for step in steps:
            before = np.sort(state.total)[::-1].tolist()
            i, j, weight = step.subscriber, step.target, subscribers.weights[step.subscriber]
            similar = state.similarity(i)[j]
            incoming, outgoing = state.incoming[j], state.outgoing[j]
            state.move(i, j)
            grown = state.outgoing[j] - outgoing, state.incoming[j] - incoming
            self._counts["steps"] += 1
            self._counts["not_falling"] += np.sort(state.total)[::-1].tolist() >= before
            self._counts["not_alike"] += not np.allclose(grown, (weight, weight - similar))

    def count_held(self, subscribers: Subscribers) -> None:
        self._counts["fe"] = len(subscribers.held)
        self._counts["be"] = len(np.unique(subscribers.held))

    def measure_distances(self, base: Subscribers, end: Subscribers, case: Case) -> None:
        """The distance of a shuffle from the lower bound, at base rates and at the final rates."""
        if case["scheme"] not in ("gsh", "improved") or case["placement"] != "nearest":
            return
        m = int(case["brokers"])
        shuffle = improved if case["scheme"] == "improved" else greedy_shuffle
        for name, subscribers in (("distance_base", base), ("distance_end", end)):
            maximum = loads(subscribers, shuffle(subscribers, m), m).maximum
            self._distances[name] = lower_bound(subscribers, m).distance(maximum)
