"""Random offload: as many subscriptions as the loads suggest, chosen at random.  The baseline.

Paper    Cheung, thesis 4.3.4, equations (4.13) and (4.14).
Words    Loff, Lacc, Lavg -> local, remote, mean; noff, nacc -> local_n, remote_n; c -> the count.
Claim    None: without estimates and without knowledge of filters, a session may make the balance
         worse, and sessions may undo each other.
Departs  1. A client moves with all its subscriptions: clients are drawn until their subscriptions
            reach the count, and one that would exceed it is passed over.
         2. Without load at the acceptor, or without subscriptions there, (4.14) divides by 0; the
            count is then that of (4.13).  Halves are rounded up.
         3. The plan has estimates like the others, for comparison; they decide nothing.
Tested   tests/policies/offload/test_random_offload.py: test vector 8.
"""

from __future__ import annotations

from random import Random

from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.report_cards import (
    NOT_HIGHER,
    Offloading,
    OffloadPlan,
    ReportCard,
)

CHOSEN_AT_RANDOM = "chosen at random"


def subscriptions_to_move(local: float, remote: float, local_n: int, remote_n: int) -> float:
    """c: how many subscriptions bring two loads to their mean, if all weigh the same."""
    if local <= 0:
        return 0.0
    mean = (local + remote) / 2
    c1 = local_n - mean * local_n / local
    if remote <= 0 or not remote_n:
        return c1
    c2 = mean * remote_n / remote - remote_n
    return c1 if c2 > local_n else (c1 + c2) / 2


def load(action: OffloadAction, info: BrokerInfo) -> float:
    match action:
        case OffloadAction.INPUT:
            return info.input_utilisation
        case OffloadAction.MATCH:
            return info.matching_delay_s
        case OffloadAction.OUTPUT:
            return info.output_utilisation


class RandomOffload:
    def __init__(self, offloading: Offloading, random: Random) -> None:
        self._offloading = offloading
        self._random = random

    def plan(self) -> OffloadPlan:
        offloading = self._offloading
        local, remote, action = offloading.pair.local, offloading.pair.remote, offloading.action
        wanted = subscriptions_to_move(
            load(action, local), load(action, remote), local.subscriptions, remote.subscriptions
        )
        left = int(wanted + 0.5) if wanted > 0 else 0
        if not left:
            return offloading.plan(NOT_HIGHER)
        draws = [
            group
            for group, clients in enumerate(offloading.traffic.clients)
            for _ in range(clients)
        ]
        self._random.shuffle(draws)
        for group in draws:
            if not left:
                break
            if offloading.per_client[group] <= left:
                left -= offloading.per_client[group]
                offloading.apply(ReportCard(group, 1, 0.0, is_covered=False, saved_bits=0))
        return offloading.plan(CHOSEN_AT_RANDOM, whatever_it_gains=True)
