"""Errors of estimates on each platform (figure 7.9 of the thesis), and over the samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from godwit.experiments.press_accuracy.claims import ALL, METRICS, accuracy, by_samples
from godwit.lab import plots
from godwit.lab.declaration import Figure, NotMeasuredError, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = dict(zip(METRICS, ("Ir", "Or", "d"), strict=True))


def _errors(axes: Axes, results: Results) -> None:
    groups = {}
    for platform in ALL:
        try:
            groups[platform] = accuracy(results, platform)
        except NotMeasuredError:
            continue
    measures = {f"quiet_error_{metric}": label for metric, label in LABELS.items()}
    plots.bars(axes, groups, measures, factor=100.0)
    axes.set_ylabel("mean error of estimates, %")


def _several(results: Results) -> dict[int, Results]:
    found = by_samples(results)
    if len(found) < 2:
        raise NotMeasuredError("the number of samples was not varied")
    return found


def _over_samples(axes: Axes, results: Results) -> None:
    found = _several(results)
    for number, (metric, label) in enumerate(LABELS.items()):
        axes.plot(
            list(found),
            [100 * some.mean(f"quiet_error_{metric}") for some in found.values()],
            marker=plots.MARKERS[number],
            label=label,
        )
    plots.doubling(axes, [float(samples) for samples in found])
    axes.set_xlabel("PRESS samples")
    axes.set_ylabel("mean error of estimates, %")
    axes.set_ylim(bottom=0)
    axes.legend()


def _durations(axes: Axes, results: Results) -> None:
    found = _several(results)
    axes.plot(list(found), [some.mean("session_s_mean") for some in found.values()], marker="o")
    plots.doubling(axes, [float(samples) for samples in found])
    axes.set_xlabel("PRESS samples")
    axes.set_ylabel("duration of a session, s")
    axes.set_ylim(bottom=0)


FIGURES = (
    Figure(
        "errors", "Mean error of estimates against what was measured when the loads had settled, of"
        " sessions during which nothing else changed (thesis, figure 7.9).",
        _errors,
    ),
    Figure("samples", "Errors over the number of samples.", _over_samples),
    Figure("durations", "Duration of a session over the number of samples.", _durations),
)  # fmt: skip
