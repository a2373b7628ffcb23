"""The claims of `cram-vectors`: R31 to R33 of the thesis."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from godwit.experiments.allocation.claims import (
    BIN_PACKING,
    BROKERS,
    DELAYS,
    INCOMING_MAX,
    INPUT,
    IOU,
)
from godwit.lab.declaration import NotMeasuredError, Results
from godwit.lab.rules import Claim, ShapeRule

#: R31: doubling the length more than doubles the time at most by this factor, and raises it.
LINEAR_MAX = 1.5


def over_lengths(results: Results, algorithm: str, *, compensated: bool = True) -> list[Results]:
    """The runs of each length, the shortest first."""
    found = results.where(algorithm=algorithm, compensated=compensated)
    lengths = sorted(int(length) for length, _ in found.by("vector_length"))
    if len(lengths) < 2:
        raise NotMeasuredError("one length only")
    return [found.where(vector_length=length) for length in lengths]


def _ends(results: Results, algorithm: str, measure: str) -> tuple[float, float]:
    """With the shortest and with the longest vectors."""
    shortest, *_, longest = over_lengths(results, algorithm)
    return shortest.mean(measure), longest.mean(measure)


def _linear(results: Results) -> bool:
    """The time grows with the length, and not faster."""
    found = over_lengths(results, IOU)
    shortest, longest = (int(each.runs[0].case["vector_length"]) for each in (found[0], found[-1]))
    grown = found[-1].mean("plan_s") / found[0].mean("plan_s")
    return 1 < grown <= LINEAR_MAX * longest / shortest


def _falls(algorithm: str, measure: str) -> Callable[[Results], bool]:
    def holds(results: Results) -> bool:
        short, long = _ends(results, algorithm, measure)
        return long < short

    return holds


def _rises(algorithm: str, measure: str) -> Callable[[Results], bool]:
    return lambda results: not _falls(algorithm, measure)(results)


def _slower_with_fewer(results: Results) -> bool:
    """Of two neighbouring lengths, the one with fewer brokers has the higher delay."""
    for algorithm in (BIN_PACKING, IOU):
        found = over_lengths(results, algorithm)
        for one, two in pairwise(found):
            less_brokers = two.mean(BROKERS) - one.mean(BROKERS)
            if less_brokers and (two.mean(DELAYS) - one.mean(DELAYS)) * less_brokers > 0:
                return False
    return True


def overloaded(results: Results, *, compensated: bool) -> float:
    """Overloaded brokers, over both algorithms and all lengths."""
    return sum(
        each.mean("overloaded")
        for algorithm in (BIN_PACKING, IOU)
        for each in over_lengths(results, algorithm, compensated=compensated)
    )


CLAIMS = (
    Claim(
        "R31", "The time of CRAM is linear in the length of bit vectors",
        "thesis figure 7.23a",
        ShapeRule(
            f"from the shortest to the longest the time grows, at most {LINEAR_MAX} times as much"
            " as the length",
            _linear,
        ),
    ),
    Claim(
        "R32 max", "With longer vectors CRAM-IOU has a lower highest message rate",
        "thesis figure 7.23b",
        ShapeRule("highest incoming rate, longest < shortest", _falls(IOU, INCOMING_MAX)),
    ),
    Claim(
        "R32 input", "... a higher mean Ir",
        "thesis 7.3.8", ShapeRule("mean Ir, longest >= shortest", _rises(IOU, INPUT)),
    ),
    *(
        Claim(
            f"R32 brokers, {name}", f"... and fewer brokers, with {name}",
            "thesis figure 7.23c",
            ShapeRule("brokers, longest < shortest", _falls(algorithm, BROKERS)),
        )
        for name, algorithm in (("CRAM-IOU", IOU), ("BIN PACKING", BIN_PACKING))
    ),
    Claim(
        "R32 delay", "Each broker less raises the delay",
        "thesis 7.3.8",
        ShapeRule("of neighbouring lengths, fewer brokers have a higher delay", _slower_with_fewer),
    ),
    Claim(
        "R33", "With the thesis's scaling of short vectors no broker is overloaded",
        "thesis 7.3.8",
        ShapeRule(
            "overloaded brokers = 0, scaled, at every length",
            lambda results: overloaded(results, compensated=True) == 0,
        ),
    ),
    Claim(
        "R33 needed", "... and without it some are",
        "thesis 7.3.8",
        ShapeRule(
            "overloaded brokers > 0, not scaled, at some length",
            lambda results: overloaded(results, compensated=False) > 0,
        ),
    ),
)  # fmt: skip
