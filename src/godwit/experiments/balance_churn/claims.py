"""The thesis's claims about churn."""

from __future__ import annotations

from godwit.experiments.balance.claims import HOMOGENEOUS, RANDOM, THESIS, on, one
from godwit.lab.declaration import Results
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
