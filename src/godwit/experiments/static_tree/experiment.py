"""`static-tree`: the thesis's publisher placement without any policy, the baseline for others."""

from __future__ import annotations

from godwit.experiments.static_tree.claims import CLAIMS
from godwit.experiments.static_tree.figures import FIGURES
from godwit.experiments.static_tree.measures import MEASURES, measure
from godwit.experiments.static_tree.runs import PARITY_BROKERS, is_live, run
from godwit.lab.declaration import Case, Experiment, Scale
from godwit.workloads.placement import Mix


def _cases(*swept: tuple[int, tuple[int, ...]]) -> list[Case]:
    parity: list[Case] = [
        {"driver": driver, "brokers": PARITY_BROKERS, "mix": "random", "x": 4}
        for driver in ("live", "simulated")
    ]
    return parity + [
        {"driver": "simulated", "brokers": brokers, "mix": mix.value, "x": x}
        for brokers, places in swept
        for mix in Mix
        for x in places
    ]


EXPERIMENT = Experiment(
    name="static-tree",
    title="A static tree: the baseline of publisher placement",
    question=(
        "How busy are the brokers of a balanced tree, and how far and how long do publications"
        " travel, when publishers and subscribers stay where they are? And does the simulator"
        " deliver what real processes deliver?"
    ),
    setup="""\
Setup GS1 of the thesis (7.2.1) without POP or GRAPE, on generated quotes: a balanced tree with
fan-out 2; each publisher, of one stock each, sits at a random broker, and its subscribers sit at X
brokers drawn for it.

| | 63 brokers (the thesis's PlanetLab) | 127 brokers (its cluster) | 31 brokers (scale small) |
| --- | --- | --- | --- |
| publishers | 20 | 30 | 8 |
| quotes per minute, of each | 10 to 40 | 30 to 300 | 30 to 120 |
| subscribers of each | 80 | 200 | 40 |
| simulated | 18 minutes | 18 minutes | 1.5 minutes |
| measured | the last 3 minutes | the last 3 minutes | the last minute |

In the *random* workload (GS2) 70% of the subscribers sink 10% of the quotes, 25% sink half and 5%
all. In the *enterprise* workload (GS3) 5% sink all and sit together at one broker, 95% sink 10%.
Brokers and links have the simulator's defaults (0.1 ms and 1 µs for each subscription to match a
message, 100 Mbit/s, 0.5 ms between neighbours): the thesis does not describe its machines.

The oracle checks every delivery of every run; a violation is an error.

The comparison with real processes plays 3 seconds of quotes through 7 brokers, once simulated and
once live, with nothing else running except Spark, which may be starting. The live run is measured
at its clients, whose clock is that of the brokers: all run on one machine.
""",
    scales={
        "small": Scale(_cases((31, (1, 31))), seeds=2),
        "paper": Scale(
            _cases((63, (1, 2, 4, 8, 16, 32, 63)), (127, (1, 2, 4, 8, 16, 32, 127))), seeds=3
        ),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    remarks="""\
These values are from one seed, so "for every seed" says little yet. The live delays were measured
while the machine was busy with other work, and are much longer than on a quiet machine. The shares
sunk by ratings are off by up to 7.9%, not far from the 10% of the rule: a market of twenty stocks
and three minutes is small. No broker is near its limits with the simulator's default resources.
""",
    uses=("runtime", "cli.broker"),
    alone=is_live,
)
