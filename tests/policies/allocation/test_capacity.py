"""The capacity test: by bandwidth and by matching rate, against its definition."""

from __future__ import annotations

from random import Random

import pytest
from tests.policies.allocation.scenes import (
    bits_of,
    broker,
    brokers,
    gathered,
    ids_of,
    problem_with_units,
    random_gathered,
    subscription,
)

from godwit.policies.allocation.capacity import BrokerFill, UnallocatableError, fits_all
from godwit.policies.allocation.planner import make_plan
from godwit.policies.allocation.settings import AllocationSettings


def test_bandwidth_must_remain() -> None:
    """640 bytes/s of 640: nothing remains, so it does not fit; of 641 it does."""
    for bandwidth, fits in ((640, False), (641, True)):
        problem, (unit,), _ = problem_with_units(
            gathered([subscription("s", "1" * 64)], [broker("B", bandwidth)])
        )
        assert BrokerFill(problem.brokers[0], problem.table).fits(unit) is fits


def test_ten_tenths_are_the_whole_in_spite_of_rounding() -> None:
    problem, units, _ = problem_with_units(
        gathered([subscription(f"s{i}", "1") for i in range(10)], [broker("B", 10 * 10)])
    )
    fill = BrokerFill(problem.brokers[0], problem.table, units[:9])
    fill.bandwidth_bytes_s = 90 - 1e-12
    assert not fill.fits(units[9])


def test_the_input_rate_may_be_just_what_can_be_matched() -> None:
    """64 publications/s; 1/d(1) is 64 with d = 1/64 s."""
    for each_s, fits in ((1 / 64, True), (1 / 63, False)):
        problem, (unit,), _ = problem_with_units(
            gathered([subscription("s", "1" * 64)], [broker("B", base_s=0, each_s=each_s)])
        )
        assert BrokerFill(problem.brokers[0], problem.table).fits(unit) is fits


def test_the_input_is_the_or_not_the_sum() -> None:
    """Two subscriptions to the same 64 publications/s: input 64, d(2) = 1/65 s."""
    same = [subscription(f"s{i}", "1" * 64) for i in range(2)]
    problem, units, _ = problem_with_units(gathered(same, [broker("B", base_s=0, each_s=1 / 130)]))
    assert fits_all(problem.brokers[0], problem.table, units)
    halves = [subscription("a", bits_of(range(40))), subscription("b", bits_of(range(24, 64)))]
    problem, units, _ = problem_with_units(
        gathered(halves, [broker("B", base_s=0, each_s=1 / 126)])
    )
    assert not fits_all(problem.brokers[0], problem.table, units)  # 64/s, 63/s matched


def test_against_the_definition() -> None:
    refused = {"bandwidth": 0, "rate": 0}
    for seed in range(60):
        random = Random(f"capacity {seed}")
        document = random_gathered(
            random, subscriptions=8, publishers=3,
            capacities=[broker("B", random.choice((1200, 9e9)), 0.002, random.choice((0, 0.002)))],
        )  # fmt: skip
        problem, units, _ = problem_with_units(document)
        whole = problem.table.rate_max_per_s(
            BrokerFill(problem.brokers[0], problem.table, units).profile
        )
        fill = BrokerFill(problem.brokers[0], problem.table, whole_per_s=whole)
        for unit in units:
            there = [*fill.units, unit]
            sent = sum(each.bandwidth_bytes_s for each in there)
            ids = frozenset().union(*(ids_of(each) for each in there))
            rate = sum(problem.table.rates_per_s[p] / 64 for p, _ in ids)
            has_bandwidth = sent < problem.brokers[0].output_bandwidth_bytes_s
            has_rate = rate <= problem.brokers[0].rate_max(len(there)) + 1e-9
            assert fill.has_bandwidth(unit) == has_bandwidth, f"seed {seed}"
            assert fill.has_rate(unit) == has_rate, f"seed {seed}"
            assert fill.fits(unit) == (has_bandwidth and has_rate)
            refused["bandwidth"] += not has_bandwidth
            refused["rate"] += not has_rate
            if fill.fits(unit):
                fill.add(unit)
    assert min(refused.values()) > 20


@pytest.mark.parametrize("algorithm", ["fbf", "bin-packing", "cram-iou", "cram-xor"])
def test_where_only_the_matching_rate_binds_it_refuses(algorithm: str) -> None:
    """Bandwidth for all; 64 publications/s, and no broker matches them with more than 3."""
    same = [subscription(f"s{i}", "1" * 64) for i in range(7)]
    settings = AllocationSettings(algorithm=algorithm)
    enough = brokers(4, 1e9, base_s=0.0, each_s=1 / 200)
    made = make_plan(gathered(same, enough), settings)
    assert len(set(made.assignment.values())) == 3
    with pytest.raises(UnallocatableError, match=r"64\.00 publications/s.*1/d\(n\)"):
        make_plan(gathered(same, enough[:2]), settings)
    assert made.lower_bound_brokers == 3


def test_what_is_missing_is_said() -> None:
    settings = AllocationSettings(algorithm="bin-packing")
    some = [subscription(f"s{i}", "1" * 64) for i in range(4)]
    with pytest.raises(UnallocatableError, match=r"needs 2,560 bytes/s .* 560 bytes/s are missing"):
        make_plan(gathered(some, brokers(2, 1000)), settings)
    with pytest.raises(UnallocatableError, match=r"a subscription needs 640 bytes/s") as raised:
        make_plan(gathered(some[:2], brokers(20, 100)), settings)
    assert "540 bytes/s are missing" in str(raised.value)
