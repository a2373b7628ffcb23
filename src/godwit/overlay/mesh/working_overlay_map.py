"""The Working Overlay Map (WOM): the brokers that one broker is linked with, within its MOM.

Paper    Opportunistic multipath forwarding in content-based publish/subscribe overlays (Publiy),
         section 3, figure 4.
Words    BrokerArr -> brokers, N_1 to N_k; Between, Beyond, Behind as in the paper, bit i for N_i;
         substituted by -> substitutes.
Claim    Edge contraction: a broker that is not linked counts as the nearest linked one on the
         primary path from it to the own broker.
Departs  1. Union of bit vectors is |, intersection & (erratum E20: the paper has them exchanged).
         2. Candidate links are not part of it: they only count (erratum E19).
         3. Rebuilt from the paths to linked brokers only: contraction needs no copy of the map.
Tested   tests/overlay/mesh/test_maps.py: figure 4 (test vector 9), and a plain version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from godwit.overlay.mesh.master_overlay_map import MasterOverlayMap


class WorkingOverlayMap:
    def __init__(self, mom: MasterOverlayMap, linked: Collection[str]) -> None:
        """`linked` are brokers with primary or soft links; those outside the MOM are left out."""
        self.brokers = [broker for broker in mom.distances if broker in linked]
        """N_1 to N_k: the nearest first, equally far ones by name."""
        self.index = {broker: i for i, broker in enumerate(self.brokers)}
        self.substitutes: dict[str, int] = {}
        """For each broker of the MOM, linked or not: the bit of its substitute."""
        self.between: list[int] = []
        """Linked brokers on the primary path to N_i, including N_i."""
        self.beyond = [1 << i for i in range(len(self.brokers))]
        """Linked brokers that N_i is between, including N_i."""
        self.directions: dict[str, int] = {}
        """Linked brokers in the direction of each neighbour."""
        masks = {mom.broker: 0}
        for broker in mom.distances:  # The nearest first, so parents come before.
            if broker == mom.broker:
                continue
            parent = mom.parents[broker]
            i = self.index.get(broker)
            if i is None:
                masks[broker] = masks[parent]
                self.substitutes[broker] = self.substitutes.get(parent, 0)
                continue
            masks[broker] = masks[parent] | 1 << i
            self.substitutes[broker] = 1 << i
            self.between.append(masks[broker])
            direction = mom.directions[broker]
            self.directions[direction] = self.directions.get(direction, 0) | 1 << i
            for j in bits(masks[parent]):
                self.beyond[j] |= 1 << i
        self.behind = [
            self.all_brokers & ~self.directions[mom.directions[broker]] for broker in self.brokers
        ]
        """Linked brokers that are reached from N_i through the own broker only."""

    @property
    def all_brokers(self) -> int:
        return (1 << len(self.brokers)) - 1

    def names(self, mask: int) -> list[str]:
        return [self.brokers[i] for i in bits(mask)]

    def mask(self, names: Collection[str]) -> int:
        return sum(1 << self.index[name] for name in names)


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
