"""Which publications each subscriber received, as bit vectors: the input of allocation.

Paper    Cheung, thesis 6.1.2: bit vectors of bounded length for each publisher.
Words    Lbv -> LENGTH; counter -> first_sequence: the number that bit 0 stands for.

All vectors of a publisher cover the same window: its last LENGTH publications.  A vector is an
array of 64-bit words, lowest bit first: bit i is bit i % 64 of word i // 64.  `publishers_of` and
`profiles_of` read the rows of both tables as profile/ has them.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from godwit.lab.metrics.stages import Span, stage
from godwit.profile.bit_vector import LENGTH, WORD_BITS, BitVector
from godwit.profile.publisher_profile import PublisherProfile
from godwit.profile.subscription_profile import SubscriptionProfile


@stage(
    "handled",
    columns="publisher string, first_sequence bigint, last_sequence bigint, publications bigint,"
    " publications_per_s double, bytes_per_s double",
)
def publisher_rates(handled: DataFrame, over: Span) -> DataFrame:
    """What each publisher sent, measured at its own broker."""
    first_hand = over.of(handled).where((F.col("kind") == "Publication") & ~F.col("from_broker"))
    return first_hand.groupBy("publisher").agg(
        F.min("sequence").alias("first_sequence"),
        F.max("sequence").alias("last_sequence"),
        F.count("*").alias("publications"),
        (F.count("*") / F.lit(over.length_s)).alias("publications_per_s"),
        (F.sum("size_bytes") / F.lit(over.length_s)).alias("bytes_per_s"),
    )


@stage(
    "handled",
    "delivered",
    columns="client string, publisher string, first_sequence bigint, bits array<bigint>,"
    " received bigint",
)
def subscriber_profiles(handled: DataFrame, delivered: DataFrame, over: Span) -> DataFrame:
    """For each subscriber and publisher, which of the publisher's last publications arrived."""
    windows = publisher_rates.compute(handled, over).select(
        "publisher", (F.col("last_sequence") - (LENGTH - 1)).alias("first_sequence")
    )
    place = F.col("sequence") - F.col("first_sequence")
    zero, one = F.lit(0).cast("bigint"), F.lit(1).cast("bigint")
    words = (
        over.of(delivered)
        .join(F.broadcast(windows), "publisher")
        .where(place.between(0, LENGTH - 1))
        .withColumn("word", F.floor(place / WORD_BITS))
        # The bit of one delivery; the 64th is the sign, as it should be.
        .withColumn("bit", F.call_function("shiftleft", one, (place % WORD_BITS).cast("int")))
        .groupBy("client", "publisher", "first_sequence", "word")
        .agg(F.bit_or("bit").alias("bits"), F.count("*").alias("received"))
    )
    by_word = F.map_from_entries(F.collect_list(F.struct("word", "bits")))
    numbers = F.sequence(zero, F.lit(LENGTH // WORD_BITS - 1).cast("bigint"))
    return (
        words.groupBy("client", "publisher", "first_sequence")
        .agg(by_word.alias("by_word"), F.sum("received").alias("received"))
        .select(
            "client",
            "publisher",
            "first_sequence",
            F.transform(
                numbers, lambda n: F.coalesce(F.try_element_at(F.col("by_word"), n), zero)
            ).alias("bits"),
            "received",
        )
    )


def publishers_of(rows: Iterable[Row]) -> dict[str, PublisherProfile]:
    """From rows of `publisher_rates`."""
    return {
        row["publisher"]: PublisherProfile(
            publisher=row["publisher"],
            publications_per_s=row["publications_per_s"],
            bytes_per_s=row["bytes_per_s"],
            last_id=row["last_sequence"],
            first_id=row["first_sequence"],
        )
        for row in rows
    }


def profiles_of(rows: Iterable[Row]) -> dict[str, SubscriptionProfile]:
    """By subscriber, from rows of `subscriber_profiles`."""
    vectors: dict[str, dict[str, BitVector]] = {}
    for row in rows:
        vector = BitVector.of_words(row["bits"], row["first_sequence"])
        vectors.setdefault(row["client"], {})[row["publisher"]] = vector
    return {client: SubscriptionProfile(LENGTH, found) for client, found in vectors.items()}
