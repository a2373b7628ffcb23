"""A picture of a plan: the tree, each broker with its load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from godwit.cli.croc_report import children_of
from godwit.errors import UsageError
from godwit.policies.allocation.plan import AllocationPlan

#: The same plan gives the same bytes.
STYLE: dict[Any, Any] = {"font.size": 9, "svg.hashsalt": "godwit", "svg.fonttype": "none"}
LEAF_WIDTH_IN, LEVEL_HEIGHT_IN, SIZE_IN_MAX = 1.1, 1.2, 60.0
#: Above this utilisation a broker is drawn in a warning colour.
FULL = 1.0


def draw(plan: AllocationPlan, path: Path) -> None:
    places = _places(plan)
    across = 1 + max((x for x, _ in places.values()), default=0.0)
    down = 1 + max((y for _, y in places.values()), default=0.0)
    size = (
        min(SIZE_IN_MAX, max(4.0, LEAF_WIDTH_IN * across)),
        min(SIZE_IN_MAX, max(2.0, LEVEL_HEIGHT_IN * down)),
    )
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=size, layout="constrained")
        axes = canvas.add_subplot()
        axes.set_axis_off()
        axes.set_title(f"{plan.algorithm}: {len(plan.brokers)} brokers")
        for child, parent in plan.links:
            (x, y), (up_x, up_y) = places[child], places[parent]
            axes.plot([x, up_x], [-y, -up_y], color="0.6", zorder=1)
        colours = mpl.colormaps["YlGnBu"]
        for broker in plan.brokers:
            x, y = places[broker.id]
            is_full = broker.utilisation > FULL
            colour = "#d62728" if is_full else colours(0.75 * max(0.0, broker.utilisation))
            axes.text(
                x,
                -y,
                f"{broker.id}\n{broker.utilisation:.0%}, {broker.input_per_s:.0f}/s",
                ha="center",
                va="center",
                color="white" if is_full or broker.utilisation > FULL / 2 else "black",
                bbox={"boxstyle": "round", "facecolor": colour, "edgecolor": "0.4"},
            )
        axes.set_xlim(-0.6, across - 0.4)
        axes.set_ylim(-down + 0.4, 0.6)
        try:
            canvas.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else {})
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from None


def _places(plan: AllocationPlan) -> dict[str, tuple[float, float]]:
    """Across and down: leaves side by side, the others above the middle of their children."""
    children = children_of(plan)
    order, waiting = [], [(plan.root, 0)]
    while waiting:
        name, level = waiting.pop()
        order.append((name, level))
        waiting += [(child, level + 1) for child in reversed(children.get(name, []))]
    places: dict[str, tuple[float, float]] = {}
    leaves = iter(range(len(order)))
    across = {name: float(next(leaves)) for name, _ in order if name not in children}
    for name, level in reversed(order):
        mine = children.get(name)
        if mine:
            across[name] = sum(across[child] for child in mine) / len(mine)
        places[name] = (across[name], float(level))
    return places
