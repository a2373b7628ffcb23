"""Stage 2, dynamic migration: single subscribers leave the most loaded broker.

Paper    Nguyen, Uddin, Venkatasubramanian, DEBS 2019, section 5.2 and algorithm 1.
Words    b -> source, b' -> target; LDM: to the least loaded broker; SDM: to the broker below the
         mean load that shares most with the subscriber (simTable -> similarity).
Claim    Each step lowers the maximum load, or the number of brokers that have it (B13): the loads,
         sorted from the highest down, fall lexicographically, so no assignment comes twice and the
         loop ends.
Departs  1. A move is good if the target's load *after* it is below the source's *before* it (E25).
            With "not above", two brokers can pass a subscriber back and forth; with the loads
            before the move, as printed, more often.
         2. If no subscriber of the most loaded broker can move, the loop ends (E25).
         3. A subscriber without load stays: moving it would change no load.
         4. "Below" means by more than rounding, or the claim would not hold.
         5. SDM, between brokers that share equally: the less loaded (open in the paper).
Tested   tests/policies/staged/test_migrating.py: against a plain version of the algorithm, B13 on
         random brokers, and the effect of the two other conditions of line 17.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from godwit.policies.staged.loads import ROUNDING, Floats, Ints, Loads, Starts, Subscribers

#: Numbers of candidates that are examined together, if those before them cannot move.  The first
#: usually can; towards the end hardly any can.
BLOCKS = (1, 16, 256, 4096)


class Strategy(Enum):
    LDM = "ldm"
    SDM = "sdm"


@dataclass(frozen=True, slots=True)
class Step:
    """One iteration of the loop."""

    subscriber: int
    source: int
    target: int
    why: str


def migrating(
    subscribers: Subscribers, home: Ints, m: int, alpha: float, beta: float, strategy: Strategy
) -> list[Step]:
    """The steps until the brokers are balanced, or no subscriber can move."""
    state = Loads(subscribers, home, m)
    steps: list[Step] = []
    while True:
        mean = float(state.total.mean())
        if mean <= beta or float(state.total.std()) <= alpha * mean:
            return steps
        step = _step(state, strategy, mean)
        if step is None:
            return steps
        state.move(step.subscriber, step.target)
        steps.append(step)


def _step(state: Loads, strategy: Strategy, mean: float) -> Step | None:
    source = int(state.total.argmax())
    before = float(state.total[source])
    limit = before * (1.0 - ROUNDING)
    by_load = np.argsort(state.total, kind="stable")
    possible = by_load[:1] if strategy is Strategy.LDM else by_load[state.total[by_load] < mean]
    for block in _candidates(state, source):
        similar = similarities(state, block, possible)
        best = similar.argmax(axis=1)  # The first of equals is the least loaded.
        targets = possible[best]
        grown = 2.0 * state.subscribers.weights[block] - similar[np.arange(len(block)), best]
        after = state.total[targets] + grown
        good = np.flatnonzero(after < limit)
        if len(good):
            c = int(good[0])
            i, target = int(block[c]), int(targets[c])
            shared = float(similar[c, best[c]])
            return Step(i, source, target, _why(strategy, before, float(after[c]), shared))
    return None


def _why(strategy: Strategy, before: float, after: float, shared: float) -> str:
    text = f"its broker is the most loaded, {before:.4g} bytes/s; the target then has {after:.4g}"
    if strategy is Strategy.SDM:
        return f"SDM: {text} and shares {shared:.4g} with it"
    return f"LDM: {text}"


def _candidates(state: Loads, source: int) -> Iterator[Starts]:
    """Subscribers that could leave, the heaviest first, in blocks."""
    order = state.subscribers.heaviest_first
    there = order[state.home[order] == source]
    there = there[state.subscribers.weights[there] > 0]
    begin = 0
    for size in BLOCKS:
        if begin >= len(there):
            return
        yield there[begin : begin + size]
        begin += size
    for at in range(begin, len(there), BLOCKS[-1]):
        yield there[at : at + BLOCKS[-1]]


def similarities(state: Loads, block: Starts, brokers: Starts) -> Floats:
    """sim_ij of several subscribers, each with holdings, and several brokers."""
    of = state.subscribers
    lengths = of.starts[block + 1] - of.starts[block]
    ends = np.cumsum(lengths)
    begins = ends - lengths
    held = of.held[np.arange(ends[-1]) + np.repeat(of.starts[block] - begins, lengths)]
    there = (state.counts[brokers[:, None], held] > 0) * of.rates[held]
    return np.add.reduceat(there, begins, axis=1).T
