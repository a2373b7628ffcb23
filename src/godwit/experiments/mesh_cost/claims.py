"""Claims P12 to P14: times of updates and decisions, fragmentation of covering sets.

P12 is about 6,500 subscriptions; its times here are of fewer, see `python -m benchmarks mesh`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from godwit.lab.declaration import Results
from godwit.lab.rules import Claim, Cost, ShapeRule

#: A decision with another strategy may take so many times as long, as times are measured.
UNCHANGED = 1.15


def _grown(name: str) -> Callable[[Results], float]:
    """By which share it is more with a fanout of 10 than with 5."""
    return lambda results: (
        results.where(fanout=10).mean(name) / results.where(fanout=5).mean(name) - 1
    )


def _both_grow(results: Results) -> bool:
    by_fanout = sorted(results.by("fanout"), key=lambda each: float(each[0]))
    sets = [runs.mean("covering_set") for _, runs in by_fanout]
    evaluated = [runs.mean("evaluations") for _, runs in by_fanout]
    grows = all(few <= more for all_ in (sets, evaluated) for few, more in pairwise(all_))
    return grows and sets[-1] > sets[0] and evaluated[-1] / evaluated[0] > sets[-1] / sets[0]


def _slowest(results: Results) -> float:
    return max(
        run.values[name] / run.values["s0_us"]
        for run in results.runs
        for name in ("s1_us", "s2_us")
    )


CLAIMS = (
    Claim(
        "P12 WOM", "An update of the working overlay map takes 0.8 ms",
        "002, 7", Cost(0.8, lambda results: max(results.values("wom_ms"))),
    ),
    Claim(
        "P12 WST", "An update of the working subscription table takes 17 ms",
        "002, 7", Cost(17.0, lambda results: max(results.values("wst_ms"))),
    ),
    Claim(
        "P13", "Forwarding takes as long with S1 and S2 as with S0",
        "002, 7",
        ShapeRule(f"S1 and S2 at most {UNCHANGED} times S0", lambda r: _slowest(r) <= UNCHANGED),
    ),
    Claim(
        "P14 sets", "From fanout 5 to 10 covering sets grow by 12%",
        "002, figure 12", Cost(0.12, _grown("covering_set")),
    ),
    Claim(
        "P14 evaluations", "... and predicate evaluations by 34%",
        "002, figure 12", Cost(0.34, _grown("evaluations")),
    ),
    Claim(
        "P14", "Both grow with the fanout, evaluations faster",
        "002, figure 12",
        ShapeRule("neither falls; over all fanouts evaluations grow by more", _both_grow),
    ),
)  # fmt: skip
