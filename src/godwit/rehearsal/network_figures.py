"""The figures of a network, measured or simulated, and how two of them differ.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import Literal, TypeAlias

import msgspec

from godwit.rehearsal.network_snapshot import DelayFigures, LoadReading, MeasuredInterval

#: What a gain can be of: less is better in all of them.
Objective: TypeAlias = Literal["messages", "bytes", "load", "delay", "hops", "brokers"]


class NetworkFigures(msgspec.Struct, frozen=True, kw_only=True):
    messages_per_s: float
    """Publications that brokers take in, all brokers together."""

    deliveries_per_s: float
    output_bytes_per_s: float
    hops: float
    delay_mean_s: float
    delay_p50_s: float
    delay_p99_s: float
    load_max: float
    """Of the most loaded broker; the load is the higher one of its two utilisations."""

    load_mean: float
    load_cov: float
    input_utilisation: float
    output_utilisation: float
    """Means of all brokers."""

    busy_brokers: int
    """Those that take in publications."""

    brokers: dict[str, LoadReading]

    def of(self, objective: Objective) -> float:
        return {
            "messages": self.messages_per_s,
            "bytes": self.output_bytes_per_s,
            "load": self.load_max,
            "delay": self.delay_mean_s,
            "hops": self.hops,
            "brokers": float(self.busy_brokers),
        }[objective]


#: Figures that are compared, in the order of the table.
COMPARED = (
    "messages_per_s", "deliveries_per_s", "output_bytes_per_s", "hops", "delay_mean_s",
    "delay_p50_s", "delay_p99_s", "load_max", "load_mean", "load_cov", "input_utilisation",
    "output_utilisation", "busy_brokers",
)  # fmt: skip


def figures_of(
    brokers: Mapping[str, LoadReading],
    *,
    deliveries_per_s: float,
    hops: float,
    delay_s: DelayFigures,
) -> NetworkFigures:
    loads = [max(each.input_utilisation, each.output_utilisation) for each in brokers.values()]
    mean = fmean(loads) if loads else 0.0
    values = list(brokers.values())
    return NetworkFigures(
        messages_per_s=sum(each.publications_per_s for each in values),
        deliveries_per_s=deliveries_per_s,
        output_bytes_per_s=sum(each.output_bytes_per_s for each in values),
        hops=hops,
        delay_mean_s=delay_s.mean,
        delay_p50_s=delay_s.p50,
        delay_p99_s=delay_s.p99,
        load_max=max(loads, default=0.0),
        load_mean=mean,
        load_cov=pstdev(loads) / mean if mean > 0 else 0.0,
        input_utilisation=fmean([each.input_utilisation for each in values]) if values else 0.0,
        output_utilisation=fmean([each.output_utilisation for each in values]) if values else 0.0,
        busy_brokers=sum(each.publications_per_s > 0 for each in values),
        brokers=dict(brokers),
    )


def measured_figures(interval: MeasuredInterval) -> NetworkFigures:
    return figures_of(
        interval.brokers,
        deliveries_per_s=interval.deliveries_per_s,
        hops=interval.hops,
        delay_s=interval.delay_s,
    )


def delay_figures(delays_s: Sequence[float]) -> DelayFigures:
    """Of single deliveries."""
    if not delays_s:
        return DelayFigures()
    ordered = sorted(delays_s)
    last = len(ordered) - 1
    p10, p50, p99 = (ordered[round(share * last)] for share in (0.1, 0.5, 0.99))
    return DelayFigures(mean=fmean(ordered), p10=p10, p50=p50, p99=p99)


def relative(simulated: float, measured: float) -> float | None:
    """How much more than measured; None where that has no meaning."""
    if measured == 0.0:
        return 0.0 if simulated == 0.0 else None
    return simulated / measured - 1.0


def differences(simulated: NetworkFigures, measured: NetworkFigures) -> dict[str, float | None]:
    """Of each figure that is compared."""
    return {name: relative(getattr(simulated, name), getattr(measured, name)) for name in COMPARED}
