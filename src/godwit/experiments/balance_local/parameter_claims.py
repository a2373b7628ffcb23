"""What the thesis says of the balancer's settings: L44, L46 and L47 (4.1.3, 4.3.1).

It reports them from "micro experiments" that it does not describe; here they are run on the small
platform with equal brokers, at every scale.
"""

from __future__ import annotations

from godwit.experiments.balance.claims import SMALL_ALIKE, one
from godwit.lab.declaration import Results
from godwit.lab.rules import Claim, ShapeRule

FREQUENT, RARE, ONLY_OVERLOAD, FINE, COARSE = VARIED = (
    "frequent", "rare", "only overload", "fine trigger", "coarse balance",
)  # fmt: skip


def _run(results: Results, settings: str) -> Results:
    return results.where(platform=SMALL_ALIKE, settings=settings)


def _in_order(results: Results, name: str) -> tuple[float, float, float]:
    found = (_run(results, settings) for settings in (FREQUENT, "default", RARE))
    first, second, third = (one(each, name) for each in found)
    return first, second, third


def _faster(results: Results) -> bool:
    frequent, default, rare = _in_order(results, "first_moved_s")
    return frequent < default < rare


def _costlier(results: Results) -> bool:
    frequent, default, rare = _in_order(results, "pie_busy_per_s")
    return frequent > default > rare


def _restless(results: Results) -> bool:
    frequent, default, _ = _in_order(results, "sessions")
    return frequent > default


def _only_overload(results: Results) -> bool:
    found = _run(results, ONLY_OVERLOAD)
    return one(found, "sessions_unprovoked") == 0 < one(found, "sessions")


def _endless(results: Results) -> bool:
    fine, default = (one(_run(results, name), "sessions_late") for name in (FINE, "default"))
    return fine > default


def _coarse_is_worse(results: Results) -> bool:
    gaps = [one(_run(results, name), "output_gap_after") for name in (COARSE, "default")]
    return gaps[0] > gaps[1]


CLAIMS = (
    Claim(
        "L44 response", "With a shorter PIE period and detection interval it responds faster",
        "thesis 4.1.3",
        ShapeRule("the first subscriber moves earlier: 10 s < 30 s < 90 s", _faster),
    ),
    Claim(
        "L44 overhead", "... at more overhead",
        "thesis 4.1.3",
        ShapeRule("load information up to convergence: 10 s > 30 s > 90 s", _costlier),
    ),
    Claim(
        "L44 sessions", "... and with unnecessary sessions",
        "thesis 4.1.3", ShapeRule("more sessions with 10 s than with 30 s", _restless),
    ),
    Claim(
        "L46 high", "With a trigger of the overload threshold, sessions start on overload only",
        "thesis 4.1.3",
        ShapeRule("with 0.96 there are sessions, all of them by an overload", _only_overload),
    ),
    Claim(
        "L46 low", "With a trigger below the estimation error, sessions never end",
        "thesis 4.1.3",
        ShapeRule("with 0.01 there are more late sessions with moves than with 0.1", _endless),
    ),
    Claim(
        "L47", "With too large a balance threshold balancing may diverge",
        "thesis 4.3.1",
        ShapeRule(
            "with 0.3 the late difference of Or after the step is larger than with 0.005",
            _coarse_is_worse,
        ),
    ),
)  # fmt: skip
