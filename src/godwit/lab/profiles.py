"""Which publications each subscriber received, as bits: the input of the allocation planners.

Paper    Cheung, thesis 6.2: bit vectors of bounded length for each publisher.
Words    Lbv -> PROFILE_BITS; counter -> first_sequence: the number that bit 0 stands for.

All vectors of a publisher cover the same window: its last PROFILE_BITS publications.  A vector is
an array of 64-bit words, lowest bit first: bit i is bit i % 64 of word i // 64.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from godwit.lab.stages import Span, stage

PROFILE_BITS = 1_280
WORD_BITS = 64


@stage(
    "handled",
    columns="publisher string, last_sequence bigint, publications bigint,"
    " publications_per_s double, bytes_per_s double",
)
def publisher_rates(handled: DataFrame, over: Span) -> DataFrame:
    """What each publisher sent, as its own broker saw it."""
    first_hand = over.of(handled).where((F.col("kind") == "Publication") & ~F.col("from_broker"))
    return first_hand.groupBy("publisher").agg(
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
        "publisher", (F.col("last_sequence") - (PROFILE_BITS - 1)).alias("first_sequence")
    )
    place = F.col("sequence") - F.col("first_sequence")
    zero, one = F.lit(0).cast("bigint"), F.lit(1).cast("bigint")
    words = (
        over.of(delivered)
        .join(F.broadcast(windows), "publisher")
        .where(place.between(0, PROFILE_BITS - 1))
        .withColumn("word", F.floor(place / WORD_BITS))
        # The bit of one delivery; the 64th is the sign, as it should be.
        .withColumn("bit", F.call_function("shiftleft", one, (place % WORD_BITS).cast("int")))
        .groupBy("client", "publisher", "first_sequence", "word")
        .agg(F.bit_or("bit").alias("bits"), F.count("*").alias("received"))
    )
    by_word = F.map_from_entries(F.collect_list(F.struct("word", "bits")))
    numbers = F.sequence(zero, F.lit(PROFILE_BITS // WORD_BITS - 1).cast("bigint"))
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
