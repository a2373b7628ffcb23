"""Figure 12 of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _by_fanout(axes: Axes, results: Results) -> None:
    fanouts = sorted({int(fanout) for fanout, _ in results.by("fanout")})
    for name, label in (("covering_set", "covering set"), ("evaluations", "evaluations")):
        base = results.where(fanout=fanouts[0]).mean(name)
        axes.plot(
            fanouts,
            [results.where(fanout=fanout).mean(name) / base for fanout in fanouts],
            marker="o" if name == "covering_set" else "s",
            label=label,
        )
    axes.set_xlabel("fanout")
    axes.set_ylabel(f"times that of fanout {fanouts[0]}")
    axes.legend()


FIGURES = (
    Figure("fanout", "Covering sets and predicate evaluations by fanout (figure 12).", _by_fanout),
)
