"""The closest partner of a GIF, by a walk through the poset that leaves out what cannot be closer.

Paper    Cheung, thesis 6.2.3, optimisation 2: "pruned once the closeness value starts to decrease".
Words    closeness computations -> evaluations; pairs that fail the allocation test -> refused.
Claim    `exact`: the partner that a comparison with all GIFs finds.
Departs  1. The thesis's rule is exact on the chain through G only; elsewhere it misses a partner
            now and then (`stop-rule`).  `exact` prunes below a node when no value there can reach
            the best so far, and does not evaluate a node whose cardinality alone excludes it.
         2. G's parents and children are tried first: what is common with them is known, and a good
            partner found early prunes the most.
         3. GIFs without a common publisher are not evaluated: their closeness is 0.
         4. XOR is compared with all GIFs, as in the thesis: nothing can be pruned.
         5. Ties: the larger intersection, then the lower GIF (open in the thesis).
Tested   tests/policies/allocation/test_partner_search.py: against all pairs, on random posets.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from godwit.policies.allocation.closeness import ClosenessMetric, Floats, Ints
from godwit.policies.allocation.gif_poset import GifPoset
from godwit.policies.allocation.gif_profiles import GifProfiles


@dataclass(frozen=True, slots=True)
class Partner:
    """A GIF's partner; the closest is the lowest in `order`."""

    closeness: float
    common: int
    gif: int

    @property
    def order(self) -> tuple[float, int, int]:
        return (-self.closeness, -self.common, self.gif)


class PartnerSearch:
    def __init__(
        self,
        profiles: GifProfiles,
        poset: GifPoset,
        metric: ClosenessMetric,
        *,
        is_exact: bool = True,
    ) -> None:
        self._profiles = profiles
        self._poset = poset
        self._metric = metric
        self.evaluations = 0
        self._walk: Callable[[int, AbstractSet[int], Partner | None], Partner | None] = (
            self._compared_with_all
            if not metric.is_zero_if_disjoint
            else self._pruned_by_bounds
            if is_exact
            else self._stopped_where_it_falls
        )
        self._seen = self._known = np.zeros(0, np.int64)
        self._search = 0

    def closest(self, gif: int, refused: AbstractSet[int], *, with_itself: bool) -> Partner | None:
        """The closest partner that is not refused; itself, if asked for, counts as well."""
        best: Partner | None = None
        if with_itself:
            g = int(self._profiles.cardinalities[gif])
            self.evaluations += 1
            own = self._metric.of_itself(g)
            best = Partner(own, g, gif) if own > 0 else None
            if best and self._metric is not ClosenessMetric.INTERSECT:
                return best  # Only an equal profile is as close.
        return self._walk(gif, refused, best)

    # -- the three walks -----------------------------------------------------------------------

    def _compared_with_all(
        self, gif: int, refused: AbstractSet[int], best: Partner | None
    ) -> Partner | None:
        profiles = self._profiles
        gifs = profiles.alive
        common = np.zeros(len(profiles), np.int64)
        sharing, counts = profiles.sharing(profiles.profiles[gif])
        common[sharing] = counts
        gifs = gifs[gifs != gif]
        return self._better(best, gif, gifs, common[gifs], refused)

    def _pruned_by_bounds(
        self, gif: int, refused: AbstractSet[int], best: Partner | None
    ) -> Partner | None:
        profiles, metric = self._profiles, self._metric
        g = int(profiles.cardinalities[gif])
        best = self._relatives(gif, g, refused, best)
        gifs, common = self._first(gif, g)
        while len(gifs):
            h = profiles.cardinalities[gifs]
            common = np.minimum(common, h)
            if best is not None:
                alive = metric.below(common, g) >= best.closeness
                gifs, common, h = gifs[alive], common[alive], h[alive]
            open_ = self._unknown(gifs)
            if best is not None:
                open_ &= metric.at_most(common, g, h) >= best.closeness
            if open_.any():
                common[open_] = profiles.common(profiles.profiles[gif], gifs[open_])
                best = self._better(best, gif, gifs[open_], common[open_], refused)
            alive = common > 0
            if best is not None:
                alive &= metric.below(common, g) >= best.closeness
            gifs, common = self._next(gifs[alive], common[alive])
        return best

    def _stopped_where_it_falls(
        self, gif: int, refused: AbstractSet[int], best: Partner | None
    ) -> Partner | None:
        profiles = self._profiles
        g = int(profiles.cardinalities[gif])
        gifs, _ = self._first(gif, g)
        before = np.zeros(len(gifs))
        while len(gifs):
            common = profiles.common(profiles.profiles[gif], gifs)
            h = profiles.cardinalities[gifs]
            values = self._metric.values(common, g, h)
            best = self._better(best, gif, gifs[gifs != gif], common[gifs != gif], refused)
            rising = (values > 0) & (values >= before)
            gifs, before = self._next_with(gifs[rising], values[rising])
        return best

    # -- steps ---------------------------------------------------------------------------------

    def _first(self, gif: int, g: int) -> tuple[Ints, Ints]:
        roots = sorted(self._poset.roots(self._profiles.profiles[gif]))
        gifs = np.array(roots, np.int64)
        self._begin(gif)
        self._seen[gifs] = self._search
        return gifs, np.full(len(gifs), g, np.int64)

    def _begin(self, gif: int) -> None:
        if len(self._seen) < len(self._profiles):
            self._seen = np.zeros(2 * len(self._profiles), np.int64)
            self._known = np.zeros(2 * len(self._profiles), np.int64)
            self._search = 0
        self._search += 1
        for known in (gif, *self._poset.parents[gif], *self._poset.children[gif]):
            self._known[known] = self._search

    def _unknown(self, gifs: Ints) -> npt.NDArray[np.bool_]:
        return np.not_equal(self._known[gifs], self._search)

    def _next(self, gifs: Ints, common: Ints) -> tuple[Ints, Ints]:
        """Children that were not seen yet, with the limit of what they have in common with G."""
        found: dict[int, int] = {}
        for node, limit in zip(gifs.tolist(), common.tolist(), strict=True):
            for child in self._poset.children[node]:
                found[child] = min(limit, found.get(child, limit))
        children = np.array(list(found), np.int64)
        limits = np.array(list(found.values()), np.int64)
        fresh = self._seen[children] != self._search
        children, limits = children[fresh], limits[fresh]
        self._seen[children] = self._search
        return children, limits

    def _next_with(self, gifs: Ints, values: Floats) -> tuple[Ints, Floats]:
        """Children that were not seen yet, with the value of the node they were reached from."""
        found: dict[int, float] = {}
        for node, value in zip(gifs.tolist(), values.tolist(), strict=True):
            for child in sorted(self._poset.children[node]):
                if self._seen[child] != self._search:
                    self._seen[child] = self._search
                    found[child] = value
        return np.array(list(found), np.int64), np.array(list(found.values()))

    def _relatives(
        self, gif: int, g: int, refused: AbstractSet[int], best: Partner | None
    ) -> Partner | None:
        """Parents cover G, and G covers its children: what is common is known."""
        near = sorted(self._poset.parents[gif] | self._poset.children[gif])
        if not near:
            return best
        gifs = np.array(near, np.int64)
        common = np.minimum(self._profiles.cardinalities[gifs], g)
        return self._better(best, gif, gifs, common, refused)

    def _better(
        self, best: Partner | None, gif: int, gifs: Ints, common: Ints, refused: AbstractSet[int]
    ) -> Partner | None:
        """The best of these and the best so far."""
        self.evaluations += len(gifs)
        if refused and len(gifs):
            allowed = np.array([other not in refused for other in gifs.tolist()])
            gifs, common = gifs[allowed], common[allowed]
        if not len(gifs):
            return best
        g = int(self._profiles.cardinalities[gif])
        values = self._metric.values(common, g, self._profiles.cardinalities[gifs])
        highest = float(values.max())
        if highest <= 0 or (best is not None and highest < best.closeness):
            return best
        for place in np.flatnonzero(values == highest).tolist():
            found = Partner(highest, int(common[place]), int(gifs[place]))
            if best is None or found.order < best.order:
                best = found
        return best
