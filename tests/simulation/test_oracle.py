"""The oracle must notice every way of being wrong, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Publication, Subscription, SubscriptionId
from godwit.simulation.observers import DropReason
from godwit.simulation.oracle import Oracle, ViolationKind

S1, S2 = SubscriptionId("alice/s1"), SubscriptionId("alice/s2")


def publication(sequence: int, x: int = 1) -> Publication:
    return Publication(
        publisher="paul",
        sequence=sequence,
        advertisement=AdvertisementId("paul/a1"),
        content={"x": x},
    )


class Case:
    """An oracle that watches Alice, who wants `x > 0` since t=0."""

    def __init__(self) -> None:
        self.oracle = Oracle(settle_s=10.0)
        self.subscribe(S1, "x > 0")
        self.in_effect(S1)

    def subscribe(self, id: SubscriptionId, filter: str, at_s: float = 0.0) -> None:
        subscription = Subscription(id=id, filter=Filter.parse(filter))
        self.oracle.on_subscribing("alice", subscription, at_s)

    def in_effect(self, id: SubscriptionId, at_s: float = 0.0) -> None:
        self.oracle.on_in_effect("alice", id, at_s)

    def leave(self, id: SubscriptionId, at_s: float) -> None:
        self.oracle.on_unsubscribing("alice", id, at_s)

    def publish(self, *sequences: int, x: int = 1, at_s: float = 1.0) -> None:
        for sequence in sequences:
            self.oracle.on_published(publication(sequence, x), at_s)

    def deliver(self, *sequences: int, x: int = 1, at_s: float = 2.0) -> None:
        for sequence in sequences:
            self.oracle.on_delivered(["alice"], publication(sequence, x), 1, at_s)

    def verdicts(self) -> list[tuple[ViolationKind, int]]:
        self.oracle.finish(100.0)
        return [(v.verdict, v.sequence) for v in self.oracle.violations]


def everything_arrives(case: Case) -> None:
    case.publish(1, 2, 3)
    case.deliver(1, 2, 3)


def one_is_missing(case: Case) -> None:
    case.publish(1, 2, 3)
    case.deliver(1, 3)


def the_last_is_missing(case: Case) -> None:
    case.publish(1, 2)
    case.deliver(1)


def one_comes_twice(case: Case) -> None:
    case.publish(1)
    case.deliver(1, 1)


def two_change_places(case: Case) -> None:
    case.publish(1, 2)
    case.deliver(2, 1)


def one_does_not_match(case: Case) -> None:
    case.publish(1, x=-1)
    case.deliver(1, x=-1)


def one_was_under_way_before_she_asked(case: Case) -> None:
    case.publish(1, x=-1)
    case.subscribe(S2, "x < 0")
    case.deliver(1, x=-1)


def one_is_published_before_the_subscription_is_in_effect(case: Case) -> None:
    case.subscribe(S2, "x < 0")
    case.publish(1, 2, x=-1)
    case.in_effect(S2)
    case.publish(3, x=-1)
    case.deliver(2, 3, x=-1)


def she_leaves_while_one_is_under_way(case: Case) -> None:
    case.publish(1, 2)
    case.deliver(1)
    case.leave(S1, 2.0)


def she_leaves_but_another_subscription_stays(case: Case) -> None:
    case.subscribe(S2, "x >= 0")
    case.in_effect(S2)
    case.publish(1)
    case.leave(S1, 2.0)


def she_leaves_long_after_one_was_lost(case: Case) -> None:
    case.publish(1, at_s=1.0)
    case.leave(S1, 20.0)


def she_leaves_right_after_one_was_overtaken(case: Case) -> None:
    case.publish(1, 2)
    case.deliver(2)
    case.leave(S1, 2.0)


def one_does_not_come_in_time(case: Case) -> None:
    case.publish(1, at_s=1.0)
    case.publish(2, at_s=20.0)
    case.deliver(2, at_s=21.0)


def one_comes_long_after_she_left(case: Case) -> None:
    case.leave(S1, 2.0)
    case.publish(1, at_s=30.0)
    case.deliver(1, at_s=31.0)


def one_is_dropped_by_a_full_queue(case: Case) -> None:
    case.publish(1, 2)
    case.oracle.on_dropped("B1", publication(1), DropReason.MEMORY_FULL)
    case.deliver(2)


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        (everything_arrives, []),
        (one_is_missing, [(ViolationKind.LOST, 2)]),
        (the_last_is_missing, [(ViolationKind.LOST, 2)]),
        (one_comes_twice, [(ViolationKind.TWICE, 1)]),
        (two_change_places, [(ViolationKind.DISORDERED, 1)]),
        (one_does_not_match, [(ViolationKind.UNASKED, 1)]),
        (one_was_under_way_before_she_asked, []),
        (one_is_published_before_the_subscription_is_in_effect, []),
        (she_leaves_while_one_is_under_way, []),
        (she_leaves_but_another_subscription_stays, [(ViolationKind.LOST, 1)]),
        (she_leaves_long_after_one_was_lost, [(ViolationKind.LOST, 1)]),
        (she_leaves_right_after_one_was_overtaken, [(ViolationKind.LOST, 1)]),
        (one_does_not_come_in_time, [(ViolationKind.LOST, 1)]),
        (one_comes_long_after_she_left, [(ViolationKind.UNASKED, 1)]),
        (one_is_dropped_by_a_full_queue, []),
    ],
)
def test_the_oracle_says(
    story: Callable[[Case], None], expected: list[tuple[ViolationKind, int]]
) -> None:
    case = Case()
    story(case)

    assert case.verdicts() == expected


def test_a_delivery_missed_by_a_full_queue_is_counted() -> None:
    case = Case()
    one_is_dropped_by_a_full_queue(case)
    case.oracle.finish(100.0)

    assert case.oracle.deliveries_missed_by_drops == 1
