"""The formulae, at values that are known, and against each other."""

from __future__ import annotations

from itertools import accumulate, pairwise
from math import exp, inf, log
from random import Random

import pytest

from godwit.experiments.broker_model.queueing_theory import (
    customers_needed,
    growth_per_s,
    md1_share_served_within,
    md1_wait_s,
    md1_wait_s_quantile,
    tandem_waits_s,
)


@pytest.mark.parametrize(
    ("rho", "wait"), [(0.1, 1 / 18), (0.5, 0.5), (0.8, 2.0), (0.9, 4.5), (1.0, inf), (1.2, inf)]
)
def test_the_mean_wait_of_md1_is_half_that_of_mm1(rho: float, wait: float) -> None:
    assert md1_wait_s(rho, 1.0) == pytest.approx(wait)
    assert md1_wait_s(rho / 0.25, 0.25) == pytest.approx(0.25 * wait), "a faster clock"


def test_erlangs_distribution_where_it_is_simple() -> None:
    """Nobody is before 1 - rho of the customers; within one service it is (1 - rho) e^(rho x)."""
    assert md1_share_served_within(0.0, 0.3) == pytest.approx(0.7)
    assert md1_share_served_within(0.5, 0.3) == pytest.approx(0.7 * exp(0.15))
    # Within two: (1 - rho) (e^(rho x) - rho (x - 1) e^(rho (x - 1))).
    assert md1_share_served_within(1.5, 0.6) == pytest.approx(0.4 * (exp(0.9) - 0.3 * exp(0.3)))
    assert md1_wait_s_quantile(0.99, 0.1, 1.0) == pytest.approx(log(0.99 / 0.9) / 0.1)
    assert md1_wait_s_quantile(0.99, 1.0, 1.0) == inf


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_erlangs_distribution_has_the_mean_of_pollaczek_and_khinchine(rho: float) -> None:
    """The mean is the area above the distribution; at 0.9 the sum's terms reach 10^40."""
    step, end = 0.25, 8 / (1 - rho)
    above = [1 - md1_share_served_within(step * n, rho) for n in range(int(end / step))]
    area = sum((one + other) / 2 * step for one, other in pairwise(above))
    assert area == pytest.approx(md1_wait_s(rho, 1.0), rel=0.01)
    p99 = md1_wait_s_quantile(0.99, rho, 1.0)
    assert md1_share_served_within(p99, rho) == pytest.approx(0.99)


def arrivals_s(count: int, rate_per_s: float, random: Random) -> list[float]:
    return list(accumulate(random.expovariate(rate_per_s) for _ in range(count)))


def waits_s(came_s: list[float], service_s: float) -> list[float]:
    """Customer after customer, as a clerk would do it."""
    free_s, found = 0.0, []
    for at_s in came_s:
        start_s = max(at_s, free_s)
        found.append(start_s - at_s)
        free_s = start_s + service_s
    return found


@pytest.mark.parametrize(("first_s", "second_s"), [(1.0, 0.5), (0.5, 1.0), (1.0, 1.0)])
def test_two_servers_make_everybody_wait_as_the_slower_alone(
    first_s: float, second_s: float
) -> None:
    came_s = arrivals_s(2000, 0.9, Random(1))
    first = waits_s(came_s, first_s)
    passed_s = [at_s + wait_s + first_s for at_s, wait_s in zip(came_s, first, strict=True)]
    second = waits_s(passed_s, second_s)
    together = [one + other for one, other in zip(first, second, strict=True)]

    assert together == pytest.approx(waits_s(came_s, max(first_s, second_s)))


def test_waits_in_a_row() -> None:
    assert list(tandem_waits_s(0.8, 1.0, 0.5)) == pytest.approx([2.0, 0.0])
    assert list(tandem_waits_s(0.8, 0.5, 1.0)) == pytest.approx([1 / 6, 2.0 - 1 / 6])


def test_a_queue_grows_by_what_cannot_be_served() -> None:
    assert growth_per_s(1200.0, 0.001) == pytest.approx(200.0)
    assert growth_per_s(800.0, 0.001) == 0.0


def test_how_many_customers_are_enough() -> None:
    """200 samples of as many as are said to give 10%: their means should differ by about 10%."""
    random, rho = Random(2), 0.6
    needed = customers_needed(rho, 0.1)
    off = 0.0
    for _ in range(200):
        came_s = arrivals_s(needed + 200, rho, random)
        mean_s = sum(waits_s(came_s, 1.0)[200:]) / needed
        off += (mean_s / md1_wait_s(rho, 1.0) - 1) ** 2
    assert 0.07 < (off / 200) ** 0.5 < 0.14
