"""Marks: profiles with the same one share a publication, and similar profiles often do."""

from __future__ import annotations

from random import Random

import numpy as np

from godwit.policies.allocation.packed_profiles import EMPTY, PackedProfile
from godwit.policies.large_allocation.shared_publications import MARKS, NO_MARK, Marking

LENGTHS = (100, 64)


def profile_of(ids: set[tuple[int, int]]) -> PackedProfile:
    blocks = {}
    for p, length in enumerate(LENGTHS):
        bits = np.zeros(-(-length // 64) * 64, np.uint8)
        bits[[place for q, place in ids if q == p]] = 1
        blocks[p] = np.packbits(bits, bitorder="little").view(np.uint64)
    return PackedProfile(blocks)


def drawn(random: Random, count: int) -> set[tuple[int, int]]:
    everything = [(p, place) for p, length in enumerate(LENGTHS) for place in range(length)]
    return set(random.sample(everything, count))


def test_a_mark_is_one_of_the_publications_and_the_same_for_all_that_have_it_first() -> None:
    random, marking = Random(3), Marking(LENGTHS, 0)
    alone = {
        marking.marks(profile_of({(p, place)}))[0]: (p, place)
        for p, length in enumerate(LENGTHS)
        for place in range(length)
    }
    for _ in range(100):
        ids = drawn(random, random.randint(1, 60))
        marks = marking.marks(profile_of(ids))
        assert alone[marks[0]] in ids
        assert marks[0] == min(mark for mark, id in alone.items() if id in ids)


def test_profiles_have_the_same_mark_as_often_as_they_are_similar() -> None:
    random = Random(4)
    both, either = drawn(random, 60), drawn(random, 20)
    one, other = profile_of(both), profile_of(both | either)
    similarity = len(both) / len(both | either)
    markings = [Marking(LENGTHS, number) for number in range(400)]
    for place in range(MARKS):
        same = sum(m.marks(one)[place] == m.marks(other)[place] for m in markings)
        assert abs(same / 400 - similarity) < 0.1, place


def test_orders_are_those_of_the_round_whatever_was_marked_before() -> None:
    random = Random(5)
    profiles = [profile_of(drawn(random, 30)) for _ in range(20)]
    marking = Marking(LENGTHS, 7)
    found = [marking.marks(profile) for profile in profiles]
    assert found == [Marking(LENGTHS, 7).marks(profile) for profile in profiles]
    assert found != [Marking(LENGTHS, 8).marks(profile) for profile in profiles]


def test_a_profile_without_publications_is_behind_all_others() -> None:
    marking = Marking(LENGTHS, 0)
    assert marking.marks(EMPTY) == (NO_MARK,) * MARKS
    assert max(marking.marks(profile_of({(0, 99)}))) < NO_MARK
