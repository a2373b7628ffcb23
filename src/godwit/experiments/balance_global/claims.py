"""The thesis's claims about global load balancing (LS6).

In the simulation the loads have converged when the rate steps up.  On the other platforms the step
comes earlier, while the load still spreads.  So what it is like in the end is asked at the end of
the run, and how long it takes with or without the step in between.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import mean

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
    scene,
)
from godwit.experiments.balance.load_measures import bucket_s_of
from godwit.experiments.balance.scenes import scene_of
from godwit.lab.curves import drawn
from godwit.lab.declaration import Measured, NotMeasuredError, Results
from godwit.lab.rules import Claim, Cost, ShapeRule

ALL = (SIMULATION, CLUSTER, PLANETLAB)
#: Global ratio triggering threshold of table 7.1.
TRIGGER = 0.15


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
    return max(_of_run_s(run) for found in chains(results) for run in found.runs)


def _of_run_s(run: Measured) -> float:
    """From the first subscriber of the last cluster to the last session with moves.

    If the rate steps up later than that subscriber comes: the last session before the step.
    """
    played, reached_s = scene_of(run.case), run.values["reached_s"]
    if reached_s >= played.until_s:
        return played.until_s
    if reached_s <= played.step_s:
        return run.values["converged_after_reached_s"]
    return max(0.0, played.step_s + run.values["reconverged_s"] - reached_s)


def outputs_at_the_end(found: Results) -> list[float]:
    """Mean Or of each cluster in the last part of the run, nearest to the publishers first."""
    played = scene(found)
    bucket_s, (from_s, to_s) = bucket_s_of(played), played.late_after
    outputs = []
    for head in played.clusters:
        curve = [
            value
            for at, value in drawn(found, f"output_{head}")
            if from_s <= at * bucket_s and (at + 1) * bucket_s <= to_s
        ]
        if not curve:
            raise NotMeasuredError(f"no run has the curve output_{head}")
        outputs.append(mean(curve))
    return outputs


def _all_have_load(results: Results) -> bool:
    return all(min(outputs_at_the_end(found)) > 0 for found in chains(results))


def _nearer_carry_more(results: Results) -> bool:
    return all(
        nearer > farther
        for found in chains(results)
        for nearer, farther in pairwise(outputs_at_the_end(found))
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
            "at the end every cluster has load, on every platform", _all_have_load
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
        ShapeRule(
            "mean Or at the end: each cluster more than the next, on all platforms",
            _nearer_carry_more,
        ),
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
