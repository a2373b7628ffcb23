"""The dynamic load balancer of subscribers (thesis, chapter 4), as a module of a broker.

settings.py            the settings
peer.py                PEER: cluster-heads, edge brokers, clusters
broker_load.py         the load of a broker, measured or estimated
load_averages.py       the load of this broker between two detections
pie.py                 PIE: the messages with the load, when they are sent, what is known from them
adaptive_pie.py        Adaptive PIE: subscriptions to the lighter brokers only
load_status.py         OK, N/A, STABILIZING, BUSY: the status machine as a table
detection.py           with which brokers, and how, to balance
mediation_messages.py  the messages between two brokers of a session
mediation.py           the mediator: one session at a time
offloading.py          a session as the offloader sees it
accepting.py           a session as the acceptor sees it
edge_context.py        what the parts of an edge broker share
holds.py               clients and pairs of brokers that are left alone for a while
outcomes.py            predicted against achieved
covering_sets.py       the CSS of the acceptor
edge_balancer.py       the balancer of an edge broker
head_balancer.py       the balancer of a cluster-head: global sessions
offload_module.py      the module of a broker: role, messages, operator
alarms.py              timers, one for each purpose
control_post.py        control publications and subscriptions of the module
press.py               PRESS: which subscribers draw which traffic, from samples
report_cards.py        the offload algorithms' common part

    simulator = Simulator(star(4), seed=1, modules=offload.modules(BalancingSettings(), seed=1))

A policy decides; migration/ moves the subscriber.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from godwit.broker.modules import PolicyModule
from godwit.policies.offload.offload_module import Offload
from godwit.policies.offload.report_cards import plan_offload
from godwit.policies.offload.settings import BalancingSettings


def modules(
    settings: BalancingSettings | None = None, *, seed: int = 0
) -> Callable[[str], Sequence[PolicyModule]]:
    """A factory of the module of each broker.

    The times of detection, ids and the random baseline are drawn by `seed` and the broker's name.
    """

    def of_broker(broker: str) -> Sequence[PolicyModule]:
        return [Offload(Random(f"{seed} {broker}"), settings, planner=plan_offload)]

    return of_broker
