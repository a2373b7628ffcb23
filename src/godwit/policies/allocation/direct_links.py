"""Trees without brokers that only forward: the brokers with subscriptions are linked directly.

Beyond the thesis, which builds a tree for publishers at its root, where every publication passes.
After GRAPE has placed the publishers next to their subscribers, links carry little or nothing, and
the brokers with subscriptions can often do without those that only forward.

Claim    A tree is taken if no broker exceeds its capacity with the publishers where GRAPE puts
         them, and if it is better: fewer brokers, or as many and less input in all.
Tested   tests/policies/allocation/test_direct_links.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from godwit.policies.allocation.capacity import BrokerFill
from godwit.policies.allocation.expected_traffic import ExpectedTraffic
from godwit.policies.allocation.overlay_tree import OverlayTree, balanced
from godwit.policies.allocation.packed_profiles import PublisherTable
from godwit.policies.allocation.publisher_placement import BrokerLimits

#: Children of a broker: few links for each, or few hops.
FANOUTS = (2, 8)


def score(traffic: ExpectedTraffic) -> tuple[int, float]:
    """Lower is better."""
    return len(traffic.tree.order), traffic.total_input_per_s * (1 - 1e-12)


def serving(tree: OverlayTree, table: PublisherTable) -> list[BrokerFill]:
    """The brokers of a tree that have subscriptions."""
    return [
        BrokerFill(tree.brokers[name], table, tree.served[name])
        for name in tree.order
        if tree.served[name]
    ]


def direct_trees(fills: Iterable[BrokerFill]) -> Iterator[OverlayTree]:
    """Trees over these brokers, those with the most room near the root."""
    by_room = sorted(
        fills,
        key=lambda fill: (
            fill.bandwidth_bytes_s - fill.broker.output_bandwidth_bytes_s,
            fill.broker.id,
        ),
    )
    for fanout in FANOUTS:
        yield balanced([(fill.broker, tuple(fill.units)) for fill in by_room], fanout)


def linked_directly(
    traffic: ExpectedTraffic, finish: Callable[[OverlayTree], ExpectedTraffic]
) -> ExpectedTraffic:
    """The best of this tree and of those without brokers that only forward."""
    fills = serving(traffic.tree, traffic.table)
    if not 0 < len(fills) < len(traffic.tree.order):
        return traffic
    best = traffic
    for tree in direct_trees(fills):
        found = finish(tree)
        if BrokerLimits(found).hold and score(found) < score(best):
            best = found
    return best
