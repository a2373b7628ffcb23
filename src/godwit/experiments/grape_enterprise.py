"""`grape-enterprise`: POP and GRAPE where a few subscribers of a publisher want everything.

How it is run and measured is in relocating.py, what it claims in grape_enterprise_claims.py.
"""

from __future__ import annotations

from godwit.experiments.grape_enterprise_claims import CLAIMS
from godwit.experiments.relocating import run
from godwit.experiments.relocating_claims import POLICIES
from godwit.experiments.relocating_figures import FANOUT_FIGURES, figures
from godwit.experiments.relocating_measures import MEASURES, measure
from godwit.lab.experiment import Case, Experiment, Scale


def cases(mix: str, *swept: tuple[int, int, tuple[int, ...]]) -> list[Case]:
    """Trees, each with its number of brokers, its fan-out, and at which X it is looked at."""
    return [
        {"brokers": brokers, "fanout": fanout, "mix": mix, "x": x, "policy": policy}
        for brokers, fanout, places in swept
        for x in places
        for policy in POLICIES
    ]


PAPER = (63, 2, (1, 2, 4, 16, 63)), (63, 4, (4, 16)), (127, 2, (4,))

SETUP = """\
Setup GS1 of the thesis (7.2.1): a balanced tree; each publisher, of one stock, sits
at a random broker, and its subscribers sit at X brokers drawn for it.  Four policies: *static*
(nobody moves), POP, GRAPE load 100%, GRAPE delay 100%.

| | 63 brokers (the thesis's PlanetLab) | 127 brokers (its cluster) | 31 brokers (scale small) |
| --- | --- | --- | --- |
| publishers | 20 | 30 | 6 |
| quotes per minute, of each | 10 to 40 | 30 to 300 | 60 to 180 |
| subscribers of each | 80 | 200 | 40 |
| P_threshold = G_threshold | 50 | 100 | 40 |
| simulated | 18 minutes | 12 minutes | 5 minutes |
| measured | the last 3 minutes | the last 2 minutes | the last minute |

POP traces at most half of P_threshold in a minute.  After a move a publisher is left alone for a
minute, which is ours.  Brokers and links have the simulator's defaults (0.1 ms and 1 µs for each
subscription to match a message, 100 Mbit/s, 0.5 ms between neighbours): nobody is near overload,
and what differs between machines of the thesis is not here.

The oracle checks every delivery of every run; a violation would be an error.  Moves lose nothing.
"""

EXPERIMENT = Experiment(
    name="grape-enterprise",
    title="POP and GRAPE with an enterprise workload",
    question=(
        "A few subscribers of each publisher want all it publishes and sit together, many want a"
        " little and sit anywhere. How much load and delay do POP and GRAPE save by moving"
        " publishers, and what do they cost?"
    ),
    setup=SETUP
    + """
In the *enterprise* workload (GS3) 5% of a publisher's subscribers want all its quotes and sit at
one broker; 95% want about a tenth and sit at X - 1 others.

The tree of 63 brokers is looked at with X from 1 to 63, that of 127 with X = 4 only and for 12
minutes instead of 18: five seeds of it take as long as all the rest. For the same reason a tree
of 63 brokers with a fan-out of 4 stands for the thesis's of 127 (figure 7.14).
""",
    scales={
        "small": Scale(cases("enterprise", (31, 2, (1, 4, 16, 31))), seeds=1),
        "paper": Scale(cases("enterprise", *PAPER), seeds=5),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=(
        *figures(
            {
                "message-rate": "7.13a",
                "input": "7.13b",
                "delay": "7.13c",
                "hops": "7.13g",
                "overhead": "7.13h",
                "selection": "7.15b",
                "pause": "7.15c",
            }
        ),
        *FANOUT_FIGURES,
    ),
)
