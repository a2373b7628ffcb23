"""Measures over the number of subscriptions, a line for each algorithm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from godwit.experiments.allocation.claims import (
    AUTOMATIC,
    BIN_PACKING,
    COMPARED,
    FBF,
    IOU,
    MANUAL,
    PAIRWISE_K,
    PAIRWISE_N,
    label_of,
)
from godwit.lab import plots
from godwit.lab.declaration import Figure, NotMeasuredError, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw = Callable[["Axes", Results], None]
#: Algorithms without overloaded brokers, whose delays can be compared.
CALM = (MANUAL, PAIRWISE_N, FBF, BIN_PACKING, IOU)


def groups_of(results: Results, algorithms: Sequence[str]) -> Mapping[str, Results]:
    """The runs of each algorithm, by its label; those that the scale has."""
    groups: dict[str, Results] = {}
    for algorithm in algorithms:
        try:
            groups[label_of(algorithm)] = results.where(algorithm=algorithm)
        except NotMeasuredError:
            continue
    return groups


def over_subscriptions(
    algorithms: Sequence[str],
    measure: str,
    label: str,
    factor: float = 1.0,
    *,
    is_logarithmic: bool = False,
) -> Draw:
    def draw(axes: Axes, results: Results) -> None:
        groups = groups_of(results, algorithms)
        plots.lines(axes, groups, x="subscriptions", y=measure, factor=factor)
        axes.set_xticks(sorted({float(n) for n, _ in results.by("subscriptions")}))
        axes.set_xlabel("subscriptions")
        axes.set_ylabel(label)
        # Beside the lines: seven of them leave no room.
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        if is_logarithmic:
            plots.logarithmic(axes)
        else:
            axes.set_ylim(bottom=0)

    return draw


DRAWN: Sequence[tuple[str, str, Sequence[str], str, str, float]] = (
    ("brokers", "Allocated brokers", COMPARED, "brokers", "brokers", 1.0),
    (
        "message-rate", "Mean incoming message rate of an allocated broker", COMPARED,
        "messages_in_per_s_mean", "messages/s", 1.0,
    ),
    (
        "message-rate-max", "Incoming message rate of the busiest broker", COMPARED,
        "messages_in_per_s_max", "messages/s", 1.0,
    ),
    (
        "input", "Mean input utilisation of an allocated broker", COMPARED,
        "input_utilisation_mean", "Ir, %", 100.0,
    ),
    (
        "input-sorted", "Highest input utilisation with the sorting algorithms",
        (FBF, BIN_PACKING, IOU), "input_utilisation_max", "highest Ir, %", 100.0,
    ),
    (
        "output", "Mean output utilisation of an allocated broker", COMPARED,
        "output_utilisation_mean", "Or, %", 100.0,
    ),
    ("hops", "Mean hops of a delivery", COMPARED, "hops_mean", "hops", 1.0),
    (
        "delay", "Mean delay of a delivery; AUTOMATIC and PAIRWISE-K have overloaded brokers",
        CALM, "delay_s_mean", "delivery delay, ms", 1000.0,
    ),
    (
        "overloaded", "Overloaded brokers", (MANUAL, AUTOMATIC, PAIRWISE_K, PAIRWISE_N, IOU),
        "overloaded", "brokers", 1.0,
    ),
)  # fmt: skip


def figures(thesis: Mapping[str, str]) -> list[Figure]:
    """`thesis` has the numbers of its figures by name."""
    return [
        Figure(
            name,
            f"{caption}{f' (thesis, figure {thesis[name]})' if name in thesis else ''}.",
            over_subscriptions(algorithms, measure, label, factor),
        )
        for name, caption, algorithms, measure, label, factor in DRAWN
    ]
