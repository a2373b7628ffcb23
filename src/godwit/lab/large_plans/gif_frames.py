"""GIFs on Spark: subscribers with the same profile, by hash, split into units that fit.

Paper    Cheung, thesis 6.2.3, optimisation 1.

    subscribers   subscriber string, subscriptions int, broker string, profile binary
    gifs          gif binary, profile binary, subscribers bigint, subscriptions bigint
    placed        subscriber, subscriptions, broker, unit binary
    units         unit, profile, subscribers, subscriptions

A GIF is named by 16 bytes of the SHA-256 of its profile; a unit by its GIF and 4 more.  Names
follow from the data, so a task that runs again gives the same ones.  Spark groups the rows; NumPy
sees each distinct profile, not each subscriber.

Tested   tests/lab/test_large_plans.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from godwit.policies.allocation.packed_profiles import PublisherTable
from godwit.policies.large_allocation.load_histogram import LoadHistogram
from godwit.policies.large_allocation.profile_bytes import decoded
from godwit.policies.large_allocation.unit_limits import UnitLimits

Batches = Iterator[pa.RecordBatch]
GIF_BYTES = 16
SUBSCRIBERS = "subscriber string, subscriptions int, broker string, profile binary"


def named(subscribers: DataFrame) -> DataFrame:
    """With the name of each subscriber's GIF."""
    digest = F.unhex(F.sha2(F.col("profile"), 256))
    return subscribers.withColumn("gif", F.substring(digest, 1, GIF_BYTES))


def gifs_of(subscribers: DataFrame) -> DataFrame:
    # The profile is a key as well: keys may be bytes, and equal names have equal profiles.
    return subscribers.groupBy("gif", "profile").agg(
        F.count("*").alias("subscribers"), F.sum("subscriptions").alias("subscriptions")
    )


def histogram_of(gifs: DataFrame, table: PublisherTable) -> LoadHistogram:
    """The loads of all subscribers, counted."""

    def count(batches: Batches) -> Batches:
        found = LoadHistogram()
        for batch in batches:
            for data, subscribers, subscriptions in zip(
                *(batch.column(name).to_pylist() for name in
                  ("profile", "subscribers", "subscriptions")), strict=True
            ):  # fmt: skip
                found.add(decoded(data, table.words), table, subscribers, subscriptions)
        keys, weights = list(found.entries), list(found.entries.values())
        yield pa.RecordBatch.from_pydict(
            {
                "publisher": pa.array([key for key, _ in keys], pa.int32()),
                "level": pa.array([level for _, level in keys], pa.float64()),
                "weight": pa.array(weights, pa.float64()),
            }
        )

    rows = gifs.mapInArrow(count, "publisher int, level double, weight double").toArrow()
    # The order of a sum changes its last digit: here it does not depend on the partitions.
    rows = rows.sort_by([(name, "ascending") for name in ("publisher", "level", "weight")])
    histogram = LoadHistogram()
    for publisher, level, weight in zip(*(column.to_pylist() for column in rows), strict=True):
        histogram.add_entry(publisher, level, weight)
    return histogram


def placed_in_units(
    subscribers: DataFrame, gifs: DataFrame, table: PublisherTable, limits: UnitLimits
) -> DataFrame:
    """Each subscriber and its unit; units of a GIF have as many subscribers, give or take one."""
    split = gifs.mapInArrow(_parts(table, limits), "gif binary, parts int").where("parts > 1")
    in_order = F.row_number().over(Window.partitionBy("gif").orderBy("subscriber")) - 1
    part = F.when(F.col("parts").isNull(), 0).otherwise(in_order % F.col("parts"))
    suffix = F.unhex(F.lpad(F.hex(part), 8, "0"))
    return (
        subscribers.select("subscriber", "subscriptions", "broker", "gif")
        .join(F.broadcast(split), "gif", "left")
        .withColumn("unit", F.concat("gif", suffix))
        .select("subscriber", "subscriptions", "broker", "gif", "unit")
    )


def units_of(placed: DataFrame, gifs: DataFrame) -> DataFrame:
    counted = placed.groupBy("gif", "unit").agg(
        F.count("*").alias("subscribers"), F.sum("subscriptions").alias("subscriptions")
    )
    return counted.join(gifs.select("gif", "profile"), "gif").drop("gif")


def _parts(table: PublisherTable, limits: UnitLimits) -> Callable[[Batches], Batches]:
    def parts(batches: Batches) -> Batches:
        for batch in batches:
            found = []
            for data, subscribers, subscriptions in zip(
                *(batch.column(name).to_pylist() for name in
                  ("profile", "subscribers", "subscriptions")), strict=True
            ):  # fmt: skip
                profile = decoded(data, table.words)
                found.append(
                    limits.parts(
                        table.bandwidth_bytes_s(profile),
                        table.rate_per_s(profile),
                        subscribers,
                        subscriptions,
                    )
                )
            yield pa.RecordBatch.from_arrays(
                [batch.column("gif"), pa.array(found, pa.int32())], ["gif", "parts"]
            )

    return parts
