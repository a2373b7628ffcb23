"""`cram-vectors`: how long bit vectors must be."""

from __future__ import annotations

from collections.abc import Sequence

from godwit.experiments.allocation.claims import BIN_PACKING, IOU
from godwit.experiments.allocation.measures import MEASURES, measure
from godwit.experiments.allocation.runs import run
from godwit.experiments.allocation.scales import SETUP, cases
from godwit.experiments.cram_vectors.claims import CLAIMS
from godwit.experiments.cram_vectors.figures import FIGURES
from godwit.lab.declaration import Case, Experiment, Scale


def _cases(brokers: int, subscriptions: int, lengths: Sequence[int]) -> list[Case]:
    return [
        case
        for length in lengths
        for compensated in (True, False)
        for case in cases(
            brokers, "equal", (subscriptions,), (BIN_PACKING, IOU),
            vector_length=length, compensated=compensated,
        )
    ]  # fmt: skip


def _always(_case: Case) -> bool:
    """Plans are timed."""
    return True


EXPERIMENT = Experiment(
    name="cram-vectors",
    title="CRAM: how long bit vectors must be",
    question=(
        "A bit vector records the last publications of a publisher. What do shorter ones cost, and"
        " does the thesis's scaling of loads prevent overload?"
    ),
    setup=SETUP
    + """
Vectors are filled with the first 128 to 1,024 quotes of each publisher (small: 35 to 140), and
after deployment one in ten of all 1,280 is played: loads are predicted, not known. *Scaled*: as in
7.3.8 of the thesis, a subscription that received a small share of the vector counts as more.
""",
    scales={
        "small": Scale(_cases(16, 400, (35, 140)), seeds=1),
        "paper": Scale(_cases(80, 4000, (128, 256, 512, 1024)), seeds=1),
    },
    remarks="""\
The runs of this page are older than a correction, which `allocation-homogeneous` describes: copies
of a publication now leave a broker one after another.

R31: the time grows less than the length: most of it is not spent on words.

R32: from 128 to 1,024 bits the highest rate of CRAM-IOU falls from 16.3 to 7.0 messages a second,
because stocks are split less often, and so does Ir. The number of brokers is 8 at every length, for
both algorithms: the thesis's scaling adds a broker to CRAM-IOU, which needs 7 without it.

R33: no broker is overloaded, with or without scaling. Without it, vectors of 128 bits predict the
output bandwidth of a broker with an error of 28% at most, of 1,024 bits with 1%; one broker of BIN
PACKING reaches an Or of 98%. The 15% of the bandwidth that plans may not use are enough here.
""",
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    alone=_always,
)
