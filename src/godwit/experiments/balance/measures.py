"""Measures of the load-balancing experiments: loads, sessions, messages, delays, and curves."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import functions as F  # noqa: N812

from godwit.experiments.balance.cluster_measures import cluster_measures, global_pie_hops
from godwit.experiments.balance.load_measures import (
    bucket_s_of,
    clients_of_brokers,
    load_curves,
    load_measures,
)
from godwit.experiments.balance.overhead_measures import (
    delay_curve,
    delay_measures,
    overhead_curves,
    overhead_measures,
)
from godwit.experiments.balance.readings import decisions, delays, messages, readings
from godwit.experiments.balance.scenes import Scene, scene_of
from godwit.experiments.balance.session_measures import session_measures
from godwit.lab.curves import curve
from godwit.lab.declaration import Case, Measure, Trace
from godwit.lab.metrics.stages import Span

STAR, CHAIN = ("B1", "B2", "B3", "B4"), ("B10", "B20", "B30", "B40")
CLUSTERS_MAX = 8
WORDS = {
    "input": "input utilisation Ir",
    "output": "output utilisation Or",
    "matching": "matching delay d, in units of Nf = 0.1 s",
}
PHASES = {"before": "late before the step of the rate", "after": "late after it"}

LOADS = {
    f"{metric}_{what}_{phase}": Measure("", f"{words}, {text}, {when}")
    for phase, when in PHASES.items()
    for metric, words in WORDS.items()
    for what, text in (
        ("mean", "mean of the edge brokers"),
        ("max", "of the most loaded one"),
        ("gap", "largest difference between two"),
    )
}
ERRORS = {
    f"{name}error_{metric}": Measure("", f"mean error of estimates of {words}{when}")
    for name, when in (("", ""), ("quiet_", ", while nothing else changed"))
    for metric, words in WORDS.items()
}
RATES = {
    f"{cause}_{phase}_per_s": Measure("messages/s", f"{what}, {when}")
    for phase, when in (
        ("busy", "up to the last session before the step"),
        ("stable", "late before the step"),
        ("churning", "after the joins"),
    )
    for cause, what in (
        ("pie", "load information"),
        ("request", "advertisements and subscriptions of modules"),
        ("coordination", "coordination of sessions"),
        ("migration", "subscriptions of clients that move"),
    )
}
CURVES = {
    name: measure
    for place in (*STAR, *CHAIN)
    for metric in (*WORDS, "clients")
    for name, measure in curve(f"{metric}_{place}", "", f"{metric} of {place}").items()
} | {
    name: measure
    for kind in ("overhead", "delay_s", *(f"{c}_per_s" for c in ("pie", "request")),
                 "coordination_per_s", "migration_per_s")
    for name, measure in curve(kind, "", kind).items()
}  # fmt: skip

MEASURES: Mapping[str, Measure] = {
    **LOADS,
    "distance_before": Measure("", "highest Or above its lower bound, relative, late before"),
    "distance_after": Measure("", "... late after the step"),
    "input_gap_peak": Measure("", "largest difference of Ir, of means over a minute"),
    "overloaded_first_s": Measure("s", "that the broker they join is overloaded meanwhile"),
    "overloaded_late_s": Measure("s", "that brokers are overloaded, late"),
    "overloaded_others_s": Measure("s", "that other edge brokers are overloaded, in all"),
    "output_noise": Measure("", "standard deviation of readings of Or, relative, late before"),
    "output_sd": Measure("", "standard deviation of Or over time, after the joins"),
    "output_gap_mean": Measure("", "difference of Or between brokers, mean over time"),
    "spikes": Measure("spikes", "of Or in the first 2,000 s"),
    **{f"clients_{broker}": Measure("", f"subscribers of {broker}, late") for broker in STAR},
    "sessions": Measure("sessions", "agreed to"),
    "sessions_moving": Measure("sessions", "... in which clients moved"),
    "sessions_before": Measure("sessions", "... before the step"),
    "sessions_after": Measure("sessions", "... after it"),
    "sessions_late": Measure("sessions", "... late before and after the step"),
    "sessions_unprovoked": Measure("sessions", "agreed to without an overload"),
    "moves": Measure("moves", "of subscribers"),
    "moves_before": Measure("moves", "... before the step"),
    "moves_after": Measure("moves", "... after it"),
    "session_moves_mean": Measure("moves", "of a session"),
    "session_moves_max": Measure("moves", "... at most"),
    "slight_sessions": Measure("sessions", "for differences of at most 0.2, without overload"),
    "slight_moves_mean": Measure("moves", "... of one of them"),
    "slight_moves_max": Measure("moves", "... at most"),
    "slight_output_moves_max": Measure("moves", "... of those about output"),
    "session_s_mean": Measure("s", "duration of a session with moves"),
    "first_moved_s": Measure("s", "when the first subscriber has moved; the end, if none has"),
    "converged_s": Measure("s", "end of the last session with moves before the step"),
    "reconverged_s": Measure("s", "... after the step, counted from there"),
    "not_improving": Measure("sessions", "with moves and without a smaller estimated difference"),
    "gave_up": Measure("sessions", "that ended by a time-out or an abort"),
    "followed_share": Measure("", "sessions with moves that another soon follows"),
    "outcomes": Measure("outcomes", "predicted against achieved"),
    "outcomes_quiet": Measure("outcomes", "... while nothing else changed"),
    **ERRORS,
    "error_small_share": Measure("", "estimates with an error below 11%"),
    "quiet_error_small_share": Measure("", "... while nothing else changed"),
    "overhead_joining": Measure("", "share of overhead while subscribers join"),
    "overhead_stable": Measure("", "... late before the step"),
    **RATES,
    "delay_usual_s": Measure("s", "delivery delay, median of means over short times"),
    "delay_peak_s": Measure("s", "... the highest"),
    "delay_joining_peak_s": Measure("s", "... the highest while subscribers join"),
    "delay_later_peak_s": Measure("s", "... the highest after that"),
    "delay_before_s": Measure("s", "... late before the step"),
    "delay_after_s": Measure("s", "... late after it"),
    "delay_spikes": Measure("", "... how many are twice the usual one"),
    "deliveries": Measure("deliveries", "that the trace has"),
    "deliveries_late_per_s": Measure("deliveries/s", "... late after the step"),
    **{
        f"output_cluster_{number}": Measure("", f"mean Or of cluster {number}, late before")
        for number in range(1, CLUSTERS_MAX + 1)
    },
    "reached_s": Measure("s", "when the last cluster has its first subscriber"),
    "converged_after_reached_s": Measure("s", "from then to the last session before the step"),
    "global_sessions": Measure("sessions", "between clusters"),
    "global_gap_start": Measure("", "... difference of the clusters' Or before, mean"),
    "global_gap_end": Measure("", "... at the end"),
    "global_pie_hops_max": Measure("hops", "of load information about clusters, at most"),
    "rate_ratio": Measure("", "publications per second after the step, relative to before"),
    **CURVES,
}  # fmt: skip


def measure(trace: Trace, case: Case) -> dict[str, float]:
    scene = scene_of(case)
    gauges, decided = readings(trace, scene.edges), decisions(trace)
    over = Span(0.0, scene.until_s, bucket_s=bucket_s_of(scene))
    counted, delayed = messages(trace, over), delays(trace, over)
    sessions = session_measures(decided, scene)
    values = {
        **load_measures(gauges, scene),
        **sessions,
        **overhead_measures(counted, scene, busy_until_s=sessions["converged_s"]),
        **delay_measures(delayed, scene),
        **overhead_curves(counted, scene),
        **delay_curve(delayed),
        **rate_ratio(trace, scene),
    }
    if len(scene.clusters) == 1 and len(scene.edges) == len(STAR):
        values |= clients_of_brokers(gauges, scene)
    if len(scene.clusters) > 1:
        converged_s = sessions["converged_s"]
        values |= cluster_measures(gauges, decided, scene, converged_s=converged_s)
        values |= global_pie_hops(trace)
    if "edges" not in case and "clusters" not in case:
        values |= load_curves(gauges, scene)
    return values


def rate_ratio(trace: Trace, scene: Scene) -> dict[str, float]:
    """How much faster publishers publish after the step."""
    if not scene.has_step:
        return {}
    published = trace["handled"].where(
        (F.col("kind") == "Publication") & ~F.col("is_control") & ~F.col("from_broker")
    )
    # A step applies from the next publication of each publisher on.
    period_s = 60.0 / scene.setup.publications_per_min
    counts = published.agg(
        *(
            F.count(F.when(F.col("time_s").between(start_s, end_s), True)).alias(name)
            for name, (start_s, end_s) in (
                ("before", (2 * period_s, scene.step_s)),
                ("after", (scene.step_s + 2 * period_s, scene.until_s)),
            )
        )
    ).first()
    assert counts is not None
    before_per_s = counts["before"] / (scene.step_s - 2 * period_s)
    after_per_s = counts["after"] / (scene.until_s - scene.step_s - 2 * period_s)
    return {"rate_ratio": after_per_s / before_per_s}
