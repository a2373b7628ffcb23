"""Delta-moves: the tree afterwards, what is refused, and how many there are."""

from __future__ import annotations

from random import Random

import pytest

from godwit.errors import UsageError
from godwit.migration.delta_moves import DeltaMove, delta_moves
from godwit.overlay.topology import chain, random_tree, topology

#: B1 - B2 - B3 - B4, and B5 at B2.
TREE = topology([f"B{n}" for n in range(1, 6)], [*chain(4).links, ("B2", "B5")])


def test_a_broker_moves_with_all_that_is_behind_it() -> None:
    after = DeltaMove("B3", leaves="B2", joins="B5").apply(TREE)
    assert after.links == {("B1", "B2"), ("B2", "B5"), ("B3", "B5"), ("B3", "B4")}


@pytest.mark.parametrize(
    ("move", "says"),
    [
        (DeltaMove("B3", "B1", "B5"), "B3 has no link with B1 .* linked with B2, B4"),
        (DeltaMove("B3", "B2", "B4"), "B4 is not behind B2"),
        (DeltaMove("B3", "B2", "B3"), "B3 is not behind B2"),
        (DeltaMove("B3", "B2", "B2"), "linked with B2 already"),
        (DeltaMove("B9", "B2", "B1"), "no broker B9"),
    ],
)
def test_a_move_that_would_not_leave_a_tree_is_refused(move: DeltaMove, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        move.apply(TREE)


def test_every_move_within_delta_leaves_a_tree() -> None:
    for seed in range(50):
        tree = random_tree(Random(seed).randint(3, 12), Random(seed))
        moves = list(delta_moves(tree, 3))
        assert moves
        for move in moves:
            after = move.apply(tree)
            assert after.is_tree
            assert len(after.links - tree.links) == 1
            assert tree.distances(move.broker)[move.joins] <= 3
