"""`balance-churn`: load balancing while subscribers come and go (LS4)."""

from __future__ import annotations

from godwit.experiments.balance.balance_setup import SETUP, SHARED, cases
from godwit.experiments.balance.claims import HOMOGENEOUS, RANDOM, SMALL_ALIKE, THESIS
from godwit.experiments.balance.measures import MEASURES, measure
from godwit.experiments.balance.runs import run
from godwit.experiments.balance_churn.claims import CLAIMS, KINDS
from godwit.experiments.balance_churn.figures import FIGURES
from godwit.lab.declaration import Case, Experiment, Scale


def _all(platform: str) -> list[Case]:
    return [
        case
        for joins in KINDS
        for algorithm in (THESIS, RANDOM)
        for settings in ("default", "adaptive")
        for case in cases((platform,), joins=joins, algorithm=algorithm, settings=settings)
    ]


EXPERIMENT = Experiment(
    name="balance-churn",
    title="Load balancing under churn",
    question=(
        "Subscribers come and go all the time. Does balancing stay stable, does it disturb"
        " deliveries, and what does load information cost?"
    ),
    setup=SETUP
    + """
Churn (LS4) in the star of the homogeneous cluster: 60 subscribers join every minute, each stays
7 to 14 minutes. *Grouped*: all joins of a minute go to the same random edge broker; *individual*:
each to a random one. On the platform *small-alike* 15 join every minute. The rate stays
as it is; late is the last part of the run.
""",
    scales={
        "small": Scale(_all(SMALL_ALIKE), seeds=1),
        "paper": Scale(_all(HOMOGENEOUS), seeds=1),
    },
    remarks="""\
The page has one seed.

L7 individual: the two kinds of joins have different subscribers, because they are drawn from one
series of random numbers, and most of what an Or does over time all brokers do together: heavy
subscribers come and go (figures; individual 0.069, grouped 0.063). *L7 apart* takes that out, and
was added when this was known.

L8: with grouped joins the mean difference between brokers is 0.214 with random offload and 0.138
with the proposed algorithms, with individual ones 0.143 and 0.109. Random offload moves 2,997 and
1,953 subscribers, the proposed algorithms 334 and 256. No broker is overloaded with either.

L24: 23% with individual joins and the proposed algorithms. In the other three pairs Adaptive PIE
costs more than it saves (grouped: 14% more; random offload: 3% and 4% more). The load information
itself falls by 17% to 43%, but a bound that follows a load up and down is replaced often: each time
brokers handle five messages, because the request of a module counts at its own broker, too, and
because our subscriptions are confirmed. The thesis does not say how it counts. On the platform
*small-alike*, grouped, after the joins, only messages between brokers fall by 16%, and by 21%
without confirmations, where by our rule nothing is saved.
""",
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    shares=SHARED,
)
