"""The closest partner: against a comparison with all GIFs, on random posets."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.policies.allocation.plain_cram import closeness
from tests.policies.allocation.scenes import Ids

from godwit.policies.allocation.closeness import ClosenessMetric
from godwit.policies.allocation.gif_poset import GifPoset
from godwit.policies.allocation.gif_profiles import GifProfiles
from godwit.policies.allocation.packed_profiles import PackedProfile, PublisherTable
from godwit.policies.allocation.partner_search import Partner, PartnerSearch

LENGTH = 100
TABLE = PublisherTable(("p0", "p1"), (1.0, 1.0), (1.0, 1.0), (LENGTH, LENGTH), LENGTH)
PRUNED = [metric for metric in ClosenessMetric if metric.is_zero_if_disjoint]


def packed(ids: Ids) -> PackedProfile:
    blocks = {}
    for p in {p for p, _ in ids}:
        flags = np.zeros(128, np.uint8)
        flags[[bit for q, bit in ids if q == p]] = 1
        blocks[p] = np.packbits(flags, bitorder="little").view(np.uint64)
    return PackedProfile(blocks)


def random_ids(random: Random) -> Ids:
    """Ranges along a few orders, as inequalities give them, and random sets."""
    p, kind = random.randrange(2), random.randrange(5)
    order = list(range(LENGTH))
    Random(kind).shuffle(order)
    size = random.randint(1, LENGTH)
    chosen = order[:size] if kind else random.sample(order, random.randint(1, 12))
    ids = {(p, bit) for bit in chosen}
    if random.random() < 0.1:
        ids |= {(1 - p, bit) for bit in order[: random.randint(1, 20)]}
    return frozenset(ids)


def random_poset(random: Random, size: int) -> tuple[GifProfiles, GifPoset, dict[int, Ids]]:
    """GIFs that were inserted, and some of them removed again."""
    profiles = GifProfiles(TABLE)
    poset = GifPoset(profiles)
    gifs: dict[int, Ids] = {}
    for _ in range(size):
        ids = random_ids(random)
        if ids not in gifs.values():
            gifs[poset.add(packed(ids))] = ids
        if len(gifs) > 3 and random.random() < 0.2:
            gone = random.choice(sorted(gifs))
            poset.remove(gone)
            del gifs[gone]
    return profiles, poset, gifs


def by_comparison(
    metric: ClosenessMetric, gifs: dict[int, Ids], gif: int, refused: set[int], *, with_itself: bool
) -> Partner | None:
    found = [
        Partner(closeness(metric.value, gifs[gif], ids), len(gifs[gif] & ids), other)
        for other, ids in gifs.items()
        if (other != gif or with_itself) and other not in refused
    ]
    found = [partner for partner in found if partner.closeness > 0]
    return min(found, key=lambda partner: partner.order, default=None)


def test_500_random_posets() -> None:
    for seed in range(500):
        random = Random(f"poset {seed}")
        profiles, poset, gifs = random_poset(random, 18)
        for metric in ClosenessMetric:
            search = PartnerSearch(profiles, poset, metric)
            gif = random.choice(sorted(gifs))
            others = [other for other in gifs if other != gif]
            refused = set(random.sample(others, random.choice((0, 0, 1, 3))))
            with_itself = random.random() < 0.2
            found = search.closest(gif, refused, with_itself=with_itself)
            expected = by_comparison(metric, gifs, gif, refused, with_itself=with_itself)
            assert found == expected, f"seed {seed}, {metric}, GIF {gif}"


def test_large_posets() -> None:
    for seed, metric in enumerate(PRUNED):
        profiles, poset, gifs = random_poset(Random(f"large {seed}"), 150)
        search = PartnerSearch(profiles, poset, metric)
        for gif in gifs:
            found = search.closest(gif, set(), with_itself=False)
            assert found == by_comparison(metric, gifs, gif, set(), with_itself=False)
        assert search.evaluations < len(gifs) * (len(gifs) - 1)


@pytest.mark.parametrize("metric", PRUNED, ids=lambda metric: metric.value)
def test_the_thesiss_stop_rule_seldom_misses_and_evaluates_more(metric: ClosenessMetric) -> None:
    missed = searches = exact_evaluations = rule_evaluations = 0
    for seed in range(6):
        profiles, poset, gifs = random_poset(Random(f"stop {seed}"), 110)
        exact = PartnerSearch(profiles, poset, metric)
        rule = PartnerSearch(profiles, poset, metric, is_exact=False)
        for gif in gifs:
            best = exact.closest(gif, set(), with_itself=False)
            found = rule.closest(gif, set(), with_itself=False)
            searches += 1
            if best is not None:
                assert found is None or best.order <= found.order
                missed += found is None or found.closeness < best.closeness
        exact_evaluations += exact.evaluations
        rule_evaluations += rule.evaluations
    assert missed / searches < 0.05
    assert exact_evaluations < 0.9 * rule_evaluations


def test_the_stop_rule_misses_a_partner_below_a_fall() -> None:
    """Root and node share bits with G; the node is less close than the root, its child closer."""
    g = frozenset((0, bit) for bit in range(10))
    root = frozenset((0, bit) for bit in range(8)) | {(0, bit) for bit in range(20, 30)}
    node = frozenset((0, bit) for bit in range(4)) | {(0, bit) for bit in range(20, 26)}
    child = frozenset((0, bit) for bit in range(4))
    profiles = GifProfiles(TABLE)
    poset = GifPoset(profiles)
    gif, *_ = [poset.add(packed(ids)) for ids in (g, root, node)]
    below = poset.add(packed(child))
    assert poset.parents[below] == {gif, gif + 2}
    values = [closeness("iou", g, ids) for ids in (root, node, child)]
    assert values[0] > values[2] > values[1]
    search = PartnerSearch(profiles, poset, ClosenessMetric.IOU, is_exact=False)
    found = search.closest(gif, {gif + 1}, with_itself=False)
    assert found is not None
    assert found.gif in (gif + 2, below)


def test_a_gif_without_relatives_has_no_partner() -> None:
    profiles = GifProfiles(TABLE)
    poset = GifPoset(profiles)
    lone = poset.add(packed(frozenset({(0, 1)})))
    poset.add(packed(frozenset({(1, 1)})))
    poset.add(packed(frozenset()))
    for metric in PRUNED:
        search = PartnerSearch(profiles, poset, metric)
        assert search.closest(lone, set(), with_itself=False) is None
        assert search.evaluations == 0
    xor = PartnerSearch(profiles, poset, ClosenessMetric.XOR)
    assert xor.closest(lone, set(), with_itself=False) == Partner(1.0, 0, 2)


def test_ties_go_to_the_larger_intersection_then_to_the_lower_gif() -> None:
    profiles = GifProfiles(TABLE)
    poset = GifPoset(profiles)
    g = poset.add(packed(frozenset((0, bit) for bit in range(6))))
    later = poset.add(packed(frozenset((0, bit) for bit in range(2, 9))))
    lower = poset.add(
        packed(frozenset({(0, 0), (0, 1), (0, 2), (0, 3), (0, 50), (0, 51), (0, 52)}))
    )
    for metric in PRUNED:
        found = PartnerSearch(profiles, poset, metric).closest(g, set(), with_itself=False)
        assert found is not None
        assert (found.gif, found.common) == (later, 4)
    assert later < lower
    # XOR: 1 / |S1 XOR S2| is equal for a subset with one bit less and a superset with one more.
    subset = poset.add(packed(frozenset((0, bit) for bit in range(5))))
    superset = poset.add(packed(frozenset((0, bit) for bit in range(7))))
    found = PartnerSearch(profiles, poset, ClosenessMetric.XOR).closest(g, set(), with_itself=False)
    assert subset < superset
    assert found == Partner(1.0, 6, superset)
