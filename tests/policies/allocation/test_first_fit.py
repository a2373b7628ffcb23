"""First fit, FBF and BIN PACKING: against a plain loop."""

from __future__ import annotations

from random import Random

from tests.policies.allocation.plain_cram import Plain
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
from godwit.policies.allocation.capacity import BrokerFill
from godwit.policies.allocation.fbf import fastest_broker_first
from godwit.policies.allocation.first_fit import first_fit


def test_bin_packing_against_a_plain_loop() -> None:
    complete = 0
    for seed in range(80):
        random = Random(f"packing {seed}")
        capacities = [
            broker(f"B{i}", random.choice((800, 2000)), 0.001, random.choice((0, 0.002)))
            for i in range(5)
        ]
        document = random_gathered(
            random, subscriptions=random.randint(1, 14), capacities=capacities
        )
        problem, units, _ = problem_with_units(document)
        plain = Plain(problem.brokers, problem.table, "iou")
        plain.start(units)
        expected = plain.pack(plain.units)
        packed = bin_packing(units, problem.brokers, problem.table)
        assert packed.is_complete == (expected is not None), f"seed {seed}"
        if expected is not None:
            found = {f.broker.id: [unit.number for unit in f.units] for f in packed.fills}
            assert found == {name: [u.number for u in us] for name, us in expected.items()}
            complete += 1
    assert 20 < complete < 80


def test_units_go_to_the_most_capable_broker_that_has_room() -> None:
    document = gathered(
        [subscription("big", "1" * 64), subscription("small", bits_of(range(10)))],
        [broker("weak", 200), broker("strong", 700)],
    )
    problem, units, _ = problem_with_units(document)
    packed = bin_packing(units, problem.brokers, problem.table)
    found = {fill.broker.id: [unit.subscriber for unit in fill.units] for fill in packed.used}
    assert found == {"strong": [0], "weak": [1]}


def test_bin_packing_takes_the_heaviest_first_and_the_order_given_does_not() -> None:
    # Small ones first fill both brokers too far for the big one.
    document = gathered(
        [subscription(f"s{i}", bits_of(range(20))) for i in range(2)]
        + [subscription("big", bits_of(range(60)))],
        [broker("B1", 650), broker("B2", 450)],
    )
    problem, units, _ = problem_with_units(document)
    assert not first_fit(units, problem.brokers, problem.table).is_complete
    assert bin_packing(units, problem.brokers, problem.table).is_complete


def test_fbf_takes_a_random_order_from_its_generator() -> None:
    document = gathered(
        [subscription(f"s{i}", bits_of(range(i + 1))) for i in range(30)], brokers(15, 400)
    )
    problem, units, _ = problem_with_units(document)

    def order(seed: int) -> list[list[int]]:
        packed = fastest_broker_first(units, problem.brokers, problem.table, Random(seed))
        return [[unit.number for unit in fill.units] for fill in packed.fills]

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert sorted(number for fill in order(1) for number in fill) == list(range(30))


def test_a_fill_is_within_capacity_if_each_step_was() -> None:
    for seed in range(30):
        document = random_gathered(
            Random(f"fills {seed}"), subscriptions=12, capacities=brokers(6, 1500, each_s=0.001)
        )
        problem, units, _ = problem_with_units(document)
        for fill in bin_packing(units, problem.brokers, problem.table).used:
            assert BrokerFill(fill.broker, problem.table, fill.units).is_within_capacity
