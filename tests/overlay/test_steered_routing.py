"""Handovers between mates, step by step: four brokers in two clusters, (A B) and (C D)."""

from __future__ import annotations

from typing import Any

import pytest

from godwit.broker.effects import OpenLink, Send
from godwit.broker.routing import (
    Confirm,
    Place,
    ResumeSubscriptions,
    RouteCluster,
    RouteRing,
    StopSubscriptions,
)
from godwit.broker.stimuli import Hop, LinkKind, LocalClient, Neighbour
from godwit.content.filters import Filter
from godwit.content.messages import (
    AdvertisementId,
    ClusterNotice,
    ClusterStep,
    Paused,
    Publication,
    Subscription,
    SubscriptionId,
    Unsubscription,
)
from godwit.errors import UsageError
from godwit.overlay.clusters.cluster_structure import cluster_settings
from godwit.overlay.clusters.steered_routing import CLUSTER_LANE, RING_LANE, SteeredRouting

A, B, C = Neighbour("A"), Neighbour("B"), Neighbour("C")
B_RING, B_CLUSTER = Neighbour("B", RING_LANE), Neighbour("B", CLUSTER_LANE)
A_RING, A_CLUSTER = Neighbour("A", RING_LANE), Neighbour("A", CLUSTER_LANE)
P, S = LocalClient("p"), LocalClient("s")
PUBLICATION = Publication(
    publisher="p", sequence=1, advertisement=AdvertisementId("p/1"), content={"a": 1}
)
SUBSCRIPTION = Subscription(id=SubscriptionId("x/1"), filter=Filter.parse("a = 1"))


def router(broker: str) -> SteeredRouting:
    """A has the mate B, and C in its ring; B has the mate A, and D."""
    links = {"A": "BC", "B": "AD"}[broker]
    return SteeredRouting(Place.of(broker, links, settings=cluster_settings("ABCD", 2)))


def to(routing: SteeredRouting, last_hop: Hop = P) -> list[Hop]:
    return sorted(routing.destinations(PUBLICATION, last_hop, 0, 0.0), key=repr)


def notice(step: ClusterStep, **fields: Any) -> ClusterNotice:
    return ClusterNotice(step=step, **fields)


def flushed(routing: SteeredRouting, sends: list[Any]) -> list[Any]:
    """Answer all flushes among these; return what follows."""
    answers: list[Any] = []
    for send in sends:
        message = send.message if isinstance(send, Send) else None
        if isinstance(message, ClusterNotice) and message.step is ClusterStep.FLUSH:
            answer = notice(ClusterStep.FLUSHED, number=message.number)
            answers += routing.handle(answer, send.to)
    return answers


def with_ring_route() -> SteeredRouting:
    routing = router("A")
    opened = [OpenLink("B", "", LinkKind.SOFT, RING_LANE)]
    assert routing.steer(RouteRing("p", (1,), "B")) == opened
    flush = routing.link_up(B_RING, LinkKind.SOFT)
    assert {send.to for send in flush if isinstance(send, Send)} == {B_RING, B, C}
    share = notice(ClusterStep.RING_SHARE, publisher="p", clusters=(1,))
    assert flushed(routing, flush) == [Send(B_RING, share)]
    return routing


def test_a_publisher_is_handed_over_when_its_way_is_empty() -> None:
    routing = with_ring_route()
    assert to(routing) == [B_RING], "and not C"
    routing.check()


def test_a_publication_on_the_old_way_delays_the_change() -> None:
    routing = router("A")
    routing.steer(RouteRing("p", (1,), "B"))
    flush = routing.link_up(B_RING, LinkKind.SOFT)
    assert to(routing) == [C]
    again = flushed(routing, flush)
    assert {send.to for send in again} == {B_RING, B, C}, "it asks once more"
    assert to(routing, LocalClient("p")) == [C]
    assert len(flushed(routing, again)) == 3


def test_a_change_for_a_publisher_that_never_rests_is_given_up() -> None:
    routing = router("A")
    routing.steer(RouteRing("p", (1,), "B"))
    flush = routing.link_up(B_RING, LinkKind.SOFT)
    for _ in range(5):
        to(routing)
        flush = flushed(routing, flush)
    assert flush == []
    assert not routing.steering.is_changing
    assert to(routing) == [C]


def test_a_ring_helper_only_passes_on_what_it_was_told() -> None:
    routing = router("B")
    routing.handle(SUBSCRIPTION, S)
    routing.link_up(A_RING, LinkKind.SOFT)
    assert to(routing, A_RING) == []
    routing.handle(notice(ClusterStep.RING_SHARE, publisher="p", clusters=(1,)), A_RING)
    assert to(routing, A_RING) == [Neighbour("D")], "its client s gets it from A, on another link"


def test_a_cluster_helper_matches_and_sends_nothing_back() -> None:
    routing = router("B")
    routing.handle(SUBSCRIPTION, S)
    routing.handle(Subscription(id=SubscriptionId("y/1"), filter=Filter.parse("a = 1")), A)
    routing.link_up(A_CLUSTER, LinkKind.SOFT)
    agreed = routing.handle(notice(ClusterStep.HELP), A_CLUSTER)
    assert agreed == [Send(A_CLUSTER, notice(ClusterStep.HELPS))]
    assert routing.steering.matches_for == ("A",)
    assert to(routing, A_CLUSTER) == [S], "not A, although A wants it: A has it"
    routing.handle(notice(ClusterStep.HELP_OVER), A_CLUSTER)
    assert not routing.steering.matches_for


def helped(request: RouteCluster | StopSubscriptions) -> tuple[SteeredRouting, list[Any]]:
    """A, after B has agreed to match; and what A sends when its ways are empty."""
    routing = router("A")
    routing.handle(Subscription(id=SubscriptionId("y/1"), filter=Filter.parse("a = 1")), B)
    assert routing.steer(request) == [OpenLink("B", "", LinkKind.SOFT, CLUSTER_LANE)]
    asked = routing.link_up(B_CLUSTER, LinkKind.SOFT)
    assert asked == [Send(B_CLUSTER, notice(ClusterStep.HELP))]
    assert to(routing, C) == [B], "not yet"
    flush = routing.handle(notice(ClusterStep.HELPS), B_CLUSTER)
    return routing, flushed(routing, flush)


def test_a_mate_matches_for_a_publisher_until_that_is_over() -> None:
    routing, _ = helped(RouteCluster("p", "B"))
    assert to(routing, C) == [B_CLUSTER]
    back = flushed(routing, routing.steer(RouteCluster("p", None)))
    assert back == [Send(B_CLUSTER, notice(ClusterStep.HELP_OVER))]
    assert to(routing, C) == [B]


def test_a_mate_that_cannot_help_is_not_used() -> None:
    routing = router("A")
    routing.steer(RouteCluster("p", "B"))
    routing.link_up(B_CLUSTER, LinkKind.SOFT)
    assert routing.handle(notice(ClusterStep.CANNOT_HELP), B_CLUSTER) == []
    assert not routing.steering.is_changing


def test_sub_stop_comes_when_the_broker_matches_nothing_more() -> None:
    routing, stopped = helped(StopSubscriptions("B"))
    assert stopped == [Send(B, notice(ClusterStep.SUB_STOP))]
    assert to(routing, C) == [B_CLUSTER]
    assert routing.handle(notice(ClusterStep.HELP), B_CLUSTER) == [
        Send(B_CLUSTER, notice(ClusterStep.CANNOT_HELP))
    ], "two that stand in for each other would match nothing"
    assert routing.steer(ResumeSubscriptions()) == [Send(B, notice(ClusterStep.SUB_RESUME))]
    assert to(routing, C) == [B_CLUSTER], "its list is not complete yet"
    flush = routing.handle(notice(ClusterStep.SUB_RESENT), B)
    flushed(routing, flush)
    assert to(routing, C) == [B]


def test_one_that_matches_for_others_goes_on_to_take_subscriptions() -> None:
    routing = router("B")
    routing.link_up(A_CLUSTER, LinkKind.SOFT)
    routing.handle(notice(ClusterStep.HELP), A_CLUSTER)
    assert routing.steer(StopSubscriptions("A")) == []


def test_subscriptions_are_withheld_from_one_that_has_stopped_and_sent_again() -> None:
    routing = router("B")
    routing.handle(notice(ClusterStep.SUB_STOP), A)
    in_effect = routing.handle(SUBSCRIPTION, S)
    assert len(in_effect) == 1, "in effect at once: A matches nothing"
    assert isinstance(in_effect[0], Confirm)
    routing.check()
    other = Subscription(id=SubscriptionId("x/2"), filter=Filter.parse("b = 2"))
    routing.handle(other, S)
    assert routing.handle(Unsubscription(id=other.id), S) == [], "A never had it"
    resent = routing.handle(notice(ClusterStep.SUB_RESUME), A)
    assert resent == [Send(A, SUBSCRIPTION), Send(A, notice(ClusterStep.SUB_RESENT))]


def test_a_publisher_that_moves_waits_for_its_handovers() -> None:
    routing = with_ring_route()
    flush = routing.pause(P, 3)
    assert {send.to for send in flush if isinstance(send, Send)} == {B_RING, B, C}
    assert flushed(routing, flush) == [Confirm(P, Paused(move=3))]


def test_a_helper_that_is_lost_leaves_its_work_to_this_broker() -> None:
    routing = with_ring_route()
    routing.link_down(B)
    assert to(routing) == [C]
    routing.check()


def test_only_mates_can_help() -> None:
    with pytest.raises(UsageError, match="C cannot help A: it is not in its cluster"):
        router("A").steer(RouteCluster("p", "C"))
