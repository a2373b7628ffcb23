"""Brokers that join clusters and leave them, by epochs.  Pure.

    join     the new broker starts, outside; the next epoch has it, in the last cluster
    leave    it is drained; in the next epoch it is in a cluster of its own, on which nothing
             depends, and the others are in as many clusters as before; then it goes

M1  A broker goes only if no publication or subscription of others passes it: nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from godwit.api.network_api import (
    BrokerAccount,
    ChangeKind,
    ChangeRequest,
    ChangeStep,
    ClusterAccount,
    StepKind,
)
from godwit.overlay.clusters.cluster_structure import cluster_settings, structure_of

MEMBERSHIP = (ChangeKind.JOIN, ChangeKind.LEAVE)
OVERLAY = "clusters"


def present_clusters(accounts: Mapping[str, BrokerAccount]) -> ClusterAccount | None:
    """The clusters that the network is in, if it is: those of the latest epoch."""
    latest = sorted(accounts.values(), key=lambda account: account.epoch)
    found = [each.clusters for each in latest if each.clusters is not None]
    return found[-1] if found and latest[-1].clusters is not None else None


def cluster_steps(
    request: ChangeRequest, now: ClusterAccount, steps: Sequence[ChangeStep]
) -> list[ChangeStep]:
    """The steps of a join, or those of a leave: drained, moved aside, gone."""
    (name,) = request.brokers
    others = [broker for broker in now.brokers if broker != name]
    clusters = min(now.clusters, len(others))
    if request.kind is ChangeKind.JOIN:
        settings = cluster_settings([*others, name], clusters)
        return [*steps, _reshape(settings)]
    settings = cluster_settings([*others, name], clusters, leaving=name)
    drain, leave = steps
    return [drain, _reshape(settings), leave]


def _reshape(settings: Mapping[str, Any]) -> ChangeStep:
    structure = structure_of(settings)
    return ChangeStep(
        kind=StepKind.RESHAPE,
        broker="the network",
        members=list(structure.brokers),
        links=sorted(structure.topology.links),
        overlay=OVERLAY,
        settings=dict(settings),
    )
