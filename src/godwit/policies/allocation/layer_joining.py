"""A tree over the brokers of one layer, without others above them.

Where no broker is free for the next layer, or all are needed for subscriptions, brokers that have
room serve others of their own layer.  The broker with the most room is the root; the others follow,
those that need the most first, each below the first broker that has room, near the root first.

Tested   tests/policies/allocation/test_overlay_construction.py.

J1  A broker and all above it are within their capacity after each step.
"""

from __future__ import annotations

from collections.abc import Sequence

from godwit.policies.allocation.overlay_layers import Layers
from godwit.policies.allocation.overlay_tree import OverlayTree
from godwit.policies.allocation.packed_profiles import PackedProfile, union

#: Roots that are tried, those with the most room first.
ROOTS_MAX = 4


def joined(layers: Layers) -> OverlayTree | None:
    """A tree, or None if there is no room for one."""
    by_room = sorted(
        layers.top,
        key=lambda name: (layers.fills[name].bandwidth_bytes_s
                          - layers.fills[name].broker.output_bandwidth_bytes_s, name),
    )  # fmt: skip
    for root in by_room[:ROOTS_MAX]:
        parents = _Joining(layers, root).parents_of(by_room)
        if parents is not None:
            return layers.tree(root, parents)
    return None


class _Joining:
    def __init__(self, layers: Layers, root: str) -> None:
        self._table = layers.table
        self._brokers = {name: layers.fills[name].broker for name in layers.top}
        self._own = {name: layers.fills[name].profile for name in layers.top}
        self._sent_bytes_s = {name: layers.fills[name].bandwidth_bytes_s for name in layers.top}
        self._subscriptions = {name: layers.fills[name].subscriptions for name in layers.top}
        self._order = [root]
        self._parents: dict[str, str] = {}
        self._beyond: dict[str, PackedProfile] = {root: self._own[root]}
        """Of the brokers of the tree: the OR of what they serve, with all below."""

    def parents_of(self, names: Sequence[str]) -> dict[str, str] | None:
        rest = [name for name in names if name != self._order[0]]
        rest.sort(key=lambda name: (-self._table.bandwidth_bytes_s(self._own[name]), name))
        for name in rest:
            if not any(self._put(name, parent) for parent in self._order):
                return None
            self._order.append(name)
        return self._parents

    def _put(self, name: str, parent: str) -> bool:
        """Below `parent`, if it and all above it have room (J1)."""
        beyond = {name: self._own[name]}
        sent_bytes_s: dict[str, float] = {}
        child, above = name, parent
        while True:
            more = self._table.bandwidth_bytes_s(beyond[child])
            if child is not name:  # It is below already, with less.
                more -= self._table.bandwidth_bytes_s(self._beyond[child])
            sent_bytes_s[above] = self._sent_bytes_s[above] + more
            beyond[above] = union([self._beyond[above], beyond[child]])
            n = self._subscriptions[above] + (child is name)
            broker = self._brokers[above]
            if not broker.can_send(sent_bytes_s[above]):
                return False
            if not broker.can_match(self._table.rate_per_s(beyond[above]), n):
                return False
            if above not in self._parents:
                break
            child, above = above, self._parents[above]
        self._parents[name] = parent
        self._subscriptions[parent] += 1
        self._sent_bytes_s.update(sent_bytes_s)
        self._beyond.update(beyond)
        return True
