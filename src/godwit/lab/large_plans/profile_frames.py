"""Subscribers on Spark, with their profiles: from a document, or from a trace.

    subscriber string, subscriptions int, broker string, profile binary

Profiles are in the common windows of the publishers (policies/allocation/gathered_reading.py), as
bytes (policies/large_allocation/profile_bytes.py).

Tested   tests/lab/test_large_plans.py: the profiles of a trace are those that it has as a document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from godwit.errors import UsageError
from godwit.lab.large_plans.gif_frames import Batches
from godwit.policies.allocation.gathered import Gathered
from godwit.policies.allocation.gathered_reading import AllocationProblem
from godwit.policies.allocation.packed_profiles import WORD_BITS, PublisherTable
from godwit.policies.large_allocation.profile_bytes import encoded, encoded_block

SCHEMA = pa.schema(
    [
        ("subscriber", pa.string()),
        ("subscriptions", pa.int32()),
        ("broker", pa.string()),
        ("profile", pa.binary()),
    ]
)


def frame_of_problem(session: SparkSession, problem: AllocationProblem) -> DataFrame:
    names = Counter(each.name for each in problem.subscribers)
    for name, times in names.items():
        if times > 1:
            raise UsageError(
                f"{name!r} is the name of a client and of a subscription without client; on Spark"
                " names must be unique"
            )
    rows = [
        {
            "subscriber": each.name,
            "subscriptions": len(each.subscriptions),
            "broker": each.broker,
            "profile": encoded(each.profile),
        }
        for each in problem.subscribers
    ]
    return session.createDataFrame(pa.Table.from_pylist(rows, SCHEMA))


def frame_of_vectors(
    homes: DataFrame, vectors: DataFrame, network: Gathered, table: PublisherTable
) -> DataFrame:
    """From the tables of a trace (lab/trace_profiles.py).

    `homes`: owner, broker.  `vectors`: client, publisher, first_sequence, bits array<bigint>.
    """
    windows = {
        each.id: (p, each.last_id + 1 - table.lengths[p], table.lengths[p])
        for p, each in enumerate(network.publishers)
    }
    blocks = vectors.select("client", "publisher", "first_sequence", "bits").mapInArrow(
        _aligned(windows), "client string, p int, block binary"
    )
    nothing = F.lit("").cast("binary")
    in_order = F.array_sort(F.collect_list(F.struct("p", "block")))
    profiles = blocks.groupBy("client").agg(
        F.aggregate(in_order, nothing, lambda done, each: F.concat(done, each["block"])).alias(
            "profile"
        )
    )
    return homes.join(profiles, F.col("owner") == F.col("client"), "left").select(
        F.col("owner").alias("subscriber"),
        F.lit(1).alias("subscriptions"),
        "broker",
        F.coalesce("profile", nothing).alias("profile"),
    )


def _aligned(windows: Mapping[str, tuple[int, int, int]]) -> Any:
    """Vectors -> blocks: the publisher's index, and the words of its window."""

    def align(batches: Batches) -> Batches:
        for batch in batches:
            if not len(batch):
                continue
            publishers = np.array(batch.column("publisher").to_pylist(), np.object_)
            firsts = batch.column("first_sequence").to_numpy()
            words = batch.column("bits").flatten().to_numpy(zero_copy_only=False)
            words = words.astype("<i8").view(np.uint8).reshape(len(batch), -1)
            bits = np.unpackbits(words, axis=1, bitorder="little")
            numbers = np.full(len(batch), -1, np.int32)
            blocks: list[bytes | None] = [None] * len(batch)
            for publisher, first in sorted(set(zip(publishers, firsts.tolist(), strict=True))):
                if publisher not in windows:
                    continue  # It has left.
                p, start, length = windows[publisher]
                chosen = np.flatnonzero((publishers == publisher) & (firsts == first))
                inside = _within(bits[chosen], start - first, length)
                packed = np.packbits(inside, axis=1, bitorder="little")
                for place, row in zip(chosen[inside.any(axis=1)].tolist(),
                                      packed[inside.any(axis=1)], strict=True):  # fmt: skip
                    numbers[place] = p
                    blocks[place] = encoded_block(p, row.tobytes())
            kept = pa.array(numbers >= 0)
            yield pa.RecordBatch.from_arrays(
                [batch.column("client"), pa.array(numbers), pa.array(blocks, pa.binary())],
                ["client", "p", "block"],
            ).filter(kept)

    return align


def _within(bits: npt.NDArray[np.uint8], offset: int, length: int) -> npt.NDArray[np.uint8]:
    """`length` bits from `offset` on, filled up to whole words; zeros where there are none."""
    found = np.zeros((len(bits), -(-length // WORD_BITS) * WORD_BITS), np.uint8)
    begin, end = max(0, offset), min(bits.shape[1], offset + length)
    if begin < end:
        found[:, begin - offset : end - offset] = bits[:, begin:end]
    return found
