"""Terms of claims about allocation: one algorithm beside another, over all sizes.

"Up to" is the largest of the reductions over the sizes, each of means over the seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from godwit.lab.declaration import Results

MANUAL, AUTOMATIC = "manual", "automatic"
PAIRWISE_K, PAIRWISE_N = "pairwise-k", "pairwise-n"
FBF, BIN_PACKING = "fbf", "bin-packing"
INTERSECT, XOR, IOS, IOU = (f"cram-{metric}" for metric in ("intersect", "xor", "ios", "iou"))
BASELINES = (MANUAL, AUTOMATIC, PAIRWISE_K, PAIRWISE_N)
AWARE = (FBF, BIN_PACKING, IOU)
"""Algorithms that know the capacities of brokers."""

COMPARED = (*BASELINES, *AWARE)
#: All publishers of RS1 and RS2 together send so many publications a second.
PUBLISHED_PER_S = 40 * 70 / 60

BROKERS = "brokers"
INCOMING, INCOMING_MAX = "messages_in_per_s_mean", "messages_in_per_s_max"
INPUT, INPUT_MAX = "input_utilisation_mean", "input_utilisation_max"
OUTPUT = "output_utilisation_mean"
HOPS, DELAYS = "hops_mean", "delay_s_mean"

Of = Callable[[str, str], float]
"""A measure of an algorithm, at one size."""

Measured = Callable[[Results], float]
Holds = Callable[[Results], bool]


def label_of(algorithm: str) -> str:
    """As the thesis writes it."""
    return algorithm.upper().replace("BIN-PACKING", "BIN PACKING")


def at_sizes(results: Results) -> Iterator[Of]:
    """Each network and each number of subscriptions."""
    for _, network in results.by("brokers"):
        for _, at in network.by("subscriptions"):
            yield of(at)


def of(at: Results) -> Of:
    return lambda measure, algorithm: at.where(algorithm=algorithm).mean(measure)


def up_to(measure: str, algorithm: str, than: str) -> Measured:
    """The largest share by which an algorithm has less of a measure than another."""
    return lambda results: max(
        1 - at(measure, algorithm) / at(measure, than) for at in at_sizes(results)
    )


def fewer_brokers(algorithm: str) -> Measured:
    """The largest share of the brokers that an algorithm does not allocate."""
    return lambda results: max(
        1 - at(BROKERS, algorithm) / at("available", algorithm) for at in at_sizes(results)
    )


def more(measure: str, algorithm: str, than: str) -> Measured:
    """The largest share by which an algorithm has more of a measure than another."""
    return lambda results: max(
        at(measure, algorithm) / at(measure, than) - 1 for at in at_sizes(results)
    )


def everywhere(holds: Callable[[Of], bool]) -> Holds:
    return lambda results: all(holds(at) for at in at_sizes(results))


def in_order(measure: str, *algorithms: str) -> Holds:
    """A measure falls from each algorithm to the next, at every size."""
    return everywhere(
        lambda at: all(at(measure, one) > at(measure, two) for one, two in pairwise(algorithms))
    )


def mean_over_sizes(measure: str, algorithm: str, results: Results) -> float:
    values = [at(measure, algorithm) for at in at_sizes(results)]
    return sum(values) / len(values)


def largest(measure: str, algorithms: Sequence[str]) -> Measured:
    """The highest value of a measure, over all sizes and these algorithms."""
    return lambda results: max(
        at(measure, algorithm) for at in at_sizes(results) for algorithm in algorithms
    )


def grows(measure: str, algorithms: Sequence[str]) -> Holds:
    """A measure does not fall with the number of subscriptions, and is higher in the end."""

    def holds(results: Results) -> bool:
        for algorithm in algorithms:
            values = [at(measure, algorithm) for at in at_sizes(results)]
            if values != sorted(values) or values[0] == values[-1]:
                return False
        return True

    return holds
