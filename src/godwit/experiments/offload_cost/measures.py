"""Measures of `offload-cost`: the memory or the time of one decision."""

from __future__ import annotations

from collections.abc import Mapping

from godwit.experiments.balance.readings import decisions
from godwit.lab.declaration import Case, Measure, Trace

MEASURES: Mapping[str, Measure] = {
    "press_bits": Measure("bits", "of all bit vectors of a sampling run"),
    **{
        f"{name}_plan_s": Measure("s", f"to choose subscribers, {name} offload")
        for name in ("input", "match", "output", "random")
    },
}


def measure(trace: Trace, _case: Case) -> dict[str, float]:
    (found,) = (each.reason for each in decisions(trace) if each.action == "checked")
    return dict(found)
