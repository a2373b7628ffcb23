"""Claim P19: which strategies are congested, in a sparse and a dense dataset."""

from __future__ import annotations

from godwit.experiments.mesh.limited import share_of_all
from godwit.lab.declaration import Results
from godwit.lab.rules import Claim, ShapeRule

#: All, but for what is on its way at the end.
ALL = 0.99
LIMIT = "10 KB/s"


def _shares(results: Results, dataset: str) -> dict[str, float]:
    return {each: share_of_all(results, dataset, each, LIMIT) for each in ("S0", "S1", "S2")}


def _sparse(results: Results) -> bool:
    found = _shares(results, "DT4")
    return found["S0"] < ALL <= min(found["S1"], found["S2"])


def _dense(results: Results) -> bool:
    found = _shares(results, "DT5")
    return found["S0"] < min(found["S1"], found["S2"]) and max(found.values()) < ALL


CLAIMS = (
    Claim(
        "P19 DT4", "S0 is congested; S1 and S2 deliver everything",
        "002, figure 13",
        ShapeRule(f"S0 delivers less than {ALL:.0%}, S1 and S2 at least that", _sparse),
    ),
    Claim(
        "P19 DT5", "S0 delivers least; S1 and S2 much more, but not everything",
        "002, figure 13",
        ShapeRule(f"S0 less than S1 and S2, and these less than {ALL:.0%}", _dense),
    ),
)  # fmt: skip
