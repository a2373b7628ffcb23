"""GRAPE's second phase: the best broker for a publisher, among those its publications reach.

Paper    Cheung, thesis 5.2.2; POP and GRAPE paper, IV-B.
Words    TIA entry -> Entry; avgDelay(c) -> delay_s; msgRate(c), sumRate -> messages;
         dsBV(b, prev) -> beyond: the bit vector of all brokers on the far side of a link.
Claim    `choose` returns the broker that an exhaustive search finds.

    messages   the traced publications that brokers would handle if the publisher were at c, summed
               over all brokers: a broker handles those delivered at or beyond it
    delay_s    the mean delay of a delivery: the delays of the brokers and links on the path,
               averaged over all deliveries

Departs  1. The thesis walks the tree once for each candidate.  If the publisher steps from p to a
            neighbour x, only these two handle other publications than before, and only the link
            between them is crossed in the other direction: each candidate follows from the one
            before it, and one walk is enough for all.
         2. The thesis does not define how a weight compares candidates: here by their place
            between the best and the worst, so that 100% keeps the best and 0% keeps all.
         3. Link latency is counted where it was measured; the thesis counts queues and matching
            only.
Tested   tests/policies/placement/test_selection.py: against a search by definition, on random
         trees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from godwit.policies.placement.settings import SESSION_MAX, Metric
from godwit.profile.bit_vector import BitVector

#: Values that differ by less than this share count as equal: the order of a sum changes it.
EQUAL_WITHIN = 1e-9


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One broker's results of a trace session: an entry of a TIA."""

    broker: str
    address: str
    bits: bytes
    """The publications delivered by this broker, the first of the session in the lowest bit."""

    deliveries: int
    """Number of deliveries, over all of them."""

    input_queue_s: float
    matching_s: float
    to_clients_s: float
    to_neighbours_s: dict[str, float]
    """Output delay to each neighbour that the publications come from or go to."""

    links_s: dict[str, float] = {}
    """Measured latency of the links that the publications go to."""

    def passing_s(self, to: str) -> float:
        """The thesis's q(b, x): from arrival to departure towards a neighbour."""
        return self.input_queue_s + self.matching_s + self.to_neighbours_s.get(to, 0.0)

    @property
    def serving_s(self) -> float:
        """q(b, CLIENT): from arrival to departure towards local subscribers."""
        return self.input_queue_s + self.matching_s + self.to_clients_s


@dataclass(frozen=True, slots=True)
class Candidate:
    """A broker where the publisher could be, with its metrics."""

    broker: str
    address: str
    hops: int
    """Distance from the publisher's current broker."""

    messages: int
    delay_s: float

    def value(self, metric: Metric) -> float:
        return self.messages if metric is Metric.LOAD else self.delay_s


def choose(candidates: Sequence[Candidate], primary: Metric, weight_percent: float) -> Candidate:
    """The best in the secondary metric, among those good enough in the primary one.

    Of equals, the one with the fewest hops from the current broker.
    """
    values = [candidate.value(primary) for candidate in candidates]
    lowest = min(values)
    bound = lowest + (max(values) - lowest) * (100.0 - weight_percent) / 100.0
    good_enough = [c for c in candidates if _is_at_most(c.value(primary), bound)]
    secondary = Metric.DELAY if primary is Metric.LOAD else Metric.LOAD
    best = min(candidate.value(secondary) for candidate in good_enough)
    equals = [c for c in good_enough if _is_at_most(c.value(secondary), best)]
    return min(equals, key=lambda candidate: (candidate.hops, candidate.broker))


def _is_at_most(value: float, bound: float) -> bool:
    return value <= bound + EQUAL_WITHIN * abs(bound)


@dataclass(slots=True)
class _Node:
    entry: Entry
    parent: _Node | None
    hops: int
    bits: int
    children: list[_Node] = field(default_factory=list)
    beyond: int = 0
    """Bits of this broker and all below it: the publications on the link from its parent."""

    outside: int = 0
    """Bits of all others: the publications on that link in the other direction."""

    deliveries: int = 0
    """Deliveries at this broker and below."""

    reached_s: float = 0.0
    """Delay from the root to the arrival at this broker."""

    messages: int = 0
    delay_s: float = 0.0


def candidates(
    entries: Sequence[Entry], here: str, round_trips_s: Mapping[str, float] | None = None
) -> list[Candidate]:
    """Every broker of the session as a candidate; the publisher is at `here` now.

    `round_trips_s` are the publisher's pings, where it has them.
    """
    pings_s = round_trips_s or {}
    nodes = _walk({entry.broker: entry for entry in entries}, here)
    _gather(nodes)
    _step(nodes)
    total = nodes[0].deliveries
    return [
        Candidate(
            node.entry.broker,
            node.entry.address,
            node.hops,
            node.messages,
            pings_s.get(node.entry.broker, 0.0) / 2 + (node.delay_s / total if total else 0.0),
        )
        for node in nodes
    ]


def _walk(entries: Mapping[str, Entry], here: str) -> list[_Node]:
    """The brokers as a tree with the root `here`, parents before children."""
    nodes = [_node(entries[here], None)]
    unseen = {name: entry for name, entry in entries.items() if name != here}
    for node in nodes:  # Grows while it is walked: breadth first.
        for name in node.entry.to_neighbours_s:
            entry = unseen.pop(name, None)
            if entry is not None:
                child = _node(entry, node)
                child.reached_s = node.reached_s + _crossing_s(node, child)
                node.children.append(child)
                nodes.append(child)
    return nodes


def _node(entry: Entry, parent: _Node | None) -> _Node:
    hops = parent.hops + 1 if parent else 0
    # All vectors of a session have the same window: their bits are enough from here on.
    bits = BitVector.of_bytes(entry.bits, length=SESSION_MAX).bits
    return _Node(entry, parent, hops, bits)


def _crossing_s(a: _Node, b: _Node) -> float:
    """Delay through `a` and over the link to `b`."""
    there, back = a.entry.links_s.get(b.entry.broker), b.entry.links_s.get(a.entry.broker)
    return a.entry.passing_s(b.entry.broker) + (there or back or 0.0)


def _gather(nodes: list[_Node]) -> None:
    """Fill in the bits and deliveries beyond each link, in both directions."""
    for node in reversed(nodes):
        node.beyond, node.deliveries = node.bits, node.entry.deliveries
        for child in node.children:
            node.beyond |= child.beyond
            node.deliveries += child.deliveries
    for node in nodes:
        # Outside a child: the node, everything outside it, and its other children.
        before = node.outside | node.bits
        for child in node.children:
            child.outside = before
            before |= child.beyond
        after = 0
        for child in reversed(node.children):
            child.outside |= after
            after |= child.beyond


def _step(nodes: list[_Node]) -> None:
    """Metrics of the root by definition; of the others in steps from parent to child."""
    root = nodes[0]
    root.messages = sum(node.beyond.bit_count() for node in nodes)
    root.delay_s = sum(
        node.entry.deliveries * (node.reached_s + node.entry.serving_s) for node in nodes
    )
    for node in nodes[1:]:
        parent = node.parent
        assert parent is not None
        node.messages = parent.messages - node.beyond.bit_count() + node.outside.bit_count()
        spared_s = _crossing_s(parent, node) * node.deliveries
        added_s = _crossing_s(node, parent) * (root.deliveries - node.deliveries)
        node.delay_s = parent.delay_s - spared_s + added_s
