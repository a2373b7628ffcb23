"""Brokers over their capacity, a line for each algorithm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from godwit.experiments.allocation.claims import BIN_PACKING, FBF, IOU, XOR
from godwit.experiments.allocation.figures import groups_of
from godwit.lab import plots
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _brokers(axes: Axes, results: Results) -> None:
    few = results.where(subscriptions=min(int(n) for n, _ in results.by("subscriptions")))
    groups = groups_of(few, (FBF, BIN_PACKING, IOU, XOR))
    plots.lines(axes, groups, x="usable_per_s", y="brokers")
    axes.set_xlabel("quotes/s that a broker may send")
    axes.set_ylabel("brokers")
    axes.set_ylim(bottom=0)
    axes.legend()


FIGURES = (Figure("brokers", "Brokers of a plan, for the fewest subscriptions.", _brokers),)
