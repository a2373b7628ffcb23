"""The covering subscription set: against the poset, and against all pairs."""

from __future__ import annotations

from random import Random

import pytest

from godwit.content.filters import Filter
from godwit.content.poset import Poset
from godwit.policies.offload import css as module
from godwit.policies.offload.css import CoverIndex, CoveringSubscriptions, covering_set


def parsed(*texts: str) -> list[Filter]:
    return [Filter.parse(text) for text in texts]


def random_filter(random: Random) -> Filter:
    """All kinds of constraints, over few values, so that many cover each other."""
    parts = []
    for attribute in random.sample(["class", "symbol", "x", "y", "z"], random.randint(1, 4)):
        low, high = sorted((random.randrange(6), random.randrange(6)))
        parts.append(
            random.choice(
                [
                    f"{attribute} = '{random.choice('AB')}'",
                    f"{attribute} = {low}",
                    f"{attribute} > {low}",
                    f"{attribute} >= {low}",
                    f"{attribute} < {high}",
                    f"{attribute} <= {high}",
                    f"{attribute} > {low - 1} and {attribute} <= {high + 1}",
                    f"{attribute} != {low}",
                    f"{attribute} starts with '{random.choice(['', 'A', 'AB'])}'",
                    f"{attribute} in ({low}, {high + 7})",
                    f"{attribute} = true",
                    f"{attribute} is present",
                    f"{attribute} > {2**60 + low}",
                    f"{attribute} < {2**62 + high}",
                ]
            )
        )
    return Filter.parse(" and ".join(parts))


def by_all_pairs(filters: set[Filter]) -> set[Filter]:
    return {
        each
        for each in filters
        if not any(other.covers(each) for other in filters if other != each)
    }


@pytest.mark.parametrize("seed", range(40))
def test_the_same_as_all_pairs_while_filters_leave(seed: int) -> None:
    random = Random(seed)
    filters = {f for _ in range(60) if (f := random_filter(random)).is_satisfiable}
    found = CoveringSubscriptions(filters)

    assert set(found.css) == by_all_pairs(filters)
    while filters:
        css = set(found.css)
        # Mostly members of the css leave, as in an input offload.
        leaving = random.choice(sorted(css if random.random() < 0.7 else filters, key=str))
        filters.remove(leaving)
        entered = found.remove(leaving)
        assert set(found.css) == by_all_pairs(filters)
        assert set(entered) == set(found.css) - css


@pytest.mark.parametrize("seed", range(5))
def test_the_same_as_the_poset(seed: int) -> None:
    random = Random(seed)
    poset: Poset[int] = Poset()
    filters = {f: None for _ in range(80) if (f := random_filter(random)).is_satisfiable}
    for number, filter in enumerate(filters):
        poset.insert(number, filter)

    assert set(covering_set(filters)) == set(poset.css)


@pytest.mark.parametrize("seed", range(20))
def test_whether_filters_of_another_broker_cover_a_filter(seed: int) -> None:
    random = Random(seed)
    wide = [random_filter(random) for _ in range(20)]
    index = CoverIndex(wide)
    for _ in range(100):
        filter = random_filter(random)
        if filter.is_satisfiable:
            expected = any(other.is_satisfiable and other.covers(filter) for other in wide)
            assert index.covers(filter) == expected


def test_the_example_of_the_thesis() -> None:
    stock, sports, *narrow = parsed(
        "class = 'STOCK'",
        "class = 'SPORTS'",
        "class = 'STOCK' and symbol = 'YHOO'",
        "class = 'STOCK' and volume > 1000",
        "class = 'SPORTS' and type = 'RACING'",
    )

    assert covering_set([*narrow, stock, sports]) == (stock, sports)


def test_the_set_is_in_the_order_of_the_filters() -> None:
    filters = parsed("x = 3", "x = 1", "y = 2", "x = 1 and y = 2")

    assert covering_set(filters) == tuple(filters[:3])


def test_a_filter_that_no_record_matches_is_left_out() -> None:
    empty, some = parsed("x > 5 and x < 3", "x > 5")

    assert covering_set([empty, some]) == (some,)
    assert CoveringSubscriptions([empty, some]).remove(empty) == []


def test_a_search_without_order_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the filter counts as uncovered, which costs a candidate."""
    wide = parsed("x contains 'a'", "x contains 'b'", "x contains 'c'")
    (narrow,) = parsed("x contains 'c' and y = 1")
    index = CoverIndex(wide)

    assert index.cover(narrow) == wide[2]
    monkeypatch.setattr(module, "SCAN_MAX", 2)
    assert index.cover(narrow) is None
