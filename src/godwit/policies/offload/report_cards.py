"""TEMPORARY scratch: replaced by the other branch."""

from __future__ import annotations
from dataclasses import dataclass, replace
from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction


@dataclass(frozen=True, slots=True)
class OffloadPlan:
    action: OffloadAction
    clients: tuple
    local_before: BrokerInfo
    remote_before: BrokerInfo
    local_after: BrokerInfo
    remote_after: BrokerInfo
    difference_before: float
    difference_after: float
    reason: str


def plan_offload(action, local, remote, css, sampled, settings, *, overloaded, random):
    def metric(i):
        return {
            OffloadAction.OUTPUT: i.output_utilisation,
            OffloadAction.INPUT: i.input_utilisation,
            OffloadAction.MATCH: i.matching_delay_s / settings.delay_normalization_s,
        }[action]

    a, b = local, remote
    diff = metric(a) - metric(b)
    chosen = []
    order = sorted(
        (c for c in sampled.subs if c not in sampled.staying),
        key=lambda c: (-sampled.bytes_by_client.get(c, 0), c),
    )
    if action is OffloadAction.MATCH:
        order = order[::-1]
    for c in order:
        rate = sampled.bytes_by_client.get(c, 0) / sampled.seconds
        if action is OffloadAction.OUTPUT and rate == 0:
            continue
        k = sampled.subs[c]
        a2 = replace(
            a, output_used_bytes_s=a.output_used_bytes_s - rate, subscriptions=a.subscriptions - k
        )
        b2 = replace(
            b,
            output_used_bytes_s=b.output_used_bytes_s + rate,
            subscriptions=b.subscriptions + k,
            input_per_s=min(
                max(a.input_per_s, b.input_per_s),
                b.input_per_s + sampled.counts.get(c, 0) / sampled.seconds,
            ),
        )
        d2 = metric(a2) - metric(b2)
        if (
            abs(d2) >= abs(diff) - 1e-12
            or b2.output_utilisation > 0.9
            or b2.input_utilisation > 0.9
        ):
            continue
        if d2 < -settings.balance_threshold:
            continue
        a, b, diff = a2, b2, d2
        chosen.append(c)
        if diff <= settings.balance_threshold:
            break
    return OffloadPlan(
        action,
        tuple(chosen),
        local,
        remote,
        a,
        b,
        metric(local) - metric(remote),
        diff,
        "balanced" if chosen else "no step improves",
    )
