"""A bit vector against a set of message ids, and the thesis's examples."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.errors import UsageError
from godwit.profile.bit_vector import LENGTH, BitVector

IDS = st.lists(st.integers(-40, 60), max_size=30)
VECTORS = st.builds(BitVector.of, IDS, st.integers(-20, 40), st.just(16))


def recorded(message_ids: Iterable[int], first: int, length: int) -> tuple[set[int], int]:
    """The model: a set of ids, and where the window begins."""
    found: set[int] = set()
    for message_id in message_ids:
        first = max(first, message_id - length + 1)
        found.add(message_id)
        found = {each for each in found if each >= first}
    return found, first


def bits(text: str, first: int = 0) -> BitVector:
    """From the thesis's notation, the right-most bit first."""
    return BitVector(first, len(text), int(text, 2))


# -- the thesis's examples -----------------------------------------------------------------------


def test_vector_5_an_id_beyond_the_window_shifts_it_just_enough() -> None:
    vector = BitVector.of([100, 103, 109], first=100, length=10)
    vector.record(119)
    assert vector.first == 110, "shifted by 10"
    assert vector.bits == 1 << 9, "in the last bit; all others were shifted out"


def test_a_shift_keeps_what_remains_in_the_window() -> None:
    vector = BitVector.of([100, 103, 109], first=100, length=10)
    vector.record(112)
    assert (list(vector), vector.first) == ([103, 109, 112], 103)


def test_figure_6_1() -> None:
    assert list(BitVector.of([75, 76, 77], first=75)) == [75, 76, 77]


def test_vector_4_the_bits_of_a_trace_session() -> None:
    session = BitVector.of([213, 215, 216, 217, 220, 222, 225, 226], first=212, length=100)
    assert format(session.bits, "015b")[::-1] == "010111001010011"


def test_vector_1_press() -> None:
    stock, css = bits("110111"), [bits("110000"), bits("000001"), bits("000000")]
    lcss = css[0] | css[1] | css[2]
    assert lcss == bits("110001")
    assert stock - lcss == bits("000110"), "equation (4.7) as read in E1"
    assert (stock - lcss).count == 2
    assert lcss | stock == bits("110111")


# -- against a set of ids ------------------------------------------------------------------------


@given(IDS, st.integers(-20, 40), st.integers(1, 40))
def test_recording(message_ids: list[int], first: int, length: int) -> None:
    vector = BitVector.of(message_ids, first, length)
    ids, first = recorded([each for each in message_ids if each >= first], first, length)
    assert (set(vector), vector.first, vector.count) == (ids, first, len(ids))
    assert vector.window == range(first, first + length)
    assert vector.last == max(ids, default=first - 1)
    assert bool(vector) == bool(ids)
    assert {each for each in range(-100, 200) if each in vector} == ids


@given(VECTORS, VECTORS)
def test_operators_are_those_of_sets(one: BitVector, two: BitVector) -> None:
    a, b = set(one), set(two)
    assert set(one & two) == a & b
    assert set(one - two) == a - b
    assert one.intersection_count(two) == len(a & b)
    assert all(v.bits < 1 << 16 for v in (one & two, one - two, one | two, one ^ two)), "V1"


@given(VECTORS, VECTORS)
def test_the_union_is_what_recording_both_in_order_gives(one: BitVector, two: BitVector) -> None:
    ids, first = recorded(sorted({*one, *two}), min(one.first, two.first), 16)
    union = one | two
    assert (set(union), union.first) == (ids, first)
    exclusive = one ^ two
    assert exclusive.first == first
    assert set(exclusive) == {each for each in set(one) ^ set(two) if each >= first}


@given(VECTORS, st.integers(-60, 80), st.integers(0, 16))
def test_within_a_window(vector: BitVector, start: int, length: int) -> None:
    window = range(start, start + length)
    moved = vector.within(window)
    assert (set(moved), moved.first, moved.length) == (set(vector) & set(window), start, 16)


@given(VECTORS)
def test_there_and_back(vector: BitVector) -> None:
    body = vector.to_bytes()
    assert not body.endswith(b"\x00")
    assert BitVector.of_bytes(body, vector.first, 16) == vector
    copy = vector.copy()
    assert copy == vector
    copy.record(copy.last + 1)
    assert copy != vector


def test_words_are_signed_and_the_lowest_bit_comes_first() -> None:
    vector = BitVector.of_words([1, -(2**63), 0], first=7)
    assert (list(vector), vector.first, vector.length) == ([7, 7 + 127], 7, 192)


# -- bounds --------------------------------------------------------------------------------------


def test_ids_far_apart_cost_no_memory() -> None:
    """A shift by the distance would need gigabytes."""
    far = 2**60
    near, away = BitVector.of([1], 0), BitVector.of([far], 0)
    assert away.first == far - LENGTH + 1
    assert list(near | away) == list(away | near) == [far]
    assert list(near ^ away) == [far]
    assert list(near - away) == [1]
    assert list(away - near) == [far]
    assert list(near.within(range(far, far + 1))) == list(away.within(range(5))) == []
    assert not near & away
    assert near.intersection_count(away) == 0
    assert list(BitVector(far) | near) == [1], "an empty vector has no highest id"


def test_bits_beyond_the_length_are_dropped() -> None:
    assert BitVector(0, 4, 0b110011).bits == 0b0011
    assert list(BitVector.of_bytes(b"\xff\xff", 0, 10)) == list(range(10))


def test_random_traffic_in_a_window_of_the_default_length() -> None:
    random = Random(5)
    arrivals = [n for n in range(10_000) if random.random() < 0.3]
    for place in range(0, len(arrivals) - 1, 7):  # Some overtake each other.
        arrivals[place], arrivals[place + 1] = arrivals[place + 1], arrivals[place]
    vector = BitVector.of(arrivals)
    ids, first = recorded(arrivals, 0, LENGTH)
    assert (set(vector), vector.first) == (ids, first)


def test_what_cannot_be() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        BitVector(0, 0)
    for operator in (BitVector.__or__, BitVector.__and__, BitVector.__sub__, BitVector.__xor__):
        with pytest.raises(UsageError, match="10 and 20 bits"):
            operator(BitVector(0, 10), BitVector(0, 20))
    with pytest.raises(TypeError, match="unhashable"):
        hash(BitVector())
    assert BitVector() != 0
    assert repr(BitVector.of([3], 1, 8)) == "BitVector([3], first=1, length=8)"
