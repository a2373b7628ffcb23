"""Overlay construction: the tree above the brokers that serve subscriptions, layer by layer.

Paper    Cheung, thesis 6.3.
Words    broker pool -> free; subscription profile of a broker -> AllocationUnit.below;
         the recursive invocation -> `construct`, a loop.
Claim    With the publishers at the root, no broker of the tree is above its capacity.

    1  each broker of the layer becomes a subscription: the OR of everything it serves
    2  the algorithm that allocated the subscriptions allocates these to free brokers
    3  the optimisations (overlay_optimisations.py) run on the new layer; repeat

Departs  1. The optimisations also run on the last layer: else a root with a single child would
            remain as a pure forwarder.
         2. If the free brokers cannot serve the layer, or as many would be needed as it has, the
            brokers of the layer are connected with each other where they have room
            (layer_joining.py).  The thesis ends with an error there.
Tested   tests/policies/allocation/test_overlay_construction.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from godwit.policies.allocation.capacity import (
    BrokerCapacity,
    BrokerFill,
    UnallocatableError,
    explain_no_room,
)
from godwit.policies.allocation.first_fit import Packed
from godwit.policies.allocation.layer_joining import joined
from godwit.policies.allocation.overlay_layers import Layers
from godwit.policies.allocation.overlay_optimisations import optimised
from godwit.policies.allocation.overlay_tree import OverlayTree
from godwit.policies.allocation.packed_profiles import PublisherTable
from godwit.policies.allocation.units import AllocationUnit, UnitFactory

#: Units and free brokers in their order -> where each unit goes.
Allocator: TypeAlias = Callable[[Sequence[AllocationUnit], Sequence[BrokerCapacity]], Packed]


def construct(
    allocated: Iterable[BrokerFill],
    free: Iterable[BrokerCapacity],
    allocate: Allocator,
    table: PublisherTable,
    factory: UnitFactory,
    *,
    optimisations: bool = True,
) -> OverlayTree:
    """A tree over the brokers that were `allocated` subscriptions, and some of the `free` ones."""
    layers = Layers(allocated, free, table)
    if optimisations:
        optimised(layers)
    while len(layers.top) > 1:
        below = [factory.below(name, layers.fills[name].profile) for name in layers.top]
        packed = allocate(below, layers.free)
        if not packed.is_complete or len(packed.used) >= len(below):
            tree = joined(layers)
            if tree is not None:
                return tree
            raise UnallocatableError(_why(packed, below, table))
        layers.put_above(packed.used)
        if optimisations:
            optimised(layers)
    return layers.tree(layers.top[0])


def _why(packed: Packed, below: Sequence[AllocationUnit], table: PublisherTable) -> str:
    start = f"the tree cannot connect {len(below)} brokers"
    if packed.without_room is None:
        return f"{start}: no free broker can serve two of them, and they have no room themselves"
    reason = explain_no_room(packed.without_room, packed.fills, below, table)
    return f"{start}, and they have no room to serve each other: {reason}"
