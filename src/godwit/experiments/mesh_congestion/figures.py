"""Figure 13 (c) of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from godwit.experiments.mesh.limited import share_of_all
from godwit.experiments.mesh_congestion.claims import LIMIT
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STRATEGIES = ("S0", "S1", "S2")


def _shares(axes: Axes, results: Results) -> None:
    for number, (dataset, _) in enumerate(results.by("dataset")):
        shares = [100 * share_of_all(results, str(dataset), each, LIMIT) for each in STRATEGIES]
        places = [place + 0.4 * number for place in range(len(STRATEGIES))]
        bars = axes.bar(places, shares, 0.38, label=str(dataset))
        axes.bar_label(bars, fmt="{:.0f}", padding=3)
    axes.set_xticks([place + 0.2 for place in range(len(STRATEGIES))], STRATEGIES)
    axes.set_ylabel("deliveries, % of those without a limit")
    axes.legend()


FIGURES = (Figure("deliveries", "Deliveries over slow uplinks (figure 13).", _shares),)
