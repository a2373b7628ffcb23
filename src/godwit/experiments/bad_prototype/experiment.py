"""`bad-prototype`: the emergency scenario of BAD under ten schemes of balancing (BS1, BS2)."""

from __future__ import annotations

from itertools import product

from godwit.experiments.bad_prototype.claims import (
    ALPHA,
    CLAIMS,
    HIGHER_ALPHA,
    MIGRATING,
    PLACEMENTS,
)
from godwit.experiments.bad_prototype.figures import FIGURES
from godwit.experiments.bad_prototype.measures import MEASURES, measure
from godwit.experiments.bad_prototype.runs import LDM_GSH, NONE, SDM, SDM_GSH, USERS, is_live, run
from godwit.experiments.bad_simulation.claims import NEAREST
from godwit.lab.declaration import Case, Experiment, Scale

#: What is run live as well: few subscribers, five times as fast.  Not RND: a live coordinator draws
#: from its own generator, and with few subscribers each draw has another initial balance.
LIVE_USERS, LIVE_PACE, LIVE_MINUTES = 120, 5.0, 15
LIVE = ((NEAREST, NONE), (NEAREST, SDM), (NEAREST, SDM_GSH))


def case(driver: str, placement: str, scheme: str, alpha: float, **size: float) -> Case:
    return {"driver": driver, "placement": placement, "scheme": scheme, "alpha": alpha, **size}


def simulated(minutes: int) -> list[Case]:
    schemes = [
        *((p, s, ALPHA) for p, s in product(PLACEMENTS, (NONE, *MIGRATING, LDM_GSH, SDM_GSH))),
        *((NEAREST, s, HIGHER_ALPHA) for s in MIGRATING),
    ]
    return [case("simulated", *each, users=USERS, pace=1.0, minutes=minutes) for each in schemes]


def compared() -> list[Case]:
    size = {"users": LIVE_USERS, "pace": LIVE_PACE, "minutes": LIVE_MINUTES}
    return [case(d, p, s, ALPHA, **size) for (p, s), d in product(LIVE, ("simulated", "live"))]


EXPERIMENT = Experiment(
    name="bad-prototype",
    title="Staged load balancing of the emergency scenario",
    question=(
        "Do migration and shuffle balance the brokers of the BAD prototype for any initial"
        " placement, how many moves do they need, and do live runs agree with the simulation?"
    ),
    setup="""\
BS1: 400 subscribers log in within 4 minutes and subscribe within the next 4, each to 1 to 5 of
seven channels (periods 10, 20, 30 s) with 1 to 3 subscriptions; 8 publishers make about 10,000
reports in 30 minutes; 5 brokers. (Scale *small*: 12 minutes.) People, reports, shelters, channels
and the rows that each execution finds are those of `godwit demo emergencies`; the coordinator is
the production code: placement, plans on brokers' reports every 10 s, steps of 10 moves per second,
hold times of a minute. Loads are bytes in and out, averaged over a minute. *Late* is the second
half of the time after all have subscribed.

| | |
| --- | --- |
| placement | `nearest` (NR), `round robin` (RR), `random` (RND) |
| scheme | `none`; `ldm`, `sdm`: stage 2 only; `ldm+gsh`, `sdm+gsh`: and stage 3 |
| driver | `simulated`: in virtual time; `live`: coordinator, brokers, Spark and subscribers are \
processes and connections on this machine, every delivered row is checked, seed 1 only |
| pace | 1: the paper's time; 5: a fifth of it, 120 people, reports every 2 s, 20 moves a second, \
hold times of 20 s, both live and simulated. Minutes are always the paper's |

Chosen before the first run where the paper is silent: alpha is 0.05, the lower one of the paper's
simulation, as the prototype is said to remove slight imbalance too (0.15 is run for comparison);
beta and theta are 140 kB/s, in the same proportion to the mean load as the 300 MB/s of its
simulation; gamma is 0.5. One broker is in the middle of town and four at its corners, so that NR
overloads the first. The town is a grid of streets of the size of ONE's Helsinki; subscribers are
anywhere in it. A move takes half a second in the simulation; executions take no time there.
""",
    scales={
        "small": Scale(simulated(minutes=12), seeds=1),
        "paper": Scale(simulated(minutes=30), seeds=5, once=compared()),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    remarks="""\
What did not reproduce depends on thresholds that the paper does not state, and on the rule that a
claim must hold for every seed.

B3b, B7a
: In one of five towns (seed 2) NR is at cov 0.46 when the mean load reaches beta, after 6 minutes.
  That is below our gamma, so single subscribers migrate, cov falls, and no shuffle is needed any
  more. In the other four the shuffle comes first, and 3 to 9 moves follow it, where LDM and SDM
  alone make 21 to 46 after their first plan.

B4b
: RR spreads subscribers so evenly that in two towns cov is 0.03 anyway, less than alpha: a few
  moves in the first minutes change nothing later. In the other three both measures are lower.

bad-5, bad-6
: Without balancing the maximum load differs by 4% from the simulated one. With it, live loads vary
  far more: averages over a minute of the paper, which is 12 s here, of the brokers' mean load are
  107 to 1,076 kB/s live and 467 to 537 kB/s simulated, and brokers do not vary together. The
  machine was busy with other work, and Spark was late. The sampling adds to it: a live broker's
  reports are read once a second, and hold until the next, however late that is.
  Averaged over the late time (figure live-loads) the most loaded broker has 2% more than simulated
  with SDM and 9% less with GSH; but the least loaded has 30% and 55% less.
  One more run with SDM, on a quieter machine and not in the values below, is within both rules:
  cov 0.08 (simulated 0.06), the maximum 454 kB/s (545) and 1.11 times the mean (1.06), 28 moves
  (26).

bad-7 was added after the first two live runs, because they show more than the difference to the
simulation. Every row of the live runs was checked against a batch query: nothing was missing or
duplicate.

These values were measured before brokers stopped reporting the rates of very new subscriptions.
Simulated again with that change, every verdict is the same; the numbers of moves differ slightly
(NR with LDM 62 instead of 60, with LDM + GSH 234 instead of 245). The live runs were not repeated.

The cost: the shuffle moves three quarters of the subscribers, LDM and SDM one in six, for the same
final balance.
""",
    uses=("api", "client", "coordinator", "datacluster", "http", "runtime", "sharing", "spark"),
    alone=is_live,
)
