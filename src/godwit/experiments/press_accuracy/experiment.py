"""`press-accuracy`: estimates against what comes true, and the cost of a decision."""

from __future__ import annotations

from godwit.experiments.balance.claims import CLUSTER, PLANETLAB, SIMULATION, SMALL
from godwit.experiments.balance.setup import SETUP, cases
from godwit.experiments.press_accuracy.claims import CLAIMS, SAMPLES
from godwit.experiments.press_accuracy.figures import FIGURES
from godwit.experiments.press_accuracy.measures import MEASURES, measure
from godwit.experiments.press_accuracy.runs import ACCURACY, MEMORY, TIME, is_timed, run
from godwit.lab.declaration import Case, Experiment, Scale

VARIED = (10, SAMPLES, 200)


def _accuracy(platform: str, *samples: int) -> list[Case]:
    return [
        {"study": ACCURACY, **case}
        for number in samples
        for case in cases((platform,), press_samples=number)
    ]


DECISIONS: list[Case] = [
    {"study": MEMORY, "number": 10_000, "press_samples": 100},
    *({"study": TIME, "number": n, "press_samples": SAMPLES} for n in (1000, 2000, 4000, 8000)),
]

EXPERIMENT = Experiment(
    name="press-accuracy",
    title="PRESS: estimates against what comes true",
    question=(
        "How far are the loads that an offload algorithm expects from those that are measured when"
        " it is done? How many publications must be sampled, and what does a decision cost?"
    ),
    setup=SETUP
    + """
*Accuracy*: the star of `balance-local`, with various numbers of PRESS samples (timeout 30 s). Each
side of a session records its estimate of Ir, Or and d, and what its meters show when its load has
settled; the error is relative to the latter. Sessions that an overload started, or during which
or in the 40 s before which subscribers joined or the rate stepped up, do not count: the estimates
start from averages over such a time and cannot know, and an overloaded broker measures what it
sends and not what it is asked for.

*Memory* and *time*: PRESS and the offload algorithms by themselves, for a broker with so many
distinct subscriptions `symbol = S and volume > v` and an idle partner. Times are those of the
machine; the fastest of three counts.
""",
    scales={
        "small": Scale([*_accuracy(SMALL, 10, SAMPLES, 200), *DECISIONS], seeds=1),
        "paper": Scale(
            [
                *_accuracy(CLUSTER, *VARIED),
                *_accuracy(SIMULATION, SAMPLES),
                *_accuracy(PLANETLAB, SAMPLES),
                *DECISIONS,
            ],
            seeds=1,
        ),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    alone=is_timed,
)
