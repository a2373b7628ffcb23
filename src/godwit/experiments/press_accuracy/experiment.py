"""`press-accuracy`: estimates against what comes true."""

from __future__ import annotations

from godwit.experiments.balance.balance_setup import SETUP, SHARED, cases
from godwit.experiments.balance.claims import CLUSTER, PLANETLAB, SIMULATION, SMALL
from godwit.experiments.balance.measures import MEASURES, measure
from godwit.experiments.balance.runs import run
from godwit.experiments.press_accuracy.claims import CLAIMS, SAMPLES
from godwit.experiments.press_accuracy.figures import FIGURES
from godwit.lab.declaration import Case, Experiment, Scale

#: Besides the 50 of table 7.1.
VARIED = (10, 200)


def _varied(platform: str) -> list[Case]:
    return [case for number in VARIED for case in cases((platform,), press_samples=number)]


EXPERIMENT = Experiment(
    name="press-accuracy",
    title="PRESS: estimates against what comes true",
    question=(
        "How far are the loads that an offload algorithm expects from those that are measured when"
        " it is done? How many publications must be sampled?"
    ),
    setup=SETUP
    + f"""
The star of `balance-local`, with various numbers of PRESS samples, {SAMPLES} if the case names none
(timeout 30 s). Each side of a session records its estimate of Ir, Or and d, and what its meters
show when its load has settled; the error is relative to the latter. Sessions that an overload
started, or during which or in the 40 s before which subscribers joined or the rate stepped up, do
not count: the estimates start from averages over such a time and cannot know, and an overloaded
broker measures what it sends and not what it is asked for.
""",
    scales={
        "small": Scale([*cases((SMALL,)), *_varied(SMALL)], seeds=1),
        "paper": Scale([*cases((SIMULATION, CLUSTER, PLANETLAB)), *_varied(CLUSTER)], seeds=1),
    },
    remarks="""\
Not run yet at this scale: 10 and 200 samples (L30). The page has one seed.

Not independent tests: three things were changed after a look at first runs. (1) An outcome was
compared with the matching delay of the model; now with the one that was measured. (2) The model
took a bucket of 5 to 14 subscriptions for 10; now it is where its samples were. With both, the
share of L29 rose from 72% to 87%. (3) Sessions did not count if something changed during them; now
also if it changed in the 40 s before, over which loads are averaged. In the simulation that leaves
8 outcomes instead of 14, with errors of 4.0%, 3.1% and 0.0% instead of 7.7%, 4.5% and 0.8%: with
the older rule L28 does not hold for Or.

L27: the errors are those of our disturbance (a standard deviation of 3%), which is milder than what
the thesis's machines had.
""",
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    shares=SHARED,
)
