"""`bad-simulation`: staged balancing of brokers that share subscriptions (BS3 of BAD Pub/Sub)."""

from __future__ import annotations

from itertools import product

from godwit.experiments.bad_simulation.claims import (
    ALPHAS,
    BETA,
    BETAS,
    CLAIMS,
    FINE,
    FINE_SHUFFLE,
    LEAST,
    NEAREST,
    PAPER,
    RANDOM,
    ROUND_ROBIN,
)
from godwit.experiments.bad_simulation.figures import FIGURES, SCHEMES
from godwit.experiments.bad_simulation.measures import MEASURES, measure
from godwit.experiments.bad_simulation.runs import BROKERS, run
from godwit.lab.declaration import Case, Experiment, Scale


def scale(*, subscribers: int, be: int, seeds: int) -> Scale:
    size = {"brokers": BROKERS, "subscribers": subscribers, "be": be}
    placements = (NEAREST, RANDOM, ROUND_ROBIN)
    settings = [
        *((p, s, *PAPER, BETA) for p, s in product((*placements, LEAST), SCHEMES)),
        *((p, s, *FINE, BETA) for p, s in product(placements, ("ldm", "sdm"))),
        *((p, "gsh", *FINE_SHUFFLE, BETA) for p in placements),
        *((NEAREST, "ldm", alpha, PAPER[1], BETA) for alpha in ALPHAS if alpha != PAPER[0]),
        *((NEAREST, "ldm", *PAPER, beta) for beta in BETAS if beta != BETA),
    ]
    names = ("placement", "scheme", "alpha", "gamma", "beta")
    cases: list[Case] = [{**dict(zip(names, values, strict=True)), **size} for values in settings]
    return Scale(cases, seeds)


EXPERIMENT = Experiment(
    name="bad-simulation",
    title="Staged load balancing, simulated",
    question=(
        "Do dynamic migration and shuffle balance brokers that share subscriptions, how many moves"
        " do they need, and how far from the optimum are they?"
    ),
    setup="""\
10 brokers; 10,000 subscribers with 10 to 30 of 1,000 BE subscriptions each (scale *small*: a tenth
of both, at ten times the rates). Channels execute every 5 to 60 s; every 10 s brokers report what
went in and out and the rate of each BE subscription, averaged over the last 60 s, and the
production code (`godwit.policies.staged`) plans from these. Moves take effect immediately.

| | |
| --- | --- |
| placement | `nearest` (NR), `round robin` (RR), `random` (RND), `least loaded` (as reported) |
| scheme | `none`; `ldm`, `sdm`: stage 2 only; `gsh`: stage 3, and LDM between alpha and gamma; \
`improved`: as `gsh`, with a shuffle that considers sharing |
| alpha, beta | 0.15 and 300 MB/s, as in the paper, unless stated otherwise |

Chosen where the paper is silent: rates have a mean of 20 kB/s and a standard
deviation of a fifth of it; a raised rate is 1.5 to 2.5 times the base rate; gamma is 0.5, theta is
beta; logins come within the first minute; brokers are in towns, and the n-th largest has n^-0.8 as
many people as the largest; averages are over 60 s.
""",
    scales={
        "small": scale(subscribers=1_000, be=100, seeds=1),
        "paper": scale(subscribers=10_000, be=1_000, seeds=3),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    remarks="""\
About the verdicts (numbers are of the scale *paper*):

- B8 and B12 follow from our choices: the sizes of the towns; logins within one minute with reports
  every 10 s, so that six brokers get all subscribers and four none. That is the highest cov (0.82,
  NR 0.65), but not the highest load: the largest town of NR has more subscribers at one broker
  (1,713 MB/s, compared with 1,053).
- With the paper's alpha of 0.15, RND (cov 0.03) and RR (0.008) need no balancing and get none.
  `bad-1` therefore has an alpha of 0.005, and a gamma of 0.006 so that RR is shuffled.
- That gamma was set after a first run, in which 0.01 left RR without a shuffle and the claim held
  through LDM alone; the rule now requires a shuffle. All other rules were fixed after trials of the
  planning code and of scale *small*, but before the first run of scale *paper*. The deviation of
  the rates was a fifth from the start; with 0.1 and 0.3 instead, the improved shuffle is 1.7% and
  1.9% above the bound (one seed).
- B9c holds, but not because LDM takes longer: six of seven moves of LDM come in the same round as
  the shuffle. It stops when cov is at alpha; then cov rises above it again and a few more
  subscribers move, until all have subscribed. Moves take effect immediately here; in the paper's
  simulator they may not.
- B11b holds while the load grows: the smaller beta, the earlier the first move. In the last 10 min
  cov is the same for all three, 0.147 to 0.148, so a smaller beta only costs moves then.
- LDM and SDM make equally many moves with equal results: with 200 holders for each BE subscription,
  every broker pulls nearly all of them, so similarity makes no difference.
- `bad-2` is about base rates. At the rates of the end, which differ more from each other, the
  improved shuffle is 2.1% above the lower bound, GSH 2.6%. How much of that is due to the bound and
  how much to the shuffle is not known.
- In the runs, the improved shuffle does *worse* than GSH. It happens at 260 s, when half of the
  subscriptions exist, and is optimal for these; the other half undoes it (cov 0.11 in the end, GSH
  0.005). It is worth its moves only where subscriptions have settled.
""",
)
