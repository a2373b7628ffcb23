from __future__ import annotations

from random import Random

import pytest

from godwit.errors import UsageError
from godwit.overlay.topology import Topology, balanced_tree, chain, random_tree, star, topology


@pytest.mark.parametrize(
    ("brokers", "fanout", "diameter"),
    [
        pytest.param(63, 2, 10, id="the PlanetLab overlay"),
        pytest.param(127, 2, 12, id="the cluster overlay"),
        pytest.param(127, 4, 7, id="the cluster overlay with fan-out four (erratum E44)"),
        pytest.param(1, 2, 0, id="one broker"),
    ],
)
def test_trees_have_the_diameter_the_papers_imply(brokers: int, fanout: int, diameter: int) -> None:
    tree = balanced_tree(brokers, fanout=fanout)

    assert tree.is_tree
    assert tree.diameter == diameter


def test_a_chain_and_a_star_are_trees() -> None:
    assert chain(5).diameter == 4
    assert star(4).diameter == 2
    assert star(4).neighbours("B1") == ("B2", "B3", "B4", "B5")


@pytest.mark.parametrize("seed", range(20))
def test_random_trees_are_trees(seed: int) -> None:
    random = Random(seed)
    assert random_tree(random.randint(1, 40), random).is_tree


def test_a_cycle_is_no_tree_and_neither_is_a_forest() -> None:
    assert not topology("abc", [("a", "b"), ("b", "c"), ("c", "a")]).is_tree
    assert not topology("abcd", [("a", "b"), ("b", "a"), ("c", "d")]).is_tree
    assert not topology("abcd", [("a", "b"), ("b", "c"), ("a", "c")]).is_tree


def test_a_link_to_a_stranger_is_refused() -> None:
    with pytest.raises(UsageError, match="link a-c: both ends must be brokers"):
        Topology(("a", "b"), frozenset({("a", "c")}))
    with pytest.raises(UsageError, match="same name"):
        topology("aa", [])
    with pytest.raises(UsageError, match="at least one"):
        balanced_tree(0, fanout=2)
