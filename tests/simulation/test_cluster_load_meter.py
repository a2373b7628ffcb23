"""The number of clusters from what brokers measure."""

from __future__ import annotations

from random import Random

import pytest

from godwit.broker.stimuli import Neighbour, Received
from godwit.content.filters import Filter
from godwit.content.messages import Publication, Subscription
from godwit.errors import UsageError
from godwit.overlay import Overlay
from godwit.overlay.clusters.cluster_routing import ClusterRouting
from godwit.overlay.clusters.cluster_structure import arrange, cluster_settings
from godwit.overlay.clusters.cluster_traffic import ClusterLoad
from godwit.overlay.topology import balanced_tree
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.simulation.cluster_load_meter import ClusterLoadMeter
from godwit.simulation.observers import Observer
from godwit.simulation.playing import play
from godwit.simulation.simulator import Simulator
from godwit.workloads.matching_ratio import RatioSetup, ratio_workload
from godwit.workloads.timelines import joins

BROKERS = balanced_tree(24, fanout=2).brokers
SETUP = RatioSetup(matching_ratio=0.25, topics=24, publications_per_s=24.0)
FROM_S, UNTIL_S = 5.0, 15.0


class Traffic(Observer):
    """Publications and subscriptions between brokers."""

    messages = 0

    def on_handled(self, broker: str, received: Received, done_s: float) -> None:
        counts = isinstance(received.message, Publication | Subscription)
        self.messages += counts and isinstance(received.last_hop, Neighbour)


def played(overlay: Overlay, clusters: int, meter: ClusterLoadMeter) -> int:
    traffic = Traffic()
    topology = balanced_tree(24, fanout=2)
    if clusters:
        topology = arrange(BROKERS, clusters).topology
    simulator = Simulator(
        topology,
        seed=1,
        overlay=overlay,
        settings=cluster_settings(BROKERS, clusters) if clusters else {},
        observers=(traffic, meter),
        check=False,
    )
    workload = ratio_workload(SETUP, BROKERS, Random(1))
    joining = joins(workload.subscribers, Random(2), within_s=2.0)
    play(simulator, workload, joining, from_s=FROM_S, until_s=UNTIL_S)
    simulator.run(until_s=UNTIL_S + 1.0)
    return traffic.messages


@pytest.mark.parametrize(("overlay", "clusters"), [(TreeRouting, 0), (ClusterRouting, 3)])
def test_every_overlay_measures_the_load_of_the_workload(overlay: Overlay, clusters: int) -> None:
    meter = ClusterLoadMeter(BROKERS)
    played(overlay, clusters, meter)
    # 24 topics, each wanted by 6 of 24 brokers; 24 publications in each of ten seconds.
    assert meter.load == ClusterLoad(24, 240.0, 144.0, 0.25)


def test_the_next_run_has_the_least_traffic() -> None:
    meter = ClusterLoadMeter(BROKERS)
    before = played(ClusterRouting, 12, meter)
    best = meter.load.best_clusters
    assert best in (4, 5)
    after = {m: played(ClusterRouting, m, ClusterLoadMeter(BROKERS)) for m in (2, best, 8)}
    assert after[best] == min(after.values())
    assert after[best] < before


def test_only_what_belongs_to_a_part_counts() -> None:
    """Publications about three topics of 24: the others do not count."""
    few = Filter.parse("topic in ('t1', 't2', 't3')")
    whole, part = ClusterLoadMeter(BROKERS), ClusterLoadMeter(BROKERS, part=few)
    played(ClusterRouting, 3, whole)
    played(ClusterRouting, 3, part)
    assert part.load.subscriptions == 18.0
    assert part.load.publications < whole.load.publications / 4
    assert part.load.matching_ratio == 0.25


def test_without_publications_there_is_no_number() -> None:
    with pytest.raises(UsageError, match="let the simulation run for longer"):
        _ = ClusterLoadMeter(BROKERS).load
