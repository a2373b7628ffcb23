"""When the number of clusters changes by itself: cluster_rule.py, cluster_tuning.py."""

from __future__ import annotations

import asyncio
from random import Random

import msgspec
import pytest

from godwit.api.network_api import (
    BrokerAccount,
    ChangeKind,
    ChangeRequest,
    ChangeState,
    ClusterAccount,
    NetworkChange,
)
from godwit.coordinator.cluster_rule import ClusterTuningSettings, best_number
from godwit.coordinator.cluster_tuning import ClusterTuner
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.settings import CoordinatorSettings
from godwit.overlay.clusters.cluster_structure import arrange
from godwit.overlay.clusters.cluster_traffic import ClusterLoad

SETTINGS = ClusterTuningSettings(hold_s=100.0, gain=0.1)
#: Test vector 12 of the paper's figures: m* is 10, and costs 5,850 messages.
VECTOR = ClusterLoad(100, 100.0, 50.0, 0.5)
BROKERS = tuple(f"B{number}" for number in range(1, 17))


@pytest.mark.parametrize(
    ("load", "clusters", "measured_s", "best", "why"),
    [
        (VECTOR, 20, 100.0, None, "10 clusters instead of 20 save 4% of the messages: too few"),
        (VECTOR, 50, 100.0, 10, "10 clusters instead of 50 save 21% of the messages"),
        (VECTOR, 1, 100.0, 10, "10 clusters instead of 1 save 41% of the messages"),
        (VECTOR, 10, 100.0, None, "10 clusters are best"),
        (VECTOR, 1, 99.0, None, "measured for 99 of 100 s"),
        (ClusterLoad(100, 0.0, 50.0, 0.0), 10, 100.0, None, "nothing was published for 100 s"),
        (ClusterLoad(1, 100.0, 1.0, 0.5), 1, 100.0, None, "1 cluster is best"),
    ],
    ids=["too little gained", "too many", "too few", "best", "too early", "silent", "one broker"],
)
def test_the_rule(
    load: ClusterLoad, clusters: int, measured_s: float, best: int | None, why: str
) -> None:
    found = best_number(load, clusters, measured_s, SETTINGS)
    assert found.clusters == best
    assert found.why == why


class Network:
    """Brokers that report what they have counted, and a tuner that looks every ten seconds."""

    def __init__(self, settings: ClusterTuningSettings = SETTINGS) -> None:
        self.core = Coordinator(CoordinatorSettings(), random=Random(1), now_s=0.0)
        self.asked: list[ChangeRequest] = []
        self.now_s = 0.0
        self.clusters, self.epoch = 4, 0
        self.finds_clusters = True
        self.starts = dict.fromkeys(BROKERS, "run 1")
        self.silent: set[str] = set()
        self.counted = dict.fromkeys(BROKERS, (0, 0, 0))
        """Published, reached and sent."""
        self.tuner = ClusterTuner(self.core, self._begin, settings, lambda: self.now_s)

    async def _begin(self, request: ChangeRequest) -> NetworkChange:
        self.asked.append(request)
        return NetworkChange(
            number=len(self.asked),
            request=request,
            state=ChangeState.RUNNING,
            authority=self.core.authority,
            asked_s=self.now_s,
        )

    def passes(self, seconds: float, *, published: int, reached: int, sent: int) -> str:
        """Every broker counts so much in each ten seconds; return what was decided last."""
        for _ in range(round(seconds / 10)):
            self.now_s += 10.0
            for name in sorted(set(BROKERS) - self.silent):
                p, r, s = self.counted[name]
                self.counted[name] = (p + published, r + reached, s + sent)
                self._report(name)
            asyncio.run(self.tuner.look())
        return self.core.says["clusters"]

    def _report(self, name: str) -> None:
        published, reached, sent = self.counted[name]
        account = BrokerAccount(
            broker=name,
            start=self.starts[name],
            pid=1,
            started_s=0.0,
            url="godwit://h:1",
            epoch=self.epoch,
            clusters=ClusterAccount(
                brokers=list(BROKERS),
                clusters=self.clusters,
                finds_clusters=self.finds_clusters,
                published=published,
                reached=reached,
                sent=sent,
            ),
        )
        self.core.accounts[name] = (self.now_s, account)
        self.core.registry.live = lambda _now_s: sorted(set(BROKERS) - self.silent)  # type: ignore[assignment, method-assign]


def test_the_number_follows_what_brokers_count() -> None:
    """16 brokers: in 100 s p = 1,600, r = 0.25, s = 4,800, so m* = 8."""
    network = Network()
    assert network.passes(100, published=10, reached=40, sent=30) == "measured for 90 of 100 s"
    assert "change 1: 8 clusters instead of 4" in network.passes(
        10, published=10, reached=40, sent=30
    )
    (request,) = network.asked
    assert (request.kind, request.overlay, request.asked_by) == (
        ChangeKind.RESHAPE,
        "clusters",
        "clusters",
    )
    assert request.settings == {"brokers": BROKERS, "clusters": 8}
    assert set(request.links) == arrange(BROKERS, 8).topology.links


def test_the_number_follows_a_load_that_changes() -> None:
    network = Network()
    network.passes(110, published=10, reached=40, sent=30)
    network.clusters, network.epoch = 8, 1
    network.counted = dict.fromkeys(BROKERS, (0, 0, 0))
    assert network.passes(100, published=10, reached=40, sent=30) == "measured for 90 of 100 s"
    assert network.passes(100, published=10, reached=40, sent=30) == "8 clusters are best"
    # Few subscriptions are made from now on, so that copies for other clusters are not worth it.
    network.passes(20, published=10, reached=40, sent=0)
    assert len(network.asked) == 1, "most of what was measured was before"
    while len(network.asked) < 2:
        assert network.now_s < 500.0, network.core.says["clusters"]
        network.passes(10, published=10, reached=40, sent=0)
    assert network.asked[1].settings["clusters"] in (4, 5, 6, 7)


@pytest.mark.parametrize("what", ["restarts", "is silent"])
def test_what_a_broker_has_missed_is_not_part_of_the_measurement(what: str) -> None:
    network = Network()
    network.passes(100, published=10, reached=40, sent=30)
    if what == "restarts":
        network.starts["B3"] = "run 2"
        network.counted["B3"] = (0, 0, 0)
    else:
        network.silent = {"B3"}
        said = network.passes(10, published=10, reached=40, sent=30)
        assert said == "no decision: B3 did not report"
        network.silent = set()
    assert network.passes(20, published=10, reached=40, sent=30) == "measured for 10 of 100 s"
    assert not network.asked


def test_a_number_that_was_configured_stays() -> None:
    network = Network()
    network.finds_clusters = False
    assert network.passes(300, published=10, reached=40, sent=30) == ""
    assert not network.asked


def test_a_dry_run_only_says_what_it_would_do() -> None:
    network = Network(msgspec.structs.replace(SETTINGS, dry_run=True))
    said = network.passes(200, published=10, reached=40, sent=30)
    assert said.startswith("8 clusters instead of 4 save")
    assert said.endswith("(dry run)")
    assert not network.asked
