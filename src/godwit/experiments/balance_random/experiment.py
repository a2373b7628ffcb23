"""`balance-random`: random offload beside the proposed algorithms (LS1 to LS3)."""

from __future__ import annotations

from godwit.experiments.balance.balance_setup import SETUP, SHARED, cases
from godwit.experiments.balance.claims import RANDOM, SMALL, SMALL_ALIKE, THESIS
from godwit.experiments.balance.measures import MEASURES, measure
from godwit.experiments.balance.runs import run
from godwit.experiments.balance_random.claims import ALL, CLAIMS
from godwit.experiments.balance_random.figures import FIGURES
from godwit.lab.declaration import Case, Experiment, Scale


def _both(*platforms: str) -> list[Case]:
    return [case for name in (THESIS, RANDOM) for case in cases(platforms, algorithm=name)]


EXPERIMENT = Experiment(
    name="balance-random",
    title="Random offload, the baseline of load balancing",
    question=(
        "What if an overloaded broker gives away subscribers at random, as many as the loads"
        " suggest, and does not estimate what each of them weighs?"
    ),
    setup=SETUP
    + """
The star LS1 as in `balance-local`, with the proposed algorithms (*thesis*) and with *random*
offload, which computes a number of subscribers from the two loads (4.13, 4.14) and picks them at
random. Detection, mediation and moves are the same.
""",
    scales={
        "small": Scale(_both(SMALL, SMALL_ALIKE), seeds=1),
        "paper": Scale(_both(*ALL), seeds=1),
    },
    remarks="""\
Not run yet at this scale: random offload on both clusters and in the simulation (L9, L10, L11 of
the cluster). L17 of random offload is that of PlanetLab only, which has 120 subscribers, so that
hundreds cannot move. The page has one seed.

On PlanetLab random offload moves 193 subscribers (proposed: 26) and overloads B4, the weakest: its
Or is 2.3 before the step and 3.3 after it, the mean delay of a delivery 44 s. Its clients cannot
leave, because a move waits for what is queued for them. In the thesis B2 and B3 diverge as well.

L17: 12 subscribers at most, in a session of the heterogeneous cluster for a difference of 0.135; 8
in the simulation, 3 on PlanetLab. For slight differences of Ir up to 207 move, in a session of the
simulation just after the step of the rate, which takes more than half of the offloader's output
with them; two output sessions follow.
""",
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    shares=SHARED,
)
