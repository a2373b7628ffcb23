"""`offload-cost`: the memory of PRESS, and the time that offload algorithms take to choose."""

from __future__ import annotations

from godwit.experiments.offload_cost.claims import CLAIMS
from godwit.experiments.offload_cost.figures import FIGURES
from godwit.experiments.offload_cost.measures import MEASURES, measure
from godwit.experiments.offload_cost.runs import MEMORY, TIME, is_timed, run
from godwit.lab.declaration import Case, Experiment, Scale

CASES: list[Case] = [
    {"study": MEMORY, "number": 10_000, "press_samples": 100},
    *({"study": TIME, "number": n, "press_samples": 50} for n in (1000, 2000, 4000, 8000)),
]

EXPERIMENT = Experiment(
    name="offload-cost",
    title="Offload algorithms: memory and time of a decision",
    question="What does it cost a broker to decide which subscribers to give away?",
    setup="""\
PRESS and the offload algorithms by themselves, for a broker with so many distinct subscriptions
`symbol = S and volume > v` and an idle partner. Times are processor times; the fastest of
three counts.
""",
    scales={"small": Scale(CASES, seeds=1), "paper": Scale(CASES, seeds=1)},
    remarks="""\
One run on a machine with a load average of 18.

L41 random: every step takes a time that does not depend on n. From 1,000 to 8,000 subscriptions,
4 to 45 ms, the time grows 11 times instead of 8; other processes share the caches.
""",
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    alone=is_timed,
)
