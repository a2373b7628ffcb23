"""The covering poset: the sets of the thesis, and any history against a brute-force reduction."""

from __future__ import annotations

from random import Random

import pytest
from tests.content.reference import DOMAINS

from godwit.content.filters import Filter
from godwit.content.poset import Poset, check_poset
from godwit.errors import UsageError

STOCK = Filter.parse("[class,eq,'STOCK']")
YHOO = Filter.parse("[class,eq,'STOCK'],[symbol,eq,'YHOO']")
BUSY = Filter.parse("[class,eq,'STOCK'],[volume,>,1000]")
BUSY_YHOO = Filter.parse("[class,eq,'STOCK'],[symbol,eq,'YHOO'],[volume,>,1000]")
SPORTS = Filter.parse("[class,eq,'SPORTS']")
RACING = Filter.parse("[class,eq,'SPORTS'],[type,eq,'RACING']")


def poset_of(*filters: Filter) -> Poset[int]:
    poset: Poset[int] = Poset()
    for key, filter in enumerate(filters):
        poset.insert(key, filter)
        check_poset(poset)
    return poset


def test_the_covering_set_of_the_thesis_is_stock_and_sports() -> None:
    assert poset_of(STOCK, YHOO, BUSY, SPORTS, RACING).css == {STOCK, SPORTS}
    assert poset_of(RACING, SPORTS, BUSY, YHOO, STOCK).css == {STOCK, SPORTS}


def test_a_covering_set_falls_apart_when_its_filters_move_to_two_links() -> None:
    s1, s2, s3 = (Filter.parse(f"a > {bound}") for bound in (1, 5, 9))
    assert poset_of(s1, s2, s3).css == {s1}
    assert poset_of(s1).css == {s1}
    assert poset_of(s2, s3).css == {s2}


def test_a_filter_below_two_others_is_the_child_of_both() -> None:
    poset = poset_of(BUSY_YHOO, STOCK, YHOO, BUSY)
    assert poset.parents(BUSY_YHOO) == {YHOO, BUSY}
    assert poset.children(STOCK) == {YHOO, BUSY}
    assert poset.children(YHOO) == poset.children(BUSY) == {BUSY_YHOO}
    assert poset.parents(STOCK) == set()


def test_a_filter_between_two_others_comes_between_them_and_leaves_again() -> None:
    poset = poset_of(STOCK, BUSY_YHOO)
    assert poset.children(STOCK) == {BUSY_YHOO}

    poset.insert(2, YHOO)
    check_poset(poset)
    assert poset.children(STOCK) == {YHOO}

    poset.remove(2)
    check_poset(poset)
    assert poset.children(STOCK) == {BUSY_YHOO}


def test_no_edge_is_made_where_another_path_remains() -> None:
    poset = poset_of(STOCK, YHOO, BUSY, BUSY_YHOO)
    poset.remove(1)  # YHOO; the way over BUSY is still there.
    check_poset(poset)
    assert poset.children(STOCK) == {BUSY}
    assert poset.parents(BUSY_YHOO) == {BUSY}


def test_a_filter_lives_as_long_as_somebody_holds_it() -> None:
    poset = poset_of(STOCK, YHOO, Filter.parse("symbol = 'YHOO' and class = 'STOCK'"))
    assert len(poset) == 2
    assert list(poset) == [STOCK, YHOO]
    assert poset.holders(YHOO) == {1, 2}

    poset.remove(1)
    assert poset.holders(YHOO) == {2}
    assert poset.filter_of(2) == YHOO

    poset.remove(2)
    assert YHOO not in poset
    assert len(poset) == 1


def test_the_covering_set_is_a_live_view() -> None:
    poset = poset_of(YHOO)
    css = poset.css
    poset.insert(1, STOCK)
    assert css == {STOCK}
    poset.remove(1)
    assert css == {YHOO}


def test_what_cannot_be_is_refused() -> None:
    poset = poset_of(STOCK)
    with pytest.raises(UsageError, match="0 already holds class = 'STOCK'"):
        poset.insert(0, SPORTS)
    with pytest.raises(UsageError, match="no record can match a = 1 and a = 2"):
        poset.insert(1, Filter.parse("a = 1 and a = 2"))
    with pytest.raises(UsageError, match="1 holds no filter here"):
        poset.remove(1)
    with pytest.raises(UsageError, match="1 holds no filter here"):
        poset.filter_of(1)
    for read in (poset.holders, poset.parents, poset.children):
        with pytest.raises(UsageError, match="no key holds class = 'SPORTS'"):
            read(SPORTS)
    check_poset(poset)
    assert list(poset) == [STOCK]


def reduction(filters: set[Filter]) -> dict[Filter, set[Filter]]:
    """The children of each filter: below it, and not below anything else that is."""
    below = {a: {b for b in filters if a != b and a.covers(b)} for a in filters}
    return {a: below[a] - {c for b in below[a] for c in below[b]} for a in filters}


@pytest.mark.parametrize("seed", range(12))
def test_any_history_of_inserts_and_removes_gives_the_transitive_reduction(seed: int) -> None:
    random = Random(seed)
    domain = DOMAINS[seed % len(DOMAINS)]
    attributes = ("x", "y", "xy", "xyz")[seed % 4]
    poset: Poset[int] = Poset()
    held: dict[int, Filter] = {}
    edges = 0
    for step in range(150):
        grow = len(held) < 5 or (len(held) < 40 and random.random() < 0.55)
        drawn = Filter(domain.draw(random, attributes))
        if grow and drawn.is_satisfiable:
            held[step] = drawn
            poset.insert(step, drawn)
        elif held:
            key = random.choice(list(held))
            del held[key]
            poset.remove(key)

        said = f"seed {seed}, step {step}: {[str(f) for f in held.values()]}"
        children = reduction(set(held.values()))
        assert {a: set(poset.children(a)) for a in poset} == children, said
        parents = {a: {b for b in children if a in children[b]} for a in children}
        assert {a: set(poset.parents(a)) for a in poset} == parents, said
        assert poset.css == {a for a in parents if not parents[a]}, said
        assert {key: poset.filter_of(key) for key in held} == held, said
        holders = {a: {key for key in held if held[key] == a} for a in children}
        assert {a: set(poset.holders(a)) for a in poset} == holders, said
        check_poset(poset)
        edges += sum(map(len, children.values()))
    assert edges > 150, "the history has something to order"


def test_the_same_calls_give_the_same_order() -> None:
    def walk() -> list[list[str]]:
        random = Random(7)
        drawn = [Filter(DOMAINS[0].draw(random)) for _ in range(80)]
        poset = poset_of(*(f for f in drawn if f.is_satisfiable))
        return [[*map(str, poset.css)], *([*map(str, poset.children(f))] for f in poset)]

    assert walk() == walk()
