"""Terms of claims about load balancing: the runs of a platform, and what is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from godwit.experiments.balance.load_measures import TRIGGER
from godwit.experiments.balance.scenes import Scene, scene_of
from godwit.lab.declaration import NotMeasuredError, Parameter, Results

SIMULATION, CLUSTER, HOMOGENEOUS, PLANETLAB = "simulation", "cluster", "homogeneous", "planetlab"
#: What stands for them at the scales medium and small.
QUARTER, SMALL, SMALL_ALIKE = "quarter", "small", "small-alike"
STAND_INS = {SIMULATION: (QUARTER, SMALL), HOMOGENEOUS: (SMALL_ALIKE,)}
THESIS, RANDOM = "thesis", "random"

METRICS = ("input", "output", "matching")


def on(results: Results, platform: str, **parameters: Parameter) -> Results:
    """The runs on a platform; if the scale does not have it, on one that stands for it."""
    present = {run.case["platform"] for run in results.runs}
    names = (platform, *STAND_INS.get(platform, ()))
    name = next((name for name in names if name in present), platform)
    return results.where(platform=name, **parameters)


def on_each(results: Results, platforms: Iterable[str], **parameters: Parameter) -> list[Results]:
    """The runs on each of these platforms that the scale has; at least one."""
    found = []
    for platform in platforms:
        try:
            found.append(on(results, platform, **parameters))
        except NotMeasuredError:
            continue
    if not found:
        raise NotMeasuredError(f"no run is on {', '.join(platforms)}")
    return found


def one(found: Results, name: str) -> float:
    """A measure of the only run; a seed has one for each case."""
    (value,) = found.values(name)
    return value


def scene(found: Results) -> Scene:
    return scene_of(found.runs[0].case)


def within_trigger(found: Results, metrics: Sequence[str] = METRICS) -> bool:
    """Whether no two edge brokers differ by more than the trigger, late before and after."""
    return all(
        one(found, f"{metric}_gap_{phase}") <= TRIGGER
        for metric in metrics
        for phase in ("before", "after")
    )


def by_strength(found: Results) -> list[str]:
    """The edge brokers of a star, the strongest last: by bandwidth, in which they differ most."""
    resources = scene(found).resources
    edges = scene(found).edges
    return sorted(edges, key=lambda name: resources[name].output_bandwidth_bytes_s)


def highest(name: str) -> Callable[[Iterable[Results]], float]:
    """The highest mean over seeds of a measure."""
    return lambda found: max(each.mean(name) for each in found)
