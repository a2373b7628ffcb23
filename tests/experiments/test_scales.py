"""At every scale of every experiment each claim is judged, or reported as not measured."""

from __future__ import annotations

import pytest

from godwit.experiments import EXPERIMENTS
from godwit.lab.declaration import Measured, Results
from godwit.lab.rules import Verdict
from godwit.lab.runner import planned
from godwit.lab.summary import summarise

#: Claims about what the small scale does not have: other sizes and fan-outs, X = 2, live runs,
#: the heterogeneous cluster and PlanetLab, 80 brokers; of a mesh, 120 and 250 brokers.
NOT_MEASURED = {
    ("grape-enterprise", "small"): {
        "G10", "G11", "G17 trends", "G17 reductions", "G17 times", "G21 GRAPE", "G23",
    },
    ("bad-prototype", "small"): {"bad-5", "bad-6", "bad-7"},
    ("balance-local", "small"): {"L5", "L43", "balance-2"},
    ("balance-random", "small"): {"L11 cluster", "L11 PlanetLab", "L15"},
    ("balance-edges", "small"): {"L26 PlanetLab"},
    ("balance-global", "small"): {"L35"},
    ("allocation-homogeneous", "small"): {"R8 equal", "R14"},
    ("allocation-heterogeneous", "small"): {"R8 unequal", "R30 unequal, PAIRWISE-N"},
    ("mesh-paths", "small"): {"P1 120", "P1 250"},
    ("mesh-paths", "paper"): {"P1 250"},
    ("mesh-paths", "large"): {"P1 120", "P2", "P2 SH", "P3", "P8 S1", "P8 S2", "P8 SH"},
    ("press-accuracy", "small"): {"L27 Ir", "L27 Or", "L27 d", "L29", "L29 sessions"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "scale"),
    [(name, scale) for name, experiment in EXPERIMENTS.items() for scale in experiment.scales],
)
def test_every_claim_is_judged_or_reported_as_not_measured(name: str, scale: str) -> None:
    experiment = EXPERIMENTS[name]
    values = dict.fromkeys(experiment.measures, 1.0)
    runs = [Measured(run.case, run.seed, values) for run in planned(experiment, scale)]

    summary = summarise(experiment, scale, Results(runs))

    found = {claim.id for claim in summary.claims if claim.verdict is Verdict.NOT_MEASURED}
    assert found == NOT_MEASURED.get((name, scale), set())
