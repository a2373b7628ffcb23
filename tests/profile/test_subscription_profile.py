"""Profiles against sets of (publisher, message id), and the thesis's examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.errors import UsageError
from godwit.profile.bit_vector import BitVector
from godwit.profile.publisher_profile import PublisherProfile
from godwit.profile.subscription_profile import (
    ExpectedLoad,
    ProfileRelation,
    SubscriptionProfile,
    compensated,
    union,
)

EVENTS = st.lists(st.tuples(st.sampled_from("pqr"), st.integers(0, 25)), max_size=20)


def profile(*events: tuple[str, int], length: int = 64) -> SubscriptionProfile:
    """Ids in order, so that none is before the first."""
    made = SubscriptionProfile(length)
    for publisher, message_id in sorted(events):
        made.record(publisher, message_id)
    return made


def ids(*message_ids: int) -> SubscriptionProfile:
    return profile(*(("p", message_id) for message_id in message_ids))


def events_of(found: SubscriptionProfile) -> set[tuple[str, int]]:
    return {(publisher, each) for publisher, bits in found.vectors.items() for each in bits}


# -- as a set ------------------------------------------------------------------------------------


@given(EVENTS, EVENTS)
def test_counts_relations_and_unions_are_those_of_sets(
    one: list[tuple[str, int]], two: list[tuple[str, int]]
) -> None:
    a, b, s1, s2 = set(one), set(two), profile(*one), profile(*two)
    assert events_of(s1) == a
    assert s1.count == len(a)
    assert s1.intersection_count(s2) == len(a & b)
    assert s1.union_count(s2) == len(a | b)
    assert s1.xor_count(s2) == len(a ^ b)
    assert s1.missing_count(s2) == len(a - b)
    assert events_of(s1 | s2) == a | b
    assert (s1.key == s2.key) == (a == b)
    if a == b:
        expected = ProfileRelation.EQUAL
    elif not a & b:
        expected = ProfileRelation.EMPTY
    elif a > b:
        expected = ProfileRelation.SUPERSET
    else:
        expected = ProfileRelation.SUBSET if a < b else ProfileRelation.INTERSECT
    assert s1.relation(s2) is expected


def test_vector_6_ios() -> None:
    """|S1| = 36, |S2| = 24 (E14), 8 in common: 8 squared by 60."""
    s1, s2 = ids(*range(36)), ids(*range(28, 52))
    both = s1.intersection_count(s2)
    assert both**2 / (s1.count + s2.count) == pytest.approx(1.07, abs=0.005)
    assert s1.relation(s2) is ProfileRelation.INTERSECT
    covered = ids(*range(4))
    assert covered.intersection_count(s1) ** 2 / (covered.count + s1.count) == 0.4
    assert s1.relation(covered) is ProfileRelation.SUPERSET
    assert covered.relation(s1) is ProfileRelation.SUBSET


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param(SubscriptionProfile(64), ProfileRelation.EQUAL, id="both received nothing"),
        pytest.param(ids(1), ProfileRelation.EMPTY, id="one received nothing"),
    ],
)
def test_a_subscription_that_received_nothing(
    other: SubscriptionProfile, expected: ProfileRelation
) -> None:
    assert SubscriptionProfile(64).relation(other) is expected
    assert other.relation(SubscriptionProfile(64)) is expected


def test_the_same_publications_in_other_windows_are_equal() -> None:
    late = SubscriptionProfile(64, {"p": BitVector.of([8, 9], first=8, length=64)})
    early = SubscriptionProfile(64, {"p": BitVector.of([8, 9], first=0, length=64)})
    empty = SubscriptionProfile(64, {**late.vectors, "q": BitVector(5, 64)})
    assert late.key == early.key == empty.key
    assert late.relation(early) is late.relation(empty) is ProfileRelation.EQUAL


def test_a_union_does_not_change_its_parts() -> None:
    parts = [ids(1, 2), profile(("q", 5)), ids(9)]
    whole = union(parts, 64)
    whole.record("q", 6)
    assert [sorted(events_of(part)) for part in parts] == [
        [("p", 1), ("p", 2)],
        [("q", 5)],
        [("p", 9)],
    ]
    assert whole.count == 5


# -- publishers ----------------------------------------------------------------------------------


def test_the_load_of_the_thesis() -> None:
    """10 of 100 bits of a publisher with 50 messages and 50 kB a second."""
    publishers = {"p": PublisherProfile("p", 50.0, 50e3, last_id=499)}
    found = profile(*(("p", 10 * n) for n in range(50)), length=100)
    assert found.load(publishers) == ExpectedLoad(5.0, 5e3)


def test_the_load_is_the_sum_over_publishers_that_are_there() -> None:
    publishers = {
        "p": PublisherProfile("p", 10.0, 1000.0, last_id=63),
        "q": PublisherProfile("q", 4.0, 40.0, last_id=3),
        "silent": PublisherProfile("silent", 0.0, 0.0, last_id=-1),
    }
    found = profile(("p", 0), ("p", 63), ("q", 1), ("q", 2), ("left", 1), ("silent", 3))
    load = found.load(publishers)
    assert load.publications_per_s == pytest.approx(10.0 * 2 / 64 + 4.0 * 2 / 4)
    assert load.bytes_per_s == pytest.approx(1000.0 * 2 / 64 + 40.0 * 2 / 4)


def test_synchronized_profiles_have_one_window_for_each_publisher() -> None:
    publishers = {"p": PublisherProfile("p", 1.0, 1.0, last_id=119)}
    early, late, old = (
        SubscriptionProfile(10, {"p": BitVector.of(received, received[0], 10)}).synchronized(
            publishers
        )
        for received in ([105, 112], [115, 123], [100, 109])
    )
    assert early.vectors["p"].first == late.vectors["p"].first == 110
    assert events_of(early) == {("p", 112)}
    assert events_of(late) == {("p", 115)}, "123 was sent after the profile was taken"
    assert not old.vectors
    assert not profile(("left", 1)).synchronized(publishers).vectors


@given(EVENTS, st.integers(0, 40), st.integers(0, 40))
def test_synchronizing_does_not_change_the_load(
    events: list[tuple[str, int]], last_id: int, first_id: int
) -> None:
    publishers = {
        name: PublisherProfile(name, 3.0, 30.0, max(first_id, last_id), first_id) for name in "pq"
    }
    found = profile(*events, length=16)
    assert found.synchronized(publishers).load(publishers) == found.load(publishers)


def test_a_publisher_that_left_is_forgotten() -> None:
    found = profile(("p", 1), ("q", 2))
    found.forget("p")
    found.forget("p")
    assert events_of(found) == {("q", 2)}


# -- short vectors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "length", "expected"),
    [
        pytest.param(0.1, 1_280, 0.1, id="the default length"),
        pytest.param(0.1, 1_024, 0.2, id="the floor of 1,024 bits"),
        pytest.param(0.3, 1_024, 0.375, id="below 40%: by a quarter more"),
        pytest.param(0.4, 1_024, 0.4, id="40% is not below 40%"),
        pytest.param(0.24, 512, 0.35, id="E15: below 25% the floor hides the factor"),
        pytest.param(0.3, 512, 0.435, id="below 40%: by 45% more"),
        pytest.param(0.5, 128, 0.5, id="enough bits"),
        pytest.param(0.0, 128, 0.0, id="nothing received"),
    ],
)
def test_compensation_scales_and_then_takes_the_floor(
    share: float, length: int, expected: float
) -> None:
    assert compensated(share, length) == pytest.approx(expected)


def test_a_compensated_load() -> None:
    publishers = {"p": PublisherProfile("p", 100.0, 1000.0, last_id=63)}
    found = profile(*(("p", n) for n in range(0, 64, 4)))
    assert found.load(publishers).publications_per_s == pytest.approx(25.0)
    load = found.load(publishers, compensate=True)
    assert load == ExpectedLoad(pytest.approx(36.25), pytest.approx(362.5))  # type: ignore[arg-type]


def test_vectors_of_another_length_are_refused() -> None:
    with pytest.raises(UsageError, match="'p' has 10 bits"):
        SubscriptionProfile(64, {"p": BitVector(0, 10)})
