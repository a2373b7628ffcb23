"""The load model of BAD Pub/Sub: the load that subscribers cause at their brokers.

Paper    Nguyen, Uddin, Venkatasubramanian, DEBS 2019, section 4; equations as read in E29.
Words    i, j, k -> subscriber, broker, BE subscription; lambda_k -> rates[k]; y_ik -> k is in
         `held` between starts[i] and starts[i + 1]; x_ij -> home[i] == j; n_jk -> counts[j, k];
         z_jk -> counts[j, k] > 0; I_j, O_j, F_j -> incoming, outgoing, total; u_i -> weights[i];
         mu, sigma, cov -> mean, deviation, cov.
Claim    A subscriber who moves to broker j adds u_i to its outgoing load, whatever j is, and
         u_i - sim_ij to its incoming load (B14).
Tested   tests/policies/staged/test_model.py: the two subscribers on one broker of test vector 13,
         the increments against the sums.

    I_j = sum of rates[k] over what j's subscribers hold, each k once
    O_j = sum of rates[k] over what j's subscribers hold, each k as often as it is held
    F_j = I_j + O_j

M1  No subscriber holds the same BE subscription twice.
M2  Rates are finite and not negative.
M3  `Loads` always equal `loads` of the same assignment, except for rounding.
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
    """The BE subscriptions that each subscriber holds, and their rates in bytes per second."""

    starts: Starts
    """The start of each subscriber's part of `held`; and one more entry, the end."""

    held: Ints
    rates: Floats

    def __post_init__(self) -> None:
        if self.starts.ndim != 1 or len(self.starts) == 0 or self.starts[0] != 0:
            raise UsageError("starts: the first entry must be 0")
        if self.starts[-1] != len(self.held) or (np.diff(self.starts) < 0).any():
            raise UsageError("starts: must not decrease, and end with the length of `held`")
        if len(self.held) and not (self.held.min() >= 0 and self.held.max() < len(self.rates)):
            raise UsageError(f"held: a BE subscription without a rate; there are {self.q} rates")
        if not (np.isfinite(self.rates).all() and (self.rates >= 0).all()):
            raise UsageError("rates: must be finite and not negative (M2)")
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
        """The subscriber of each entry of `held`."""
        return np.repeat(np.arange(self.n, dtype=np.int64), np.diff(self.starts))

    @cached_property
    def weights(self) -> Floats:
        """u_i: the rate sent to a subscriber, at any broker."""
        sums = np.bincount(self.owners, weights=self.rates[self.held], minlength=self.n)
        return sums.astype(np.float64)

    @cached_property
    def heaviest_first(self) -> Starts:
        """All subscribers by decreasing u_i; of equals the lower number first."""
        return np.argsort(-self.weights, kind="stable")

    def holdings(self, subscriber: int) -> Ints:
        return self.held[self.starts[subscriber] : self.starts[subscriber + 1]]

    def with_rates(self, rates: Floats) -> Subscribers:
        """The same holdings, which are not checked again, at other rates."""
        if len(rates) != self.q or not (np.isfinite(rates).all() and (rates >= 0).all()):
            raise UsageError(f"rates: {self.q} are needed, finite and not negative (M2)")
        other = copy(self)
        for follows_from_rates in ("weights", "heaviest_first"):
            other.__dict__.pop(follows_from_rates, None)
        other.__dict__["rates"] = rates
        return other


@dataclass(frozen=True, slots=True)
class BrokerLoads:
    """Incoming and outgoing load of each broker, in bytes per second."""

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
        """Coefficient of variation; 0 if there is no load."""
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
        raise UsageError(f"{m} brokers; at least 1 is needed")
    if len(home) != subscribers.n:
        raise UsageError(f"home: {len(home)} entries for {subscribers.n} subscribers")
    if len(home) and not (home.min() >= 0 and home.max() < m):
        raise UsageError(f"home: a broker that does not exist; there are {m} brokers")


def loads(subscribers: Subscribers, home: Ints, m: int) -> BrokerLoads:
    """I, O and F of an assignment, by the paper's sums."""
    counts = counts_of(subscribers, home, m)
    return BrokerLoads((counts > 0) @ subscribers.rates, counts @ subscribers.rates)


class Loads:
    """The loads of an assignment that changes; a move takes time in proportion to the holdings."""

    def __init__(self, subscribers: Subscribers, home: Ints, m: int) -> None:
        self.subscribers = subscribers
        self.home = home.copy()
        self.counts = counts_of(subscribers, home, m)
        exact = BrokerLoads((self.counts > 0) @ subscribers.rates, self.counts @ subscribers.rates)
        self.incoming, self.outgoing, self.total = exact.incoming, exact.outgoing, exact.total

    def similarity(self, subscriber: int) -> Floats:
        """sim_ij for each broker j: the part of u_i that the broker already takes in."""
        held = self.subscribers.holdings(subscriber)
        similar: Floats = (self.counts[:, held] > 0) @ self.subscribers.rates[held]
        return similar

    def move(self, subscriber: int, target: int) -> None:
        """Move a subscriber from its present broker to `target`."""
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
