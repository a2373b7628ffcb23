"""The poset of GIFs: which profile covers which.

Paper    Cheung, thesis 6.2.3, optimisation 2; Tarkoma and Kangasharju for the structure.
Words    ROOT -> roots, by publisher: GIFs that no other covers.
Departs  1. A GIF is compared with all that have a publisher in common, in one operation, instead
            of a walk from ROOT: with packed words that is faster.
         2. A removal may leave an edge that a longer path makes unnecessary; searches visit a node
            once, so results do not change.
Tested   tests/policies/allocation/test_gif_poset.py: against the relation of sets.

G1  There is a path from a GIF down to another if and only if its profile covers the other's.
"""

from __future__ import annotations

from collections.abc import Iterator

from godwit.policies.allocation.gif_profiles import GifProfiles
from godwit.policies.allocation.packed_profiles import PackedProfile


class GifPoset:
    def __init__(self, profiles: GifProfiles) -> None:
        self._profiles = profiles
        self.parents: list[set[int]] = []
        self.children: list[set[int]] = []
        self._roots: dict[int, set[int]] = {}

    def add(self, profile: PackedProfile) -> int:
        """A new GIF.  No GIF with the same profile may be there."""
        sharing, common = self._profiles.sharing(profile)
        cardinalities = self._profiles.cardinalities[sharing]
        above = set(sharing[common == profile.count].tolist())
        below = set(sharing[common == cardinalities].tolist())
        assert above.isdisjoint(below), "a GIF with this profile is there already"
        # A GIF above is a parent if none of its children is above as well; likewise below.
        parents = {gif for gif in above if above.isdisjoint(self.children[gif])}
        children = {gif for gif in below if below.isdisjoint(self.parents[gif])}
        gif = self._profiles.add(profile)
        for parent in parents:
            for child in children & self.children[parent]:
                self._unlink(parent, child)
        self.parents.append(set())
        self.children.append(set())
        for parent in parents:
            self._link(parent, gif)
        for child in children:
            if not self.parents[child]:
                self._set_root(child, is_root=False)
            self._link(gif, child)
        if not parents:
            self._set_root(gif, is_root=True)
        return gif

    def remove(self, gif: int) -> None:
        parents, children = self.parents[gif], self.children[gif]
        for child in children:
            self.parents[child].discard(gif)
        for parent in parents:
            self.children[parent].discard(gif)
        for child in children:
            for parent in parents:
                if not self._is_between(parent, child):
                    self._link(parent, child)
            if not self.parents[child]:
                self._set_root(child, is_root=True)
        if not parents:
            self._set_root(gif, is_root=False)
        self.parents[gif], self.children[gif] = set(), set()
        self._profiles.remove(gif)

    def _is_between(self, parent: int, child: int) -> bool:
        """Whether a path from `parent` to `child` exists already."""
        profiles = self._profiles.profiles
        above = profiles[parent]
        return any(
            other == parent or above.covers(profiles[other]) for other in self.parents[child]
        )

    def _link(self, parent: int, child: int) -> None:
        self.children[parent].add(child)
        self.parents[child].add(parent)

    def _unlink(self, parent: int, child: int) -> None:
        self.children[parent].discard(child)
        self.parents[child].discard(parent)

    def _set_root(self, gif: int, *, is_root: bool) -> None:
        for p in self._profiles.profiles[gif].blocks:
            roots = self._roots.setdefault(p, set())
            if is_root:
                roots.add(gif)
            else:
                roots.discard(gif)

    def roots(self, profile: PackedProfile) -> set[int]:
        """GIFs that no other covers, with a publisher in common."""
        found: set[int] = set()
        for p in profile.blocks:
            found |= self._roots.get(p, set())
        return found

    def descendants(self, gif: int) -> Iterator[int]:
        """All GIFs that this one covers."""
        seen = set(self.children[gif])
        stack = list(seen)
        while stack:
            node = stack.pop()
            yield node
            fresh = self.children[node] - seen
            seen |= fresh
            stack.extend(fresh)
