"""`grape-weights`: how much load and delay count in GRAPE's choice (setup GS4 of the thesis).

How it is run and measured is in relocating.py and relocating_measures.py.  That weights do not
change the memory brokers take (a part of G37) is not here: the simulator does not model it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from godwit.experiments.grape_enterprise import SETUP
from godwit.experiments.relocating import run
from godwit.experiments.relocating_claims import (
    DELAY,
    DELAYS,
    HOPS,
    INPUT,
    LOAD,
    MESSAGES,
    OUTPUT,
)
from godwit.experiments.relocating_measures import MEASURES, measure
from godwit.lab import plots
from godwit.lab.claims import Agreement, Claim, Shape
from godwit.lab.experiment import Case, Experiment, Figure, Results, Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WEIGHTS = (100, 75, 50, 25, 1)
#: What the thesis calls near, or no change.
EQUAL = 0.10
#: A step in the wrong direction may be this large.
SLACK = 0.05
SELECTION = "selection_s_mean"


def cases(brokers: int, x: int, weights: Mapping[str, Sequence[int]]) -> list[Case]:
    return [
        {"brokers": brokers, "fanout": 2, "mix": mix, "x": x, "policy": policy, "weight": weight}
        for mix in weights
        for policy in (LOAD, DELAY)
        for weight in weights[mix]
    ]


# -- claims ----------------------------------------------------------------------------------------


def _setting(results: Results, policy: str, weight: int) -> Results:
    return results.where(mix="enterprise", policy=policy, weight=weight)


def _from_load_to_delay(results: Results) -> bool:
    """In each measure, all the way in one direction, and in small steps against it at most."""
    settings = [at for _, at in results.where(mix="enterprise", policy=LOAD).by("weight")]

    def rises(name: str, sign: int) -> bool:
        values = [at.mean(name) for at in settings]
        steps = all(sign * (b - a) >= -SLACK * a for a, b in pairwise(values))
        return steps and sign * (values[-1] - values[0]) > 0

    falling = all(rises(name, -1) for name in (DELAYS, HOPS))
    return falling and all(rises(name, 1) for name in (MESSAGES, INPUT, OUTPUT))


def _apart(one: Results, other: Results, names: Sequence[str]) -> float:
    return max(abs(one.mean(name) / other.mean(name) - 1) for name in names)


def _ends_meet(results: Results) -> float:
    names = MESSAGES, INPUT, OUTPUT, HOPS, DELAYS
    least = min(int(weight) for weight, _ in results.by("weight"))
    return max(
        _apart(_setting(results, LOAD, least), _setting(results, DELAY, 100), names),
        _apart(_setting(results, DELAY, least), _setting(results, LOAD, 100), names),
    )


def _overhead_changes(results: Results) -> float:
    of_mix = results.where(mix="enterprise")
    base = _setting(results, LOAD, 100)
    return max(
        _apart(at, base, ["overhead_share"])
        for _, of_policy in of_mix.by("policy")
        for _, at in of_policy.by("weight")
    )


def _random_changes(results: Results) -> float:
    of_mix = results.where(mix="random")
    base = of_mix.where(policy=LOAD, weight=100)
    return max(
        _apart(at, base, [MESSAGES, INPUT, OUTPUT, HOPS, DELAYS])
        for _, of_policy in of_mix.by("policy")
        for _, at in of_policy.by("weight")
    )


def _load_decides_fastest(results: Results) -> bool:
    others = [
        at.mean(SELECTION)
        for policy, of_policy in results.where(mix="enterprise").by("policy")
        for weight, at in of_policy.by("weight")
        if (policy, weight) != (LOAD, 100)
    ]
    return _setting(results, LOAD, 100).mean(SELECTION) < min(others)


def _delay_1_decides_slowest(results: Results) -> bool:
    least = min(int(weight) for weight, _ in results.by("weight"))
    slowest = _setting(results, DELAY, least).mean(SELECTION)
    return all(
        at.mean(SELECTION) <= slowest
        for _, of_policy in results.where(mix="enterprise").by("policy")
        for _, at in of_policy.by("weight")
    )


CLAIMS = (
    Claim(
        "G19 load", "Load 100% decides fastest: it needs no pings",
        "thesis 7.2.2",
        Shape("selection time under load 100% < under all others", _load_decides_fastest),
    ),
    Claim(
        "G19 delay", "Delay 1% decides slowest",
        "thesis 7.2.2",
        Shape("selection time under delay 1% >= under all others", _delay_1_decides_slowest),
    ),
    Claim(
        "G35", "From load 100% to 1% delay and hops fall; message rate, Ir and Or rise",
        "thesis figure 7.15f",
        Shape(
            "at the end of the way each is lower, or higher, than at its beginning, and no step"
            f" goes back by more than {SLACK:.0%}",
            _from_load_to_delay,
        ),
    ),
    Claim(
        "G36", "Load 1% is near delay 100%, and delay 1% near load 100%",
        "thesis 7.2.4", Agreement(EQUAL, _ends_meet),
    ),
    Claim(
        "G37 overhead", "Weights do not change the overhead",
        "thesis 7.2.4", Agreement(EQUAL, _overhead_changes),
    ),
    Claim(
        "G37 random", "In the random workload they change nothing",
        "thesis 7.2.4", Agreement(EQUAL, _random_changes),
    ),
)  # fmt: skip


# -- figures ---------------------------------------------------------------------------------------


def _over_weight(measure: str, label: str, factor: float) -> Callable[[Axes, Results], None]:
    def draw(axes: Axes, results: Results) -> None:
        groups = {
            f"{policy.removeprefix('grape-')}, {mix}": results.where(mix=mix, policy=policy)
            for mix, _ in results.by("mix")
            for policy in (LOAD, DELAY)
        }
        plots.lines(axes, groups, x="weight", y=measure, factor=factor)
        axes.set_xlabel("weight of the primary metric, %")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)

    return draw


FIGURES = (
    Figure(
        "message-rate", "Mean message rate of a broker, in and out (figure 7.15f).",
        _over_weight(MESSAGES, "message rate, messages/s", 1.0),
    ),
    Figure(
        "delay", "Mean delay of a delivery.", _over_weight(DELAYS, "delivery delay, ms", 1000.0)
    ),
    Figure("hops", "Mean hops of a delivery.", _over_weight(HOPS, "hops", 1.0)),
    Figure(
        "selection", "From the question to a decision to move.",
        _over_weight(SELECTION, "selection time, ms", 1000.0),
    ),
)  # fmt: skip

EXPERIMENT = Experiment(
    name="grape-weights",
    title="GRAPE between load and delay",
    question=(
        "GRAPE takes a weight in percent for the metric that counts first. What does a step from"
        " load towards delay buy, and what does it cost?"
    ),
    setup=SETUP
    + """
Here (GS4) GRAPE only, in the tree of 63 brokers with X = 16: load and delay as the first metric,
each with several weights, in the enterprise workload; and some of them in the random one.
""",
    scales={
        "small": Scale(cases(31, 4, {"enterprise": (100, 50, 1), "random": (100, 1)}), seeds=1),
        "paper": Scale(cases(63, 16, {"enterprise": WEIGHTS, "random": (100, 1)}), seeds=3),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    remarks="""\
From load 100% to load 1%, in the enterprise workload: 2.85 to 3.36 messages/s in and out of a
broker, 0.0077% to 0.0122% input utilisation, 3.69 to 3.19 ms, 4.55 to 3.82 hops. Load 1% and 25%
choose the same brokers as delay 100%, and delay 1% the same as load 100% (G36: no difference at
all). Most of the way is made between load 100% and load 50%; with delay as the first metric even
75% gives little away of the lowest load.

G19: where the same decisions are made, at load 100% and at delay 1%, pings cost 2.0 ms, one round
trip to a broker (13.6 and 15.6 ms). But selection is faster still at delay 100% and load 1% (13.3
ms), because those publishers move often and sit in the middle most of the time, from where nobody
is far. On PlanetLab, where five pings to each of 63 brokers took 30 s, that did not matter.
Between delay 1% and 25% there are 0.03 ms.

G37 (overhead): it is 11.6% of the messages at load 100%, and 7.9% at delay 100%. There are more
messages at delay 100%; and there are fewer letters, because publishers move more often there, 68
times instead of 19, and are not traced for a minute after each move. The thesis has no such
pause.

G37 (random): load 100%, load 1% and delay 100% differ by less than 0.1% in load, hops and delay,
as the thesis says. Delay 1% has 19% more hops. Many brokers have the same, lowest load in that
workload. Between those, load 100% takes the one with the least delay, which is the other metric;
delay 1% has no other metric left, and takes the nearest. The thesis does not say how ties are
decided. Its claim that weights do not change the memory that brokers take was not asked.
""",
    figures=FIGURES,
)
