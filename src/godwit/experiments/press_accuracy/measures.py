"""Measures of `press-accuracy`: those of balancing; or of one decision, its memory or time.

An outcome is *settled* if it is quiet (session_measures.py), and the load that its estimate started
from was measured after the last subscriber had joined, and not before a step of the rate that was
over when the session began.  A broker decides on the average of a detection interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from godwit.experiments.balance.measures import MEASURES as BALANCE_MEASURES
from godwit.experiments.balance.measures import WORDS
from godwit.experiments.balance.measures import measure as balance_measure
from godwit.experiments.balance.readings import Decided, decisions
from godwit.experiments.balance.scenes import Scene, scene_of
from godwit.experiments.balance.session_measures import error_measures, sessions_of
from godwit.experiments.press_accuracy.runs import ACCURACY
from godwit.lab.declaration import Case, Measure, Trace
from godwit.policies.offload.settings import BalancingSettings

QUIET, SETTLED = "quiet_", "settled_"
AVERAGED_S = BalancingSettings().local_detection_max_s

MEASURES: Mapping[str, Measure] = {
    "press_bits": Measure("bits", "of all bit vectors of a sampling run"),
    **{
        f"{name}_plan_s": Measure("s", f"to choose subscribers, {name} offload")
        for name in ("input", "match", "output", "random")
    },
    "outcomes_settled": Measure("outcomes", "predicted against achieved, from settled loads"),
    **{
        f"settled_error_{metric}": Measure("", f"mean error of estimates of {words} from these")
        for metric, words in WORDS.items()
    },
    "settled_error_small_share": Measure("", "estimates with an error below 11%, from these"),
    **BALANCE_MEASURES,
}


def measure(trace: Trace, case: Case) -> dict[str, float]:
    decided = decisions(trace)
    if case["study"] == ACCURACY:
        return balance_measure(trace, case) | settled_measures(decided, scene_of(case))
    (found,) = (each.reason for each in decided if each.action == "checked")
    return dict(found)


def settled_measures(decided: Sequence[Decided], scene: Scene) -> dict[str, float]:
    sessions = sessions_of(decided, scene.until_s)
    before = {each.id: each.began_s - AVERAGED_S for each in sessions}
    settled = [
        each
        for each in decided
        if each.action != "achieved" or _is_settled(before.get(each.reason["session"]), scene)
    ]
    found = error_measures(settled, sessions, scene)
    return {"outcomes_settled": found["outcomes_quiet"]} | {
        name.replace(QUIET, SETTLED): value
        for name, value in found.items()
        if name.startswith(QUIET)
    }


def _is_settled(from_s: float | None, scene: Scene) -> bool:
    """Whether the average that the session started from is about one situation."""
    if from_s is None or from_s < scene.joined_s:
        return False
    return not from_s < scene.step_s <= from_s + AVERAGED_S
