"""MANUAL, a baseline: what an administrator would set up, on all brokers.

Paper    Cheung, thesis 7.3.2: a balanced tree with a fan-out of 2; subscribers at random brokers,
         or in proportion to their resources if these differ, the strongest brokers on top.
Departs  1. Resources are output bandwidths; subscribers are dealt out by largest remainders.
         2. If no broker can send anything, all count as equal.
Tested   tests/policies/allocation/test_baselines.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from godwit.policies.allocation.capacity import BrokerCapacity
from godwit.policies.allocation.overlay_tree import OverlayTree
from godwit.policies.allocation.units import AllocationUnit

FANOUT = 2


def manual(
    units: Sequence[AllocationUnit], brokers: Sequence[BrokerCapacity], random: Random
) -> OverlayTree:
    """`brokers` are in their order, the most capable first."""
    bandwidths = [broker.output_bandwidth_bytes_s for broker in brokers]
    if len(set(bandwidths)) == 1:
        homes = [random.randrange(len(brokers)) for _ in units]
    else:
        homes = _dealt_out(len(units), bandwidths)
        random.shuffle(homes)
    parents = {brokers[i].id: brokers[(i - 1) // FANOUT].id for i in range(1, len(brokers))}
    return tree_of(brokers, parents, brokers[0].id, units, homes)


def _dealt_out(count: int, weights: Sequence[float]) -> list[int]:
    """Each place as often as its weight says."""
    shares = [count * weight / sum(weights) for weight in weights]
    numbers = [int(share) for share in shares]
    by_remainder = sorted(range(len(weights)), key=lambda i: (numbers[i] - shares[i], i))
    for place in by_remainder[: count - sum(numbers)]:
        numbers[place] += 1
    return [place for place, number in enumerate(numbers) for _ in range(number)]


def tree_of(
    brokers: Sequence[BrokerCapacity],
    parents: dict[str, str],
    root: str,
    units: Sequence[AllocationUnit],
    homes: Sequence[int],
) -> OverlayTree:
    """A tree over all brokers, with each unit at the broker in its place."""
    served: dict[str, list[AllocationUnit]] = {broker.id: [] for broker in brokers}
    for unit, home in zip(units, homes, strict=True):
        served[brokers[home].id].append(unit)
    return OverlayTree(
        root,
        parents,
        {broker.id: broker for broker in brokers},
        {name: tuple(found) for name, found in served.items()},
    )
