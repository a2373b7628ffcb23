"""Measures of the load of edge brokers, from their gauges.

late     the last part of the time before the step of the rate, and after it (scenes.py)
gap      the largest difference between two edge brokers, of means over a time
overload a reading of Ir or Or above the higher threshold of table 7.1
spike    a broker's Or, in means over 30 s, that stands out by more than the trigger from what was
         before and from what is after
distance how far the highest of the late means is above a lower bound that every assignment of the
         same subscribers has; of Or, if all lines were one line
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from statistics import mean, pstdev

from godwit.experiments.balance.readings import Reading
from godwit.experiments.balance.scenes import Scene
from godwit.lab.curves import POINTS_MAX, points
from godwit.simulation.simulation_trace import GAUGES_EVERY_S

#: Thresholds of table 7.1.
OVERLOAD, TRIGGER, DELAY_NORMALIZATION_S = 0.95, 0.1, 0.1
METRICS = ("input", "output", "matching")
#: Spikes are looked for in means over so many readings, and this many of these around each.
SPIKE_READINGS, SPIKE_MEANS = 3, 4
#: For gaps that last: means over a minute.
MINUTE_READINGS = 6
#: Thesis, 7.1.2: random offload has spikes "in the first 2000 s".
EARLY_S = 2000.0

Readings = Mapping[str, Sequence[Reading]]


def value_of(reading: Reading, metric: str) -> float:
    """Ir, Or, or d in units of Nf, so that all three have the same trigger."""
    match metric:
        case "input":
            return reading.input
        case "output":
            return reading.output
        case "matching":
            return reading.matching_s / DELAY_NORMALIZATION_S
    raise ValueError(f"{metric} is none of {', '.join(METRICS)}")


def within(of: Sequence[Reading], span: tuple[float, float]) -> list[Reading]:
    """A reading is about the window before it."""
    return [each for each in of if span[0] < each.time_s <= span[1]]


def means(found: Readings, metric: str, span: tuple[float, float]) -> dict[str, float]:
    """The mean of each broker over a span of time."""
    return {
        broker: mean(value_of(each, metric) for each in within(of, span))
        for broker, of in found.items()
    }


def gap(values: Iterable[float]) -> float:
    found = list(values)
    return max(found) - min(found)


def load_measures(found: Readings, scene: Scene) -> dict[str, float]:
    values = {}
    for name, span in (("before", scene.late_before), ("after", scene.late_after)):
        for metric in METRICS:
            late = means(found, metric, span)
            values[f"{metric}_mean_{name}"] = mean(late.values())
            values[f"{metric}_max_{name}"] = max(late.values())
            values[f"{metric}_gap_{name}"] = gap(late.values())
        values[f"distance_{name}"] = output_distance(found, scene, span)
    minutes = [_grouped(of, MINUTE_READINGS, "input") for of in found.values()]
    joined = found[scene.subscribers_at]
    first = within(joined, (0.0, scene.joined_s))
    return {
        **values,
        "input_gap_peak": max(map(gap, zip(*minutes, strict=False))),
        "overloaded_first_s": _overloaded_s(first),
        "overloaded_late_s": sum(
            _overloaded_s(within(of, span))
            for of in found.values()
            for span in {scene.late_before, scene.late_after}
        ),
        "overloaded_others_s": sum(
            _overloaded_s(of) for broker, of in found.items() if broker != scene.subscribers_at
        ),
        "output_noise": mean(_noise(within(of, scene.late_before)) for of in found.values()),
        "output_sd": mean(_deviation(of, (scene.joined_s, scene.until_s)) for of in found.values()),
        "output_gap_mean": _mean_gap(found, (scene.joined_s, scene.step_s)),
        "spikes": sum(_spikes(within(of, (0.0, EARLY_S))) for of in found.values()),
    }


def clients_of_brokers(found: Readings, scene: Scene) -> dict[str, float]:
    """Late subscribers of each broker."""
    return {
        f"clients_{broker}": mean(each.clients for each in within(of, scene.late_after))
        for broker, of in found.items()
    }


# -- parts ---------------------------------------------------------------------------------------


def output_distance(found: Readings, scene: Scene, span: tuple[float, float]) -> float:
    """How far the highest Or is above the Or of one line with the bandwidth of all."""
    total = sum(scene.resources[broker].output_bandwidth_bytes_s for broker in found)
    used = sum(mean(each.bytes_out_per_s for each in within(of, span)) for of in found.values())
    return max(means(found, "output", span).values()) / (used / total) - 1 if used else 0.0


def _overloaded_s(of: Iterable[Reading]) -> float:
    return GAUGES_EVERY_S * sum(each.input > OVERLOAD or each.output > OVERLOAD for each in of)


def _noise(of: Sequence[Reading]) -> float:
    """The standard deviation of the readings, relative to their mean."""
    outputs = [each.output for each in of]
    return pstdev(outputs) / mean(outputs) if any(outputs) else 0.0


def _deviation(of: Sequence[Reading], span: tuple[float, float]) -> float:
    return pstdev(_grouped(within(of, span), SPIKE_READINGS, "output"))


def _mean_gap(found: Readings, span: tuple[float, float]) -> float:
    """The gap of Or between brokers in means over 30 s, averaged over time."""
    each = [_grouped(within(of, span), SPIKE_READINGS, "output") for of in found.values()]
    return mean(map(gap, zip(*each, strict=False)))


def _grouped(of: Sequence[Reading], size: int, metric: str) -> list[float]:
    """Means over `size` readings in a row."""
    return [
        mean(value_of(each, metric) for each in of[start : start + size])
        for start in range(0, len(of), size)
    ]


def _spikes(of: Sequence[Reading]) -> int:
    outputs = _grouped(of, SPIKE_READINGS, "output")
    count = 0
    for at, value in enumerate(outputs):
        before, after = outputs[max(0, at - SPIKE_MEANS) : at], outputs[at + 1 :][:SPIKE_MEANS]
        is_highest = all(value > each for each in before) and all(value >= each for each in after)
        if before and after and is_highest:
            count += value - max(min(before), min(after)) > TRIGGER
    return count


# -- curves --------------------------------------------------------------------------------------


def bucket_s_of(scene: Scene) -> float:
    """The width of a bucket: whole intervals of the gauges, as few as a curve has points for."""
    return GAUGES_EVERY_S * ceil(scene.until_s / GAUGES_EVERY_S / (POINTS_MAX - 1))


def load_curves(found: Readings, scene: Scene) -> dict[str, float]:
    """Curves of brokers of a star; of a chain, means over each cluster."""
    if len(scene.clusters) == 1:
        groups: dict[str, tuple[str, ...]] = {broker: (broker,) for broker in scene.edges}
    else:
        groups = dict(scene.clusters)
    values: dict[str, float] = {}
    for name, brokers in groups.items():
        together = [reading for broker in brokers for reading in found[broker]]
        buckets = dict(_in_buckets(together, bucket_s_of(scene)))
        for metric in METRICS:
            curve = {at: mean(value_of(r, metric) for r in of) for at, of in buckets.items()}
            values |= points(f"{metric}_{name}", curve)
        clients = {at: len(brokers) * mean(r.clients for r in of) for at, of in buckets.items()}
        values |= points(f"clients_{name}", clients)
    return values


def _in_buckets(of: Sequence[Reading], bucket_s: float) -> Iterator[tuple[int, list[Reading]]]:
    found: dict[int, list[Reading]] = {}
    for each in of:
        if each.time_s > 0:
            found.setdefault(ceil(each.time_s / bucket_s) - 1, []).append(each)
    yield from sorted((at, some) for at, some in found.items() if at < POINTS_MAX)
