"""Closeness: test vector 6, and bounds that are never below a value that they limit."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.policies.allocation.plain_cram import closeness

from godwit.policies.allocation.closeness import XOR_CAP, ClosenessMetric

IOS = ClosenessMetric.IOS


@pytest.mark.parametrize(
    ("i", "g", "h", "expected"),
    [
        pytest.param(8, 36, 24, 1.07, id="S1 and S2"),
        pytest.param(4, 36, 4, 0.4, id="S1 and one that it covers"),
        pytest.param(1, 24, 1, 0.04, id="S2 and one that it covers"),
        pytest.param(12, 36, 12, 3.0, id="S1 and all that it covers"),
        pytest.param(8, 24, 8, 2.0, id="S2 and all that it covers"),
    ],
)
def test_figure_6_2(i: int, g: int, h: int, expected: float) -> None:
    assert round(IOS.of(i, g, h), 2) == expected


@pytest.mark.parametrize("metric", ClosenessMetric, ids=lambda metric: metric.value)
def test_values_are_the_definition(metric: ClosenessMetric) -> None:
    random = Random(1)
    for _ in range(300):
        a = frozenset((0, bit) for bit in random.sample(range(30), random.randint(0, 30)))
        b = a if random.random() < 0.1 else frozenset(
            (0, bit) for bit in random.sample(range(30), random.randint(0, 30))
        )  # fmt: skip
        i, g, h = len(a & b), len(a), len(b)
        expected = closeness(metric.value, a, b)
        assert metric.of(i, g, h) == expected
        assert metric.values(np.array([i]), g, np.array([h])).tolist() == [expected]


def test_a_profile_with_itself() -> None:
    values = {metric.value: metric.of_itself(40) for metric in ClosenessMetric}
    assert values == {"intersect": 40, "xor": XOR_CAP, "ios": 20, "iou": 40}
    assert ClosenessMetric.XOR.of(5, 5, 6) < XOR_CAP


def test_bounds_limit_all_values_below_a_node() -> None:
    for metric in (ClosenessMetric.INTERSECT, IOS, ClosenessMetric.IOU):
        for g in range(1, 14):
            for i in range(g + 1):
                limit = float(metric.below(np.array([i]), g)[0])
                for common in range(i + 1):
                    for h in range(common, 20):
                        value = metric.of(common, g, h)
                        assert value <= limit
                        at_most = metric.at_most(np.array([i]), g, np.array([h]))[0]
                        assert value <= at_most
