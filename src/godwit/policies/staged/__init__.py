"""Staged load balancing of brokers that share subscriptions (BAD Pub/Sub): planning only.

    plan(subscribers, home, m, BalancingThresholds(alpha=0.15, beta=300e6), Strategy.LDM)

planning.py   which stage is needed, and the plan
loads.py      the load model: holdings, rates, and the load of each broker
initial.py    stage 1: the broker for a newcomer
migrating.py  stage 2: LDM and SDM; single subscribers leave the most loaded broker
shuffle.py    stage 3: GSH; all subscribers are assigned anew
improving.py  beyond the paper: a shuffle that uses what subscribers share
peeling.py    a start for it: broker after broker gets subscribers with similar holdings
bounds.py     lower bounds of the maximum load

No I/O, no clock, no random numbers except from arguments.  Subscribers, brokers and BE
subscriptions are numbers; the caller keeps their names.
"""

from godwit.policies.staged.bounds import Bound, lower_bound
from godwit.policies.staged.loads import BrokerLoads, Loads, Subscribers, loads
from godwit.policies.staged.planning import (
    BalancingStage,
    BalancingThresholds,
    Plan,
    Strategy,
    SubscriberMove,
    plan,
)

__all__ = [
    "BalancingStage",
    "BalancingThresholds",
    "Bound",
    "BrokerLoads",
    "Loads",
    "Plan",
    "Strategy",
    "SubscriberMove",
    "Subscribers",
    "loads",
    "lower_bound",
    "plan",
]
