r"""The covering poset: which filter covers which, and which are covered by no other.

                  ROOT (imaginary)
                 /    \                     css = the children of ROOT
            STOCK      SPORTS
            /   \            \              an edge: the parent covers the child,
         YHOO   volume>1000   RACING        with nothing between the two
            \   /
      YHOO, volume>1000

One node for each distinct filter; a node keeps the keys (such as subscription ids) that hold it,
and exists while there is one.  The covering subscription set of a broker is `css`, maintained and
not computed, because the load balancer reads it at every step (thesis 3.2).  Its offload algorithms
also walk `children` and `parents` and count `holders`.  All four are live views: copy one before
changing the poset while you iterate.  Views are in order of insertion, so that the same calls
always give the same results in the same order.

A filter that no record matches is refused: every filter covers it, so it would be below all.

P1  A filter here has a holder, and each key holds exactly one filter.
P2  A parent covers its child and does not equal it, and no third filter is between the two.
P3  If one filter covers another, a path leads from the first down to the second.
P4  css has exactly the filters without parents; `parents` and `children` mirror each other.

Read next: filters.py for `covers`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, KeysView
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from godwit.content.filters import Filter
from godwit.errors import UsageError

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True, eq=False)
class _Node(Generic[K]):
    filter: Filter
    # Dictionaries without values are sets that keep their order.
    holders: dict[K, None] = field(default_factory=dict)
    parents: dict[Filter, _Node[K]] = field(default_factory=dict)
    children: dict[Filter, _Node[K]] = field(default_factory=dict)


class Poset(Generic[K]):
    """Distinct filters, ordered by covering.  Its length is the number of distinct filters."""

    def __init__(self) -> None:
        self._nodes: dict[Filter, _Node[K]] = {}
        self._node_by_key: dict[K, _Node[K]] = {}
        self._top: dict[Filter, _Node[K]] = {}

    @property
    def css(self) -> KeysView[Filter]:
        """The filters that no other filter here covers: the children of ROOT."""
        return self._top.keys()

    def insert(self, key: K, filter: Filter) -> None:
        """Let `key` hold `filter`."""
        if key in self._node_by_key:
            raise UsageError(f"{key!r} already holds {self._node_by_key[key].filter}")
        if not filter.is_satisfiable:
            raise UsageError(
                f"no record can match {filter}, so it has no place in a covering order"
            )
        node = self._nodes.get(filter)
        if node is None:
            node = self._nodes[filter] = _Node(filter)
            self._link(node)
        node.holders[key] = None
        self._node_by_key[key] = node

    def remove(self, key: K) -> None:
        """Let `key` hold nothing; a filter without holders is removed."""
        node = self._node_by_key.pop(key, None)
        if node is None:
            raise UsageError(f"{key!r} holds no filter here")
        del node.holders[key]
        if not node.holders:
            del self._nodes[node.filter]
            self._unlink(node)

    def filter_of(self, key: K) -> Filter:
        """The filter that `key` holds."""
        if key not in self._node_by_key:
            raise UsageError(f"{key!r} holds no filter here")
        return self._node_by_key[key].filter

    def holders(self, filter: Filter) -> KeysView[K]:
        """The keys that hold `filter`, or one equal to it."""
        return self._node(filter).holders.keys()

    def parents(self, filter: Filter) -> KeysView[Filter]:
        """The closest filters that cover `filter`; none for a member of the css."""
        return self._node(filter).parents.keys()

    def children(self, filter: Filter) -> KeysView[Filter]:
        """The widest of the filters that `filter` covers."""
        return self._node(filter).children.keys()

    def __contains__(self, filter: object) -> bool:
        return filter in self._nodes

    def __iter__(self) -> Iterator[Filter]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def _node(self, filter: Filter) -> _Node[K]:
        if filter not in self._nodes:
            raise UsageError(f"no key holds {filter}")
        return self._nodes[filter]

    def _link(self, node: _Node[K]) -> None:
        parents = self._minimal_supersets(node.filter)
        children = self._maximal_subsets(node.filter, parents)
        # An edge from above `node` to below it can only start at one of `parents` (P2).
        for child in children:
            for parent in parents:
                if child.parents.pop(parent.filter, None):
                    del parent.children[child.filter]
            self._top.pop(child.filter, None)
            _join(node, child)
        for parent in parents:
            _join(parent, node)
        if not parents:
            self._top[node.filter] = node

    def _unlink(self, node: _Node[K]) -> None:
        self._top.pop(node.filter, None)
        for parent in node.parents.values():
            del parent.children[node.filter]
        for child in node.children.values():
            del child.parents[node.filter]
            # Another path from `parent` would end in another parent of `child`.
            others = tuple(child.parents)
            for parent in node.parents.values():
                if not any(parent.filter.covers(other) for other in others):
                    _join(parent, child)
            if not child.parents:
                self._top[child.filter] = child

    def _minimal_supersets(self, filter: Filter) -> list[_Node[K]]:
        """The narrowest filters that cover `filter`; none means that only ROOT does."""
        found: list[_Node[K]] = []
        # Each filter is compared once, however many paths lead to it.
        covering = {node: node.filter.covers(filter) for node in self._top.values()}
        front = [node for node, covers in covering.items() if covers]
        for node in front:  # Grows during the iteration.
            new = [child for child in node.children.values() if child not in covering]
            covering.update((child, child.filter.covers(filter)) for child in new)
            front += [child for child in new if covering[child]]
            if not any(covering[child] for child in node.children.values()):
                found.append(node)
        return found

    def _maximal_subsets(self, filter: Filter, parents: list[_Node[K]]) -> list[_Node[K]]:
        """The widest filters that `filter` covers.  All are below each of `parents`."""
        start = min((p.children for p in parents), key=len) if parents else self._top
        front = [node for node in start.values() if node.filter.intersects(filter)]
        reached = set(front)
        covered: list[_Node[K]] = []
        for node in front:  # Grows during the iteration.
            if filter.covers(node.filter):
                covered.append(node)
                continue
            # All below a filter that is disjoint from `filter` is disjoint too.
            for child in node.children.values():
                if child not in reached and child.filter.intersects(filter):
                    front.append(child)
                    reached.add(child)
        # Another path may lead to the same filter through a wider one that is covered as well.
        return [n for n in covered if not any(filter.covers(parent) for parent in n.parents)]


def _join(parent: _Node[K], child: _Node[K]) -> None:
    parent.children[child.filter] = child
    child.parents[parent.filter] = parent


def check_poset(poset: Poset[K]) -> None:
    """P1 to P4, by trying every pair of filters."""
    keys = [key for held in poset for key in poset.holders(held)]
    assert len(keys) == len(set(keys)), "P1: a key holds two filters"
    for one in poset:
        assert poset.holders(one), f"P1: {one} has no holder"
        assert all(poset.filter_of(key) == one for key in poset.holders(one)), f"P1: {one}"
        below = {other for other in poset if other != one and one.covers(other)}
        hidden = {far for near in below for far in below if near != far and near.covers(far)}
        assert poset.children(one) == below - hidden, f"P2, P3: what is below {one}"
        assert (one in poset.css) == (not poset.parents(one)), f"P4: is {one} in css"
        assert all(one in poset.parents(child) for child in poset.children(one)), f"P4: {one}"
        assert all(one in poset.children(parent) for parent in poset.parents(one)), f"P4: {one}"
