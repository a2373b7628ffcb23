"""One-to-many clustering: a GIF with several that it covers, instead of one that it intersects.

Paper    Cheung, thesis 6.2.3, optimisation 3 and figure 6.2.
Words    CGS -> CoveredSet; |x minus CGS| -> added; load requirements of the pair -> limit_bytes_s.
Claim    The set is that of the greedy algorithm for set cover.
Departs  1. Of each GIF the lightest unit is meant, as for the pair itself (open in the thesis).
         2. Of covered GIFs that add as many bits, the lower one is taken (open).
         3. Covered GIFs that were refused as partners are left out.
Tested   tests/policies/allocation/test_one_to_many.py: figure 6.2, and a plain version.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from godwit.policies.allocation.gif_pool import GifPool
from godwit.policies.allocation.packed_profiles import EMPTY, PackedProfile, union


@dataclass(frozen=True, slots=True)
class CoveredSet:
    gifs: tuple[int, ...]
    profile: PackedProfile
    """The OR of their profiles."""


def covered_set(
    pool: GifPool, gif: int, refused: AbstractSet[int], limit_bytes_s: float
) -> CoveredSet:
    """GIFs that `gif` covers, until none adds a bit or the cluster would exceed the limit."""
    candidates = sorted(set(pool.poset.descendants(gif)) - refused)
    gifs = np.array(candidates, np.int64)
    cardinalities = pool.profiles.cardinalities[gifs]
    load = pool.lightest(gif).bandwidth_bytes_s
    chosen: list[int] = []
    profile = EMPTY
    while len(gifs):
        added = cardinalities - pool.profiles.common(profile, gifs) if chosen else cardinalities
        place = int(added.argmax())  # The first of equals.
        found = int(gifs[place])
        load += pool.lightest(found).bandwidth_bytes_s
        if added[place] == 0 or load > limit_bytes_s:
            break
        chosen.append(found)
        profile = union([profile, pool.profile(found)])
    return CoveredSet(tuple(chosen), profile)
