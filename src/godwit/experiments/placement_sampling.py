"""`placement-sampling`: how much POP and GRAPE should see before they decide (setup GS5).

How it is run and measured is in relocating.py and relocating_measures.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from godwit.experiments.grape_enterprise import SETUP
from godwit.experiments.relocating import run
from godwit.experiments.relocating_claims import DELAYS, LOAD, MESSAGES, POP, Cost
from godwit.experiments.relocating_measures import MEASURES, measure
from godwit.lab import plots
from godwit.lab.claims import Claim, Shape
from godwit.lab.experiment import Case, Experiment, Figure, Results, Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The thesis goes from 10 to 12,800.
THRESHOLDS = {LOAD: (10, 50, 100, 400, 12_800), POP: (10, 50, 100, 400)}
OVERHEAD, RESPONSE = "overhead_share", "moved_first_s_mean"
HUNDREDS = range(100, 1_000)


def cases(brokers: int, x: int, thresholds: Mapping[str, Sequence[int]]) -> list[Case]:
    return [
        {
            "brokers": brokers, "fanout": 2, "mix": "enterprise", "x": x, "policy": policy,
            "threshold": threshold,
        }
        for policy, of_policy in thresholds.items()
        for threshold in of_policy
    ]  # fmt: skip


# -- claims ----------------------------------------------------------------------------------------


def _over_threshold(measure: str, policy: str, results: Results) -> list[float]:
    """From the lowest threshold to the highest; only where anybody moved."""
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
        Shape(
            "the mean time of a publisher's first move rises, where anybody moves",
            _rises(RESPONSE, LOAD),
        ),
    ),
    Claim(
        "G38 overhead", "... and costs less",
        "thesis figure 7.16",
        Shape("its overhead falls, where anybody moves", _falls(OVERHEAD, LOAD)),
    ),
    Claim(
        "G38 nobody", "With 12,800 nobody moves",
        "thesis figure 7.16", Shape("there are no moves at the highest", _nobody_moves_at_most),
    ),
    Claim(
        "G39 few", "Ten publications are worse than 400 in overhead, delay and load",
        "thesis figure 7.16",
        Shape(
            "overhead, delay and message rate at G_threshold 10 > at 400", _too_few_are_worse
        ),
    ),
    Claim(
        "G39 best", "The best G_threshold is in the hundreds",
        "thesis figure 7.16",
        Shape(
            "the lowest message rate is at 100 to 999",
            lambda results: best(results, LOAD) in HUNDREDS,
        ),
    ),
    Claim(
        "G40 response", "With a higher P_threshold POP takes longer to respond",
        "thesis figure 7.17",
        Shape(
            "the mean time of a publisher's first move rises, where anybody moves",
            _rises(RESPONSE, POP),
        ),
    ),
    Claim(
        "G40 overhead", "... and costs more",
        "thesis figure 7.17",
        Shape("its overhead rises, where anybody moves", _rises(OVERHEAD, POP)),
    ),
    Claim(
        "G40 best", "The best P_threshold is below 100",
        "thesis figure 7.17",
        Shape("the lowest message rate is below 100", lambda results: best(results, POP) < 100),
    ),
)  # fmt: skip


# -- figures ---------------------------------------------------------------------------------------


def _drawn(measure: str, label: str, factor: float = 1.0) -> Callable[[Axes, Results], None]:
    def draw(axes: Axes, results: Results) -> None:
        groups = {"GRAPE load 100%": results.where(policy=LOAD), "POP": results.where(policy=POP)}
        plots.lines(axes, groups, x="threshold", y=measure, factor=factor)
        plots.doubling(axes, sorted({float(threshold) for threshold, _ in results.by("threshold")}))
        axes.set_xlabel("G_threshold, P_threshold: what is traced before a decision")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)

    return draw


FIGURES = (
    Figure(
        "response",
        "When a publisher moves first, of those that move (figures 7.16 and 7.17); 0 if nobody.",
        _drawn(RESPONSE, "first move after, s"),
    ),
    Figure(
        "overhead", "Letters and routing messages, of all messages in and out.",
        _drawn(OVERHEAD, "overhead, %", 100.0),
    ),
    Figure(
        "message-rate", "Mean message rate of a broker, in and out.",
        _drawn(MESSAGES, "message rate, messages/s"),
    ),
    Figure(
        "delay", "Mean delay of a delivery.", _drawn(DELAYS, "delivery delay, ms", 1000.0)
    ),
    Figure("moves", "Moves of publishers, from the beginning.", _drawn("moves", "moves")),
)  # fmt: skip

EXPERIMENT = Experiment(
    name="placement-sampling",
    title="How much POP and GRAPE should see before they decide",
    question=(
        "Who decides after few publications decides soon, often, and perhaps wrongly. How many"
        " should POP and GRAPE trace?"
    ),
    setup=SETUP
    + """
Here (GS5) the threshold is varied in the tree of 127 brokers with X = 16 and the enterprise
workload; POP traces at most half of it in a minute. GRAPE is set to load 100%.
""",
    scales={
        "small": Scale(cases(31, 4, {LOAD: (10, 40, 400, 5_000), POP: (10, 40)}), seeds=1),
        "paper": Scale(cases(127, 16, THRESHOLDS), seeds=2),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
)
