"""The layers of a tree under construction: which brokers are on top, below, and free.

Paper    Cheung, thesis 6.3.
Tested   tests/policies/allocation/test_overlay_construction.py.

L1  A broker is free or has a fill, not both.
L2  The brokers of `top` are those that no other broker serves.
"""

from __future__ import annotations

from collections.abc import Iterable

from godwit.policies.allocation.capacity import BrokerCapacity, BrokerFill
from godwit.policies.allocation.overlay_tree import OverlayTree
from godwit.policies.allocation.packed_profiles import PublisherTable
from godwit.policies.allocation.units import AllocationUnit


class Layers:
    def __init__(
        self,
        allocated: Iterable[BrokerFill],
        free: Iterable[BrokerCapacity],
        table: PublisherTable,
    ) -> None:
        self.table = table
        self.fills = {fill.broker.id: fill for fill in allocated}
        self.top = list(self.fills)
        self._free = {broker.id: broker for broker in free}

    @property
    def free(self) -> list[BrokerCapacity]:
        """The most capable first."""
        return sorted(self._free.values(), key=lambda broker: broker.order)

    def put_above(self, upper: Iterable[BrokerFill]) -> None:
        """Free brokers become the top; each serves brokers of the top so far."""
        self.top = []
        for packed in upper:
            # A cluster of brokers is served as its members: each has a link of its own.
            leaves = [leaf for unit in packed.units for leaf in unit.leaves()]
            self._set(packed.broker, leaves)
            self._free.pop(packed.broker.id)  # L1
            self.top.append(packed.broker.id)

    def _set(self, broker: BrokerCapacity, units: Iterable[AllocationUnit]) -> None:
        self.fills[broker.id] = BrokerFill(broker, self.table, units)

    def children(self, name: str) -> list[str]:
        return [
            leaf.below for unit in self.fills[name].units for leaf in unit.leaves() if leaf.below
        ]

    def is_pure_forwarder(self, name: str) -> bool:
        units = self.fills[name].units
        return len(units) == 1 and bool(units[0].below)

    def release(self, name: str) -> BrokerFill:
        """A broker of the tree becomes free; what it served is returned."""
        fill = self.fills.pop(name)
        self._free[name] = fill.broker
        return fill

    def take_over(self, parent: str, child: str, units: list[AllocationUnit]) -> None:
        """The parent serves `units`, which include those of the child, which is released."""
        self.release(child)
        self._set(self.fills[parent].broker, units)

    def replace(self, name: str, broker: BrokerCapacity) -> None:
        """A free broker takes the place of one of the top."""
        fill = self.release(name)
        self._free.pop(broker.id)
        self._set(broker, fill.units)
        self.top[self.top.index(name)] = broker.id

    def tree(self, root: str, extra_parents: dict[str, str] | None = None) -> OverlayTree:
        parents = {child: name for name in self.fills for child in self.children(name)}
        return OverlayTree(
            root,
            {**parents, **(extra_parents or {})},
            {name: fill.broker for name, fill in self.fills.items()},
            {
                name: tuple(unit for unit in fill.units if not unit.below)
                for name, fill in self.fills.items()
            },
        )
