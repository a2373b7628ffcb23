"""The reports of brokers, as the arrays that planning uses.

N1  A subscriber that two brokers report is at the broker of the later report.
N2  The rate of a BE subscription is the highest that brokers report: a moving average starts low,
    and a broker that has held it for longer is more accurate.  If none reports it, the last known
    rate counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from godwit.api.coordinator_api import Balance, LoadReport
from godwit.policies.staged.loads import BrokerLoads, Ints, Subscribers, counts_of, loads


@dataclass(frozen=True)
class Situation:
    brokers: tuple[str, ...]
    clients: tuple[str, ...]
    """Names of the subscribers, by number."""

    subscribers: Subscribers
    home: Ints

    @cached_property
    def loads(self) -> BrokerLoads:
        """Loads; there must be brokers."""
        return loads(self.subscribers, self.home, len(self.brokers))

    @cached_property
    def load_of(self) -> dict[str, float]:
        if not self.brokers:
            return {}
        return dict(zip(self.brokers, self.loads.total.tolist(), strict=True))

    @cached_property
    def be_of(self) -> dict[str, int]:
        """Number of BE subscriptions at each broker."""
        if not self.brokers:
            return {}
        held = counts_of(self.subscribers, self.home, len(self.brokers)) > 0
        return dict(zip(self.brokers, held.sum(axis=1).tolist(), strict=True))

    @cached_property
    def subscribers_of(self) -> dict[str, int]:
        numbers = np.bincount(self.home, minlength=len(self.brokers)).tolist()
        return dict(zip(self.brokers, numbers, strict=True))

    @cached_property
    def balance(self) -> Balance:
        if not self.brokers:
            return Balance()
        held = self.subscribers.held
        fe, be = len(held), int(np.count_nonzero(np.bincount(held)))
        return Balance(
            brokers=len(self.brokers),
            subscribers=len(self.clients),
            fe_subscriptions=fe,
            be_subscriptions=be,
            sharing=fe / be if be else 0.0,
            cov=self.loads.cov,
            mean_load=self.loads.mean,
            maximum_load=self.loads.maximum,
        )


def situation(reports: Iterable[LoadReport], known_rates: Mapping[int, float]) -> Situation:
    """From the last report of each broker, the oldest first."""
    reports = list(reports)
    brokers = sorted(report.broker for report in reports)
    at = {name: number for number, name in enumerate(brokers)}
    homes: dict[str, tuple[int, list[int]]] = {}
    rates: dict[int, float] = {}
    for report in reports:
        for client, held in report.subscribers.items():
            homes[client] = at[report.broker], held
        for be, rate in report.rates.items():
            rates[be] = max(rate, rates.get(be, 0.0))
    clients = sorted(homes)
    rates = {**known_rates, **rates}
    return Situation(
        brokers=tuple(brokers),
        clients=tuple(clients),
        subscribers=_subscribers([homes[client][1] for client in clients], rates),
        home=np.array([homes[client][0] for client in clients], dtype=np.int32),
    )


def _subscribers(holdings: Sequence[Sequence[int]], rates: Mapping[int, float]) -> Subscribers:
    """BE subscriptions get consecutive numbers; a duplicate holding counts once."""
    n = len(holdings)
    owners = np.repeat(np.arange(n, dtype=np.int64), [len(held) for held in holdings])
    named = np.fromiter(chain.from_iterable(holdings), dtype=np.int64, count=len(owners))
    names, numbers = np.unique(named, return_inverse=True)
    q = max(1, len(names))
    cells = np.sort(owners * q + numbers)
    cells = cells[np.diff(cells, prepend=-1) > 0]
    starts = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(cells // q, minlength=n), out=starts[1:])
    known = np.array([rates.get(be, 0.0) for be in names.tolist()], dtype=np.float64)
    return Subscribers(starts, (cells % q).astype(np.int32), known)
