"""What brokers have reported, put together as the arrays that planning works on.

N1  A subscriber that two brokers report is where the later report says.
N2  What a BE subscription brings is the highest of what brokers say of it: who has held it for
    longer knows better, and a moving average starts low.  If nobody says anything, what was last
    known of it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from godwit.balance.model import BrokerLoads, Ints, Subscribers, counts_of, loads
from godwit.rest.bcs import Balance, LoadReport


@dataclass(frozen=True)
class Situation:
    brokers: tuple[str, ...]
    clients: tuple[str, ...]
    """The subscribers, by their numbers."""

    subscribers: Subscribers
    home: Ints

    @cached_property
    def loads(self) -> BrokerLoads:
        """If there are brokers."""
        return loads(self.subscribers, self.home, len(self.brokers))

    @cached_property
    def load_of(self) -> dict[str, float]:
        if not self.brokers:
            return {}
        return dict(zip(self.brokers, self.loads.total.tolist(), strict=True))

    @cached_property
    def be_of(self) -> dict[str, int]:
        """How many BE subscriptions each broker holds."""
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
        fe, be = len(self.subscribers.held), len(np.unique(self.subscribers.held))
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
    """Of the last reports of some brokers, the oldest first."""
    reports = list(reports)
    brokers = sorted(report.broker for report in reports)
    at = {name: number for number, name in enumerate(brokers)}
    homes: dict[str, tuple[int, list[int]]] = {}
    rates: dict[int, float] = {}
    for report in reports:
        for client, held in report.subscribers.items():
            homes[client] = at[report.broker], sorted(set(held))
        for be, rate in report.rates.items():
            rates[be] = max(rate, rates.get(be, 0.0))
    clients = sorted(homes)
    numbers: dict[int, int] = {}
    holdings = [
        [numbers.setdefault(be, len(numbers)) for be in homes[client][1]] for client in clients
    ]
    rate_of = [rates.get(be, known_rates.get(be, 0.0)) for be in numbers]
    return Situation(
        brokers=tuple(brokers),
        clients=tuple(clients),
        subscribers=Subscribers.of(holdings, rate_of),
        home=np.array([homes[client][0] for client in clients], dtype=np.int32),
    )
