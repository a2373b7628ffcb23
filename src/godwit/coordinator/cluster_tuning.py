"""A coordinator that gives a network the number of clusters that is best, as cluster_rule.py says.

For networks whose file has `clusters = "auto"`.  Brokers report what they have counted; the change
is one of the shape, as an operator could ask for (docs/reshaping.md): nothing is lost.  What was
decided last is in `godwit network show`; the changes are in the history, by "clusters".
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

from godwit.api.network_api import (
    BrokerAccount,
    ChangeKind,
    ChangeRequest,
    ClusterAccount,
    NetworkChange,
)
from godwit.coordinator.cluster_rule import ClusterTuningSettings, best_number
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.periodic_decisions import PeriodicDecisions
from godwit.overlay.clusters.cluster_structure import arrange, cluster_settings
from godwit.overlay.clusters.cluster_traffic import ClusterCounts, measured

BY = "clusters"
OVERLAY = "clusters"
#: Looks that are kept within the time that is measured.
LOOKS_MAX = 10_000

#: What every broker had counted at one time.
Counts = dict[str, ClusterCounts]


class ClusterTuner(PeriodicDecisions):
    def __init__(
        self,
        core: Coordinator,
        begin: Callable[[ChangeRequest], Awaitable[NetworkChange]],
        settings: ClusterTuningSettings,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """`begin` is asked for changes, as an operator would."""
        super().__init__(core, BY, settings.every_s)
        self._begin = begin
        self._settings = settings
        self._now_s = now_s
        self._looks: deque[tuple[float, Counts]] = deque(maxlen=LOOKS_MAX)
        """Since the network has its present clusters, and all brokers run."""
        self._seen: tuple[object, ...] = ()

    async def _decided(self) -> str:
        """In words; empty if the network has no clusters, or a number that was configured."""
        core, now_s = self._core, self._now_s()
        accounts = {name: account for name, (_, account) in core.accounts.items()}
        now = _agreed(accounts)
        if now is None:
            self._looks.clear()
            return ""
        silent = sorted(set(now.brokers) - set(core.registry.live(now_s)))
        if silent:
            self._looks.clear()
            return f"no decision: {', '.join(silent)} did not report"
        self._count(now, {name: accounts[name] for name in now.brokers}, now_s)
        if core.changes.current is not None:
            return f"change {core.changes.current.number} is under way"
        (first_s, first), (last_s, last) = self._looks[0], self._looks[-1]
        load = measured(last[name].since(first[name]) for name in now.brokers)
        verdict = best_number(load, now.clusters, last_s - first_s, self._settings)
        if verdict.clusters is None:
            return verdict.why
        if self._settings.dry_run:
            return f"{verdict.why} (dry run)"
        structure = arrange(now.brokers, verdict.clusters)
        change = await self._begin(
            ChangeRequest(
                kind=ChangeKind.RESHAPE,
                brokers=now.brokers,
                links=sorted(structure.topology.links),
                overlay=OVERLAY,
                settings=cluster_settings(now.brokers, verdict.clusters),
                asked_by=BY,
                reason=verdict.why,
            )
        )
        return f"change {change.number}: {verdict.why}"

    def _count(
        self, now: ClusterAccount, accounts: Mapping[str, BrokerAccount], now_s: float
    ) -> None:
        """Keep what was counted; begin anew if brokers have (A1 in cluster_rule.py)."""
        runs = tuple((name, each.start, each.epoch) for name, each in sorted(accounts.items()))
        seen = (now.clusters, *runs)
        if seen != self._seen:
            self._looks.clear()
            self._seen = seen
        self._looks.append((now_s, {name: _counts(each) for name, each in accounts.items()}))
        while len(self._looks) > 2 and self._looks[1][0] <= now_s - self._settings.hold_s:
            self._looks.popleft()


def _agreed(accounts: Mapping[str, BrokerAccount]) -> ClusterAccount | None:
    """The clusters of which all brokers say that their number may change."""
    said = [each.clusters for each in accounts.values()]
    found = next((each for each in said if each is not None), None)
    if found is None or not all(name in accounts for name in found.brokers):
        return None
    theirs = [accounts[name].clusters for name in found.brokers]
    agree = all(
        each is not None and each.finds_clusters and each.clusters == found.clusters
        for each in theirs
    )
    return found if agree else None


def _counts(account: BrokerAccount) -> ClusterCounts:
    counted = account.clusters
    assert counted is not None
    return ClusterCounts(counted.published, counted.reached, counted.sent, counted.standing)
