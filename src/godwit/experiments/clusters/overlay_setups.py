"""The overlays that are compared, on the same brokers and the same workload.

tree         balanced, with fan-out 2
clusters     rings and clusters, as many as the case says; 1 is the single-cluster variant
balanced     clusters whose brokers hand load to their mates (threshold of the case)
dht          zones of a square; publications go from zone to zone to their owner, as in Meghdoot
dht direct   the same with one link to the owner, as if every broker knew every zone

The zones come about with the workload as a sample, so a hash table is at its best: topics are
divided as evenly as they can be, before the first publication.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from godwit.broker.modules import PolicyModule
from godwit.lab.declaration import Case
from godwit.overlay import Overlay
from godwit.overlay.clusters.cluster_routing import ClusterRouting
from godwit.overlay.clusters.cluster_structure import arrange, cluster_settings
from godwit.overlay.clusters.steered_routing import SteeredRouting
from godwit.overlay.dht.content_space import ContentSpace, Dimension
from godwit.overlay.dht.dht_routing import DhtRouting
from godwit.overlay.dht.zone_joining import join_all
from godwit.overlay.dht.zones import dht_settings
from godwit.overlay.topology import Topology, balanced_tree
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.policies.cluster_balancing.cluster_balancer import ClusterBalancer
from godwit.policies.cluster_balancing.settings import ClusterBalancingSettings
from godwit.simulation.simulator import Modules, no_modules
from godwit.workloads.workload import Workload

TREE, CLUSTERS, BALANCED, DHT, DHT_DIRECT = "tree", "clusters", "balanced", "dht", "dht direct"

#: Topics are only compared for equality: two hashes of one attribute make a square.
SQUARE = ContentSpace((Dimension("topic", salt=1), Dimension("topic", salt=2)))
SAMPLE = 2_000
"""Publications from which zones are made."""


@dataclass(frozen=True, slots=True)
class OverlaySetup:
    topology: Topology
    overlay: Overlay
    settings: Mapping[str, Any]
    modules: Modules = no_modules


def brokers_of(case: Case) -> tuple[str, ...]:
    return balanced_tree(int(case["brokers"]), fanout=2).brokers


def setup_of(case: Case, workload: Workload, seed: int) -> OverlaySetup:
    names, kind = brokers_of(case), str(case["overlay"])
    if kind == TREE:
        return OverlaySetup(balanced_tree(len(names), fanout=2), TreeRouting, {})
    if kind in (DHT, DHT_DIRECT):
        zones = join_all(
            names,
            SQUARE,
            subscriptions=[each.filter for each in workload.subscribers],
            publications=workload.sample(SAMPLE),
            is_direct=kind == DHT_DIRECT,
        )
        return OverlaySetup(zones.topology, DhtRouting, dht_settings(zones))
    clusters = int(case["clusters"])
    topology, settings = arrange(names, clusters).topology, cluster_settings(names, clusters)
    if kind == CLUSTERS:
        return OverlaySetup(topology, ClusterRouting, settings)
    balancing = ClusterBalancingSettings(threshold=float(case["threshold"]))

    def modules(broker: str) -> list[PolicyModule]:
        return [ClusterBalancer(balancing, Random(f"{seed} {broker}"))]

    return OverlaySetup(topology, SteeredRouting, settings, modules)
