"""Every metric by its name."""

from __future__ import annotations

from collections.abc import Mapping

from godwit.lab import paths, profiles, queueing, rates, traffic
from godwit.lab.stages import Stage

STAGES: Mapping[str, Stage] = {
    each.name: each
    for each in (
        rates.broker_rates,
        rates.message_rate,
        rates.utilisation_over_time,
        rates.convergence,
        paths.hop_count,
        paths.hop_histogram,
        paths.delay,
        paths.delay_over_time,
        paths.forwarding,
        paths.deliveries_per_subscriber,
        traffic.aggregate_traffic,
        traffic.overhead_by_kind,
        traffic.load_histogram,
        traffic.moves,
        traffic.between_brokers,
        traffic.routing_tables,
        queueing.queueing,
        queueing.queue_growth,
        profiles.publisher_rates,
        profiles.subscriber_profiles,
    )
}
