"""Curves: something over time, as a measure for each bucket of time.

    MEASURES = {**curve("output_B1", "", "output utilisation of B1")}
    values = {**points("output_B1", {0: 0.1, 1: 0.3})}
    drawn(results, "output_B1")          # [(0, 0.1), (1, 0.3)]

Points are kept with the other numbers of a run, so figures need no trace; tables do not list them.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean

from godwit.lab.declaration import Measure, Results

POINTS_MAX = 120


def curve(name: str, unit: str, meaning: str) -> dict[str, Measure]:
    """The measures of a curve: as many as it may have points."""
    return {
        _point(name, number): Measure(unit, f"{meaning}, bucket {number}", is_listed=False)
        for number in range(POINTS_MAX)
    }


def points(name: str, values: Mapping[int, float]) -> dict[str, float]:
    """The points of a curve in one run, by the number of the bucket."""
    return {_point(name, number): values[number] for number in sorted(values)}


def drawn(results: Results, name: str) -> list[tuple[int, float]]:
    """The buckets that every run has, each with its mean over the runs."""
    numbers = [
        number
        for number in range(POINTS_MAX)
        if all(_point(name, number) in run.values for run in results.runs)
    ]
    return [
        (number, mean(run.values[_point(name, number)] for run in results.runs))
        for number in numbers
    ]


def _point(name: str, number: int) -> str:
    return f"{name}@{number:03d}"
