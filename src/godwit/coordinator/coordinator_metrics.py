"""Metrics for Prometheus, read from the core at each scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import product

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from godwit.api.coordinator_api import Outcome
from godwit.api.network_api import ChangeKind, ChangeState
from godwit.coordinator.changes import CHANGES_KEPT
from godwit.coordinator.coordinator_core import Coordinator

PREFIX = "godwit_coordinator_"
UNDER_WAY = (Outcome.WAITING, Outcome.ASKED)
OVER = (
    ChangeState.DONE,
    ChangeState.INCOMPLETE,
    ChangeState.TAKEN_BACK,
    ChangeState.FAILED,
)


class CoordinatorCollector(Collector):
    def __init__(self, core: Coordinator, now_s: Callable[[], float]) -> None:
        self._core = core
        self._now_s = now_s

    def describe(self) -> Iterable[Metric]:
        """Empty: the metrics could only be listed by collecting them."""
        return []

    def collect(self) -> Iterable[Metric]:
        shown = self._core.brokers(self._now_s())
        balance = shown.balance
        brokers = GaugeMetricFamily(PREFIX + "brokers", "Registered brokers.", labels=["state"])
        live = sum(broker.is_live for broker in shown.brokers)
        brokers.add_metric(["live"], live)
        brokers.add_metric(["silent"], len(shown.brokers) - live)
        yield brokers
        load = GaugeMetricFamily(
            PREFIX + "load_bytes_per_second", "F of the paper, of each broker.", labels=["broker"]
        )
        for broker in shown.brokers:
            if broker.is_live:
                load.add_metric([broker.broker], broker.load)
        yield load
        figures = {
            "users": ("Registered users.", len(self._core.memory.users)),
            "subscribers": ("Subscribers online.", balance.subscribers),
            "fe_subscriptions": ("FE subscriptions.", balance.fe_subscriptions),
            "be_subscriptions": ("Different BE subscriptions.", balance.be_subscriptions),
            "sharing_ratio": ("FE for each BE subscription.", balance.sharing),
            "cov_ratio": ("Coefficient of variation of the loads.", balance.cov),
            "mean_load_bytes_per_second": ("Mean load of a broker.", balance.mean_load),
            "maximum_load_bytes_per_second": ("Load of the most loaded.", balance.maximum_load),
        }
        for name, (text, value) in figures.items():
            yield GaugeMetricFamily(PREFIX + name, text, value)
        yield from self._moves()
        yield from self._changes()

    def _changes(self) -> Iterable[Metric]:
        core = self._core
        changes = CounterMetricFamily(
            PREFIX + "changes", "Changes of the network that are over.", labels=["kind", "state"]
        )
        kept = core.changes.latest(CHANGES_KEPT)
        counts = Counter((change.request.kind, change.state) for change in kept)
        for kind, state in product(ChangeKind, OVER):
            changes.add_metric([kind.value, state.value], counts[kind, state])
        yield changes
        current = core.changes.current
        text = "Is the network being changed?"
        yield GaugeMetricFamily(PREFIX + "change_under_way", text, current is not None)
        number = core.authority.number
        yield GaugeMetricFamily(PREFIX + "authority", "The number in its orders.", number)
        draining = sum(account.is_draining for _, account in core.accounts.values())
        yield GaugeMetricFamily(PREFIX + "draining_brokers", "Admit no new clients.", draining)

    def _moves(self) -> Iterable[Metric]:
        outcomes, plan = self._core.rounds.outcomes, self._core.memory.plan
        number = 0 if plan is None else plan.number
        yield CounterMetricFamily(PREFIX + "plans", "Plans with moves.", number)
        moves = CounterMetricFamily(PREFIX + "moves", "Moves that are over.", labels=["outcome"])
        for outcome in Outcome:
            if outcome not in UNDER_WAY:
                moves.add_metric([outcome.value], outcomes[outcome])
        yield moves
        under_way = sum(outcomes[outcome] for outcome in UNDER_WAY)
        yield GaugeMetricFamily(PREFIX + "moves_under_way", "Moves of this plan.", under_way)
