"""The poset of GIFs: paths are the covering relation, after any insertions and removals."""

from __future__ import annotations

from random import Random

from tests.policies.allocation.scenes import Ids
from tests.policies.allocation.test_partner_search import packed, random_ids, random_poset


def test_paths_are_the_covering_relation() -> None:
    for seed in range(30):
        _, poset, gifs = random_poset(Random(f"paths {seed}"), 40)
        for gif, ids in gifs.items():
            below = {other for other, others in gifs.items() if others < ids}
            assert set(poset.descendants(gif)) == below, f"seed {seed}"
            assert poset.children[gif] <= below
            direct = {o for o in below if not any(gifs[o] < gifs[x] < ids for x in below)}
            assert direct <= poset.children[gif]


def test_edges_are_direct_without_removals() -> None:
    random = Random(3)
    found: dict[int, Ids] = {}
    profiles, poset, _ = random_poset(random, 0)
    for _ in range(60):
        ids = random_ids(random)
        if ids not in found.values():
            found[poset.add(packed(ids))] = ids
    for gif, ids in found.items():
        for child in poset.children[gif]:
            assert not any(found[child] < between < ids for between in found.values())
    assert len(profiles) == len(found)


def test_roots_are_what_no_other_covers() -> None:
    for seed in range(40):
        _, poset, gifs = random_poset(Random(f"roots {seed}"), 30)
        for ids in gifs.values():
            expected = {
                gif
                for gif, others in gifs.items()
                if not any(others < x for x in gifs.values())
                and {p for p, _ in others} & {p for p, _ in ids}
            }
            assert poset.roots(packed(ids)) == expected, f"seed {seed}"


def test_what_is_common() -> None:
    for seed in range(15):
        random = Random(f"common {seed}")
        profiles, _, gifs = random_poset(random, 90)
        ids = random_ids(random)
        sharing, counts = profiles.sharing(packed(ids))
        expected = {
            gif: len(ids & others)
            for gif, others in gifs.items()
            if {p for p, _ in others} & {p for p, _ in ids}
        }
        assert dict(zip(sharing.tolist(), counts.tolist(), strict=True)) == expected
        some = profiles.alive
        assert set(some.tolist()) == set(gifs)
        common = profiles.common(packed(ids), some).tolist()
        assert common == [len(ids & gifs[gif]) for gif in some.tolist()]
