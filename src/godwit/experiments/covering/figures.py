"""Two bars for each mix: with covering and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from godwit.experiments.covering.claims import pairs
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def by_mix(name: str, label: str) -> Callable[[Axes, Results], None]:
    def draw(axes: Axes, results: Results) -> None:
        mixes = [mix for mix, *_ in pairs(results)]
        for covering, offset, colour in ((True, -0.2, "C0"), (False, 0.2, "C1")):
            runs = results.where(covering=covering)
            values = [runs.where(mix=mix).values(name) for mix in mixes]
            means = [sum(each) / len(each) for each in values]
            below = [mean - min(each) for mean, each in zip(means, values, strict=True)]
            above = [max(each) - mean for mean, each in zip(means, values, strict=True)]
            places = [place + offset for place in range(len(mixes))]
            bars = axes.barh(
                places,
                means,
                0.38,
                xerr=(below, above),
                color=colour,
                label="covering" if covering else "without covering",
            )
            axes.bar_label(bars, fmt="{:,.0f}", padding=8, fontsize=9)
        axes.set_yticks(range(len(mixes)), mixes)
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlim(left=10)
        axes.set_xlabel(label)
        axes.grid(visible=False, axis="y")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)

    return draw


FIGURES = (
    Figure(
        "forwarded",
        "Subscriptions sent between brokers; whiskers from the lowest seed to the highest.",
        by_mix("forwarded", "subscription messages between brokers"),
    ),
    Figure(
        "stored",
        "Subscriptions in the tables of all brokers together.",
        by_mix("stored", "subscriptions stored, all brokers"),
    ),
    Figure(
        "fullest",
        "Subscriptions in the fullest table; matching time increases with it.",
        by_mix("stored_max", "subscriptions at the fullest broker"),
    ),
)
