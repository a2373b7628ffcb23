"""Units with common publications are merged on Spark, in rounds.

Paper    Cheung, thesis 6.2.3.

    clusters: cluster binary, profile binary, deliveries binary, bandwidth_bytes_s double,
              subscriptions bigint, units binary, evaluations bigint

In each round every cluster belongs to one group: those with the same mark, a publication that all
of them received (policies/large_allocation/shared_publications.py).  Groups are clustered at the
same time (policies/large_allocation/group_clustering.py), large ones in pieces of clusters that
resemble each other by further marks and by size.  The next round has other marks, and accepts pairs
that are less close.  The end is when few clusters are left, or all pairs are accepted and a round
merges few.  `units` has the names of a cluster's units.

R1  The result depends on the rows, not on their order or partitions.
R2  Every unit is in exactly one cluster.

Tested   tests/lab/test_large_plans.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from godwit.lab.large_plans.gif_frames import Batches
from godwit.policies.allocation.closeness import ClosenessMetric
from godwit.policies.allocation.packed_profiles import PublisherTable, union
from godwit.policies.large_allocation.group_clustering import GroupClustering, GroupUnit
from godwit.policies.large_allocation.profile_bytes import (
    decoded,
    decoded_counts,
    encoded,
    encoded_counts,
)
from godwit.policies.large_allocation.shared_publications import Marking
from godwit.policies.large_allocation.unit_limits import UnitLimits

#: Clusters that are compared with each other, at most.
PIECE_MAX = 1_024
#: The least closeness of a pair in each round, as a share of the larger with itself.
LEAST = (0.5, 0.25, 0.1, 0.0)
#: After these rounds, one that merges less than this part of the clusters is the last.
MERGED_MIN = 0.02
ROUNDS_MAX = 12
#: So few are better merged by CRAM itself, which sees all of them.
ENOUGH = 4_000
#: Rows that are passed on together: a piece may have a single one, and a batch costs as much.
BATCH_ROWS = 2_000
#: Rows of a partition.
PARTITION_ROWS = 20_000

CLUSTERS = (
    "cluster binary, profile binary, deliveries binary, bandwidth_bytes_s double,"
    " subscriptions bigint, units binary, evaluations bigint"
)
NAMES = tuple(column.split()[0] for column in CLUSTERS.split(","))
SCHEMA = pa.schema(
    [
        ("cluster", pa.binary()),
        ("profile", pa.binary()),
        ("deliveries", pa.binary()),
        ("bandwidth_bytes_s", pa.float64()),
        ("subscriptions", pa.int64()),
        ("units", pa.binary()),
        ("evaluations", pa.int64()),
    ]
)
MARKS = ("mark", "second", "third", "size")
MARKED = f"{CLUSTERS}, {', '.join(f'{name} bigint' for name in MARKS)}"
Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ClusterRounds:
    """What is the same in all rounds."""

    table: PublisherTable
    limits: UnitLimits
    metric: ClosenessMetric
    piece_max: int = PIECE_MAX
    enough: int = ENOUGH


def clusters_of(units: DataFrame, table: PublisherTable) -> DataFrame:
    """A cluster for each unit."""

    def start(batches: Batches) -> Batches:
        for batch in batches:
            found: Rows = []
            for row in batch.to_pylist():
                profile, n = decoded(row["profile"], table.words), row["subscribers"]
                found.append(
                    {
                        "cluster": row["unit"],
                        "profile": row["profile"],
                        "deliveries": encoded_counts(
                            {p: n * count for p, count in profile.counts.items()}
                        ),
                        "bandwidth_bytes_s": n * table.bandwidth_bytes_s(profile),
                        "subscriptions": row["subscriptions"],
                        "units": row["unit"],
                        "evaluations": 0,
                    }
                )
            yield pa.RecordBatch.from_pylist(found, SCHEMA)

    return units.mapInArrow(start, CLUSTERS)


def merged_in_rounds(clusters: DataFrame, rounds: ClusterRounds) -> tuple[DataFrame, int]:
    """The clusters that remain, cached, and how often closeness was evaluated.

    The caller unpersists them.
    """
    clusters = clusters.persist()
    left, evaluations = clusters.count(), 0
    for number in range(ROUNDS_MAX):
        if left <= rounds.enough:
            break
        least = LEAST[number] if number < len(LEAST) else LEAST[-1]
        after = merged_once(clusters, rounds, number, least, left).persist()
        row = after.agg(F.count("*").alias("left"), F.sum("evaluations").alias("more")).first()
        assert row is not None
        clusters.unpersist()
        clusters, before, left = after, left, row["left"]
        evaluations += row["more"] or 0
        if number + 1 >= len(LEAST) and before - left < MERGED_MIN * before:
            break
    return clusters, evaluations


def merged_once(
    clusters: DataFrame, rounds: ClusterRounds, number: int, least: float, rows: int
) -> DataFrame:
    """One round."""
    cores = clusters.sparkSession.sparkContext.defaultParallelism
    partitions = max(cores, -(-rows // PARTITION_ROWS)) if rows > rounds.piece_max else 1
    return (
        clusters.mapInArrow(_marked(rounds, number), MARKED)
        .repartition(partitions, "mark")
        .sortWithinPartitions(*MARKS, "cluster")
        .mapInArrow(_merged(rounds, least), CLUSTERS)
    )


def _marked(rounds: ClusterRounds, number: int) -> Callable[[Batches], Batches]:
    words, lengths = rounds.table.words, rounds.table.lengths

    def mark(batches: Batches) -> Batches:
        marking = Marking(lengths, number)
        for batch in batches:
            profiles = [decoded(data, words) for data in batch.column("profile").to_pylist()]
            found = [(*marking.marks(profile), profile.count) for profile in profiles]
            columns = [pa.array(column, pa.int64()) for column in zip(*found, strict=True)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *columns], [*NAMES, *MARKS])

    return mark


def _merged(rounds: ClusterRounds, least: float) -> Callable[[Batches], Batches]:
    def merge(batches: Batches) -> Batches:
        found: Rows = []
        for piece in _pieces(batches, rounds.piece_max):
            found += merged_piece(piece, rounds, least)
            if len(found) >= BATCH_ROWS:
                yield pa.RecordBatch.from_pylist(found, SCHEMA)
                found = []
        if found:
            yield pa.RecordBatch.from_pylist(found, SCHEMA)

    return merge


def _pieces(batches: Batches, piece_max: int) -> Iterator[Rows]:
    """Rows with the same mark, so many at most.  They come in the order of their marks."""
    piece: Rows = []
    for batch in batches:
        for row in batch.to_pylist():
            if piece and (len(piece) == piece_max or row["mark"] != piece[0]["mark"]):
                yield piece
                piece = []
            piece.append(row)
    if piece:
        yield piece


def merged_piece(piece: Sequence[dict[str, Any]], rounds: ClusterRounds, least: float) -> Rows:
    """The clusters of these rows."""
    profiles = [decoded(row["profile"], rounds.table.words) for row in piece]
    units = [
        GroupUnit(profile, row["bandwidth_bytes_s"], row["subscriptions"])
        for profile, row in zip(profiles, piece, strict=True)
    ]
    clustering = GroupClustering(units, rounds.table, rounds.limits, rounds.metric, least=least)
    found: Rows = []
    for places in clustering.run():
        rows = [piece[place] for place in places]
        deliveries: dict[int, int] = {}
        for place in places:
            counts = decoded_counts(piece[place]["deliveries"], profiles[place])
            for p, count in counts.items():
                deliveries[p] = deliveries.get(p, 0) + count
        whole = rows[0]["profile"]
        if len(places) > 1:
            whole = encoded(union(profiles[place] for place in places))
        found.append(
            {
                "cluster": min(row["cluster"] for row in rows),
                "profile": whole,
                "deliveries": encoded_counts(deliveries),
                "bandwidth_bytes_s": sum(row["bandwidth_bytes_s"] for row in rows),
                "subscriptions": sum(row["subscriptions"] for row in rows),
                "units": b"".join(row["units"] for row in rows),
                "evaluations": 0,
            }
        )
    found[0]["evaluations"] = clustering.evaluations
    return found
