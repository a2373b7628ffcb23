"""A sampling oracle checks all that becomes of the publications it is shown, and no others."""

from __future__ import annotations

import pytest

from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Publication, Subscription, SubscriptionId
from godwit.experiments.watched import Sampling
from godwit.simulation.observers import Observers
from godwit.simulation.oracle import Oracle

ID = SubscriptionId("s/1")


def quote(sequence: int) -> Publication:
    return Publication(
        publisher="p", sequence=sequence, advertisement=AdvertisementId("p/a"), content={"x": 1}
    )


@pytest.mark.parametrize(
    ("delivered", "violations"),
    [
        ([0, 1, 2, 3, 4, 5], 0),
        ([0, 3], 0),
        ([0, 1, 2, 4, 5], 1),
        ([0, 3, 3], 1),
        ([0, 1, 1, 3], 0),
        ([3, 0], 1),
    ],
    ids=["all", "others lost", "lost", "twice", "another twice", "out of order"],
)
def test_every_third_publication_is_checked(delivered: list[int], violations: int) -> None:
    oracle = Oracle()
    watching = Observers([Sampling(oracle, 3)])
    watching.on_subscribing("s", Subscription(id=ID, filter=Filter.parse("x > 0")), 0.0)
    watching.on_in_effect("s", ID, 1.0)
    for sequence in range(6):
        watching.on_published(quote(sequence), 2.0)
    for sequence in delivered:
        watching.on_delivered(["s"], quote(sequence), 1, 3.0)
    oracle.finish(4.0)

    assert oracle.violation_count == violations
    assert oracle.publications == 2


def test_nothing_is_owed_to_those_who_have_left() -> None:
    oracle = Oracle()
    watching = Observers([Sampling(oracle, 2)])
    watching.on_subscribing("s", Subscription(id=ID, filter=Filter.parse("x > 0")), 0.0)
    watching.on_in_effect("s", ID, 1.0)
    watching.on_unsubscribing("s", ID, 1.5)
    watching.on_published(quote(0), 2.0)
    oracle.finish(4.0)

    assert oracle.is_satisfied
