"""Measures of `cram-cost`: what runs.py has written."""

from __future__ import annotations

from collections.abc import Mapping

from godwit.experiments.allocation.measures import PLANNED, predicted
from godwit.lab.declaration import Case, Measure, Trace

MEASURES: Mapping[str, Measure] = {
    **PLANNED,
    "subscriptions": Measure("", "that a search is made for"),
    "gifs": Measure("", "groups of subscriptions with the same profile"),
    "poset_s": Measure("s", "of CPU time to insert all groups into the poset"),
    "search_s": Measure("s", "of CPU time to search the closest partner of each group"),
    "evaluations": Measure("", "of closeness in these searches"),
    "pairs": Measure("", "of groups that there are"),
    "missed": Measure("", "groups for which a closer partner exists than was found"),
}


def measure(trace: Trace, _case: Case) -> dict[str, float]:
    _, found = predicted(trace)
    return found
