"""Measures of messages by what caused them, and of delivery delays.

share    messages in and out of brokers that are not publications of clients, of all of them
per_s    messages that brokers take in
busy     from the start to the last session before the step of the rate
stable   the last part of the time before that step
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median

from godwit.experiments.balance.load_measures import bucket_s_of
from godwit.experiments.balance.readings import Counted, DelayReading
from godwit.experiments.balance.scenes import Scene
from godwit.lab.curves import points

CAUSES = ("pie", "request", "coordination", "migration")
#: A bucket whose mean delay is this many times the median is a spike.
DELAY_SPIKE = 2.0

Messages = Mapping[int, Mapping[str, Counted]]


def overhead_measures(found: Messages, scene: Scene, *, busy_until_s: float) -> dict[str, float]:
    spans = {
        "joining": (0.0, scene.joined_s),
        "busy": (0.0, busy_until_s),
        "stable": scene.late_before,
        "churning": (scene.joined_s, scene.until_s),
    }
    inside = {name: _inside(found, scene, span) for name, span in spans.items()}
    values = {f"overhead_{name}": share_of_overhead(inside[name]) for name in ("joining", "stable")}
    for name in ("busy", "stable", "churning"):
        for cause in CAUSES:
            values[f"{cause}_{name}_per_s"] = _rate(inside[name], cause, scene)
    return values


def overhead_curves(found: Messages, scene: Scene) -> dict[str, float]:
    values = points("overhead", {at: share_of_overhead([found[at]]) for at in found})
    for cause in CAUSES:
        rates = {at: _rate([found[at]], cause, scene) for at in found}
        values |= points(f"{cause}_per_s", rates)
    return values


def share_of_overhead(buckets: Iterable[Mapping[str, Counted]]) -> float:
    total = overhead = 0
    for kinds in buckets:
        for kind, counted in kinds.items():
            total += counted.messages
            overhead += counted.messages if kind != "publication" else 0
    return overhead / total if total else 0.0


def _inside(
    found: Messages, scene: Scene, span: tuple[float, float]
) -> list[Mapping[str, Counted]]:
    """The buckets within a span; at least the one in which it starts."""
    bucket_s = bucket_s_of(scene)
    first, last = round(span[0] / bucket_s), round(span[1] / bucket_s)
    return [found.get(at, {}) for at in range(first, max(last, first + 1))]


def _rate(buckets: Sequence[Mapping[str, Counted]], cause: str, scene: Scene) -> float:
    count = sum(kinds[cause].messages_in for kinds in buckets if cause in kinds)
    return count / (len(buckets) * bucket_s_of(scene))


# -- delays --------------------------------------------------------------------------------------


def delay_measures(found: Mapping[int, DelayReading], scene: Scene) -> dict[str, float]:
    """Means of buckets, so that a bucket with few deliveries counts as much as others."""
    bucket_s = bucket_s_of(scene)

    def of(span: tuple[float, float]) -> list[float]:
        inside = (at for at in found if span[0] <= at * bucket_s < span[1])
        return [found[at].mean_s for at in inside] or [0.0]

    usual_s = median(of((0.0, scene.until_s)))
    after_joins = of((scene.joined_s, scene.until_s))
    return {
        "delay_usual_s": usual_s,
        "delay_peak_s": max(of((0.0, scene.until_s))),
        "delay_joining_peak_s": max(of((0.0, scene.joined_s))),
        "delay_before_s": mean(of(scene.late_before)),
        "delay_after_s": mean(of(scene.late_after)),
        "delay_later_peak_s": max(after_joins),
        "delay_spikes": sum(each > DELAY_SPIKE * usual_s for each in of((0.0, scene.until_s))),
        "deliveries": sum(each.deliveries for each in found.values()),
        "deliveries_late_per_s": _deliveries_per_s(found, scene.late_after, bucket_s),
    }


def _deliveries_per_s(
    found: Mapping[int, DelayReading], span: tuple[float, float], bucket_s: float
) -> float:
    inside = [found[at].deliveries for at in found if span[0] <= at * bucket_s < span[1]]
    return sum(inside) / (span[1] - span[0])


def delay_curve(found: Mapping[int, DelayReading]) -> dict[str, float]:
    return points("delay_s", {at: each.mean_s for at, each in found.items()})
