"""Lower bounds of the maximum load: never above what any assignment has."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import inf
from random import Random

import pytest
from tests.policies.offload.loads import pie
from tests.policies.offload.scenes import info

from godwit.errors import UsageError
from godwit.policies.offload.broker_load import BrokerInfo
from godwit.policies.offload.load_bounds import (
    input_bound,
    load_bounds,
    matching_bound_s,
    output_bound,
)
from godwit.policies.offload.obstacles import LargestSubscriber, Obstacles


@pytest.mark.parametrize(
    ("loads", "largest", "bound"),
    [
        pytest.param([(900, 1000), (100, 1000)], 0, 0.5, id="equal brokers share equally"),
        pytest.param([(900, 1000), (0, 3000)], 0, 0.225, id="by capacity"),
        pytest.param([(900, 1000), (0, 3000)], 1200, 0.4, id="the largest one must be somewhere"),
        pytest.param([(900, 1000), (0, inf)], 0, 0.0, id="one without a limit takes all"),
        pytest.param([(0, 1000)], 0, 0.0, id="nothing is used"),
        pytest.param([(10, 0.0)], 0, inf, id="there is no capacity"),
    ],
)
def test_output(loads: list[tuple[float, float]], largest: float, bound: float) -> None:
    brokers = [info(ou=used, ot=total) for used, total in loads]

    assert output_bound(brokers, largest_subscriber_bytes_s=largest) == pytest.approx(bound)


@pytest.mark.parametrize(
    ("lines", "subscriptions", "bound_s"),
    [
        pytest.param([(1e-3, 0.0), (1e-3, 0.0)], 100, 0.05, id="half of them each"),
        pytest.param([(1e-3, 0.0), (3e-3, 0.0)], 100, 0.075, id="three quarters at the faster one"),
        pytest.param([(1e-3, 0.0), (1e-3, 0.02)], 100, 0.06, id="the slower one starts later"),
        pytest.param([(1e-3, 0.0), (1e-3, 0.5)], 100, 0.5, id="the slower one, without any"),
        pytest.param([(1e-3, 0.0), (0.0, 0.01)], 100, 0.01, id="one that takes any number"),
        pytest.param([(1e-3, 0.0), (0.0, 0.2)], 100, 0.2, id="one that takes any number, slowly"),
        pytest.param([(1e-3, -0.02), (1e-3, 0.0)], 100, 0.04, id="a line below zero"),
    ],
)
def test_matching(lines: list[tuple[float, float]], subscriptions: int, bound_s: float) -> None:
    brokers = [info(n=0, m=m, b=b) for m, b in lines]
    brokers[0] = info(n=subscriptions, m=lines[0][0], b=lines[0][1])

    assert matching_bound_s(brokers) == pytest.approx(bound_s)


@pytest.mark.parametrize(
    ("brokers", "bound"),
    [
        pytest.param([info(ir=50, n=10, b=0.01)], 0.5, id="one broker has what it has"),
        pytest.param(
            [info(ir=50, n=10, b=0.01), info(n=0, b=0.01)], 0.25, id="two share the publications"
        ),
        pytest.param(
            [info(ir=50, n=10, b=0.01), info(ir=50, n=10, b=0.01)], 0.25, id="the same ones"
        ),
        pytest.param(
            [info(ir=60, n=10, b=0.01), info(n=0, b=0.02)], 0.4, id="the faster one takes more"
        ),
        pytest.param(
            [info(ir=60, n=1001, m=1e-5), info(n=0, m=1e-5)], 60 / (1e5 + 100),
            id="one subscription may attract all, and the others be elsewhere",
        ),
        pytest.param(
            [info(ir=60, n=3, m=1e-3), info(n=0, m=1e-3)], 0.04,
            id="three subscriptions: one here, two there",
        ),
    ],
)  # fmt: skip
def test_input(brokers: list[BrokerInfo], bound: float) -> None:
    assert input_bound(brokers) == pytest.approx(bound)


@pytest.mark.parametrize("seed", range(60))
def test_no_assignment_is_below_a_bound(seed: int) -> None:
    """All assignments of up to six subscribers to two or three brokers."""
    random = Random(seed)
    subscribers = [
        (random.randrange(16), random.randint(1, 4), random.uniform(1, 100))
        for _ in range(random.randint(1, 6))
    ]
    kinds = [
        (random.uniform(0, 2e-3), random.uniform(-1e-3, 0.05), random.choice([100.0, 300.0, inf]))
        for _ in range(random.randint(2, 3))
    ]

    def brokers(places: tuple[int, ...]) -> list[BrokerInfo]:
        found = []
        for number, (m, b, ot) in enumerate(kinds):
            here = [s for s, place in zip(subscribers, places, strict=True) if place == number]
            wanted = 0
            for bits, _, _ in here:
                wanted |= bits
            found.append(
                info(
                    f"B{number}", ir=wanted.bit_count(), n=sum(n for _, n, _ in here), m=m, b=b,
                    ou=sum(used for _, _, used in here), ot=ot,
                )
            )  # fmt: skip
        return found

    every = [brokers(places) for places in product(range(len(kinds)), repeat=len(subscribers))]
    least = (
        min(max(b.input_utilisation for b in each) for each in every),
        min(max(b.matching_delay_s for b in each) for each in every),
        min(max(b.output_utilisation for b in each) for each in every),
    )
    largest = max(used for _, _, used in subscribers)
    for each in random.sample(every, min(len(every), 20)):
        known = load_bounds(each)
        more = load_bounds(each, largest_subscriber_bytes_s=largest)
        for bound in (known, more):
            assert bound.input_utilisation <= least[0] * (1 + 1e-9)
            assert bound.matching_delay_s <= least[1] * (1 + 1e-9)
            assert bound.output_utilisation <= least[2] * (1 + 1e-9)


def test_bounds_need_a_broker() -> None:
    with pytest.raises(UsageError, match="at least one"):
        load_bounds([])


@pytest.mark.parametrize(
    ("sampled_bytes_s", "used_then", "used_now", "bound"),
    [
        pytest.param(900, 1000, 1000, 0.9, id="as it was sampled"),
        pytest.param(900, 1000, 500, 0.45, id="half of the load: half of it"),
        pytest.param(900, 1000, 0, 0.0, id="the load has stopped"),
        pytest.param(1200, 1000, 1000, 1.0, id="sampled more than was measured"),
        pytest.param(900, 0, 1000, 0.5, id="nothing was measured"),
    ],
)
def test_the_largest_subscriber_is_remembered_as_a_part_of_the_load(
    sampled_bytes_s: float, used_then: float, used_now: float, bound: float
) -> None:
    """B1: else the bound exceeds every load."""
    obstacles = Obstacles("B1")
    obstacles.largest_subscriber = LargestSubscriber(sampled_bytes_s, used_then)
    own, other = info("B1", ou=used_now, ot=1000), pie("B2")

    found = obstacles.bounds(own, [other]).output_utilisation

    assert found == pytest.approx(bound)
    assert found <= own.output_utilisation


@pytest.mark.parametrize("forget", [Obstacles.on_success, Obstacles.on_departed])
def test_the_largest_subscriber_is_forgotten_if_it_may_have_left(
    forget: Callable[[Obstacles], None],
) -> None:
    obstacles = Obstacles("B1")
    obstacles.largest_subscriber = LargestSubscriber(900.0, 1000.0)
    own, other = info("B1", ou=1000, ot=1000), pie("B2")
    forget(obstacles)

    assert obstacles.bounds(own, [other]).output_utilisation == pytest.approx(0.5)
