"""`placement-sampling`: how much POP and GRAPE should trace before they decide (setup GS5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from godwit.experiments.placement.claims import LOAD, POP
from godwit.experiments.placement.measures import MEASURES, measure
from godwit.experiments.placement.placement_setup import SETUP
from godwit.experiments.placement.runs import run
from godwit.experiments.placement_sampling.claims import CLAIMS
from godwit.experiments.placement_sampling.figures import FIGURES
from godwit.lab.declaration import Case, Experiment, Scale

#: The thesis goes from 10 to 12,800.
THRESHOLDS = {LOAD: (10, 50, 100, 400, 12_800), POP: (10, 50, 100, 400)}


def cases(brokers: int, x: int, thresholds: Mapping[str, Sequence[int]]) -> list[Case]:
    return [
        {
            "brokers": brokers, "fanout": 2, "mix": "enterprise", "x": x, "policy": policy,
            "threshold": threshold,
        }
        for policy, of_policy in thresholds.items()
        for threshold in of_policy
    ]  # fmt: skip


EXPERIMENT = Experiment(
    name="placement-sampling",
    title="How much POP and GRAPE should trace before they decide",
    question=(
        "A policy that decides after few publications decides early, often, and perhaps wrongly."
        " How many should POP and GRAPE trace?"
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
    remarks="""\
Two seeds, 12 simulated minutes instead of 18, fewer thresholds than the thesis, and of GRAPE only
load 100%: the tree of 127 brokers takes the longest to run.

GRAPE moves a publisher for the first time after 66 s with G_threshold 10, 113 s with 100 and 250
s with 400 (publishing begins after 61 s), with an overhead of 21.6%, 4.0% and 1.2%; a broker then
has 33.6, 27.5 and 26.8 messages/s, and 36.2 without moves. POP's overhead grows with P_threshold,
from 0.9% with 10 to 13.0% with 400: it traces half the threshold in a minute, and more of them
before it decides; after a move a publisher is not traced for a minute, so early decisions mean
fewer traces. Its message rate grows likewise, from 28.8 to 33.7 a second.

G39 (few) does not reproduce because of the delay, which is 4.72 ms with 10 and 4.75 ms with 400
publications. Ten are enough to find the broker whose subscribers want everything; and with 400
the slowest publishers have not moved within the 12 minutes. In overhead and load ten are worse,
as the thesis states.

G38 (nobody): no publisher publishes 12,800 quotes in 12 minutes, nor in the thesis's 18.

G15: the highest overheads are lower than in the thesis, 13% for POP and 22% for GRAPE, as a share
of all messages in and out of brokers, including deliveries to subscribers.
""",
    figures=FIGURES,
)
