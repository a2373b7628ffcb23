"""Figures 13 and 14 of the BAD paper, redrawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from godwit.experiments.bad_simulation.claims import (
    LEAST,
    NEAREST,
    PAPER,
    RANDOM,
    ROUND_ROBIN,
    by_alpha,
    by_beta,
    runs,
)
from godwit.experiments.bad_simulation.measures import MINUTES
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw = Callable[["Axes", Results], None]
SCHEMES = {"none": "no balancing", "ldm": "LDM", "sdm": "SDM", "gsh": "GSH", "improved": "improved"}
PLACEMENTS = {NEAREST: "NR", RANDOM: "RND", ROUND_ROBIN: "RR", LEAST: "least loaded"}


def _by_rank(kind: str, label: str) -> Draw:
    def draw(axes: Axes, results: Results) -> None:
        for scheme in ("none", "ldm", "gsh"):
            found = runs(results, NEAREST, scheme)
            names = sorted(n for n in found.runs[0].values if n.startswith(kind))
            means = [found.mean(name) for name in names]
            axes.plot(range(1, len(means) + 1), means, marker="o", label=SCHEMES[scheme])
        axes.set_xlabel("brokers, the highest first")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.legend()

    return draw


def _cov_over_time(axes: Axes, results: Results) -> None:
    lines = {name: runs(results, NEAREST, scheme) for scheme, name in SCHEMES.items()}
    lines["LDM, alpha 0.05"] = runs(results, NEAREST, "ldm", (0.05, PAPER[1]))
    for name, found in lines.items():
        covs = [found.mean(f"cov_{minute:02d}") for minute in MINUTES]
        axes.plot(MINUTES, covs, marker="o", label=name)
    axes.set_xlabel("minutes")
    axes.set_ylabel("cov of the brokers' loads")
    axes.set_ylim(bottom=0)
    axes.legend(ncols=2)


def _thresholds(axes: Axes, results: Results) -> None:
    lines = {
        "alpha 0.3, 0.15, 0.05; beta 300 MB/s": by_alpha(results),
        "beta 450, 300, 100 MB/s; alpha 0.15": by_beta(results),
    }
    for label, found in lines.items():
        moves = [each.mean("moves") for each in found]
        axes.plot(moves, [each.mean("cov_late") for each in found], marker="o", label=label)
    axes.set_xlabel("migrations")
    axes.set_ylabel("cov, last 10 min")
    axes.set_ylim(bottom=0)
    axes.legend()


def _placements(axes: Axes, results: Results) -> None:
    width = 0.8 / len(SCHEMES)
    for number, (scheme, name) in enumerate(SCHEMES.items()):
        values = [runs(results, placement, scheme).mean("max_late") for placement in PLACEMENTS]
        places = [place + (number - 2) * width for place in range(len(PLACEMENTS))]
        axes.bar(places, values, width * 0.95, label=name)
    axes.set_xticks(range(len(PLACEMENTS)), list(PLACEMENTS.values()))
    axes.set_ylabel("maximum load, MB/s, last 10 min")
    axes.grid(visible=False, axis="x")
    axes.legend(ncols=3)


FIGURES = (
    Figure(
        "clients", "Subscribers of each broker, NR (figure 13).",
        _by_rank("clients_", "subscribers"),
    ),
    Figure("loads", "Load of each broker, NR (figure 13).", _by_rank("load_", "load, MB/s")),
    Figure("cov", "Imbalance over time, NR (figures 13, 14 (1)).", _cov_over_time),
    Figure(
        "thresholds", "What a lower cov costs: LDM, NR, for several alpha and beta (figure 14).",
        _thresholds,
    ),
    Figure("placements", "Maximum load, by initial placement and scheme.", _placements),
)  # fmt: skip
