"""The offload algorithms by action: which clients of the offloader should move to the acceptor.

    Sampled (press.py) --> Offloading (estimates, report cards) --> input   --> OffloadPlan
                                                                    match
                                                                    output
                                                                    random

The thesis's algorithms choose nothing without samples: the session is then pointless (3.11).

A1  A plan with clients has a strictly smaller estimated difference (L39), except a random one.
A2  A plan is a function of the arguments: the same give the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from godwit.content.filters import Filter
from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.input_offload import InputOffload
from godwit.policies.offload.match_offload import MatchOffload
from godwit.policies.offload.output_offload import OutputOffload
from godwit.policies.offload.press import Sampled
from godwit.policies.offload.random_offload import RandomOffload
from godwit.policies.offload.report_cards import NOTHING_SAMPLED, Offloading, OffloadPlan
from godwit.policies.offload.settings import BalancingSettings


def plan_offload(
    action: OffloadAction,
    local: BrokerInfo,
    remote: BrokerInfo,
    remote_css: Sequence[Filter],
    sampled: Sampled,
    settings: BalancingSettings,
    *,
    overloaded: bool,
    random: Random,
) -> OffloadPlan:
    """Which clients of `local` should move to `remote`, so that their loads meet."""
    offloading = Offloading(
        action, local, remote, remote_css, sampled, settings, overloaded=overloaded
    )
    if settings.algorithm == "random":
        return RandomOffload(offloading, random).plan()
    if not sampled.samples:
        return offloading.plan(NOTHING_SAMPLED)
    if offloading.is_done:
        return offloading.plan()
    match action:
        case OffloadAction.INPUT:
            return InputOffload(offloading).plan()
        case OffloadAction.MATCH:
            return MatchOffload(offloading).plan()
        case OffloadAction.OUTPUT:
            return OutputOffload(offloading).plan()
