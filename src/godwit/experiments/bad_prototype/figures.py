"""Figures 5 to 12 of the BAD paper, redrawn, and live runs beside simulated ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from godwit.experiments.bad_prototype.claims import runs
from godwit.experiments.bad_prototype.measures import MINUTES, RANKS
from godwit.experiments.bad_prototype.runs import LDM, LDM_GSH, NONE, SDM, SDM_GSH
from godwit.experiments.bad_simulation.claims import NEAREST, RANDOM, ROUND_ROBIN
from godwit.lab import plots
from godwit.lab.declaration import Figure, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw = Callable[["Axes", Results], None]
SCHEMES = {
    NONE: "no balancing", LDM: "LDM", SDM: "SDM", LDM_GSH: "LDM + GSH", SDM_GSH: "SDM + GSH",
}  # fmt: skip
NAMES = {RANDOM: "RND", ROUND_ROBIN: "RR", NEAREST: "NR"}
MIGRATED, SHUFFLED = (NONE, LDM, SDM), (NONE, LDM, SDM, LDM_GSH, SDM_GSH)


def _by_rank(placement: str, schemes: Sequence[str]) -> Draw:
    def draw(axes: Axes, results: Results) -> None:
        groups = {SCHEMES[scheme]: runs(results, placement, scheme) for scheme in schemes}
        plots.bars(axes, groups, {f"load_{rank}": str(rank) for rank in RANKS})
        axes.set_xlabel("brokers, the most loaded first")
        axes.set_ylabel("load, kB/s")

    return draw


def _over_time(measure: str, label: str, placement: str, schemes: Sequence[str]) -> Draw:
    def draw(axes: Axes, results: Results) -> None:
        for number, scheme in enumerate(schemes):
            found = runs(results, placement, scheme)
            minutes = [m for m in MINUTES if f"{measure}_{m:02d}" in found.runs[0].values]
            means = [found.mean(f"{measure}_{minute:02d}") for minute in minutes]
            axes.plot(
                minutes, means, label=SCHEMES[scheme], marker=plots.MARKERS[number],
                linestyle=plots.DASHES[number % len(plots.DASHES)],
            )  # fmt: skip
        axes.set_xlabel("minutes; all have subscribed after 8")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.legend()

    return draw


def _migrations(axes: Axes, results: Results) -> None:
    width = 0.8 / len(NAMES)
    for number, (placement, name) in enumerate(NAMES.items()):
        means = [runs(results, placement, scheme).mean("moves") for scheme in (LDM, SDM)]
        places = [place + (number - 1) * width for place in range(2)]
        axes.bar(places, means, width * 0.95, label=name)
    axes.set_xticks(range(2), ["LDM", "SDM"])
    axes.set_ylabel("migrations")
    axes.grid(visible=False, axis="x")
    axes.legend()


def _live(measure: str, label: str) -> Draw:
    def draw(axes: Axes, results: Results) -> None:
        live = results.where(driver="live")
        cases = [run.case for run in live.runs]
        for number, driver in enumerate(("simulated", "live")):
            found = [results.where(**{**case, "driver": driver}) for case in cases]
            places = [place + (number - 0.5) * 0.4 for place in range(len(found))]
            values = [each.mean(measure) for each in found]
            axes.bar(places, values, 0.38, label=driver)
        names = [f"{NAMES[str(c['placement'])]}, {SCHEMES[str(c['scheme'])]}" for c in cases]
        axes.set_xticks(range(len(names)), names)
        axes.set_ylabel(label)
        axes.grid(visible=False, axis="x")
        axes.legend()

    return draw


def _live_loads(axes: Axes, results: Results) -> None:
    live = results.where(driver="live")
    groups = {
        f"{SCHEMES[str(run.case['scheme'])]}, {driver}": results.where(
            **{**run.case, "driver": driver}
        )
        for run in live.runs
        for driver in ("simulated", "live")
    }
    plots.bars(axes, groups, {f"load_{rank}": str(rank) for rank in RANKS})
    axes.set_xlabel("brokers, the most loaded first")
    axes.set_ylabel("load, kB/s")


def _metrics(number: int, placement: str, schemes: Sequence[str], what: str) -> list[Figure]:
    return [
        Figure(
            f"figure-{number:02d}-{measure}", f"{text}, {what} (figure {number} ({part})).",
            _over_time(measure, label, placement, schemes),
        )
        for part, (measure, label, text) in enumerate(
            (
                ("max", "maximum load, kB/s", "Load of the most loaded broker"),
                ("cov", "cov of the brokers' loads", "Imbalance"),
                ("moves", "migrations so far", "Migrations"),
            ),
            start=1,
        )
    ]  # fmt: skip


FIGURES = (
    Figure("figure-05", "Load of each broker, late, RND (figure 5).", _by_rank(RANDOM, MIGRATED)),
    *_metrics(6, RANDOM, MIGRATED, "RND"),
    Figure("figure-07", "Load of each broker, late, RR (figure 7).",
           _by_rank(ROUND_ROBIN, MIGRATED)),
    Figure("figure-08", "Load of each broker, late, NR (figure 8).", _by_rank(NEAREST, MIGRATED)),
    Figure("figure-09", "Load of each broker, late, NR with GSH (figure 9).",
           _by_rank(NEAREST, (NONE, LDM_GSH, SDM_GSH))),
    *_metrics(10, NEAREST, MIGRATED, "NR"),
    *_metrics(11, NEAREST, SHUFFLED, "NR, with and without GSH"),
    Figure("figure-12", "Migrations, by initial placement (figure 12).", _migrations),
    Figure("live-loads", "Load of each broker, averaged over the late time, NR: processes on this"
           " machine, and the same scenario simulated.", _live_loads),
    Figure("live-max", "Load of the most loaded broker, late: processes on this machine, and the"
           " same scenario simulated.", _live("max_late", "maximum load, kB/s")),
    Figure("live-cov", "Imbalance, late, live and simulated.",
           _live("cov_late", "cov of the brokers' loads")),
    Figure("live-moves", "Migrations, live and simulated.", _live("moves", "migrations")),
)  # fmt: skip
