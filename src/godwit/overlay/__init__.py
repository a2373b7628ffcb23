"""How brokers are linked, and how a publication finds its way.

topology.py        the links between brokers, as a value
link_states.py     what a broker knows of the links of all others
link_waves.py      waves over all links, to learn what every broker knows
link_proposals.py  which new links are taken in: none that would close a cycle
tree/              routing in a tree, with advertisements and covering
clusters/          routing in clusters and rings, over two links at most
dht/               routing over a distributed hash table, a baseline for simulations
mesh/              routing in a tree with soft links beside it, past brokers in between
epochs/            a network that changes its shape while it runs

A routing strategy is a folder, an implementation of `broker.routing.Routing`, and a line in
OVERLAYS; in SIMULATED_OVERLAYS if it is only a baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from godwit.broker.routing import Place, Routing, Steerable
from godwit.errors import UsageError
from godwit.overlay.clusters.cluster_routing import ClusterRouting
from godwit.overlay.dht.dht_routing import DhtRouting
from godwit.overlay.epochs.epoch_routing import EpochRouting
from godwit.overlay.mesh.mesh_routing import MeshRouting
from godwit.overlay.tree.tree_routing import TreeRouting

#: Makes the router of one broker.
Overlay: TypeAlias = Callable[[Place], Routing]

#: Overlays by the name in network files and on the command line.
OVERLAYS: Mapping[str, Overlay] = {
    "tree": TreeRouting,
    "clusters": ClusterRouting,
    "mesh": MeshRouting,
}

#: ... and those that only the simulator runs.
SIMULATED_OVERLAYS: Mapping[str, Overlay] = {**OVERLAYS, "dht": DhtRouting}


def overlay(name: str, known: Mapping[str, Overlay] = OVERLAYS) -> Overlay:
    if name not in known and name in SIMULATED_OVERLAYS:
        raise UsageError(f"the overlay {name!r} is for simulations; choose from {sorted(known)}")
    try:
        return known[name]
    except KeyError:
        raise UsageError(f"no overlay {name!r}; choose from {sorted(known)}") from None


def make_router(place: Place, make: Overlay) -> Routing:
    """The router of one broker; it can be given another shape, unless it has lanes of its own."""
    routing = make(place)
    has_own_lanes = isinstance(routing, Steerable | DhtRouting)  # Else a lane is an epoch.
    return routing if has_own_lanes else EpochRouting(place, make, overlay)
