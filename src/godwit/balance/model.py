"""What subscribers cost their brokers: the load model of BAD Pub/Sub.

Paper    Nguyen, Uddin, Venkatasubramanian, DEBS 2019, section 4; equations as read in E29.
Words    i, j, k -> subscriber, broker, BE subscription; lambda_k -> rates[k]; y_ik -> k is in
         `held` between starts[i] and starts[i + 1]; x_ij -> home[i] == j; n_jk -> counts[j, k];
         z_jk -> counts[j, k] > 0; I_j, O_j, F_j -> incoming, outgoing, total; u_i -> weights[i];
         mu, sigma, cov -> mean, deviation, cov.
Claim    A subscriber who comes to broker j adds u_i to what goes out, whatever j is, and
         u_i - sim_ij to what comes in (B14).
Tested   tests/balance/test_model.py: the two subscribers on one broker of test vector 13,
         the increments against the sums.

    I_j = sum of rates[k] over what j's subscribers hold, each k once
    O_j = sum of rates[k] over what j's subscribers hold, each k as often as it is held
    F_j = I_j + O_j

M1  Nobody holds the same BE subscription twice.
M2  Rates are finite and not negative.
M3  `Loads` are at any time what `loads` says of the same assignment, but for rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from godwit.errors import UsageError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Starts = npt.NDArray[np.int64]

#: A change of load by less than this part of it may be rounding.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Subscribers:
    """Who holds which BE subscriptions, and how much each of these brings, in bytes per second."""

    starts: Starts
    """Where each subscriber's part of `held` begins; one more, for the end."""

    held: Ints
    rates: Floats

    def __post_init__(self) -> None:
        if self.starts.ndim != 1 or len(self.starts) == 0 or self.starts[0] != 0:
            raise UsageError("starts: the first subscriber's holdings begin at 0")
        if self.starts[-1] != len(self.held) or (np.diff(self.starts) < 0).any():
            raise UsageError("starts: must not fall, and end where the holdings end")
        if len(self.held) and not (self.held.min() >= 0 and self.held.max() < len(self.rates)):
            raise UsageError(f"held: a BE subscription without a rate; there are {self.q}")
        if not (np.isfinite(self.rates).all() and (self.rates >= 0).all()):
            raise UsageError("rates: a rate is a finite number that is not negative (M2)")
        if len(np.unique(self.owners * max(self.q, 1) + self.held)) != len(self.held):
            raise UsageError("held: a subscriber holds a BE subscription twice (M1)")

    @classmethod
    def of(cls, holdings: Sequence[Sequence[int]], rates: Sequence[float] | Floats) -> Subscribers:
        """From a list of BE subscriptions for each subscriber."""
        starts = np.zeros(len(holdings) + 1, dtype=np.int64)
        np.cumsum([len(held) for held in holdings], out=starts[1:])
        flat = [k for held in holdings for k in held]
        return cls(starts, np.array(flat, dtype=np.int32), np.asarray(rates, dtype=np.float64))

    @property
    def n(self) -> int:
        return len(self.starts) - 1

    @property
    def q(self) -> int:
        return len(self.rates)

    @cached_property
    def owners(self) -> Starts:
        """Whose each entry of `held` is."""
        return np.repeat(np.arange(self.n, dtype=np.int64), np.diff(self.starts))

    @cached_property
    def weights(self) -> Floats:
        """u_i: what a subscriber is sent, wherever it is."""
        sums = np.bincount(self.owners, weights=self.rates[self.held], minlength=self.n)
        return sums.astype(np.float64)

    @cached_property
    def heaviest_first(self) -> Starts:
        """All subscribers by falling u_i; of equals the lower number first."""
        return np.argsort(-self.weights, kind="stable")

    def holdings(self, subscriber: int) -> Ints:
        return self.held[self.starts[subscriber] : self.starts[subscriber + 1]]

    def with_rates(self, rates: Floats) -> Subscribers:
        """The same holdings, which are known to be good, at other rates."""
        if len(rates) != self.q or not (np.isfinite(rates).all() and (rates >= 0).all()):
            raise UsageError("rates: one for each, finite and not negative (M2)")
        other = copy(self)
        for follows_from_rates in ("weights", "heaviest_first"):
            other.__dict__.pop(follows_from_rates, None)
        other.__dict__["rates"] = rates
        return other


@dataclass(frozen=True, slots=True)
class BrokerLoads:
    """What each broker takes in and sends out, in bytes per second."""

    incoming: Floats
    outgoing: Floats

    @property
    def total(self) -> Floats:
        """F_j."""
        return self.incoming + self.outgoing

    @property
    def mean(self) -> float:
        return float(self.total.mean())

    @property
    def maximum(self) -> float:
        return float(self.total.max())

    @property
    def deviation(self) -> float:
        return float(self.total.std())

    @property
    def cov(self) -> float:
        """Coefficient of variation; 0 where there is no load at all."""
        mean = self.mean
        return self.deviation / mean if mean > 0 else 0.0


def counts_of(subscribers: Subscribers, home: Ints, m: int) -> Ints:
    """n_jk."""
    check_home(subscribers, home, m)
    cells = home[subscribers.owners].astype(np.int64) * subscribers.q + subscribers.held
    counts = np.bincount(cells, minlength=m * subscribers.q)
    return counts.reshape(m, subscribers.q).astype(np.int32)


def check_home(subscribers: Subscribers, home: Ints, m: int) -> None:
    if m < 1:
        raise UsageError(f"{m} brokers; one or more are possible")
    if len(home) != subscribers.n:
        raise UsageError(f"home: {len(home)} entries for {subscribers.n} subscribers")
    if len(home) and not (home.min() >= 0 and home.max() < m):
        raise UsageError(f"home: a broker that is not there; there are {m}")


def loads(subscribers: Subscribers, home: Ints, m: int) -> BrokerLoads:
    """I, O and F of an assignment, from the sums of the paper."""
    counts = counts_of(subscribers, home, m)
    return BrokerLoads((counts > 0) @ subscribers.rates, counts @ subscribers.rates)


class Loads:
    """The loads of an assignment that changes: one move costs as much as the mover holds."""

    def __init__(self, subscribers: Subscribers, home: Ints, m: int) -> None:
        self.subscribers = subscribers
        self.home = home.copy()
        self.counts = counts_of(subscribers, home, m)
        exact = BrokerLoads((self.counts > 0) @ subscribers.rates, self.counts @ subscribers.rates)
        self.incoming, self.outgoing, self.total = exact.incoming, exact.outgoing, exact.total

    def similarity(self, subscriber: int) -> Floats:
        """sim_ij for each broker j: the part of u_i that already comes in there."""
        held = self.subscribers.holdings(subscriber)
        similar: Floats = (self.counts[:, held] > 0) @ self.subscribers.rates[held]
        return similar

    def move(self, subscriber: int, target: int) -> None:
        """From where it is to `target`."""
        held = self.subscribers.holdings(subscriber)
        rates, source = self.subscribers.rates[held], int(self.home[subscriber])
        left = self.counts[source, held] - 1
        self.counts[source, held] = left
        self._add(source, -float(rates[left == 0].sum()), -float(rates.sum()))
        there = self.counts[target, held]
        self.counts[target, held] = there + 1
        self._add(target, float(rates[there == 0].sum()), float(rates.sum()))
        self.home[subscriber] = target

    def _add(self, broker: int, incoming: float, outgoing: float) -> None:
        self.incoming[broker] += incoming
        self.outgoing[broker] += outgoing
        self.total[broker] += incoming + outgoing
