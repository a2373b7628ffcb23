"""What a simulation takes from measurements: matching delays, latency, the cost of a copy.  Pure.

The matching delay of a live broker grows with the copies that it makes of a message, because it
includes their frames and acknowledgements.  So

    d = f (base + per_copy copies per message)

with `base` and `per_copy` of a line through all brokers, weighted by their messages, and a factor f
for each broker.  The unchanged network has the measured d; in a changed one a broker that makes
more copies has a longer one.

The latency of a link, and of the connection to a client, is what is left of the measured mean delay
when the simulated brokers have taken their time, in equal parts for each link and connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean

from godwit.rehearsal.network_snapshot import DelayFigures, NetworkSnapshot
from godwit.simulation.resources import LinkOptions

#: Fewer brokers than this do not show what a copy costs.
FITTED_MIN = 3
#: A publisher with fewer publications in the sample has the rate of its profile, if there is one.
SAMPLED_MIN = 100
NO_LATENCY = LinkOptions(latency_s_min=0.0, latency_s_mean=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyCosts:
    """The matching delay of a broker by the copies that it makes of a message."""

    base_s: float
    per_copy_s: float
    factors: Mapping[str, float]
    mean_s: float
    """For brokers that were not measured."""

    def matching_delay_s(self, broker: str, copies: float) -> float:
        """With so many copies for each message."""
        line_s = self.base_s + self.per_copy_s * copies
        return self.factors.get(broker, 1.0) * line_s if line_s > 0 else self.mean_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    measured_s: Mapping[str, float]
    """Matching delays."""

    costs: CopyCosts
    link: LinkOptions
    rates: Mapping[str, float] = field(default_factory=dict)
    """By client: its rate over that in the sample."""


def measured_delays(snapshot: NetworkSnapshot) -> dict[str, float]:
    """The matching delay of each broker; of one without messages the mean of the others."""
    readings = snapshot.first.brokers
    found = {
        name: readings[name].matching_delay_s
        for name in snapshot.broker_names
        if name in readings and readings[name].matching_delay_s > 0
    }
    mean_s = fmean(found.values()) if found else 0.0
    return {name: found.get(name, mean_s) for name in snapshot.broker_names}


def copy_costs(
    delays_s: Mapping[str, float], copies: Mapping[str, float], weights: Mapping[str, float]
) -> CopyCosts:
    """A line by weighted least squares; flat if it would fall, or brokers are too few."""
    known = [name for name in copies if weights.get(name, 0.0) > 0 and delays_s.get(name, 0.0) > 0]
    mean_s = fmean(delays_s.values()) if delays_s else 0.0
    base_s, per_copy_s = mean_s, 0.0
    if len(known) >= FITTED_MIN:
        weight = sum(weights[name] for name in known)
        x_mean = sum(weights[name] * copies[name] for name in known) / weight
        y_mean = sum(weights[name] * delays_s[name] for name in known) / weight
        spread = sum(weights[name] * (copies[name] - x_mean) ** 2 for name in known)
        rise = sum(
            weights[name] * (copies[name] - x_mean) * (delays_s[name] - y_mean) for name in known
        )
        slope_s = rise / spread if spread > 0 else 0.0
        if slope_s > 0 and y_mean - slope_s * x_mean > 0:
            base_s, per_copy_s = y_mean - slope_s * x_mean, slope_s
    factors = {
        name: delays_s[name] / (base_s + per_copy_s * copies.get(name, 0.0))
        for name in delays_s
        if base_s + per_copy_s * copies.get(name, 0.0) > 0
    }
    return CopyCosts(base_s=base_s, per_copy_s=per_copy_s, factors=factors, mean_s=mean_s)


def latency(measured: DelayFigures, simulated: DelayFigures, hops: float) -> LinkOptions:
    """Of each link; `simulated` without any, `hops` the mean of deliveries."""
    mean_s = max(0.0, (measured.mean - simulated.mean) / (hops + 1.0))
    least_s = max(0.0, (measured.p10 - simulated.p10) / (hops + 1.0))
    return LinkOptions(latency_s_min=min(least_s, mean_s), latency_s_mean=mean_s)


def profile_rates(snapshot: NetworkSnapshot) -> dict[str, float]:
    """Of clients with few publications in the sample: the rate of their profile over that in it."""
    if snapshot.profiles is None:
        return {}
    per_s: dict[str, float] = {}
    for each in snapshot.profiles.publishers:
        name = each.client or each.id
        per_s[name] = per_s.get(name, 0.0) + each.rate_per_s
    found = {}
    for client in snapshot.clients:
        sampled = sum(len(each.publications) for each in client.advertisements)
        if 0 < sampled < SAMPLED_MIN and per_s.get(client.name, 0.0) > 0:
            found[client.name] = per_s[client.name] * snapshot.sample_s / sampled
    return found
