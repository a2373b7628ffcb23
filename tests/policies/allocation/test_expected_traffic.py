"""Expected traffic: against routing each publication of the window through the tree."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from random import Random

import pytest
from tests.policies.allocation.scenes import (
    WINDOW,
    broker,
    ids_of,
    problem_with_units,
    random_gathered,
)

from godwit.overlay.topology import random_tree
from godwit.policies.allocation.expected_traffic import ExpectedTraffic
from godwit.policies.allocation.gathered_reading import AllocationProblem
from godwit.policies.allocation.overlay_tree import OverlayTree
from godwit.policies.allocation.publisher_placement import place_publishers
from godwit.policies.allocation.units import AllocationUnit


def random_scene(
    random: Random,
) -> tuple[AllocationProblem, OverlayTree, list[AllocationUnit]]:
    topology = random_tree(random.randint(1, 9), random)
    capacities = [broker(name) for name in topology.brokers]
    document = random_gathered(
        random, subscriptions=random.randint(1, 15), publishers=3, capacities=capacities
    )
    problem, units, _ = problem_with_units(document)
    root = random.choice(topology.brokers)
    distances = topology.distances(root)
    parents = {
        name: next(n for n in topology.neighbours(name) if distances[n] < distances[name])
        for name in topology.brokers
        if name != root
    }
    served: dict[str, list[AllocationUnit]] = {name: [] for name in topology.brokers}
    for unit in units:
        served[random.choice(topology.brokers)].append(unit)
    tree = OverlayTree(
        root, parents, {b.id: b for b in problem.brokers},
        {name: tuple(found) for name, found in served.items()},
    )  # fmt: skip
    return problem, tree, units


class Routed:
    """Each publication on its way, counted."""

    def __init__(self, problem: AllocationProblem, tree: OverlayTree, homes: list[str]) -> None:
        self.received: defaultdict[str, float] = defaultdict(float)
        self.sent: defaultdict[str, float] = defaultdict(float)
        self.sent_bytes: defaultdict[str, float] = defaultdict(float)
        self.hops = self.deliveries = 0.0
        wants = {name: [ids_of(unit) for unit in units] for name, units in tree.served.items()}
        links = [*tree.parents.items(), *((b, a) for a, b in tree.parents.items())]
        neighbours = {name: [b for a, b in links if a == name] for name in tree.brokers}

        def wanted(here: str, came_from: str, key: tuple[int, int]) -> bool:
            return any(key in ids for ids in wants[here]) or any(
                wanted(n, here, key) for n in neighbours[here] if n != came_from
            )

        def arrive(here: str, came_from: str, key: tuple[int, int], hops: int) -> None:
            rate = problem.table.rates_per_s[key[0]] / WINDOW
            size = problem.table.bandwidths_bytes_s[key[0]] / problem.table.rates_per_s[key[0]]
            copies = sum(key in ids for ids in wants[here])
            self.received[here] += rate
            self.hops += copies * hops * rate
            self.deliveries += copies * rate
            for neighbour in neighbours[here]:
                if neighbour != came_from and wanted(neighbour, here, key):
                    copies += 1
                    arrive(neighbour, here, key, hops + 1)
            self.sent[here] += copies * rate
            self.sent_bytes[here] += copies * rate * size

        for p, home in enumerate(homes):
            for bit in range(WINDOW):
                arrive(home, "", (p, bit), 0)


def check(problem: AllocationProblem, traffic: ExpectedTraffic, seed: int) -> None:
    tree = traffic.tree
    homes = list(traffic.homes_by_id.values())
    routed = Routed(problem, tree, homes)
    for place, name in enumerate(tree.order):
        found = (traffic.input_per_s[place], traffic.output_per_s[place])
        assert found == pytest.approx((routed.received[name], routed.sent[name])), f"seed {seed}"
        assert traffic.output_bytes_s[place] == pytest.approx(routed.sent_bytes[name])
    hops = routed.hops / routed.deliveries if routed.deliveries else 0.0
    assert traffic.mean_hops() == pytest.approx(hops)


def test_against_routing_each_publication() -> None:
    for seed in range(40):
        random = Random(f"routing {seed}")
        problem, tree, _ = random_scene(random)
        traffic = ExpectedTraffic(tree, problem.subscribers, problem.table)
        check(problem, traffic, seed)
        for p in range(3):
            traffic.move(p, random.randrange(len(tree.order)))
        check(problem, traffic, seed)


def test_publishers_are_where_they_cause_the_least_input() -> None:
    for seed in range(40):
        problem, tree, _ = random_scene(Random(f"placing {seed}"))
        traffic = ExpectedTraffic(tree, problem.subscribers, problem.table)
        place_publishers(traffic, ())
        for p in range(3):
            sums = [
                float(traffic.flow(p, home).input_per_s.sum()) for home in range(len(tree.order))
            ]
            assert sums[traffic.homes[p]] == pytest.approx(min(sums)), f"seed {seed}"


def test_a_publisher_is_not_placed_where_a_broker_would_be_above_its_capacity() -> None:
    refused = 0
    for seed in range(60):
        random = Random(f"limits {seed}")
        problem, tree, _ = random_scene(random)
        traffic = ExpectedTraffic(tree, problem.subscribers, problem.table)
        capacity = float(traffic.output_bytes_s.max()) * 1.02  # Just enough.
        limited = {
            n: replace(b, output_bandwidth_bytes_s=capacity) for n, b in tree.brokers.items()
        }
        tree = replace(tree, brokers=limited)
        traffic = ExpectedTraffic(tree, problem.subscribers, problem.table)
        place_publishers(traffic, ())
        assert (traffic.output_bytes_s < capacity).all(), f"seed {seed}"
        for p in range(3):
            sums = [
                float(traffic.flow(p, home).input_per_s.sum()) for home in range(len(tree.order))
            ]
            refused += sums[traffic.homes[p]] > min(sums) + 1e-9
    assert refused


def test_a_pinned_publisher_stays() -> None:
    for seed in range(10):
        problem, tree, _ = random_scene(Random(f"pinned {seed}"))
        traffic = ExpectedTraffic(tree, problem.subscribers, problem.table)
        last = len(tree.order) - 1
        traffic.move(1, last)
        place_publishers(traffic, {1})
        assert traffic.homes[1] == last
