"""Reading what was gathered: windows, publishers that left, and rules with their messages."""

from __future__ import annotations

import msgspec
import pytest
from tests.policies.allocation.scenes import (
    FIRST,
    broker,
    brokers,
    gathered,
    ids_of,
    problem_with_units,
    publisher,
    subscription,
)

from godwit.errors import UsageError
from godwit.policies.allocation.gathered import Gathered, GatheredSubscription
from godwit.policies.allocation.gathered_reading import read
from godwit.profile.bit_vector import BitVector


def test_the_thesiss_example_of_a_load() -> None:
    """10 of 100 bits, 50 publications and 50 kB a second: 5 and 5 kB."""
    document = Gathered(
        publishers=(publisher(rate=50, size=1000, last_id=199, first_id=None),),
        brokers=brokers(1),
        subscriptions=(
            GatheredSubscription(id="s1", first_id={"p1": 100}, bits={"p1": "1" * 10 + "0" * 90}),
        ),
    )
    _, (unit,), _ = problem_with_units(document)
    assert (unit.rate_per_s, unit.bandwidth_bytes_s) == (5, 5000)


def test_vectors_are_brought_to_the_window_that_ends_with_the_last_id() -> None:
    """Length 10: the vector that recorded 105 and 119 (test vector 5), and one that is behind."""
    vector = BitVector.of([105, 119], first=100, length=10)
    assert (vector.first, list(vector)) == (110, [119])
    ahead = "".join("1" if i in vector else "0" for i in vector.window)
    document = Gathered(
        publishers=(publisher(last_id=119, first_id=None),),
        brokers=brokers(1),
        subscriptions=(
            GatheredSubscription(id="ahead", first_id={"p1": 110}, bits={"p1": ahead}),
            GatheredSubscription(id="behind", first_id={"p1": 105}, bits={"p1": "1000010001"}),
        ),
        vector_length=10,
    )
    problem, units, _ = problem_with_units(document)
    assert problem.table.lengths == (10,)
    assert [sorted(ids_of(unit)) for unit in units] == [[(0, 9)], [(0, 0), (0, 4)]]


def test_bits_after_the_last_id_are_dropped() -> None:
    late = GatheredSubscription(id="s1", first_id={"p1": FIRST + 62}, bits={"p1": "1111"})
    _, (unit,), _ = problem_with_units(gathered([late]))
    assert ids_of(unit) == {(0, 62), (0, 63)}


def test_a_vector_far_from_the_window_is_empty() -> None:
    old = GatheredSubscription(id="old", first_id={"p1": 0}, bits={"p1": "1" * 50})
    new = GatheredSubscription(id="new", first_id={"p1": FIRST + 900}, bits={"p1": "1" * 50})
    _, units, _ = problem_with_units(gathered([old, new]))
    assert [unit.profile.count for unit in units] == [0, 0]


def test_without_a_first_id_the_lowest_of_any_vector_begins_the_window() -> None:
    document = gathered(
        [
            subscription("s1", "11"),
            GatheredSubscription(id="s2", first_id={"p1": 90}, bits={"p1": "1"}),
        ],
        publishers=[publisher(last_id=109, first_id=None)],
    )
    assert read(document).table.lengths == (20,)


def test_bits_of_a_publisher_that_left_are_dropped() -> None:
    document = gathered([subscription("s1", {"p1": "11", "gone": "1111"})])
    _, (unit,), _ = problem_with_units(document)
    assert ids_of(unit) == {(0, 0), (0, 1)}


def test_subscriptions_of_a_client_are_one_unit_that_is_sent_one_copy() -> None:
    document = gathered(
        [
            subscription("s1", "1110", client="c"),
            subscription("s2", "11"),
            subscription("s3", "0111", client="c"),
        ]
    )
    problem, units, _ = problem_with_units(document)
    assert [s.subscriptions for s in problem.subscribers] == [("s1", "s3"), ("s2",)]
    assert [(u.subscriptions, u.bandwidth_bytes_s) for u in units] == [(2, 40), (1, 20)]


def test_short_vectors_are_compensated_for() -> None:
    document = msgspec.structs.replace(gathered([subscription("s1", "1" * 16)]), vector_length=64)
    assert read(document).table.compensate
    assert not read(document, compensate=False).table.compensate
    assert not read(gathered([])).table.compensate
    table, (subscriber,) = read(document).table, read(document).subscribers
    assert table.rate_per_s(subscriber.profile) == pytest.approx(64 * 0.25 * 1.45)
    assert table.plain.rate_per_s(subscriber.profile) == 16


def test_brokers_are_ordered_by_bandwidth_then_id() -> None:
    document = gathered([], [broker("b", 5), broker("c", 9), broker("a", 5)])
    assert [found.id for found in read(document).brokers] == ["c", "a", "b"]


ODD = {
    "publisher 'p1': rate_per_s is -1": gathered([], publishers=[publisher(rate_per_s=-1)]),
    "publisher 'p1': bandwidth_bytes_s is inf": gathered(
        [], publishers=[publisher(bandwidth_bytes_s=float("inf"))]
    ),
    "publisher 'p1': last_id is -2": gathered([], publishers=[publisher(last_id=-2)]),
    "publisher 'p1': first_id is -3": gathered([], publishers=[publisher(first_id=-3)]),
    "broker 'B1': output_bandwidth_bytes_s is -5": gathered([], [broker("B1", -5)]),
    "broker 'B1': matching_delay_per_subscription_s is -1": gathered([], [broker("B1", each_s=-1)]),
    "broker 'B1': matching_delay_base_s is nan": gathered([], [broker("B1", base_s=float("nan"))]),
    "publishers: id 'p1' occurs 2 times": gathered([], publishers=[publisher(), publisher()]),
    "brokers: id 'B1' occurs 2 times": gathered([], [broker("B1"), broker("B1")]),
    "subscriptions: id 's' occurs 2 times": gathered(
        [subscription("s", "1"), subscription("s", "")]
    ),
    "brokers[0]: id is empty": gathered([], [broker("")]),
    "subscription 's': bits of publisher 'p1' contain '2'": gathered([subscription("s", "0120")]),
    "subscription 's': bits of publisher 'p1' contain 'é'": gathered([subscription("s", "0é")]),
    "subscription 's': bits of publisher 'gone' contain 'x'": gathered(
        [subscription("s", {"gone": "x"})]
    ),
    "subscription 's': bits of publisher 'p1' have no first_id": gathered(
        [GatheredSubscription(id="s", bits={"p1": "1"})]
    ),
    "subscription 's': first_id of publisher 'p1' is -1": gathered(
        [GatheredSubscription(id="s", bits={"p1": "1"}, first_id={"p1": -1})]
    ),
    "vector_length is 0": msgspec.structs.replace(gathered([]), vector_length=0),
    "vector_length is 1048577; it must be 1 to 1,048,576": msgspec.structs.replace(
        gathered([]), vector_length=1_048_577
    ),
}


@pytest.mark.parametrize(("message", "document"), ODD.items(), ids=list(ODD))
def test_a_broken_rule_is_named_with_its_place(message: str, document: Gathered) -> None:
    with pytest.raises(UsageError) as raised:
        read(document)
    assert message in str(raised.value)


def test_a_fitted_line_may_have_a_negative_intercept() -> None:
    document = gathered([], [broker("B1", base_s=-0.00125, each_s=0.000175)])
    assert read(document).brokers[0].rate_max(20) == pytest.approx(1 / 0.00225)
