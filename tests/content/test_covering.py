"""The covering set against brute force, over random additions and removals."""

from __future__ import annotations

from random import Random

import pytest

from godwit.content.covering import SCAN_MAX, CoveringSet
from godwit.content.filters import Filter


def random_filter(random: Random) -> Filter:
    parts = [f"class = '{random.choice('AB')}'"] if random.random() < 0.6 else []
    if random.random() < 0.5:
        parts.append(f"name starts with '{random.choice(('A', 'AB', 'B'))}'")
    if random.random() < 0.7 or not parts:
        low = random.randrange(5)
        parts.append(f"x > {low} and x < {low + random.randint(2, 5)}")
    return Filter.parse(" and ".join(parts))


@pytest.mark.parametrize("seed", range(40))
def test_every_filter_is_in_front_or_behind_one_that_covers_it(seed: int) -> None:
    random = Random(seed)
    covering = CoveringSet[int]()
    filters: dict[int, Filter] = {}
    fronts: set[int] = set()
    for step in range(150):
        if filters and random.random() < 0.4:
            key = random.choice(list(filters))
            gone = filters.pop(key)
            was_front = key in fronts
            fronts.discard(key)
            stepped = covering.remove(key)
            assert was_front or not stepped, f"seed {seed}: a follower leaves without a trace"
            for other in stepped:
                assert gone.covers(filters[other]), f"seed {seed}: {other} was behind another"
            fronts |= set(stepped)
        else:
            filters[step] = random_filter(random)
            covers = [k for k in fronts if filters[k].covers(filters[step])]
            front = covering.add(step, filters[step])
            assert (front is None) == (not covers), f"seed {seed}: V1 at step {step}"
            if front is None:
                fronts.add(step)
        covering.check()
        assert set(covering) == set(filters)
        assert {k for k in filters if covering.front_of(k) is None} == fronts, f"seed {seed}"


@pytest.mark.parametrize("seed", range(20))
def test_only_maximal_filters_step_forward(seed: int) -> None:
    random = Random(seed)
    covering = CoveringSet[int]()
    covering.add(-1, Filter.parse("x is present"))
    filters = {k: Filter.parse(f"x > {random.randrange(40)}") for k in range(30)}
    for key, filter in filters.items():
        assert covering.add(key, filter) == -1

    (stepped,) = covering.remove(-1)
    assert all(filters[stepped].covers(filter) for filter in filters.values())
    covering.check()


def test_looking_for_a_cover_gives_up_after_a_while_and_looks_at_the_useful_first() -> None:
    covering = CoveringSet[str]()
    covering.add("wide", Filter.parse("x > 0 and y > 0"))
    for number in range(SCAN_MAX + 5):  # None covers another: each wants another y.
        covering.add(f"n{number}", Filter.parse(f"x > -1 and y > {number} and y < {number + 1}"))

    assert covering.add("late", Filter.parse("x > 5 and y > 5 and z > 1")) is None
    covering.add("wider", Filter.parse("x > 0"))
    assert covering.add("soon", Filter.parse("x > 6 and w > 1")) == "wider"


def test_covers_are_found_among_any_number_of_other_sets_of_attributes() -> None:
    """Nobody can switch covering off for others with filters on attributes of their own."""
    covering = CoveringSet[str]()
    covering.add("wide", Filter.parse("b = 1"))
    for number in range(2 * SCAN_MAX):
        covering.add(f"n{number}", Filter.parse(f"a{number} = 1"))

    assert covering.add("covered", Filter.parse("b = 1 and c = 2 and x > 5")) == "wide"
    many = " and ".join(f"a{number} = 1" for number in range(20))
    assert covering.add("many", Filter.parse(many)) in {f"n{number}" for number in range(20)}


@pytest.mark.parametrize("seed", range(40))
def test_those_that_a_newcomer_covers_step_back_if_they_are_asked_to(seed: int) -> None:
    random = Random(seed)
    covering = CoveringSet[int]()
    filters: dict[int, Filter] = {}
    for step in range(150):
        if filters and random.random() < 0.4:
            key = random.choice(list(filters))
            del filters[key]
            covering.remove(key)
        else:
            filters[step] = random_filter(random)
            before = {k for k in filters if k != step and covering.front_of(k) is None}
            if covering.add(step, filters[step]) is None:
                stepped = set(covering.step_back(step))
                covered = {k for k in before if filters[step].covers(filters[k])}
                assert stepped == covered, f"seed {seed} at step {step}"
        covering.check()
        fronts = [k for k in filters if covering.front_of(k) is None]
        for front in fronts:
            others = [k for k in fronts if k != front and filters[k].covers(filters[front])]
            assert not others, f"seed {seed}: {front} should stand behind {others}"
