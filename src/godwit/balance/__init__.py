"""Staged load balancing of brokers that share subscriptions (BAD Pub/Sub), as pure planning.

    plan(subscribers, home, m, Thresholds(alpha=0.15, beta=300e6), Strategy.LDM)

    model      who holds what at which rate; what that costs each broker
    initial    stage 1: which broker a newcomer gets
    migrating  stage 2: LDM and SDM, single subscribers leave the most loaded broker
    shuffle    stage 3: GSH, everybody is assigned anew
    improving  beyond the paper: a shuffle that makes use of what subscribers share
    bounds     what no assignment can go below
    staged     which stage it is, and the plan

Nothing here does I/O, knows a clock or draws by itself; subscribers, brokers and BE subscriptions
are numbers, and whoever calls keeps their names.
"""

from godwit.balance.bounds import Bound, lower_bound
from godwit.balance.model import BrokerLoads, Loads, Subscribers, loads
from godwit.balance.staged import Move, Plan, Stage, Strategy, Thresholds, plan

__all__ = [
    "Bound",
    "BrokerLoads",
    "Loads",
    "Move",
    "Plan",
    "Stage",
    "Strategy",
    "Subscribers",
    "Thresholds",
    "loads",
    "lower_bound",
    "plan",
]
