"""Lower bounds of the maximum load: no assignment goes below them.

Finding the optimum is NP-hard (multiprocessor scheduling is the case without sharing, E28); a bound
limits the distance of a plan from it.  V is the total outgoing load, the sum of u_i; L is the sum
of the rates of all BE subscriptions that are held.

1   "total"     The outgoing load is V in every assignment, and each BE subscription that is held
                comes in at some broker: sum F_j >= V + L, so max F_j >= (V + L) / m.

2   "heaviest"  The broker of subscriber i sends u_i and takes in u_i: max F_j >= 2 u_i.
                Two of the m + 1 heaviest share a broker.  It sends to both and takes in the
                holdings of the heavier: max F_j >= 2 u_m + u_(m+1), the last two of them.

3   "mixing"    Some broker sends V / m or more.  If holdings are well mixed, subscribers with that
                much outgoing load hold most of L:

    Let P be any distribution on the pairs (i, k) that are held, with P(i, *) = u_i / V and
    P(*, k) = l_k / L, l for lambda.  Draw a pair.  Broker j sends to T, a set of subscribers with
    t = O_j / V = P(T), and takes in nothing of Z, the BE subscriptions not held in T, with
    z = P(Z).  So P(T, Z) = 0, and the covariance of "i in T" and "k in Z" is -t z.  By the maximal
    correlation s of P (the second largest singular value of P_ik / sqrt(P_i P_k); the largest is 1
    and belongs to the constants) it is at most s sqrt(t (1-t) z (1-z)) in size.  Hence
    t z <= s^2 (1-t) (1-z), and  z <= s^2 (1-t) / (t + s^2 (1-t)).
    The broker with t >= 1/m has F_j >= t V + L (1 - z), which grows with t: put t = 1/m.

    P is made by scaling l_k, in turns, to both marginals (Sinkhorn).  If its P(*, k) are not quite
    l_k / L but P(*, k) r >= l_k / L for all k, then the rates of Z are at most r z L, and the proof
    still holds.

The third needs the eigenvalues of a matrix of q x q, so it is left out where q is large.
Tested   tests/policies/staged/test_bounds.py: against the best of all assignments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from godwit.policies.staged.loads import ROUNDING, Floats, Subscribers

#: Above so many BE subscriptions the third bound takes too long: 2,000 take about two seconds.
MIXING_Q_MAX = 2_000
#: Above so many holdings of one subscriber it takes too much memory, their square.
MIXING_HELD_MAX = 500
SCALINGS = 200


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound of the maximum load, in bytes per second."""

    load: float
    kind: str
    """The argument: total, heaviest or mixing."""

    def distance(self, maximum: float) -> float:
        """How far a maximum load is above the bound, as a share of the bound."""
        return maximum / self.load - 1.0 if self.load > 0 else 0.0


def lower_bound(subscribers: Subscribers, m: int) -> Bound:
    """The highest of the bounds."""
    bounds = [
        Bound(_total(subscribers, m), "total"),
        Bound(_heaviest(subscribers, m), "heaviest"),
        Bound(_mixing(subscribers, m), "mixing"),
    ]
    return max(bounds, key=lambda bound: bound.load)


def simple_bound(subscribers: Subscribers, m: int) -> float:
    """The higher of the two cheap bounds."""
    return max(_total(subscribers, m), _heaviest(subscribers, m))


def _entering(subscribers: Subscribers) -> float:
    """L."""
    is_held = np.bincount(subscribers.held, minlength=subscribers.q) > 0
    return float(subscribers.rates[is_held].sum())


def _total(subscribers: Subscribers, m: int) -> float:
    return float(subscribers.weights.sum() + _entering(subscribers)) / m


def _heaviest(subscribers: Subscribers, m: int) -> float:
    if not subscribers.n:
        return 0.0
    weights = subscribers.weights[subscribers.heaviest_first]
    alone = 2.0 * float(weights[0])
    if len(weights) <= m:
        return alone
    return max(alone, float(2.0 * weights[m - 1] + weights[m]))


def _mixing(subscribers: Subscribers, m: int) -> float:
    subscribers = _costly(subscribers)
    if not len(subscribers.held) or subscribers.q > MIXING_Q_MAX:
        return 0.0
    if np.diff(subscribers.starts).max() > MIXING_HELD_MAX:
        return 0.0
    paired, columns, r = _distribution(subscribers)
    squared = min(1.0, _maximal_correlation_squared(subscribers, paired, columns) + ROUNDING)
    t = 1.0 / m
    z = squared * (1 - t) / (t + squared * (1 - t))
    sent = float(subscribers.weights.sum())
    return sent * t + _entering(subscribers) * max(0.0, 1.0 - r * z)


def _costly(subscribers: Subscribers) -> Subscribers:
    """Without holdings of rate 0, which are no part of any load."""
    costly = subscribers.rates[subscribers.held] > 0
    starts = np.concatenate(([0], np.cumsum(costly)))[subscribers.starts]
    return Subscribers(starts, subscribers.held[costly], subscribers.rates)


def _distribution(subscribers: Subscribers) -> tuple[Floats, Floats, float]:
    """P on the entries of `held`, its P(*, k), and r: how far these are from l_k / L."""
    owners, held = subscribers.owners, subscribers.held
    rows = subscribers.weights / subscribers.weights.sum()
    wanted = np.where(np.bincount(held, minlength=subscribers.q) > 0, subscribers.rates, 0.0)
    wanted = wanted / wanted.sum()
    paired: Floats = subscribers.rates[held].copy()
    columns: Floats
    for _ in range(SCALINGS):
        columns = np.bincount(held, weights=paired, minlength=subscribers.q).astype(np.float64)
        paired *= wanted[held] / columns[held]
        sums = np.bincount(owners, weights=paired, minlength=subscribers.n)
        paired *= rows[owners] / sums[owners]
        columns = np.bincount(held, weights=paired, minlength=subscribers.q).astype(np.float64)
        r = float((wanted[held] / columns[held]).max())
        if r < 1.0 + ROUNDING:
            break
    return paired, columns, r


def _maximal_correlation_squared(
    subscribers: Subscribers, paired: Floats, columns: Floats
) -> float:
    """The second largest eigenvalue of B'B with B_ik = P_ik / sqrt(P_i P_k)."""
    q, held = subscribers.q, subscribers.held
    rows = np.bincount(subscribers.owners, weights=paired, minlength=subscribers.n)
    b = paired / np.sqrt(rows[subscribers.owners] * columns[held])
    gram = np.zeros(q * q)
    lengths = np.diff(subscribers.starts)
    for length in np.unique(lengths[lengths > 0]).tolist():
        begins = subscribers.starts[:-1][lengths == length]
        entries = begins[:, None] + np.arange(length)
        k, values = held[entries].astype(np.int64), b[entries]
        cells = (k[:, :, None] * q + k[:, None, :]).ravel()
        products = (values[:, :, None] * values[:, None, :]).ravel()
        gram += np.bincount(cells, weights=products, minlength=q * q)
    if q < 2:
        return 0.0
    return float(np.linalg.eigvalsh(gram.reshape(q, q))[-2])
