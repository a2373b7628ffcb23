"""Measures of `press-accuracy`: those of balancing; or of one decision, its memory or time."""

from __future__ import annotations

from collections.abc import Mapping

from godwit.experiments.balance.measures import MEASURES as BALANCE_MEASURES
from godwit.experiments.balance.measures import measure as balance_measure
from godwit.experiments.balance.readings import decisions
from godwit.experiments.press_accuracy.runs import ACCURACY
from godwit.lab.declaration import Case, Measure, Trace

MEASURES: Mapping[str, Measure] = {
    "press_bits": Measure("bits", "of all bit vectors of a sampling run"),
    **{
        f"{name}_plan_s": Measure("s", f"to choose subscribers, {name} offload")
        for name in ("input", "match", "output", "random")
    },
    **BALANCE_MEASURES,
}


def measure(trace: Trace, case: Case) -> dict[str, float]:
    if case["study"] == ACCURACY:
        return balance_measure(trace, case)
    (found,) = (each.reason for each in decisions(trace) if each.action == "checked")
    return dict(found)
