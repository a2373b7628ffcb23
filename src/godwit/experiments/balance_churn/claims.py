"""The thesis's claims about churn."""

from __future__ import annotations

from statistics import mean, pstdev

from godwit.experiments.balance.claims import HOMOGENEOUS, RANDOM, THESIS, on, one, scene
from godwit.experiments.balance.load_measures import bucket_s_of
from godwit.lab.curves import drawn
from godwit.lab.declaration import NotMeasuredError, Results
from godwit.lab.rules import Agreement, Claim, Cost, Reduction, ShapeRule

GROUPED, INDIVIDUAL = KINDS = ("grouped", "individual")
#: "Similar": the mean difference between brokers under random offload is within this share.
SIMILAR = 0.5


def runs(
    results: Results, joins: str, algorithm: str = THESIS, settings: str = "default"
) -> Results:
    return on(results, HOMOGENEOUS, joins=joins, algorithm=algorithm, settings=settings)


def _stable(results: Results) -> bool:
    return all(
        one(runs(results, joins), "overloaded_late_s") == 0
        and one(runs(results, joins), "sessions_late") > 0
        for joins in KINDS
    )


def _individual_is_calmer(results: Results) -> bool:
    grouped, individual = (one(runs(results, joins), "output_sd") for joins in KINDS)
    return individual < grouped


def _apart_is_calmer(results: Results) -> bool:
    grouped, individual = (_deviation_apart(runs(results, joins)) for joins in KINDS)
    return individual < grouped


def _deviation_apart(found: Results) -> float:
    """Of the Or of a broker from the mean of all brokers, over the time after the first joins.

    What all brokers have in common is the load of the system: heavy subscribers come and go.
    """
    played = scene(found)
    bucket_s = bucket_s_of(played)
    curves = [dict(drawn(found, f"output_{broker}")) for broker in played.edges]
    times = [
        at
        for at in set.intersection(*map(set, curves))
        if played.joined_s <= at * bucket_s and (at + 1) * bucket_s <= played.until_s
    ]
    if not times:
        raise NotMeasuredError("no run has curves of Or")
    means = {at: mean(curve[at] for curve in curves) for at in times}
    return mean(pstdev(curve[at] - means[at] for at in times) for curve in curves)


def _random_differs(results: Results) -> float:
    return max(
        abs(
            runs(results, joins, RANDOM).mean("output_gap_mean")
            / runs(results, joins).mean("output_gap_mean")
            - 1
        )
        for joins in KINDS
    )


def _slowest_s(results: Results) -> float:
    return max(runs(results, joins).mean("delay_later_peak_s") for joins in KINDS)


def _constant(results: Results) -> bool:
    """No short time has a delay of more than twice the usual one."""
    return all(one(runs(results, joins), "delay_spikes") == 0 for joins in KINDS)


def _pie_per_s(found: Results) -> float:
    return sum(found.mean(f"{cause}_churning_per_s") for cause in ("pie", "request"))


def _adaptive_saves(results: Results) -> float:
    return max(
        1
        - _pie_per_s(runs(results, joins, algorithm, "adaptive"))
        / _pie_per_s(runs(results, joins, algorithm))
        for joins in KINDS
        for algorithm in (THESIS, RANDOM)
    )


CLAIMS = (
    Claim(
        "L7", "Balancing is stable under churn",
        "thesis figures 7.3g and h",
        ShapeRule(
            "late, brokers still balance, and none is overloaded, with both kinds of joins",
            _stable,
        ),
    ),
    Claim(
        "L7 individual", "Individually-random joins make loads fluctuate less than grouped ones",
        "thesis 7.1.2",
        ShapeRule("deviation of Or over time: individual < grouped", _individual_is_calmer),
    ),
    Claim(
        "L7 apart", "... in what distinguishes the brokers",
        "thesis 7.1.2; our reading of it",
        ShapeRule(
            "deviation of Or from the mean of all brokers, over time: individual < grouped",
            _apart_is_calmer,
        ),
    ),
    Claim(
        "L8", "Under churn random offload is similar to the proposed algorithms",
        "thesis 7.1.2, homogeneous cluster", Agreement(SIMILAR, _random_differs),
    ),
    Claim(
        "L13", "Under churn the delivery delay is 0.1 s at most",
        "thesis 7.1.2; of its machines", Cost(0.1, _slowest_s),
    ),
    Claim(
        "L13 constant", "... and constant",
        "thesis 7.1.2",
        ShapeRule("no short time has a mean delay of twice the median", _constant),
    ),
    Claim(
        "L24", "Adaptive PIE saves up to 30% of load information with its subscriptions",
        "thesis 7.1.2", Reduction(0.30, _adaptive_saves),
    ),
    Claim(
        "L40", "Subscribers that move in time lose nothing",
        "thesis 4.1.4",
        ShapeRule(
            "the oracle was satisfied: a run that loses, doubles or reorders has no numbers",
            lambda results: all(run.values["deliveries"] > 0 for run in results.runs),
        ),
    ),
)  # fmt: skip
