"""`grape-weights`: the weights of load and delay in GRAPE's choice (setup GS4 of the thesis).

A part of G37, that weights do not change the memory of brokers, is not tested: the simulator does
not model it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from godwit.experiments.grape_weights.claims import CLAIMS
from godwit.experiments.grape_weights.figures import FIGURES
from godwit.experiments.placement.claims import DELAY, LOAD
from godwit.experiments.placement.measures import MEASURES, measure
from godwit.experiments.placement.placement_setup import SETUP
from godwit.experiments.placement.runs import run
from godwit.lab.declaration import Case, Experiment, Scale

WEIGHTS = (100, 75, 50, 25, 1)


def cases(brokers: int, x: int, weights: Mapping[str, Sequence[int]]) -> list[Case]:
    return [
        {"brokers": brokers, "fanout": 2, "mix": mix, "x": x, "policy": policy, "weight": weight}
        for mix in weights
        for policy in (LOAD, DELAY)
        for weight in weights[mix]
    ]


EXPERIMENT = Experiment(
    name="grape-weights",
    title="GRAPE between load and delay",
    question=(
        "GRAPE has a weight in percent for its primary metric. What does a step from load towards"
        " delay gain, and what does it cost?"
    ),
    setup=SETUP
    + """
Here (GS4) GRAPE only, in the tree of 63 brokers with X = 16: load and delay as the primary metric,
each with several weights, in the enterprise workload, and some of them in the random one.
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
all). Most of the change is between load 100% and load 50%; with delay as the primary metric even
75% has almost the lowest load.

G19: where the same decisions are made, at load 100% and at delay 1%, pings cost 2.0 ms, one round
trip to a broker (13.6 and 15.6 ms). But selection is faster still at delay 100% and load 1% (13.3
ms), because those publishers move often and sit in the middle most of the time, near all brokers.
On PlanetLab, where five pings to each of 63 brokers took 30 s, that did not matter.
Delay 1% and 25% differ by 0.03 ms.

G37 (overhead): it is 11.6% of the messages at load 100%, and 7.9% at delay 100%. There are more
messages at delay 100%; and there are fewer letters, because publishers move more often there, 68
times instead of 19, and are not traced for a minute after each move. The thesis has no such
pause.

G37 (random): load 100%, load 1% and delay 100% differ by less than 0.1% in load, hops and delay,
as the thesis says. Delay 1% has 19% more hops. Many brokers have the same, lowest load in that
workload. Among those, load 100% takes the one with the least delay, the other metric; delay 1% has
no other metric left, and takes the nearest. The thesis does not state how ties are broken. Its
claim that weights do not change the memory of brokers was not tested.
""",
    figures=FIGURES,
)
