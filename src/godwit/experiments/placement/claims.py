"""Terms of claims about publisher placement: a policy compared with the static tree, over all X.

"Up to" is the largest of the reductions over the values of X, each of means over the seeds.  The
thesis's PlanetLab is the smallest tree with a fan-out of 2, its cluster the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from godwit.lab.declaration import Results

STATIC, POP, LOAD, DELAY = POLICIES = ("static", "pop", "grape-load", "grape-delay")
MESSAGES, HOPS, DELAYS = "messages_per_s_mean", "hops_mean", "delay_s_mean"
MESSAGES_IN = "messages_in_per_s_mean"
INPUT, OUTPUT = "input_utilisation_mean", "output_utilisation_mean"

Of = Callable[[str, str], float]
"""A measure under a policy, at one size and one X."""


def planetlab(results: Results) -> Results:
    return _of_size(results, min)


def cluster(results: Results) -> Results:
    return _of_size(results, max)


def _of_size(results: Results, pick: Callable[[Iterable[int]], int]) -> Results:
    binary = results.where(fanout=2)
    return binary.where(brokers=pick(int(size) for size, _ in binary.by("brokers")))


def points(results: Results, *, from_x: int = 1, fanout: int = 2) -> Iterator[Of]:
    """Each size and each X of at least `from_x`, as functions that return measures there."""
    swept = results.where(fanout=fanout).only(
        lambda run: int(run.case["x"]) >= from_x, f"X of at least {from_x}"
    )
    for _, of_size in swept.by("brokers"):
        for _, at in of_size.by("x"):
            yield point(at)


def point(at: Results) -> Of:
    """The runs of one size and one X, as a function that returns measures there."""
    return lambda measure, policy: at.where(policy=policy).mean(measure)


def up_to(measure: str, policy: str) -> Callable[[Results], float]:
    """The largest share by which a policy reduces a measure in the smallest tree."""

    def reduction(results: Results) -> float:
        return max(
            1 - of(measure, policy) / of(measure, STATIC) for of in points(planetlab(results))
        )

    return reduction


def at_most(measure: str, *policies: str) -> Callable[[Results], float]:
    """The highest value of a measure under some policies, over all sizes and X."""
    return lambda results: max(of(measure, policy) for of in points(results) for policy in policies)


def everywhere(holds: Callable[[Of], bool], *, from_x: int = 1) -> Callable[[Results], bool]:
    return lambda results: all(holds(of) for of in points(results, from_x=from_x))


def on_average(measure: str, policy: str, results: Results, *, from_x: int = 1) -> float:
    """The mean of a measure over all sizes and X."""
    values = [of(measure, policy) for of in points(results, from_x=from_x)]
    return sum(values) / len(values)


def differing(measures: Sequence[str], one: str, other: str) -> Callable[[Results], float]:
    """The largest relative difference between two policies, of the means over all sizes and X."""

    def difference(results: Results) -> float:
        return max(
            abs(on_average(name, one, results) / on_average(name, other, results) - 1)
            for name in measures
        )

    return difference
