"""The thesis's claims about more clusters (LS7)."""

from __future__ import annotations

from itertools import pairwise

from godwit.experiments.balance.claims import HOMOGENEOUS, PLANETLAB, SIMULATION, on_each
from godwit.lab.declaration import NotMeasuredError, Results
from godwit.lab.rules import Claim, ShapeRule

#: Clusters up to three hops away from the first.
NEAR = 4
#: Gains below this share are none.
NONE = 0.02


def _over_clusters(found: Results, name: str) -> dict[int, float]:
    return {int(clusters): some.mean(name) for clusters, some in found.by("clusters")}


def _far_do_not_help(results: Results) -> bool:
    """Clusters beyond the fourth do not lower the delay any more."""
    for found in on_each(results, (HOMOGENEOUS, SIMULATION)):
        delay_s = _over_clusters(found, "delay_before_s")
        far = [value for clusters, value in delay_s.items() if clusters > NEAR]
        near = [value for clusters, value in delay_s.items() if clusters <= NEAR]
        if not far:
            raise NotMeasuredError(f"no chain has more than {NEAR} clusters")
        if min(far) < (1 - NONE) * min(near):
            return False
    return True


def _falls(results: Results) -> bool:
    return all(
        fewer > more
        for found in on_each(results, (HOMOGENEOUS, PLANETLAB))
        for fewer, more in pairwise(_over_clusters(found, "output_mean_before").values())
    )


CLAIMS = (
    Claim(
        "L37", "Clusters more than three cluster hops away no longer lower the delivery delay",
        "thesis figure 7.11, cluster and simulation",
        ShapeRule(
            f"the lowest delay with more than {NEAR} clusters is not below the lowest with fewer"
            f" by more than {NONE:.0%}",
            _far_do_not_help,
        ),
    ),
    Claim(
        "L38", "The more clusters, the lower the Or of the system",
        "thesis figure 7.11, cluster and PlanetLab",
        ShapeRule("mean Or falls with every step", _falls),
    ),
)  # fmt: skip
