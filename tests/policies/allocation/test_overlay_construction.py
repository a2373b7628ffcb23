"""Overlay construction: trees by hand, and what holds for every tree."""

from __future__ import annotations

from random import Random

import pytest
from tests.policies.allocation.scenes import (
    bits_of,
    broker,
    brokers,
    gathered,
    problem_with_units,
    random_gathered,
    subscription,
)

from godwit.policies.allocation.bin_packing import bin_packing
from godwit.policies.allocation.capacity import BrokerCapacity, BrokerFill, UnallocatableError
from godwit.policies.allocation.gathered import Gathered
from godwit.policies.allocation.overlay_construction import construct
from godwit.policies.allocation.overlay_tree import OverlayTree
from godwit.policies.allocation.packed_profiles import PackedProfile, PublisherTable, union


def built(document: Gathered, *, optimisations: bool = True) -> tuple[OverlayTree, PublisherTable]:
    problem, units, factory = problem_with_units(document)
    packed = bin_packing(units, problem.brokers, problem.table)
    assert packed.is_complete
    used = {fill.broker.id for fill in packed.used}
    tree = construct(
        packed.used,
        [b for b in problem.brokers if b.id not in used],
        lambda found, free: bin_packing(found, free, problem.table),
        problem.table,
        factory,
        optimisations=optimisations,
    )
    return tree, problem.table


def check(tree: OverlayTree, table: PublisherTable, subscribers: int) -> None:
    """A tree with each subscriber once, and no broker above its capacity with all at the root."""
    assert len(tree.order) == len(tree.brokers)
    assert sorted(index for index, _ in tree.assignment()) == list(range(subscribers))
    below: dict[str, PackedProfile] = {}
    for name in reversed(tree.order):
        units = tree.served[name]
        needs = [below[child] for child in tree.children[name]]
        below[name] = union([*needs, *(unit.profile for unit in units)])
        sent = sum(unit.bandwidth_bytes_s for unit in units)
        sent += sum(table.bandwidth_bytes_s(profile) for profile in needs)
        assert sent < tree.brokers[name].output_bandwidth_bytes_s, name
        n = tree.subscriptions(name) + len(needs)
        assert table.rate_per_s(below[name]) <= tree.brokers[name].rate_max(n) * (1 + 1e-9), name


def test_one_broker_is_the_root() -> None:
    tree, _ = built(gathered([subscription("s", "1")]))
    assert (tree.root, dict(tree.parents)) == ("B01", {})


def test_a_broker_above_two() -> None:
    """Two brokers with 1,280 bytes/s each of 1,300; above them one that sends 640 to each."""
    document = gathered([subscription(f"s{i}", "1" * 64) for i in range(4)], brokers(3, 1300))
    tree, table = built(document)
    assert dict(tree.parents) == {"B01": "B03", "B02": "B03"}
    check(tree, table, 4)


def test_layers_are_built_until_one_broker_is_left() -> None:
    """Six brokers, each full with one subscription of 640; a parent serves two of them."""
    document = gathered(
        [subscription(f"s{i}", "1" * 64) for i in range(12)],
        [broker(f"E{i}", 1281) for i in range(6)] + [broker(f"T{i}", 1290 - i) for i in range(6)],
    )
    tree, table = built(document, optimisations=False)
    check(tree, table, 12)
    assert max(len(children) for children in tree.children.values()) == 2
    assert len(tree.order) == 6 + 3 + 2 + 1


def test_without_free_brokers_the_layer_connects_itself() -> None:
    document = gathered([subscription(f"s{i}", "1" * 64) for i in range(3)], brokers(2, 2000))
    tree, table = built(document)
    check(tree, table, 3)
    document = gathered(
        [subscription(f"s{i}", "1" * 64) for i in range(3)],
        [broker("B1", 1300), broker("B2", 1300)],
    )
    tree, table = built(document)
    assert dict(tree.parents) == {"B1": "B2"}  # The one with room is the root.
    check(tree, table, 3)


def test_where_no_tree_is_possible_it_says_so() -> None:
    document = gathered([subscription(f"s{i}", "1" * 64) for i in range(4)], brokers(2, 1281))
    with pytest.raises(UnallocatableError, match="the tree cannot connect 2 brokers"):
        built(document)


def test_random_trees_keep_every_broker_within_its_capacity() -> None:
    depths = set()
    for seed in range(60):
        random = Random(f"trees {seed}")
        capacities = [
            broker(f"B{i:02}", random.choice((1300, 1300, 2600)), 0.0, random.choice((0, 1e-3)))
            for i in range(14)
        ]
        document = random_gathered(random, subscriptions=24, publishers=2, capacities=capacities)
        try:
            tree, table = built(document, optimisations=random.random() < 0.7)
        except (AssertionError, UnallocatableError):
            continue
        check(tree, table, 24)
        depths.add(len(tree.order))
    assert len(depths) > 4


def test_a_fill_of_the_upper_layer_counts_a_broker_below_as_one_subscription() -> None:
    problem, units, factory = problem_with_units(
        gathered([subscription("s1", "1" * 64), subscription("s2", bits_of(range(32)))])
    )
    below = factory.below("B1", union(unit.profile for unit in units))
    assert (below.subscriptions, below.bandwidth_bytes_s) == (1, 640)
    capacity: BrokerCapacity = problem.brokers[0]
    assert BrokerFill(capacity, problem.table, [below]).subscriptions == 1
