"""The traffic that a tree will carry: for each broker what arrives and what it sends.

Paper    Cheung, thesis 6.1.2 (the load of a profile), 7.3.3 (broker message rate, hop count).
Claim    Exact for the publications of the window: as if each was routed through the tree.

A publication of a publisher at broker h crosses a link away from h if a subscription beyond the
link receives it.  With `below` the OR of all subscriptions at and below a broker, and `outside`
that of all others, the link between a broker and its parent carries

    |below|    downwards, if h is not at or below the broker
    |outside|  upwards, if it is

publications of the window.  The publisher's own broker receives all of them.

Tested   tests/policies/allocation/test_expected_traffic.py: against routing each publication.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from godwit.policies.allocation.gathered_reading import SubscriberProfile
from godwit.policies.allocation.overlay_tree import OverlayTree
from godwit.policies.allocation.packed_profiles import PublisherTable, Words

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Flow:
    """What one publisher at one broker causes, by the broker's place in the tree's order."""

    input_per_s: Floats
    output_per_s: Floats
    """Over links only."""


class ExpectedTraffic:
    """All publishers are at the root until they are placed."""

    def __init__(
        self,
        tree: OverlayTree,
        subscribers: Sequence[SubscriberProfile],
        table: PublisherTable,
    ) -> None:
        self.tree = tree
        self.table = table.plain
        self.places = {broker: place for place, broker in enumerate(tree.order)}
        self._parents = np.array(
            [-1, *(self.places[tree.parents[b]] for b in tree.order[1:])], np.int64
        )
        starts = np.cumsum([0, *self.table.words])
        self._slices = [slice(a, b) for a, b in pairwise(starts.tolist())]
        self.local = np.zeros((len(tree.order), int(starts[-1])), np.uint64)
        """The OR of the subscriptions at each broker."""

        self.deliveries = np.zeros((len(tree.order), len(table.ids)))
        """Bits of each publisher, summed over the receivers at each broker."""

        self._add_subscribers(subscribers)
        below, outside = self._links()
        self.below, self.outside = self._counts(below), self._counts(outside)
        """Publications of each publisher at and below each broker, and elsewhere."""

        self.local_counts = self._counts(self.local)

        rates = np.array(self.table.rates_per_s)
        lengths = np.array([max(1, length) for length in self.table.lengths])
        self._per_bit = rates / lengths
        self._bytes = np.array(
            [b / r if r else 0.0 for b, r in
             zip(self.table.bandwidths_bytes_s, self.table.rates_per_s, strict=True)]
        )  # fmt: skip
        self._per_bit_bytes = np.array(self.table.bandwidths_bytes_s) / lengths
        self.homes = [0] * len(table.ids)
        self.input_per_s: Floats
        self.output_per_s: Floats
        self.output_bytes_s: Floats
        self.recount()

    def _add_subscribers(self, subscribers: Sequence[SubscriberProfile]) -> None:
        for index, broker in self.tree.assignment():
            place = self.places[broker]
            profile = subscribers[index].profile
            for p, words in profile.blocks.items():
                row = self.local[place, self._slices[p]]
                np.bitwise_or(row, words, out=row)
                self.deliveries[place, p] += profile.counts[p]

    def _links(self) -> tuple[Words, Words]:
        below = self.local.copy()
        for place in range(len(below) - 1, 0, -1):
            below[self._parents[place]] |= below[place]
        outside = np.zeros_like(below)
        for here, broker in enumerate(self.tree.order):
            # Outside a child: the broker, everything outside it, and its other children.
            children = self.tree.children[broker]
            before = outside[here] | self.local[here]
            below_here = [self.places[child] for child in children]
            for child in below_here:
                outside[child] |= before
                before = before | below[child]
            after = np.zeros_like(before)
            for child in reversed(below_here):
                outside[child] |= after
                after = after | below[child]
        return below, outside

    def _counts(self, matrix: Words) -> Ints:
        bits = np.bitwise_count(matrix)
        found = np.zeros((len(matrix), len(self._slices)), np.int64)
        for p, columns in enumerate(self._slices):
            found[:, p] = bits[:, columns].sum(axis=1)
        return found

    def columns(self, p: int) -> slice:
        """Where the bits of a publisher are in `local`."""
        return self._slices[p]

    # -- publishers ----------------------------------------------------------------------------

    def flow(self, p: int, home: int) -> Flow:
        """What publisher `p` causes if it is at the broker in place `home`."""
        n = len(self._parents)
        upwards = np.zeros(n, np.bool_)
        place = home
        while place > 0:
            upwards[place] = True
            place = int(self._parents[place])
        crossing = np.where(upwards, self.outside[:, p], self.below[:, p]) * self._per_bit[p]
        crossing[0] = 0.0  # The root has no link upwards.
        receivers = np.where(upwards, self._parents, np.arange(n))
        senders = np.where(upwards, np.arange(n), self._parents)
        arriving, sent = np.zeros(n), np.zeros(n)
        np.add.at(arriving, receivers[1:], crossing[1:])
        np.add.at(sent, senders[1:], crossing[1:])
        arriving[home] += self.table.rates_per_s[p]
        return Flow(arriving, sent)

    def recount(self) -> None:
        """The sums anew: many moves add up rounding errors."""
        self.input_per_s = np.zeros(len(self.tree.order))
        self.output_per_s = self.deliveries @ self._per_bit
        self.output_bytes_s = self.deliveries @ self._per_bit_bytes
        for p, home in enumerate(self.homes):
            self._add(p, self.flow(p, home), 1)

    def move(self, p: int, home: int) -> None:
        """Place publisher `p`."""
        self._add(p, self.flow(p, self.homes[p]), -1)
        self.homes[p] = home
        self._add(p, self.flow(p, home), 1)

    def _add(self, p: int, flow: Flow, sign: int) -> None:
        self.input_per_s = self.input_per_s + sign * flow.input_per_s
        self.output_per_s = self.output_per_s + sign * flow.output_per_s
        self.output_bytes_s = self.output_bytes_s + sign * self.link_bytes_s(p, flow)

    def link_bytes_s(self, p: int, flow: Flow) -> Floats:
        return flow.output_per_s * float(self._bytes[p])

    # -- figures -------------------------------------------------------------------------------

    @property
    def homes_by_id(self) -> Mapping[str, str]:
        return {
            name: self.tree.order[home]
            for name, home in zip(self.table.ids, self.homes, strict=True)
        }

    @property
    def total_input_per_s(self) -> float:
        return float(self.input_per_s.sum())

    def mean_hops(self) -> float:
        """Brokers after the first that a delivery passes, over all deliveries."""
        received = self.deliveries * self._per_bit
        hops = total = 0.0
        for home in sorted(set(self.homes)):
            distances = self._distances(home)
            of_home = [p for p, place in enumerate(self.homes) if place == home]
            arriving = received[:, of_home].sum(axis=1)
            hops += float(distances @ arriving)
            total += float(arriving.sum())
        return hops / total if total else 0.0

    def _distances(self, home: int) -> Floats:
        distances = np.full(len(self._parents), -1.0)
        place, steps = home, 0
        while place >= 0:
            distances[place] = steps
            place, steps = int(self._parents[place]), steps + 1
        for place in range(1, len(distances)):  # Parents come first.
            if distances[place] < 0:
                distances[place] = distances[self._parents[place]] + 1
        return distances
