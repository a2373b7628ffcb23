"""The thesis's claims about global load balancing (LS6)."""

from __future__ import annotations

from itertools import pairwise

from godwit.experiments.balance.claims import (
    CLUSTER,
    HOMOGENEOUS,
    PLANETLAB,
    RANDOM,
    SIMULATION,
    THESIS,
    on,
    on_each,
    one,
)
from godwit.lab.declaration import Results
from godwit.lab.rules import Claim, Cost, ShapeRule

ALL = (SIMULATION, CLUSTER, PLANETLAB)
#: Global ratio triggering threshold of table 7.1.
TRIGGER = 0.15
CLUSTERS = (1, 2, 3, 4)


def chains(results: Results, *platforms: str) -> list[Results]:
    return on_each(results, platforms or ALL, overlay="chain", joins="one")


def _slower(results: Results) -> bool:
    """On the platforms that have both overlays."""
    stars = results.where(overlay="star")
    for star in on_each(stars, ALL):
        platform = str(star.runs[0].case["platform"])
        chain = results.where(platform=platform, overlay="chain", joins="one")
        if not one(chain, "converged_s") > one(star, "converged_s"):
            return False
    return True


def _after_reached_s(results: Results) -> float:
    return max(each.mean("converged_after_reached_s") for each in chains(results))


def _nearer_carry_more(results: Results) -> bool:
    return all(
        nearer > farther
        for found in chains(results)
        for nearer, farther in pairwise(one(found, f"output_cluster_{n}") for n in CLUSTERS)
    )


def _overload_ends(results: Results) -> bool:
    found = on(results, PLANETLAB, overlay="chain", joins="one")
    return one(found, "overloaded_first_s") > 0 == one(found, "overloaded_late_s")


def _keeps_balancing(results: Results) -> bool:
    return all(
        one(found, "sessions_late") > 0 == one(found, "overloaded_late_s")
        for algorithm in (THESIS, RANDOM)
        for found in on_each(
            results, (HOMOGENEOUS,), overlay="chain", joins="grouped", algorithm=algorithm
        )
    )


def _run_together(results: Results) -> bool:
    return all(
        one(found, "global_gap_end") <= TRIGGER
        and one(found, "global_gap_end") < one(found, "global_gap_start")
        for found in chains(results)
    )


def _hops(results: Results) -> float:
    found = results.where(overlay="chain")
    return max(found.values("global_pie_hops_max"))


CLAIMS = (
    Claim(
        "L1 global", "Load that starts at one broker is spread over all clusters",
        "thesis 7.1.3",
        ShapeRule(
            "late, every cluster has load, on every platform",
            lambda results: all(
                one(found, f"output_cluster_{n}") > 0 for found in chains(results) for n in CLUSTERS
            ),
        ),
    ),
    Claim(
        "L32", "Global balancing converges more slowly than local balancing",
        "thesis 7.1.3",
        ShapeRule("the last session before the step ends later than in the star", _slower),
    ),
    Claim(
        "L33", "It converges within 2,000 s after the last cluster starts to receive load",
        "thesis 7.1.3, all platforms", Cost(2000.0, _after_reached_s),
    ),
    Claim(
        "L34", "Clusters farther away from the first one carry less load",
        "thesis figure 7.10",
        ShapeRule("mean Or, late: each cluster more than the next, on all platforms",
                  _nearer_carry_more),
    ),
    Claim(
        "L35", "It works from a system in overload until the overload ends",
        "thesis figure 7.10e, PlanetLab; here by our choice of bandwidth",
        ShapeRule("B11 is overloaded while subscribers join, and no broker late", _overload_ends),
    ),
    Claim(
        "L36", "Under churn both algorithms keep balancing without diverging",
        "thesis figure 7.10f",
        ShapeRule("late, there are sessions with moves and no overload", _keeps_balancing),
    ),
    Claim(
        "L39", "Each session ends with a smaller estimated difference than it started with",
        "thesis 4.3.1",
        ShapeRule(
            "so for every session with moves of the proposed algorithms",
            lambda results: not any(results.where(algorithm=THESIS).values("not_improving")),
        ),
    ),
    Claim(
        "L42", "Load information about a cluster travels one cluster hop",
        "thesis 4.1.3",
        ShapeRule("at most one link, in every run", lambda results: _hops(results) == 1),
    ),
    Claim(
        "L45", "While two clusters balance, their average loads run together",
        "thesis figure 7.10",
        ShapeRule(
            f"mean difference of the two clusters' Or: at the end of global sessions at most"
            f" {TRIGGER}, and less than at their start",
            _run_together,
        ),
    ),
)  # fmt: skip
