"""`balance-local`: local load balancing in a star of four edge brokers (LS1 to LS3)."""

from __future__ import annotations

from godwit.experiments.balance.claims import SIMULATION, SMALL, SMALL_ALIKE
from godwit.experiments.balance.measures import MEASURES, measure
from godwit.experiments.balance.runs import run
from godwit.experiments.balance.setup import SETUP, SHARED, cases
from godwit.experiments.balance_local.claims import ALL, CLAIMS, CLOSE_TRIGGER
from godwit.experiments.balance_local.figures import FIGURES
from godwit.experiments.balance_local.parameter_claims import VARIED
from godwit.lab.declaration import Case, Experiment, Scale


def _both_kinds(platforms: tuple[str, ...]) -> list[Case]:
    return [
        case for settings in ("default", "adaptive") for case in cases(platforms, settings=settings)
    ]


CLOSE = cases((SIMULATION,), settings=CLOSE_TRIGGER)
PARAMETERS = [case for name in VARIED for case in cases((SMALL_ALIKE,), settings=name)]

EXPERIMENT = Experiment(
    name="balance-local",
    title="Local load balancing",
    question=(
        "All subscribers join one of four edge brokers. Are they spread according to what each"
        " broker can do, how soon, at what cost, and again when the load steps up?"
    ),
    setup=SETUP
    + """
The star LS1: head B0, edge brokers B1 to B4; all subscribers join B1. Each platform is run with
conventional and with Adaptive PIE. Settings that are varied are run on the platform *small-alike*:
*frequent* (PIE every 10 s, detection after 7 to 14 s) and *rare* (90 s, 60 to 120 s) instead of
30 s and 20 to 40 s; triggers of 0.96 (*only overload*) and 0.01 (*fine trigger*) instead of 0.1; a
balance threshold of 0.3 (*coarse balance*) instead of 0.005. The simulation is also run with
triggers of 0.05 (*close trigger*): what is within the trigger stays as it is.
""",
    scales={
        "small": Scale([*_both_kinds((SMALL, SMALL_ALIKE)), *PARAMETERS], seeds=1),
        "paper": Scale(
            [*_both_kinds(ALL), *CLOSE, *cases((SMALL_ALIKE,), settings="default"), *PARAMETERS],
            seeds=1,
        ),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    shares=SHARED,
)
