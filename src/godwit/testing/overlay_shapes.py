"""The same brokers in the shape that an overlay needs, so that one script runs on every overlay."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

from godwit.errors import UsageError
from godwit.overlay import Overlay
from godwit.overlay.clusters.cluster_routing import ClusterRouting
from godwit.overlay.clusters.cluster_structure import arrange, cluster_settings
from godwit.overlay.topology import Topology


class OverlayShape(NamedTuple):
    topology: Topology
    settings: Mapping[str, Any]
    """Of the overlay (`Place.settings`)."""


def has_clusters(overlay: Overlay) -> bool:
    return isinstance(overlay, type) and issubclass(overlay, ClusterRouting)


def shape_for(overlay: Overlay, tree: Topology, *, seed: int) -> OverlayShape:
    """A tree as it is, or its brokers in clusters; the seed says how many."""
    if not has_clusters(overlay):
        return OverlayShape(tree, {})
    clusters = clusters_for(tree, seed=seed)
    structure = arrange(tree.brokers, clusters)
    return OverlayShape(structure.topology, cluster_settings(tree.brokers, clusters))


def clusters_for(tree: Topology, *, seed: int) -> int:
    """In how many clusters the brokers of a tree are, for this seed."""
    return Random(seed).randint(1, len(tree.brokers))


def check_is_tree(overlay: Overlay, what: str) -> None:
    """Raise UsageError for what clusters cannot do yet."""
    if has_clusters(overlay):
        raise UsageError(f"{what}: not in the overlay `clusters`, only in a tree")
