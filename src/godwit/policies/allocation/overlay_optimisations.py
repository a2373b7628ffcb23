"""The three optimisations of overlay construction, on the layer just built.

Paper    Cheung, thesis 6.3.1 to 6.3.3.
Words    eliminate pure forwarding brokers -> skip_pure_forwarders;
         takeover children broker roles -> take_over_children;
         best-fit broker replacement -> fit_best.
Claim    Each keeps every broker within its capacity, and none makes the tree larger.
Departs  1. A parent that has taken over all of its children, and theirs, goes on with those: the
            thesis does not say whether grandchildren count.
         2. Brokers are replaced in the order of the layer (open in the thesis).
Tested   tests/policies/allocation/test_overlay_optimisations.py: each by hand, and none at random.
"""

from __future__ import annotations

from godwit.policies.allocation.capacity import fits_all
from godwit.policies.allocation.overlay_layers import Layers


def optimised(layers: Layers) -> None:
    """All three, in the thesis's order."""
    skip_pure_forwarders(layers)
    take_over_children(layers)
    fit_best(layers)


def skip_pure_forwarders(layers: Layers) -> None:
    """A broker that serves nothing but one other broker is released; that one moves up."""
    for place, name in enumerate(layers.top):
        while layers.is_pure_forwarder(name):
            child = layers.children(name)[0]
            layers.release(name)
            name = child  # noqa: PLW2901
        layers.top[place] = name


def take_over_children(layers: Layers) -> None:
    """A parent serves what a child served, if it can; the least utilised child first."""
    for parent in layers.top:
        refused: set[str] = set()
        while True:
            children = [child for child in layers.children(parent) if child not in refused]
            if not children:
                break
            child = min(children, key=lambda name: (layers.fills[name].utilisation, name))
            units = [unit for unit in layers.fills[parent].units if unit.below != child]
            units += layers.fills[child].units
            if fits_all(layers.fills[parent].broker, layers.table, units):
                layers.take_over(parent, child, units)
            else:
                refused.add(child)


def fit_best(layers: Layers) -> None:
    """Each broker is replaced by the free broker with the smallest capacity that is enough."""
    for name in list(layers.top):
        fill = layers.fills[name]
        smallest_first = sorted(
            layers.free, key=lambda broker: (broker.output_bandwidth_bytes_s, broker.id)
        )
        for broker in smallest_first:
            if broker.output_bandwidth_bytes_s >= fill.broker.output_bandwidth_bytes_s:
                break
            if fits_all(broker, layers.table, fill.units):
                layers.replace(name, broker)
                break
