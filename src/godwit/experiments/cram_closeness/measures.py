"""Measures of `cram-closeness`: those of allocation/; or of the clusters of a plan."""

from __future__ import annotations

from collections.abc import Mapping

from godwit.experiments.allocation.measures import MEASURES as ALLOCATION_MEASURES
from godwit.experiments.allocation.measures import measure as allocation_measure
from godwit.experiments.allocation.measures import predicted
from godwit.experiments.cram_closeness.runs import DEPLOYED
from godwit.lab.declaration import Case, Measure, Trace

MEASURES: Mapping[str, Measure] = {
    "clusters_of_many": Measure("clusters", "of more than one subscription"),
    "clusters_disjoint": Measure(
        "clusters", "... that fall into parts without a publication in common"
    ),
    **ALLOCATION_MEASURES,
}


def measure(trace: Trace, case: Case) -> dict[str, float]:
    if case["study"] == DEPLOYED:
        return allocation_measure(trace, case)
    _, found = predicted(trace)
    return found
