"""The experiments of the lab, and the verdicts on their claims, from results on this disk.

Nothing is run: results are read from the cache of `godwit lab run`, if it has all runs of a scale.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from godwit.api.dashboard_api import ClaimView, ExperimentView, LabView
from godwit.distribution import install_hint
from godwit.errors import GodwitError

if TYPE_CHECKING:
    from godwit.lab.declaration import Experiment
    from godwit.lab.summary import Summary

SCALES = ("paper", "small")


def lab_view(cache: Path | None = None) -> LabView:
    """Slow: call it in a thread."""
    try:
        from godwit.experiments import EXPERIMENTS  # noqa: PLC0415  Spark is slow, and optional.
    except ImportError:
        return LabView(experiments=[], trouble=f"the lab is not here: {install_hint('lab')}")
    from godwit.lab.cache import default_folder  # noqa: PLC0415

    folder = default_folder() if cache is None else cache
    return LabView(experiments=[_shown(each, folder) for each in EXPERIMENTS.values()])


def _shown(experiment: Experiment, folder: Path) -> ExperimentView:
    for scale in SCALES:
        summary, runs = _stored(experiment, scale, folder)
        if summary is not None:
            claims = [
                ClaimView(
                    id=each.id,
                    statement=each.statement,
                    source=each.source,
                    verdict=each.verdict.value,
                    measured=each.measured,
                )
                for each in summary.claims
            ]
            return _view(experiment, claims, scale, runs)
    claims = [
        ClaimView(id=each.id, statement=each.statement, source=each.source)
        for each in experiment.claims
    ]
    return _view(experiment, claims)


def _view(
    experiment: Experiment, claims: list[ClaimView], scale: str = "", runs: int = 0
) -> ExperimentView:
    return ExperimentView(
        name=experiment.name,
        title=experiment.title,
        question=experiment.question,
        scale=scale,
        runs=runs,
        claims=claims,
    )


def _stored(experiment: Experiment, scale: str, folder: Path) -> tuple[Summary | None, int]:
    """The summary of a scale, if all its runs are in the cache."""
    from godwit.lab.cache import Cache  # noqa: PLC0415
    from godwit.lab.declaration import Results  # noqa: PLC0415
    from godwit.lab.runner import planned  # noqa: PLC0415
    from godwit.lab.summary import summarise  # noqa: PLC0415

    if scale not in experiment.scales or not (folder / experiment.name).is_dir():
        return None, 0
    try:
        cache = Cache(folder, experiment)
        found = [cache.find(run) for run in planned(experiment, scale)]
        measured = [each for each in found if each is not None]
        if len(measured) < len(found):
            return None, 0
        return summarise(experiment, scale, Results(measured)), len(measured)
    except (GodwitError, OSError, ValueError, KeyError):
        return None, 0
