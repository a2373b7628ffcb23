"""The dynamic load balancer of subscribers (thesis, chapter 4), as a module of a broker.

settings.py            the settings
peer.py                PEER: cluster-heads, edge brokers, clusters
offload_module.py      the module of a broker: role, messages, operator
edge_balancer.py       the balancer of an edge broker
head_balancer.py       the balancer of a cluster-head: global sessions

broker_load.py         the load of a broker, measured or estimated
load_averages.py       the load of this broker between two detections
pie.py                 PIE: the messages with the load, when they are sent, what is known from them
adaptive_pie.py        Adaptive PIE: subscriptions to the lighter brokers only
load_status.py         OK, N/A, STABILIZING, BUSY: the status machine as a table
detection.py           with which brokers, and how, to balance

mediation.py           the mediator of an edge broker: one session at a time
offloader_session.py   a session as the offloader sees it
acceptor_session.py    a session as the acceptor sees it
global_mediation.py    global sessions between two cluster-heads
mediation_messages.py  the messages between two brokers of a session
edge_context.py        what the parts of an edge broker share
holds.py               clients and pairs of brokers that are left alone for a while
obstacles.py           why a cluster stays uneven, and how much better it could be
outcomes.py            predicted against achieved
alarms.py              timers, one for each purpose
control_post.py        control publications and subscriptions of the module

press.py               PRESS: which publications each group of subscribers draws
css.py                 the covering subscription set of many filters
estimates.py           the loads of two brokers after a move
remaining_traffic.py   what each group still draws with the moves so far
report_cards.py        report cards, and the plan of a session
report_pools.py        reports in order, computed again only when they change
input_offload.py       subscriptions of the CSS, until the input utilisations meet
match_offload.py       those with the least traffic, until the matching delays meet
output_offload.py      those that the acceptor covers, then others, until the outputs meet
random_offload.py      the baseline
offload_algorithms.py  the algorithm for an action
load_bounds.py         the least maximum load that any assignment has

    simulator = Simulator(star(4), seed=1, modules=offload.modules(BalancingSettings(), seed=1))

A policy decides; migration/ moves the subscriber.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from godwit.broker.modules import PolicyModule
from godwit.policies.offload.offload_algorithms import plan_offload
from godwit.policies.offload.offload_module import Offload
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
