"""What is done when a broker joins clusters or leaves them: cluster_membership.py."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from godwit.api.network_api import (
    Authority,
    BrokerAccount,
    ChangeKind,
    ChangeRequest,
    ClusterAccount,
    StepKind,
)
from godwit.coordinator.change_requests import steps_for
from godwit.coordinator.change_rules import Circumstances, check_change
from godwit.coordinator.cluster_membership import present_clusters
from godwit.http.errors import RestError
from godwit.overlay.clusters.cluster_structure import cluster_settings, structure_of

FOUR = ("B1", "B2", "B3", "B4")
JOIN = ChangeRequest(kind=ChangeKind.JOIN, brokers=["B5"], link="B1")
LEAVE = ChangeRequest(kind=ChangeKind.LEAVE, brokers=["B1"])


def account(broker: str, *, epoch: int = 0, clusters: int | None = 2) -> BrokerAccount:
    found = None if clusters is None else ClusterAccount(brokers=list(FOUR), clusters=clusters)
    return BrokerAccount(
        broker=broker,
        start="1",
        pid=1,
        started_s=0.0,
        url="godwit://h:1",
        epoch=epoch,
        clusters=found,
    )


def now(*silent: str, accounts: Mapping[str, BrokerAccount] | None = None) -> Circumstances:
    return Circumstances(
        authority=Authority(1, "a"),
        known=dict.fromkeys((*FOUR, "B5"), "http://h:1"),
        live=frozenset(FOUR) - set(silent),
        accounts=accounts or {name: account(name) for name in FOUR},
        room=10,
    )


def test_a_broker_that_joins_is_in_the_last_cluster_of_the_next_epoch() -> None:
    check_change(JOIN, now())
    join, reshape = steps_for(JOIN, now())
    assert (join.kind, join.broker, reshape.kind) == (StepKind.JOIN, "B5", StepKind.RESHAPE)
    assert (reshape.overlay, reshape.settings) == ("clusters", cluster_settings([*FOUR, "B5"], 2))
    assert structure_of(reshape.settings).clusters == (("B1", "B2", "B3"), ("B4", "B5"))
    assert set(reshape.links) == structure_of(reshape.settings).topology.links
    assert reshape.members == [*FOUR, "B5"]


def test_a_broker_that_leaves_is_moved_aside_before_it_goes() -> None:
    check_change(LEAVE, now())
    drain, reshape, leave = steps_for(LEAVE, now())
    assert [drain.kind, reshape.kind, leave.kind] == [
        StepKind.DRAIN,
        StepKind.RESHAPE,
        StepKind.LEAVE,
    ]
    assert structure_of(reshape.settings).clusters == (("B2", "B3"), ("B4",), ("B1",))
    assert set(reshape.members) == set(FOUR)
    assert set(reshape.links) == structure_of(reshape.settings).topology.links


def test_there_are_no_more_clusters_than_brokers_that_stay() -> None:
    accounts = {name: account(name, clusters=4) for name in FOUR}
    _, reshape, _ = steps_for(LEAVE, now(accounts=accounts))
    assert structure_of(reshape.settings).clusters == (("B2",), ("B3",), ("B4",), ("B1",))


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(RestError, match="brokers are silent: B3"):
        check_change(JOIN, now("B3"))
    with pytest.raises(RestError, match="B1 is the last one"):
        check_change(LEAVE, now("B2", "B3", "B4"))


def test_the_latest_epoch_says_whether_there_are_clusters() -> None:
    was_tree = {"B1": account("B1", clusters=None), "B2": account("B2", epoch=1)}
    assert present_clusters(was_tree) == ClusterAccount(brokers=list(FOUR), clusters=2)
    is_tree = {"B1": account("B1"), "B2": account("B2", epoch=1, clusters=None)}
    assert present_clusters(is_tree) is None
    assert present_clusters({}) is None
