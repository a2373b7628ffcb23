"""MANUAL, AUTOMATIC and PAIRWISE."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random

import pytest
from tests.policies.allocation.scenes import (
    bits_of,
    broker,
    brokers,
    gathered,
    ids_of,
    problem_with_units,
    publisher,
    random_gathered,
    subscription,
)

from godwit.overlay.topology import topology
from godwit.policies.allocation.automatic import automatic
from godwit.policies.allocation.manual import manual
from godwit.policies.allocation.pairwise import Pairwise
from godwit.policies.allocation.planner import make_plan
from godwit.policies.allocation.settings import AllocationSettings, Keep

BASELINES = ["manual", "automatic", "pairwise-k", "pairwise-n"]
SOME = random_gathered(Random(4), subscriptions=60, publishers=4, capacities=brokers(12, 3000))


@pytest.mark.parametrize("algorithm", BASELINES)
def test_all_brokers_are_used_and_all_subscriptions_placed(algorithm: str) -> None:
    plan = make_plan(SOME, AllocationSettings(algorithm=algorithm))
    assert len(plan.brokers) == 12
    assert len(plan.links) == 11
    assert plan.released == ()
    assert set(plan.assignment) == {s.id for s in SOME.subscriptions}
    assert set(plan.publishers) == {"p1", "p2", "p3", "p4"}


@pytest.mark.parametrize("algorithm", BASELINES)
def test_the_seed_decides(algorithm: str) -> None:
    def made(seed: int) -> object:
        plan = make_plan(SOME, AllocationSettings(algorithm=algorithm, seed=seed))
        return plan.assignment, plan.publishers

    assert made(1) == made(1)
    assert made(1) != made(2)


def test_manual_is_a_binary_tree_with_the_strongest_on_top() -> None:
    unlike = [broker(f"B{i}", 100 * i) for i in range(1, 8)]
    problem, units, _ = problem_with_units(
        gathered([subscription(f"s{i}", "1") for i in range(280)], unlike)
    )
    tree = manual(units, problem.brokers, Random(0))
    assert tree.root == "B7"
    assert dict(tree.parents) == {
        "B6": "B7", "B5": "B7", "B4": "B6", "B3": "B6", "B2": "B5", "B1": "B5",
    }  # fmt: skip
    assert {name: len(found) for name, found in tree.served.items()} == {
        f"B{i}": 10 * i for i in range(1, 8)
    }


def test_80_brokers_with_fan_out_2_have_a_longest_path_of_11_links() -> None:
    problem, units, _ = problem_with_units(gathered([subscription("s", "1")], brokers(80)))
    tree = manual(units, problem.brokers, Random(0))
    assert topology(tree.brokers, tree.parents.items()).diameter == 11


def test_automatic_keeps_its_fan_out() -> None:
    problem, units, _ = problem_with_units(gathered([subscription("s", "1")], brokers(60)))
    for seed in range(5):
        tree = automatic(units, problem.brokers, Random(seed), 3)
        counts = Counter(tree.parents.values())
        assert len(tree.order) == 60
        assert 2 <= max(counts.values()) <= 3


def test_pairwise_merges_the_closest_of_all_pairs() -> None:
    for seed in range(25):
        random = Random(f"pairwise {seed}")
        document = random_gathered(random, subscriptions=12, capacities=brokers(2))
        problem, units, factory = problem_with_units(document)
        wanted = random.randint(1, 12)
        found = Pairwise(units, problem.table, factory).clusters(wanted)
        assert len(found) == wanted
        assert sorted(leaf.subscriber for unit in found for leaf in unit.leaves()) == list(
            range(12)
        )
        clusters = [(ids_of(unit), 1) for unit in units]
        sums, is_unique = [], True
        while len(clusters) > wanted:
            pairs = list(combinations(range(len(clusters)), 2))
            apart = [len(clusters[a][0] ^ clusters[b][0]) for a, b in pairs]
            is_unique = is_unique and (apart.count(min(apart)) == 1 or min(apart) == 0)
            a, b = pairs[apart.index(min(apart))]
            sums.append(min(apart))
            merged = (clusters[a][0] | clusters[b][0], clusters[a][1] + clusters[b][1])
            clusters = [c for i, c in enumerate(clusters) if i not in (a, b)] + [merged]
        if is_unique:
            expected = Counter(ids for ids, _ in clusters)
            assert Counter(ids_of(unit) for unit in found) == expected, f"seed {seed}"


def test_pairwise_n_has_a_cluster_for_each_broker_and_k_as_many_as_cram_xor() -> None:
    n = make_plan(SOME, AllocationSettings(algorithm="pairwise-n"))
    assert n.clusters == 12
    assert len(set(n.assignment.values())) == 12
    xor = make_plan(SOME, AllocationSettings(algorithm="cram-xor"))
    k = make_plan(SOME, AllocationSettings(algorithm="pairwise-k"))
    assert k.clusters == xor.clusters


def test_baselines_do_not_mind_overload() -> None:
    too_much = gathered([subscription(f"s{i}", "1" * 64) for i in range(9)], brokers(3, 100))
    for algorithm in BASELINES:
        plan = make_plan(too_much, AllocationSettings(algorithm=algorithm))
        assert max(found.utilisation for found in plan.brokers) > 1


def test_publishers_are_at_random_brokers_unless_grape_is_asked_for() -> None:
    document = gathered(
        [subscription("s", bits_of(range(9)))],
        brokers(30),
        [publisher(f"p{i}") for i in range(1, 9)],
    )
    plan = make_plan(document, AllocationSettings(algorithm="manual"))
    assert len(set(plan.publishers.values())) > 3
    placed = make_plan(document, AllocationSettings(algorithm="manual", relocate_publishers=True))
    assert placed.publishers["p1"] == placed.assignment["s"]


@pytest.mark.parametrize(("keep", "clusters"), [("fewest", 24), ("last", 5)])
def test_pairwise_k_has_as_many_clusters_as_cram_xor_keeps(keep: Keep, clusters: int) -> None:
    document = random_gathered(
        Random(4), subscriptions=60, publishers=4, capacities=brokers(30, 2500)
    )
    for algorithm in ("cram-xor", "pairwise-k"):
        plan = make_plan(document, AllocationSettings(algorithm=algorithm, keep=keep))
        assert plan.clusters == clusters
