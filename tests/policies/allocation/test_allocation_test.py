"""The allocation test: what its bound answers is what BIN PACKING answers."""

from __future__ import annotations

from random import Random

from tests.policies.allocation.scenes import (
    broker,
    brokers,
    gathered,
    problem_with_units,
    publisher,
    random_gathered,
    subscription,
)

from godwit.policies.allocation.allocation_test import AllocationTest
from godwit.policies.allocation.bin_packing import bin_packing


def test_it_answers_as_bin_packing_does() -> None:
    answers = {True: 0, False: 0}
    packings = 0
    for seed in range(150):
        random = Random(f"answers {seed}")
        capacities = [
            broker(
                f"B{i}", random.choice((700, 1000, 4000)), 0.0, random.choice((0, 0.0005, 0.002))
            )
            for i in range(random.randint(1, 9))
        ]
        document = random_gathered(
            random,
            subscriptions=random.randint(2, 20),
            publishers=random.choice((2, 2, 12)),
            capacities=capacities,
        )
        problem, units, factory = problem_with_units(document)
        if not bin_packing(units, problem.brokers, problem.table).is_complete:
            continue
        test = AllocationTest(units, problem.brokers, problem.table)
        for _ in range(12):
            pool = list(test.pool.values())
            parts = random.sample(pool, min(len(pool), random.choice((2, 2, 3, 6))))
            merged = factory.merged(parts)
            rest = [unit for unit in pool if unit not in parts]
            expected = bin_packing([*rest, merged], problem.brokers, problem.table).is_complete
            assert test.allows(parts, merged) == expected, f"seed {seed}"
            answers[expected] += 1
            if expected and len(parts) > 1:
                test.commit(parts, merged)
        packings += test.packings
    assert min(answers.values()) > 100
    assert packings < sum(answers.values()) / 2  # The bound answers most of them.


def test_with_ample_brokers_nothing_is_packed() -> None:
    document = random_gathered(Random(2), subscriptions=60, capacities=brokers(40, 4000))
    problem, units, factory = problem_with_units(document)
    test = AllocationTest(units, problem.brokers, problem.table)
    for a, b in zip(units[::2], units[1::2], strict=True):
        merged = factory.merged([a, b])
        assert test.allows([a, b], merged)
        test.commit([a, b], merged)
    assert test.packings == 0
    assert len(test.pool) == 30


def test_a_unit_that_no_broker_can_serve_alone_is_refused_at_once() -> None:
    document = gathered([subscription(f"s{i}", "1" * 64) for i in range(2)], brokers(5, 1000))
    problem, units, factory = problem_with_units(document)
    test = AllocationTest(units, problem.brokers, problem.table)
    assert not test.allows(units, factory.merged(units))
    assert test.packings == 0


def test_many_publishers_are_not_taken_as_if_every_broker_received_all() -> None:
    """A broker could not match all of them, but none has to."""
    capacities = brokers(120, 4000, base_s=1e-5, each_s=2e-4)
    document = random_gathered(Random(3), subscriptions=200, publishers=100, capacities=capacities)
    problem, units, factory = problem_with_units(document)
    whole = sum(problem.table.rates_per_s)
    assert all(broker.rate_max(2) < whole for broker in problem.brokers)
    test = AllocationTest(units, problem.brokers, problem.table)
    for a, b in zip(units[::2], units[1::2], strict=True):
        merged = factory.merged([a, b])
        assert test.allows([a, b], merged)
        test.commit([a, b], merged)
    assert test.packings == 0


def test_it_answers_as_bin_packing_does_if_only_matching_binds() -> None:
    """Every subscription has its own publisher, so rates add up, and brokers are few."""
    answers = {True: 0, False: 0}
    for seed in range(150):
        random = Random(f"matching {seed}")
        count = random.randint(3, 9)
        names = [f"p{i}" for i in range(count)]
        each_s = random.choice((0.001, 0.002, 0.004))
        document = gathered(
            [subscription(f"s{name}", {name: "1" * 64}) for name in names],
            brokers(random.randint(2, 5), base_s=random.choice((1e-6, 0.002)), each_s=each_s),
            [publisher(name, random.choice((16, 32, 64))) for name in names],
        )
        problem, units, factory = problem_with_units(document)
        if not bin_packing(units, problem.brokers, problem.table).is_complete:
            continue
        test = AllocationTest(units, problem.brokers, problem.table)
        for _ in range(6):
            parts = random.sample(list(test.pool.values()), min(len(test.pool), 2))
            merged = factory.merged(parts)
            rest = [unit for unit in test.pool.values() if unit not in parts]
            expected = bin_packing([*rest, merged], problem.brokers, problem.table).is_complete
            assert test.allows(parts, merged) == expected, f"seed {seed}"
            answers[expected] += 1
            if expected and len(parts) > 1:
                test.commit(parts, merged)
    assert min(answers.values()) > 50, answers
