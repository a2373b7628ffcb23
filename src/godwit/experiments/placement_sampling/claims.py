"""The thesis's claims about thresholds: G15, G38 to G40."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from godwit.experiments.placement.claims import DELAYS, LOAD, MESSAGES, POP
from godwit.lab.declaration import Results
from godwit.lab.rules import Claim, Cost, ShapeRule

OVERHEAD, RESPONSE = "overhead_share", "moved_first_s_mean"
HUNDREDS = range(100, 1_000)


def _over_threshold(measure: str, policy: str, results: Results) -> list[float]:
    """From the lowest threshold to the highest; only where publishers moved."""
    return [
        at.mean(measure)
        for _, at in results.where(policy=policy).by("threshold")
        if at.mean("moves") > 0
    ]


def _rises(measure: str, policy: str) -> Callable[[Results], bool]:
    return lambda results: all(
        a <= b for a, b in pairwise(_over_threshold(measure, policy, results))
    )


def _falls(measure: str, policy: str) -> Callable[[Results], bool]:
    return lambda results: all(
        a >= b for a, b in pairwise(_over_threshold(measure, policy, results))
    )


def _too_few_are_worse(results: Results) -> bool:
    of_grape = results.where(policy=LOAD)
    few, enough = of_grape.where(threshold=10), of_grape.where(threshold=400)
    return all(few.mean(name) > enough.mean(name) for name in (OVERHEAD, DELAYS, MESSAGES))


def _nobody_moves_at_most(results: Results) -> bool:
    *_, (_, at) = results.where(policy=LOAD).by("threshold")
    return at.mean("moves") == 0


def best(results: Results, policy: str) -> int:
    """The threshold with the lowest message rate."""
    found = {int(t): at.mean(MESSAGES) for t, at in results.where(policy=policy).by("threshold")}
    return min(found, key=lambda threshold: found[threshold])


def _most_overhead(policy: str) -> Callable[[Results], float]:
    return lambda results: max(
        at.mean(OVERHEAD) for _, at in results.where(policy=policy).by("threshold")
    )


CLAIMS = (
    Claim(
        "G15 POP", "POP's overhead is 57% of the messages in the most extreme setting",
        "thesis 5.1", Cost(0.57, _most_overhead(POP)),
    ),
    Claim(
        "G15 GRAPE", "GRAPE's is 46%",
        "thesis 5.2", Cost(0.46, _most_overhead(LOAD)),
    ),
    Claim(
        "G38 response", "With a higher G_threshold GRAPE takes longer to respond",
        "thesis figure 7.16",
        ShapeRule(
            "the mean time of a publisher's first move rises, where publishers move",
            _rises(RESPONSE, LOAD),
        ),
    ),
    Claim(
        "G38 overhead", "... and its overhead is lower",
        "thesis figure 7.16",
        ShapeRule("its overhead falls, where publishers move", _falls(OVERHEAD, LOAD)),
    ),
    Claim(
        "G38 nobody", "With 12,800 no publisher moves",
        "thesis figure 7.16",
        ShapeRule("there are no moves at the highest threshold", _nobody_moves_at_most),
    ),
    Claim(
        "G39 few", "Ten publications are worse than 400 in overhead, delay and load",
        "thesis figure 7.16",
        ShapeRule(
            "overhead, delay and message rate at G_threshold 10 > at 400", _too_few_are_worse
        ),
    ),
    Claim(
        "G39 best", "The best G_threshold is in the hundreds",
        "thesis figure 7.16",
        ShapeRule(
            "the lowest message rate is at 100 to 999",
            lambda results: best(results, LOAD) in HUNDREDS,
        ),
    ),
    Claim(
        "G40 response", "With a higher P_threshold POP takes longer to respond",
        "thesis figure 7.17",
        ShapeRule(
            "the mean time of a publisher's first move rises, where publishers move",
            _rises(RESPONSE, POP),
        ),
    ),
    Claim(
        "G40 overhead", "... and its overhead is higher",
        "thesis figure 7.17",
        ShapeRule("its overhead rises, where publishers move", _rises(OVERHEAD, POP)),
    ),
    Claim(
        "G40 best", "The best P_threshold is below 100",
        "thesis figure 7.17",
        ShapeRule("the lowest message rate is below 100", lambda results: best(results, POP) < 100),
    ),
)  # fmt: skip
