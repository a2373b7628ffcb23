"""Figures 7.3g and h of the thesis, redrawn, and the cost of load information."""

from __future__ import annotations

from godwit.experiments.balance.claims import RANDOM, THESIS
from godwit.experiments.balance.figures import Pick, of_brokers, of_runs
from godwit.experiments.balance_churn.claims import GROUPED, INDIVIDUAL, KINDS, runs
from godwit.lab.declaration import Figure


def _pick(joins: str, algorithm: str = THESIS, settings: str = "default") -> Pick:
    return lambda results: runs(results, joins, algorithm, settings)


FIGURES = (
    Figure(
        "grouped-output", "Or of each edge broker, grouped-random joins (thesis, figure 7.3h).",
        of_brokers("output", _pick(GROUPED)),
    ),
    Figure(
        "grouped-input", "Ir of each edge broker, grouped-random joins (thesis, figure 7.3g).",
        of_brokers("input", _pick(GROUPED)),
    ),
    Figure(
        "individual-output", "Or of each edge broker, individually-random joins.",
        of_brokers("output", _pick(INDIVIDUAL)),
    ),
    Figure(
        "grouped-output-random", "Or of each edge broker, grouped-random joins, random offload.",
        of_brokers("output", _pick(GROUPED, RANDOM)),
    ),
    Figure(
        "delay", "Mean delivery delay under churn.",
        of_runs(
            "delay_s", "s",
            {
                f"{joins}, {name}": _pick(joins, algorithm)
                for joins in KINDS
                for algorithm, name in ((THESIS, "proposed"), (RANDOM, "random"))
            },
        ),
    ),
    Figure(
        "pie", "Load information, grouped-random joins.",
        of_runs(
            "pie_per_s", "messages/s",
            {"PIE": _pick(GROUPED), "Adaptive PIE": _pick(GROUPED, settings="adaptive")},
        ),
    ),
)  # fmt: skip
