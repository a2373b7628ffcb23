"""The thesis's claims about more edge brokers (LS5)."""

from __future__ import annotations

from itertools import pairwise

from godwit.experiments.balance.claims import HOMOGENEOUS, PLANETLAB, SIMULATION, on, on_each
from godwit.lab.declaration import Results
from godwit.lab.rules import Agreement, Claim, ShapeRule

ALL = (HOMOGENEOUS, SIMULATION, PLANETLAB)
ENOUGH = 5
#: A gain is insignificant if it is less than this share of the delay with the fewest brokers.
INSIGNIFICANT = 0.10


def _over_edges(found: Results, name: str) -> dict[int, float]:
    return {int(edges): some.mean(name) for edges, some in found.by("edges")}


def _falls(results: Results) -> bool:
    return all(
        fewer > more
        for found in on_each(results, (HOMOGENEOUS, PLANETLAB))
        for fewer, more in pairwise(_over_edges(found, "output_mean_before").values())
    )


def _late_gain(results: Results) -> float:
    """What brokers beyond five save, as a share of the delay with the fewest."""
    gains = []
    for found in on_each(results, (HOMOGENEOUS, SIMULATION)):
        delay_s = _over_edges(found, "delay_before_s")
        at_five = delay_s[max(edges for edges in delay_s if edges <= ENOUGH)]
        best = min(value for edges, value in delay_s.items() if edges >= ENOUGH)
        gains.append((at_five - best) / delay_s[min(delay_s)])
    return max(gains)


def _early_gain(results: Results) -> bool:
    """Up to five brokers, each step saves something."""
    for found in on_each(results, (HOMOGENEOUS, SIMULATION)):
        delay_s = _over_edges(found, "delay_before_s")
        if (
            not min(delay_s) < ENOUGH
            or not delay_s[min(delay_s)]
            > delay_s[max(edges for edges in delay_s if edges <= ENOUGH)]
        ):
            return False
    return True


def _planetlab_gain(results: Results) -> float:
    delay_s = _over_edges(on(results, PLANETLAB), "delay_before_s")
    return abs(delay_s[min(delay_s)] - delay_s[max(delay_s)]) / delay_s[min(delay_s)]


CLAIMS = (
    Claim(
        "L25", "The more edge brokers, the lower the Or of each",
        "thesis figure 7.8, cluster and PlanetLab",
        ShapeRule("mean Or falls with every step", _falls),
    ),
    Claim(
        "L26 few", "The first edge brokers that are added lower the delivery delay",
        "thesis figure 7.8, cluster and simulation",
        ShapeRule("delay with five edge brokers < with the fewest", _early_gain),
    ),
    Claim(
        "L26", "Beyond five edge brokers the gain in delay is insignificant",
        "thesis figure 7.8, cluster and simulation", Agreement(INSIGNIFICANT, _late_gain),
    ),
    Claim(
        "L26 PlanetLab", "On PlanetLab, where links dominate, there is none",
        "thesis figure 7.8; latency of links is our choice",
        Agreement(INSIGNIFICANT, _planetlab_gain),
    ),
)  # fmt: skip
