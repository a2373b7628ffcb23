"""Measures of a chain of clusters: how load spreads, and what happens in global sessions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import mean

from pyspark.sql import functions as F  # noqa: N812

from godwit.experiments.balance.load_measures import Readings, within
from godwit.experiments.balance.readings import Decided, Reading
from godwit.experiments.balance.scenes import Scene
from godwit.lab.declaration import Trace

#: How long a cluster is looked at, at the start and at the end of a global session.
LOOK_S = 60.0


def cluster_measures(
    found: Readings, decisions: Sequence[Decided], scene: Scene, *, converged_s: float
) -> dict[str, float]:
    outputs = {
        head: mean(each.output for each in _late(found, edges, scene))
        for head, edges in scene.clusters.items()
    }
    last = scene.clusters[tuple(scene.clusters)[-1]]
    reached_s = _first_client_s(found, last, scene.until_s)
    return {
        **{f"output_cluster_{n}": value for n, value in enumerate(outputs.values(), start=1)},
        "reached_s": reached_s,
        "converged_after_reached_s": max(0.0, converged_s - reached_s),
        **_global_sessions(found, decisions, scene),
    }


def global_pie_hops(trace: Trace) -> dict[str, float]:
    """How far load information about clusters travels; 0 if there is none."""
    rows = trace["handled"].where(F.col("class") == "$GLOBAL_PIE")
    (row,) = rows.agg(F.coalesce(F.max("hops"), F.lit(0)).alias("hops")).collect()
    return {"global_pie_hops_max": float(row["hops"])}


def _late(found: Readings, edges: Iterable[str], scene: Scene) -> list[Reading]:
    return [each for edge in edges for each in within(found[edge], scene.late_before)]


def _first_client_s(found: Readings, edges: Iterable[str], until_s: float) -> float:
    times = [each.time_s for edge in edges for each in found[edge] if each.clients > 0]
    return min(times, default=until_s)


def _global_sessions(
    found: Readings, decisions: Iterable[Decided], scene: Scene
) -> dict[str, float]:
    """The difference of Or between two clusters, at the start and at the end of their sessions."""
    began: dict[str, Decided] = {}
    ended_s: dict[str, float] = {}
    for each in decisions:
        if each.action == "global session":
            began.setdefault(each.subject, each)
        elif each.action == "global ended":
            ended_s.setdefault(each.subject, each.time_s)
    starts, ends = [], []
    for id, first in began.items():
        until_s = ended_s.get(id, scene.until_s)
        pair = [scene.clusters[first.source], scene.clusters[first.target]]
        starts.append(_gap(found, pair, (first.time_s - LOOK_S, first.time_s)))
        ends.append(_gap(found, pair, (until_s - LOOK_S, until_s)))
    return {
        "global_sessions": len(began),
        "global_gap_start": mean(starts) if starts else 0.0,
        "global_gap_end": mean(ends) if ends else 0.0,
    }


def _gap(found: Readings, pair: Iterable[Sequence[str]], span: tuple[float, float]) -> float:
    first, second = (
        mean([each.output for edge in edges for each in within(found[edge], span)] or [0.0])
        for edges in pair
    )
    return abs(first - second)
