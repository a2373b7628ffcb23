"""Figure 3 of document 003: how many brokers have which load, with balancing and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from godwit.experiments.clusters.measures import BIN, BINS, IN_BIN
from godwit.experiments.clusters.overlay_setups import BALANCED, CLUSTERS
from godwit.lab.curves import drawn
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = {CLUSTERS: "without balancing", BALANCED: "with balancing"}


def histogram(place: int) -> Callable[[Axes, Results], None]:
    def draw(axes: Axes, results: Results) -> None:
        ratio, runs = list(results.by("ratio"))[place]
        for offset, (overlay, label) in zip((-0.2, 0.2), LABELS.items(), strict=True):
            found = drawn(runs.where(overlay=overlay), IN_BIN)
            axes.bar([n + offset for n, _ in found], [y for _, y in found], 0.38, label=label)
        names = [f"{BIN * n}-{BIN * (n + 1)}" for n in range(BINS - 1)]
        axes.set_xticks(range(BINS), [*names, f"{BIN * (BINS - 1)}-"], rotation=45, fontsize=9)
        axes.set_xlabel("messages in and out, per second")
        axes.set_ylabel("brokers")
        axes.set_title(f"{float(ratio):.0%} of the brokers have a matching subscription")
        axes.legend()

    return draw


FIGURES = tuple(
    Figure(
        f"figure-3-{name}",
        f"Brokers by load at the {name} matching ratio, mean over the seeds.",
        histogram(place),
    )
    for place, name in enumerate(("lowest", "middle", "highest"))
)
