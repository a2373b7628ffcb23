"""Running averages and rate windows, by hand."""

from __future__ import annotations

from random import Random

import pytest

from godwit.profile.rate_window import RateWindow
from godwit.profile.running_average import RunningMean, weighted


def test_the_newest_value_weighs_a_quarter() -> None:
    assert weighted(8.0, 4.0) == 0.25 * 4.0 + 0.75 * 8.0 == 7.0
    assert weighted(8.0, 4.0, newest_weight=1.0) == 4.0


def test_a_running_mean_is_a_mean_until_the_weight_is_reached() -> None:
    mean = RunningMean(0.25)
    values = [10.0, 20.0, 60.0, 10.0]
    for count, value in enumerate(values, start=1):
        mean.add(value)
        assert mean.value == pytest.approx(sum(values[:count]) / count)
    mean.add(100.0)
    assert mean.value == pytest.approx(25.0 + (100.0 - 25.0) * 0.25)


def test_a_rate_window_forgets_slices_as_a_whole() -> None:
    window = RateWindow[str](60.0)
    window.add("a", 600, 0.0)
    window.add("a", 600, 4.9)  # The same slice: it began at 0.
    window.add("b", 60, 5.0)
    assert window.per_s("a", age_s=10.0) == 120.0, "a key of 10 s"
    assert window.per_s("a", age_s=100.0) == 20.0, "never longer than the window"

    window.forget_old(60.0)
    assert window.per_s("a", age_s=60.0) == 20.0
    window.forget_old(60.1)
    assert (window.per_s("a", age_s=60.1), window.per_s("b", age_s=60.0)) == (0.0, 1.0)


def test_zeros_in_a_later_slice_do_no_harm() -> None:
    window = RateWindow[str](10.0)
    window.add("a", 5, 0.0)
    window.add("a", 0, 6.0)
    window.forget_old(30.0)
    assert window.per_s("a", age_s=10.0) == 0.0


def test_a_dropped_key_begins_anew() -> None:
    window = RateWindow[str](10.0)
    window.add("a", 5, 0.0)
    window.add("b", 7, 0.0)
    window.drop("a")
    window.drop("never added")
    window.add("a", 1, 1.0)
    assert (window.per_s("a", age_s=1.0), window.per_s("b", age_s=1.0)) == (1.0, 7.0)
    window.forget_old(11.5)
    assert (window.per_s("a", age_s=1.0), window.per_s("b", age_s=1.0)) == (0.0, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_rate_window_against_all_that_was_added(seed: int) -> None:
    random, window, added, now_s = (
        Random(seed),
        RateWindow[int](20.0),
        list[tuple[float, int]](),
        0.0,
    )
    slice_s = -100.0
    for _ in range(500):
        now_s += random.random() * 2
        if now_s - slice_s >= 5.0:
            slice_s = now_s
        amount = random.randrange(4)
        window.add(0, amount, now_s)
        added.append((slice_s, amount))
        window.forget_old(now_s)
        expected = sum(amount for began_s, amount in added if now_s - began_s <= 20.0)
        assert window.per_s(0, age_s=1.0) == expected
