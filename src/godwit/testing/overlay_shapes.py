"""The same brokers in the shape that an overlay needs, so that one script runs on every overlay."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

from godwit.broker.modules import PolicyModule
from godwit.errors import UsageError
from godwit.overlay import Overlay
from godwit.overlay.clusters.cluster_routing import ClusterRouting
from godwit.overlay.clusters.cluster_structure import arrange, cluster_settings
from godwit.overlay.dht.content_space import ContentSpace, Dimension
from godwit.overlay.dht.dht_routing import DhtRouting
from godwit.overlay.dht.zone_joining import join_all
from godwit.overlay.dht.zones import dht_settings
from godwit.overlay.mesh.mesh_routing import MeshRouting
from godwit.overlay.topology import Topology
from godwit.simulation.simulator import Modules, no_modules
from godwit.testing.random_content import RandomContent
from godwit.testing.random_soft_links import RandomSoftLinks

#: Content spaces: zones in a row, in a square, and in a cube.
_SIZE = Dimension("size", low=0, high=6)
DIMENSIONS = (
    (_SIZE,),
    (_SIZE, Dimension("class")),
    (Dimension("size", salt=1), Dimension("size", salt=2)),
    (_SIZE, Dimension("class"), Dimension("name")),
)

#: How long soft links of a mesh keep changing.
CHANGING_S = 40.0


#: In runs that change from overlay to overlay: any of them.
ANY = "any"


class OverlayShape(NamedTuple):
    topology: Topology
    settings: Mapping[str, Any]
    """Of the overlay (`Place.settings`)."""

    modules: Modules = no_modules
    """In a mesh: what opens and closes soft links at random."""


def has_clusters(overlay: Overlay) -> bool:
    return isinstance(overlay, type) and issubclass(overlay, ClusterRouting)


def shape_for(overlay: Overlay, tree: Topology, *, seed: int) -> OverlayShape:
    """A tree as it is, with soft links, or its brokers in clusters; the seed says how many."""
    if is_mesh(overlay):
        return _mesh(tree, seed)
    if is_dht(overlay):
        return _dht(tree, seed)
    if not has_clusters(overlay):
        return OverlayShape(tree, {})
    clusters = clusters_for(tree, seed=seed)
    structure = arrange(tree.brokers, clusters)
    return OverlayShape(structure.topology, cluster_settings(tree.brokers, clusters))


def is_dht(overlay: Overlay) -> bool:
    return isinstance(overlay, type) and issubclass(overlay, DhtRouting)


def soft_link_modules(seed: int, *, every_s: float) -> Modules:
    """What opens and closes soft links at random, while the overlay is a mesh."""

    def modules(broker: str) -> list[PolicyModule]:
        chance = Random(f"{seed} {broker}")
        return [RandomSoftLinks(chance, every_s=every_s, for_s=CHANGING_S)]

    return modules


def is_mesh(overlay: Overlay) -> bool:
    return isinstance(overlay, type) and issubclass(overlay, MeshRouting)


def _mesh(tree: Topology, seed: int) -> OverlayShape:
    random = Random(seed)
    settings = {
        "delta": random.randint(2, 5),
        "strategy": random.choice(("S0", "S1", "S2", "SH")),
        "threshold": random.choice((0.0, 0.8)),
    }
    every_s = random.choice((0.5, 5.0))
    return OverlayShape(tree, settings, soft_link_modules(seed, every_s=every_s))


def _dht(tree: Topology, seed: int) -> OverlayShape:
    """Zones of one to three dimensions; a sample of some filters makes them unequal."""
    random = Random(seed)
    dimensions = random.choice(DIMENSIONS)
    content = RandomContent(("class", "name", "size"), random)
    sample = [content.filter(every_attribute=False) for _ in range(random.choice((0, 20)))]
    zones = join_all(
        tree.brokers,
        ContentSpace(dimensions),
        subscriptions=sample,
        is_direct=random.random() < 0.2,
    )
    return OverlayShape(zones.topology, dht_settings(zones))


def clusters_for(tree: Topology, *, seed: int) -> int:
    """In how many clusters the brokers of a tree are, for this seed."""
    return Random(seed).randint(1, len(tree.brokers))


def check_is_tree(overlay: Overlay, what: str) -> None:
    """Raise UsageError for what clusters and the distributed hash table cannot do."""
    if has_clusters(overlay):
        raise UsageError(f"{what}: not in the overlay `clusters`, only in a tree")
    check_is_live(overlay, what)


def check_is_live(overlay: Overlay, what: str) -> None:
    """Raise UsageError for what a baseline of simulations cannot do."""
    if is_dht(overlay):
        raise UsageError(f"{what}: not in the overlay `dht`, a baseline for simulations")
