"""The matching-delay model: buckets, outliers, and the line through the last bucket."""

from __future__ import annotations

from random import Random

import pytest

from godwit.profile.matching_delay import DELAY_MIN_S, MatchingDelay, MatchingDelayModel, bucket


def fitted(*samples: tuple[int, float]) -> MatchingDelay:
    model = MatchingDelayModel()
    for subscriptions, delay_s in samples:
        model.add(subscriptions, delay_s)
    assert model.line is not None
    return model.line


@pytest.mark.parametrize(
    ("subscriptions", "expected"), [(0, 0), (4, 0), (5, 10), (14, 10), (15, 20), (24, 20)]
)
def test_vector_7_buckets(subscriptions: int, expected: int) -> None:
    assert bucket(subscriptions) == expected


def test_vector_7_the_line_through_the_last_bucket() -> None:
    line = fitted((10, 0.001), (20, 0.002), (30, 0.004))
    assert line.slope_s == pytest.approx(0.000175)
    assert line.intercept_s == pytest.approx(-0.00125)
    assert line.delay_s(30) == pytest.approx(0.004), "it passes through the last bucket"
    assert line.delay_s(40) == pytest.approx(0.00575)
    assert line.rate_max(40) == pytest.approx(1 / 0.00575)


def test_it_is_refitted_with_every_sample() -> None:
    model = MatchingDelayModel()
    assert model.line is None, "nothing was measured"
    model.add(12, 0.002)
    assert model.line == MatchingDelay(0.0, 0.002), "one bucket has no slope"
    model.add(20, 0.003)
    line = model.line
    assert line is not None
    assert line.delay_s(28) == pytest.approx(0.004), "a bucket is where its samples were"
    model.add(14, 0.004)  # Bucket 10 now has a mean of 0.003.
    assert line.slope_s == pytest.approx(0.000125), "a line that was taken does not change"
    assert model.line == MatchingDelay(0.0, pytest.approx(0.003))


def test_samples_of_a_line_give_that_line() -> None:
    for counts in ((14, 23, 23, 38), (500, 487, 402, 402, 512), (4, 13)):
        line = fitted(*[(n, 1e-4 + 4e-5 * n) for n in counts])
        assert line.slope_s == pytest.approx(4e-5)
        assert line.intercept_s == pytest.approx(1e-4)


def test_buckets_that_touch_do_not_make_a_steep_line_of_noise() -> None:
    assert fitted((14, 0.00100), (15, 0.00105)).slope_s == pytest.approx(0.00005 / 5)


def test_it_follows_the_newest_samples_of_a_bucket() -> None:
    line = fitted(*[(10, 0.001)] * 50, *[(10, 0.0014)] * 50)
    assert line.intercept_s == pytest.approx(0.0014, rel=1e-3)


def test_a_delay_is_above_zero_and_does_not_fall_with_subscriptions() -> None:
    assert fitted((100, 0.001), (200, 0.003)).delay_s(10) == DELAY_MIN_S
    assert fitted((100, 0.003), (200, 0.002)) == MatchingDelay(0.0, 0.002)


def test_two_outliers_in_a_row_are_ignored_and_the_third_is_taken() -> None:
    model = MatchingDelayModel()
    for _ in range(4):
        model.add(10, 0.001)
    model.add(20, 0.001)
    settled = model.line
    for delay_s in (0.0016, 0.0004):
        model.add(20, delay_s)
        assert model.line == settled
    model.add(20, 0.0016)
    assert model.line != settled


def test_a_normal_sample_after_an_outlier_is_taken_and_the_next_outlier_ignored() -> None:
    model = MatchingDelayModel()
    for delay_s in [0.001] * 5 + [0.1, 0.0011, 0.1, 0.1]:
        model.add(10, delay_s)
    assert model.line == fitted(*[(10, 0.001)] * 5, (10, 0.0011))


@pytest.mark.parametrize("delay_s", [0.0015, 0.0005])
def test_what_is_at_the_limit_is_no_outlier(delay_s: float) -> None:
    samples = [(20, 0.001)] * 5
    assert fitted(*samples, (10, delay_s)) != fitted(*samples)


def test_four_samples_are_too_few_to_tell_an_outlier() -> None:
    assert fitted(*[(10, 0.001)] * 4, (10, 0.1)) != fitted(*[(10, 0.001)] * 4)


def test_ten_buckets_are_kept_without_the_smallest() -> None:
    samples = [(10 * n, 0.001 + 0.0001 * n) for n in range(1, 12)]
    line = fitted((10, 0.0005), *samples[1:])
    assert line.slope_s == pytest.approx(0.00001), "bucket 10 is gone"


def test_a_broker_that_loses_subscriptions_gets_a_new_bucket() -> None:
    samples = [(10 * n, 0.001 + 0.0001 * n) for n in range(2, 12)]
    line = fitted(*samples, (10, 0.0011))
    assert line.delay_s(10) == pytest.approx(0.0011)
    assert line.slope_s == pytest.approx(0.00001)


def plain(samples: list[tuple[int, float]]) -> tuple[float, float]:
    """The rules of 3.12 with lists."""
    kept: list[float] = []
    buckets: dict[int, float] = {}
    places: dict[int, float] = {}
    counts: dict[int, int] = {}
    ignored = last = 0
    for n, x in samples:
        if len(kept) >= 5 and ignored < 2:
            mean = sum(kept[-5:]) / 5
            if x > 1.5 * mean or x < 0.5 * mean:
                ignored += 1
                continue
        ignored = 0
        kept.append(x)
        last = min(range(0, n + 20, 10), key=lambda ten: (abs(ten - n), -ten))
        counts[last] = counts.get(last, 0) + 1
        weight = max(0.25, 1 / counts[last])
        buckets[last] = (1 - weight) * buckets.get(last, 0.0) + weight * x
        places[last] = (1 - weight) * places.get(last, 0.0) + weight * n
        if len(buckets) > 10:
            smallest = min(set(buckets) - {last})
            del buckets[smallest], counts[smallest], places[smallest]
    slopes = []
    for ten, d in buckets.items():
        if ten != last:
            gap = max(5.0, abs(places[last] - places[ten]))
            slopes.append((buckets[last] - d) / (gap if ten < last else -gap))
    m = max(0.0, sum(slopes) / len(slopes)) if slopes else 0.0
    return m, buckets[last] - m * places[last]


@pytest.mark.parametrize("seed", range(20))
def test_random_samples_against_a_plain_version(seed: int) -> None:
    random = Random(seed)
    model, samples, n = MatchingDelayModel(), list[tuple[int, float]](), 50
    for _ in range(300):
        n = max(0, n + random.choice((-9, -1, 0, 1, 10)))
        spike = 5.0 if random.random() < 0.1 else 1.0
        samples.append((n, (1e-4 + 1e-6 * n) * random.uniform(0.9, 1.1) * spike))
        model.add(*samples[-1])
        line, (slope_s, intercept_s) = model.line, plain(samples)
        assert line is not None
        assert line.slope_s == pytest.approx(slope_s, rel=1e-6, abs=1e-12)
        assert line.intercept_s == pytest.approx(intercept_s, rel=1e-6, abs=1e-10)
