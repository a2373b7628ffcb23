"""Metrics over traces, on Spark.  `STAGES` has every metric by its name.

stages.py             what a metric is: a function from declared tables to a declared table
reading.py            the tables of a trace as data frames
broker_rates.py       message rates and utilisation of brokers
paths.py              hops and delays of publications, and brokers that only forward
traffic.py            messages by kind, routing tables, balance of load, moves
queueing.py           waits and queue lengths
delivery_profiles.py  publications that each subscriber received, as bits: input of planners
percentiles.py        exact percentiles within groups
digests.py            digests of rows, for equality between runs
numbers.py            results of one row as plain numbers
"""

from __future__ import annotations

from collections.abc import Mapping

from godwit.lab.metrics import broker_rates, delivery_profiles, paths, queueing, traffic
from godwit.lab.metrics.stages import MetricStage

STAGES: Mapping[str, MetricStage] = {
    each.name: each
    for each in (
        broker_rates.broker_rates,
        broker_rates.message_rate,
        broker_rates.utilisation_over_time,
        broker_rates.convergence,
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
        delivery_profiles.publisher_rates,
        delivery_profiles.subscriber_profiles,
    )
}
