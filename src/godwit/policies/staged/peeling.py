"""A shuffle that uses sharing: broker after broker gets subscribers with similar holdings.

Beyond the paper.  The outgoing load is the same in every assignment; only incoming load can be
saved.  A broker saves lambda_k if none of its subscribers holds k.  So the next broker starts with
all remaining subscribers and gives up one BE subscription after the other, with all its holders:
first the one that saves most for each byte of outgoing load lost with it, until the load is down to
the target.  The last broker takes the remaining subscribers.

The target is found by trial: if it is too low, the last broker has too much load; if it is too
high, all others have.  Subscribers with the same holdings stay together, because the same BE
subscriptions of theirs are given up.

Tested   tests/policies/staged/test_improving.py.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from godwit.policies.staged.loads import ROUNDING, Floats, Ints, Starts, Subscribers, loads

Flags = npt.NDArray[np.bool_]

#: Evenly spaced targets to try; then as many around the best of them, and so on.
TARGETS, REFINEMENTS = 6, 3


def peeled(subscribers: Subscribers, m: int, low: float, high: float) -> Ints:
    """The best assignment found by peeling, with a target load between `low` and `high`."""
    peeler = _Peeler(subscribers, m)
    tried: dict[float, tuple[float, Ints]] = {}
    for _ in range(REFINEMENTS):
        for target in np.linspace(low, high, TARGETS).tolist():
            if target not in tried:
                home = peeler.assignment(target)
                tried[target] = loads(subscribers, home, m).maximum, home
        best = min(tried, key=lambda target: (tried[target][0], target))
        step = (high - low) / (TARGETS - 1)
        low, high = max(low, best - step), min(high, best + step)
    return tried[best][1]


class _Peeler:
    def __init__(self, subscribers: Subscribers, m: int) -> None:
        self._of, self._m = subscribers, m
        self._by_be = np.argsort(subscribers.held, kind="stable")
        sizes = np.bincount(subscribers.held, minlength=subscribers.q)
        self._be_starts = np.concatenate(([0], np.cumsum(sizes)))

    def assignment(self, target: float) -> Ints:
        home = np.full(self._of.n, self._m - 1, dtype=np.int32)
        left = np.ones(self._of.n, dtype=bool)
        for broker in range(self._m - 1):
            chosen = self._peel(left, target)
            home[chosen] = broker
            left &= ~chosen
        return home

    def _peel(self, left: Flags, target: float) -> Flags:
        """Some of the remaining subscribers, with similar holdings and about the target load."""
        of, chosen = self._of, left.copy()
        held = of.held[left[of.owners]]
        counts = np.bincount(held, minlength=of.q)
        outgoing = of.weights[of.owners[left[of.owners]]]
        lost = np.bincount(held, weights=outgoing, minlength=of.q).astype(np.float64)
        load = float(of.weights[left].sum() + of.rates[counts > 0].sum())
        while True:
            fits = (counts > 0) & (of.rates > 0) & (lost + of.rates <= load - target)
            if not fits.any():
                return self._trimmed(chosen, load - target)
            saved = np.divide(of.rates, lost, out=np.zeros(of.q), where=fits)
            self._give_up(int(saved.argmax()), chosen, counts, lost)
            load = float(of.weights[chosen].sum() + of.rates[counts > 0].sum())

    def _give_up(self, k: int, chosen: Flags, counts: Starts, lost: Floats) -> None:
        of = self._of
        holders = of.owners[self._by_be[self._be_starts[k] : self._be_starts[k + 1]]]
        gone = holders[chosen[holders]]
        chosen[gone] = False
        lengths = of.starts[gone + 1] - of.starts[gone]
        ends = np.cumsum(lengths)
        entries = np.arange(ends[-1]) + np.repeat(of.starts[gone] - ends + lengths, lengths)
        held = of.held[entries]
        np.subtract.at(counts, held, 1)
        np.subtract.at(lost, held, np.repeat(of.weights[gone], lengths))

    def _trimmed(self, chosen: Flags, excess: float) -> Flags:
        """Without a few more, the heaviest first, until the load is not above the target."""
        of = self._of
        lightest = -1
        for i in of.heaviest_first[chosen[of.heaviest_first]].tolist():
            weight = float(of.weights[i])
            if 0 < weight <= excess:
                chosen[i] = False
                excess -= weight
            elif weight > 0:
                lightest = i
        if lightest >= 0 and excess > ROUNDING * of.weights[lightest]:
            chosen[lightest] = False
        return chosen
