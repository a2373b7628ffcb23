"""The story of one publication in a recorded trace: where it was when, and who got it.

    paul#17 --> B1 at 3.20 s --> B2 at 3.21 s, to 2 clients --> ...

A trace has what brokers did, and not their tables: for a client that did not get a publication the
story says which brokers had it and when, and not which filter failed.  `godwit why` asks a network
that runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from godwit.errors import UsageError

#: Clients that are named.
NAMED_MAX = 10


@dataclass(frozen=True, slots=True)
class RecordedStory:
    says: list[str]
    got_it: list[str]
    """Clients, in the order in which they got it."""


def recorded_story(folder: Path, publication: str, to: str = "") -> RecordedStory:
    """Of PUBLISHER#SEQUENCE; raises UsageError if the trace has nothing of it."""
    publisher, _, sequence = publication.rpartition("#")
    if not publisher or not sequence.isdecimal():
        raise UsageError(f"{publication!r}: a publication is PUBLISHER#NUMBER, such as paul#17")
    steps = _rows(folder, "handled", publisher, int(sequence))
    deliveries = _rows(folder, "delivered", publisher, int(sequence))
    if not steps and not deliveries:
        raise UsageError(
            f"{folder}: there is nothing of {publication}: it was not published, or is not one of"
            " those that were recorded, as with a sample"
        )
    got_it = [row["client"] for row in deliveries]
    says = [*_way(steps), *_receivers(deliveries)]
    if to:
        says.append(_ending(to, steps, deliveries))
    return RecordedStory(says, got_it)


def _way(steps: list[dict[str, Any]]) -> Iterator[str]:
    for row in steps:
        source = "broker" if row["from_broker"] else "client"
        went = row["went_to"].replace(" ", ", ") if row["went_to"] else "no other broker"
        yield (
            f"{row['time_s']:.6f} s  {row['broker']}, from {source} {row['came_from']}, after"
            f" {row['hops']} links: it waited {1e3 * (row['queue_delay_s'] or 0):.3g} ms, matching"
            f" took {1e3 * (row['matching_delay_s'] or 0):.3g} ms; it went to {went}, and to"
            f" {row['local_matches']} clients here."
        )


def _receivers(deliveries: list[dict[str, Any]]) -> Iterator[str]:
    for row in deliveries[:NAMED_MAX]:
        yield (
            f"{row['time_s']:.6f} s  {row['client']} got it, after {row['hops']} links and"
            f" {1e3 * (row['delay_s'] or 0):.3g} ms."
        )
    if len(deliveries) > NAMED_MAX:
        yield f"{len(deliveries) - NAMED_MAX} more clients got it."


def _ending(to: str, steps: list[dict[str, Any]], deliveries: list[dict[str, Any]]) -> str:
    times = sum(row["client"] == to for row in deliveries)
    if times > 1:
        return f"{to} got it {times} times."
    if times:
        return f"{to} got it."
    passed = ", ".join(dict.fromkeys(row["broker"] for row in steps)) or "no broker"
    return (
        f"{to} did not get it. It was at {passed}, and none of them had a subscription of {to} that"
        " matches and is in effect, or it was dropped there because the queue of the client was"
        " full."
    )


def _rows(folder: Path, table: str, publisher: str, sequence: int) -> list[dict[str, Any]]:
    """By time; row groups without it are passed over."""
    wanted = [("publisher", "=", publisher), ("sequence", "=", sequence)]
    rows: list[dict[str, Any]] = []
    for path in sorted((folder / table).rglob("*.parquet")):
        try:
            rows += pq.read_table(path, filters=wanted).to_pylist()
        except (OSError, ValueError):  # It is not complete yet.
            continue
    return sorted(rows, key=lambda row: row["time_s"])
