"""One-to-many clustering: figure 6.2, and when a covered set ends."""

from __future__ import annotations

from unittest.mock import patch

from tests.policies.allocation.scenes import (
    bits_of,
    brokers,
    gathered,
    problem_with_units,
    subscription,
)

from godwit.policies.allocation.closeness import ClosenessMetric
from godwit.policies.allocation.cram import Cram
from godwit.policies.allocation.gathered import Gathered
from godwit.policies.allocation.gif_pool import GifPool
from godwit.policies.allocation.one_to_many import covered_set
from godwit.policies.allocation.units import AllocationUnit

S1 = set(range(36))
S2 = set(range(28, 52))
#: S1 covers three of 4 bits, S2 eight of one bit, outside their intersection.
COVERED_1 = [set(range(i, i + 4)) for i in (0, 8, 16)]
COVERED_2 = [{i} for i in range(40, 48)]


def figure_6_2() -> Gathered:
    found = [S1, S2, *COVERED_1, *COVERED_2]
    return gathered([subscription(f"s{i:02}", bits_of(ids)) for i, ids in enumerate(found)])


def test_figure_6_2() -> None:
    """S1 with the three that it covers (closeness 3) before S1 with S2 (1.07)."""
    problem, units, factory = problem_with_units(figure_6_2())

    def first_merge(*, one_to_many: bool) -> set[int]:
        cram = Cram(
            units, problem.brokers, problem.table, factory, ClosenessMetric.IOS,
            one_to_many=one_to_many,
        )  # fmt: skip
        with patch.object(cram, "_commit", side_effect=cram._commit) as commit:
            cram.run()
        merged: AllocationUnit = commit.call_args_list[0].args[1]
        return {leaf.subscriber for leaf in merged.leaves()}

    assert first_merge(one_to_many=True) == {0, 2, 3, 4}
    assert first_merge(one_to_many=False) == {0, 1}


def pool_of(document: Gathered) -> GifPool:
    problem, units, _ = problem_with_units(document)
    return GifPool(units, problem.table)


def test_the_set_grows_by_what_adds_the_most_bits() -> None:
    """After {0..9}, {20..24} adds 5 bits and {5..13} only 4; what adds none is left out."""
    sets = [range(40), range(10), range(5, 14), range(20, 25), range(6), range(30, 32)]
    pool = pool_of(gathered([subscription(f"s{i}", bits_of(ids)) for i, ids in enumerate(sets)]))
    found = covered_set(pool, 0, set(), 1e9)
    assert found.gifs == (1, 3, 2, 5)
    assert found.profile.count == 14 + 5 + 2


def test_the_set_ends_where_the_cluster_would_exceed_the_pair() -> None:
    """400 for the parent, then 100 and 50: a limit of 530 ends it before the second."""
    sets = [range(40), range(10), range(20, 25)]
    pool = pool_of(gathered([subscription(f"s{i}", bits_of(ids)) for i, ids in enumerate(sets)]))
    assert covered_set(pool, 0, set(), 549).gifs == (1,)
    assert covered_set(pool, 0, set(), 550).gifs == (1, 2)
    assert covered_set(pool, 0, set(), 499).gifs == ()
    assert covered_set(pool, 0, {1}, 1e9).gifs == (2,)


def test_units_with_the_same_profile_are_one_gif_the_lightest_first() -> None:
    document = gathered(
        [subscription(f"s{i}", bits_of(range(8))) for i in range(3)]
        + [subscription("other", bits_of(range(9)))],
        brokers(2),
    )
    problem, units, factory = problem_with_units(document)
    pool = GifPool(units, problem.table)
    assert (len(pool), pool.count(0), pool.count(1)) == (2, 3, 1)
    heavy = factory.merged(units[:2])
    assert pool.add(heavy) == (0, False)
    pool.take(0, units[:2])
    assert pool.units(0) == [units[2], heavy]
    assert pool.lightest(0) is units[2]
    pool.take(0, [units[2], heavy])
    assert 0 not in pool
    assert pool.add(units[0]) == (2, True)


def test_a_cluster_sends_the_sum_and_receives_the_or() -> None:
    problem, units, factory = problem_with_units(
        gathered([subscription("a", bits_of(range(8))), subscription("b", bits_of(range(4, 12)))])
    )
    merged = factory.merged(units)
    assert (merged.bandwidth_bytes_s, merged.rate_per_s, merged.subscriptions) == (160, 12, 2)
    assert list(merged.leaves()) == units
    assert list(factory.merged([merged, units[0]]).leaves()) == [*units, units[0]]
    assert problem.table.rate_per_s(merged.profile) == 12
