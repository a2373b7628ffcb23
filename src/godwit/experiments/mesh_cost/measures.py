"""Measures: what brokers reported at the end, means over all of them."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean

import msgspec
from pyspark.sql import functions as F  # noqa: N812

from godwit.experiments.mesh_cost.runs import POLICY
from godwit.lab.declaration import Case, Measure, Trace

MEASURES: Mapping[str, Measure] = {
    "links": Measure("links", "that a broker uses, primary and soft"),
    "covering_set": Measure("filters", "in the covering sets of all links of a broker"),
    "evaluations": Measure("predicates", "evaluated for a publication, through covering sets"),
    "wom_ms": Measure("ms", "CPU time to make the map of links anew"),
    "wst_ms": Measure("ms", "CPU time to enter all subscriptions by link"),
    "s0_us": Measure("us", "CPU time of a forwarding decision with S0, matching included"),
    "s1_us": Measure("us", "... with S1"),
    "s2_us": Measure("us", "... with S2"),
}


def measure(trace: Trace, _case: Case) -> dict[str, float]:
    rows = trace["decisions"].where(F.col("policy") == POLICY).select("reason").collect()
    found = [msgspec.json.decode(row["reason"], type=dict[str, float]) for row in rows]
    return {name: mean(each[name] for each in found) for name in MEASURES}
