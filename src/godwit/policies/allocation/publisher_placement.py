"""Where the publishers go: GRAPE on the finished tree, before it is built.

Paper    Cheung, thesis 6.3: "after which GRAPE strategically relocates the publisher clients";
         7.3.2: load 100%.
Words    TIA entries -> Entry, filled from the profiles instead of a trace session.
Claim    A publisher is at the broker where it causes the least input in all, of those where no
         broker exceeds its capacity.
Departs  1. A broker that would be above its capacity is not a candidate: with the publishers at the
            root, brokers are within theirs by construction; elsewhere traffic flows upwards too.
         2. The delay within a broker is its matching delay: nothing else is known of a tree that is
            not built.  It decides only between equals.
         3. A publisher whose client also subscribes is where that client is.
Tested   tests/policies/allocation/test_expected_traffic.py: against trying every broker.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from godwit.policies.allocation.capacity import EQUAL_WITHIN
from godwit.policies.allocation.expected_traffic import ExpectedTraffic, Floats
from godwit.policies.placement.selection import Candidate, Entry, candidates, choose
from godwit.policies.placement.settings import Metric


def place_publishers(traffic: ExpectedTraffic, pinned: Container[int]) -> None:
    """Move each publisher to its best broker, but for the pinned ones; the heaviest first."""
    limits = BrokerLimits(traffic)
    table = traffic.table
    free = [p for p in range(len(table.ids)) if p not in pinned]
    for p in sorted(free, key=lambda p: (-table.bandwidths_bytes_s[p], table.ids[p])):
        found = _candidates(traffic, limits, p)
        while found:
            best = choose(found, Metric.LOAD, 100.0)
            home = traffic.places[best.broker]
            if home == traffic.homes[p] or limits.allow(p, home):
                traffic.move(p, home)
                break
            found.remove(best)


class BrokerLimits:
    """Output bandwidth and matching rate of the brokers, by their place in the tree."""

    def __init__(self, traffic: ExpectedTraffic) -> None:
        tree = traffic.tree
        self._traffic = traffic
        brokers = [tree.brokers[name] for name in tree.order]
        self.capacities: Floats = np.array([b.output_bandwidth_bytes_s for b in brokers])
        self.subscriptions = [
            tree.subscriptions(name) + len(tree.children[name]) for name in tree.order
        ]
        rates = [b.rate_max(n) for b, n in zip(brokers, self.subscriptions, strict=True)]
        self.rates_max: Floats = np.array(rates)

    @property
    def hold(self) -> bool:
        """Whether no broker exceeds its capacity."""
        traffic = self._traffic
        too_many = traffic.input_per_s > self.rates_max * (1 + EQUAL_WITHIN)
        too_much = traffic.output_bytes_s >= self.capacities * (1 - EQUAL_WITHIN)
        return not (too_many | too_much).any()

    def allow(self, p: int, home: int) -> bool:
        """Whether no broker that this move loads more would exceed its capacity."""
        traffic = self._traffic
        before, after = traffic.flow(p, traffic.homes[p]), traffic.flow(p, home)
        more_input = after.input_per_s - before.input_per_s
        more_bytes = traffic.link_bytes_s(p, after) - traffic.link_bytes_s(p, before)
        too_many = traffic.input_per_s + more_input > self.rates_max * (1 + EQUAL_WITHIN)
        too_much = traffic.output_bytes_s + more_bytes >= self.capacities * (1 - EQUAL_WITHIN)
        return not ((too_many & (more_input > 0)) | (too_much & (more_bytes > 0))).any()


def _candidates(traffic: ExpectedTraffic, limits: BrokerLimits, p: int) -> list[Candidate]:
    """The brokers that publications of `p` reach from where it is."""
    tree, here = traffic.tree, traffic.homes[p]
    reached = {here} | set(np.flatnonzero(traffic.flow(p, here).input_per_s > 0).tolist())
    columns = traffic.columns(p)
    entries = []
    for place in sorted(reached):
        broker = tree.order[place]
        neighbours = [*tree.children[broker], *([tree.parents[broker]] if place else [])]
        entries.append(
            Entry(
                broker=broker,
                address="",
                bits=traffic.local[place, columns].astype("<u8").tobytes(),
                deliveries=int(traffic.deliveries[place, p]),
                input_queue_s=0.0,
                matching_s=tree.brokers[broker].matching.delay_s(limits.subscriptions[place]),
                to_clients_s=0.0,
                to_neighbours_s={
                    name: 0.0 for name in neighbours if traffic.places[name] in reached
                },
            )
        )
    return candidates(entries, tree.order[here])
