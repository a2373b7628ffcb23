"""Maps for tests: learnt from neighbours, as brokers learn them."""

from __future__ import annotations

from collections.abc import Iterable

from godwit.overlay.mesh.master_overlay_map import MasterOverlayMap
from godwit.overlay.topology import Topology, topology


def learnt_maps(tree: Topology, delta: int) -> dict[str, MasterOverlayMap]:
    """Tell each other until no map changes."""
    maps = {broker: MasterOverlayMap(broker, delta) for broker in tree.brokers}
    for broker in tree.brokers:
        for neighbour in tree.neighbours(broker):
            maps[broker].add(neighbour)
    is_changing = True
    while is_changing:
        is_changing = False
        for broker in tree.brokers:
            for neighbour in tree.neighbours(broker):
                told = maps[broker].view_for(neighbour)
                is_changing |= maps[neighbour].hear(broker, told)
    return maps


def tree_of(links: Iterable[str]) -> Topology:
    """`tree_of(["A-B", "B-C"])`"""
    pairs = [(a, b) for a, _, b in (link.partition("-") for link in links)]
    brokers = dict.fromkeys(end for pair in pairs for end in pair)
    return topology(brokers, pairs)


#: The primary network of the paper's figure 3, around broker A.
FIGURE_3 = tree_of(["A-N1", "A-N2", "N2-X2", "N1-X1", "X1-X3", "X1-X4", "X3-N4", "X4-N3", "N4-X5"])
