"""AUTOMATIC, a baseline: subscribers at random brokers, brokers in a random tree.

Paper    Cheung, thesis 7.3.2.
Departs  1. A broker has at most `automatic_fanout` children: the thesis's tree has a larger fan-out
            than MANUAL's, but it does not say how large.
Tested   tests/policies/allocation/test_baselines.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from godwit.policies.allocation.capacity import BrokerCapacity
from godwit.policies.allocation.manual import tree_of
from godwit.policies.allocation.overlay_tree import OverlayTree
from godwit.policies.allocation.units import AllocationUnit


def automatic(
    units: Sequence[AllocationUnit],
    brokers: Sequence[BrokerCapacity],
    random: Random,
    fanout: int,
) -> OverlayTree:
    homes = [random.randrange(len(brokers)) for _ in units]
    return on_a_random_tree(units, homes, brokers, random, fanout)


def on_a_random_tree(
    units: Sequence[AllocationUnit],
    homes: Sequence[int],
    brokers: Sequence[BrokerCapacity],
    random: Random,
    fanout: int,
) -> OverlayTree:
    """Each broker, in random order, is below a random earlier one that has less than `fanout`."""
    order = [broker.id for broker in brokers]
    random.shuffle(order)
    parents: dict[str, str] = {}
    open_, children = [order[0]], {order[0]: 0}
    for name in order[1:]:
        parent = open_[random.randrange(len(open_))]
        parents[name] = parent
        children[parent] += 1
        if children[parent] == fanout:
            open_.remove(parent)
        open_.append(name)
        children[name] = 0
    return tree_of(brokers, parents, order[0], units, homes)
