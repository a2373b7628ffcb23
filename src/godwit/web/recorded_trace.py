"""A recorded trace, summed up so that any moment of it can be shown.  Pure after it is read.

    read_trace(folder) --> RecordedTrace --> overview(at_s), activity(at_s), history(broker, at_s)

What brokers handled is summed over SLOTS slots of time, so memory does not grow with the trace.

T1  A link is shown from the moment on at which something was first sent over it.
T2  A figure of a broker is the last gauge before the moment; before the first one there is none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from godwit.api.dashboard_api import (
    Activity,
    BrokerActivity,
    BrokerRow,
    History,
    LinkRow,
    Overview,
)
from godwit.api.routing_api import PolicyDecision
from godwit.errors import UsageError
from godwit.web.figure_series import BROKER_FIGURES, POINTS
from godwit.web.overviews import SERVING, balance_of, network_totals, shown_rows

SLOTS = 900
#: Decisions in one answer.
DECISIONS_MAX = 200
ROWS = 65_536
HANDLED_COLUMNS = ["time_s", "broker", "kind", "came_from", "from_broker", "local_matches",
                   "size_bytes"]  # fmt: skip
PUBLICATION = "Publication"


@dataclass(slots=True)
class RecordedTrace:
    start_s: float
    end_s: float
    slot_s: float = 1.0
    rows: dict[str, list[tuple[float, BrokerRow]]] = field(default_factory=dict)
    """Of each broker, by time."""

    links: dict[tuple[str, str], dict[int, int]] = field(default_factory=dict)
    """Bytes on each link, by slot."""

    deliveries: Counter[int] = field(default_factory=Counter)
    publishers: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """Broker and client: the first and the last slot in which it published there."""

    decisions: list[BrokerActivity] = field(default_factory=list)

    def overview(self, at_s: float) -> Overview:
        slot = self._slot(at_s)
        rows = [row for name in self.rows for row in self._row(name, at_s, slot)]
        shown = shown_rows(rows)
        names = {row.broker for row in shown}
        return Overview(
            at_s=at_s,
            totals=network_totals(rows, self.deliveries[slot] / self.slot_s),
            balance=balance_of(rows, []),
            brokers=shown,
            left_out=len(rows) - len(shown),
            links=[link for link in self._links(slot) if {link.one, link.other} <= names],
        )

    def activity(self, at_s: float) -> Activity:
        end = bisect_right(self.decisions, at_s, key=lambda each: each.decision.at_s)
        latest = self.decisions[max(0, end - DECISIONS_MAX) : end]
        return Activity(decisions=latest[::-1], moves=[], changes=[])

    def history(self, broker: str, at_s: float) -> History:
        """Of a broker, or of the network."""
        if broker:
            points = [each for each in self.rows.get(broker, ()) if each[0] <= at_s][-POINTS:]
            return History(
                at_s=[time for time, _ in points],
                figures={name: [getattr(row, name) for _, row in points] for name in BROKER_FIGURES}
                if points
                else {},
            )
        times = np.linspace(self.start_s, max(at_s, self.start_s), 60).tolist()
        seen = [self.overview(time) for time in times]
        return History(
            at_s=times,
            figures={
                "publications_per_s": [each.totals.publications_per_s for each in seen],
                "deliveries_per_s": [each.totals.deliveries_per_s for each in seen],
                "maximum": [each.balance.maximum for each in seen],
                "mean": [each.balance.mean for each in seen],
                "cov": [each.balance.cov for each in seen],
            },
        )

    def _slot(self, at_s: float) -> int:
        return int((at_s - self.start_s) / self.slot_s)

    def _row(self, name: str, at_s: float, slot: int) -> Iterator[BrokerRow]:
        """T2"""
        points = self.rows[name]
        place = bisect_right(points, at_s, key=lambda each: each[0])
        publishers = sum(
            broker == name and first <= slot <= last
            for (broker, _), (first, last) in self.publishers.items()
        )
        if place:
            yield msgspec.structs.replace(points[place - 1][1], publishers=publishers)
        else:
            yield BrokerRow(broker=name, state=SERVING, publishers=publishers)

    def _links(self, slot: int) -> Iterator[LinkRow]:
        """T1"""
        for (one, other), sent in self.links.items():
            if min(sent) <= slot:
                rate = sent.get(slot, 0) / self.slot_s
                yield LinkRow(one=one, other=other, status="up", bytes_per_s=rate)


def read_trace(folder: Path) -> RecordedTrace:
    """Raises UsageError if there is no trace in the folder."""
    gauges = _table(folder, "gauges")
    spans = [_span(folder, "gauges"), _span(folder, "handled")]
    known = [span for span in spans if span is not None]
    if not known:
        raise UsageError(
            f"{folder}: there is no trace here: a trace is a folder with the folders handled and"
            " gauges, as `godwit up --trace FOLDER` and `godwit lab run --keep-traces` write it"
        )
    start_s, end_s = min(each[0] for each in known), max(each[1] for each in known)
    trace = RecordedTrace(start_s, end_s, slot_s=max(0.1, (end_s - start_s) / SLOTS))
    for gauge in gauges:
        trace.rows.setdefault(gauge["broker"], []).append((gauge["time_s"], _gauged(gauge)))
    for points in trace.rows.values():
        points.sort(key=lambda each: each[0])
    _sum_up(folder, trace)
    trace.decisions = _decisions(folder)
    return trace


def _gauged(gauge: dict[str, Any]) -> BrokerRow:
    return BrokerRow(
        broker=gauge["broker"],
        state=SERVING,
        load=max(gauge["input_utilisation"] or 0.0, gauge["output_utilisation"] or 0.0),
        input_utilisation=gauge["input_utilisation"],
        output_utilisation=gauge["output_utilisation"],
        matching_delay_s=gauge["matching_delay_s"],
        publications_per_s=gauge["publications_per_s"] or 0.0,
        input_bytes_per_s=gauge["bytes_in_per_s"] or 0.0,
        output_bytes_per_s=gauge["bytes_out_per_s"] or 0.0,
        clients=gauge["clients"] or 0,
        subscriptions=gauge["subscriptions"] or 0,
        advertisements=gauge["advertisements"] or 0,
        queue_bytes=gauge["bytes_queued"] or 0,
    )


def _sum_up(folder: Path, trace: RecordedTrace) -> None:
    """Links, deliveries and publishers of each slot."""
    links: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for batch in _batches(folder, "handled", HANDLED_COLUMNS):
        since = pc.subtract(batch["time_s"], trace.start_s)
        slots = pc.cast(pc.floor(pc.divide(since, trace.slot_s)), pa.int64())
        columns = ["broker", "kind", "came_from", "from_broker"]
        summed = (
            batch.append_column("slot", slots)
            .group_by(["slot", *columns])
            .aggregate([("size_bytes", "sum"), ("local_matches", "sum")])
        )
        for each in summed.to_pylist():
            slot, broker, came_from = each["slot"], each["broker"], each["came_from"]
            if each["from_broker"]:
                one, other = sorted((broker, came_from))
                links[one, other][slot] += each["size_bytes_sum"] or 0
                trace.rows.setdefault(came_from, [])
            elif each["kind"] == PUBLICATION and came_from is not None:
                first, last = trace.publishers.get((broker, came_from), (slot, slot))
                trace.publishers[broker, came_from] = min(first, slot), max(last, slot)
            if each["kind"] == PUBLICATION:
                trace.deliveries[slot] += each["local_matches_sum"] or 0
            trace.rows.setdefault(broker, [])
    trace.links = {ends: dict(sent) for ends, sent in sorted(links.items())}


def _decisions(folder: Path) -> list[BrokerActivity]:
    found = sorted(_table(folder, "decisions"), key=lambda each: each["time_s"])
    return [
        BrokerActivity(
            broker=each["broker"] or "",
            decision=PolicyDecision(
                number=number,
                at_s=each["time_s"],
                policy=each["policy"] or "",
                action=each["action"] or "",
                subject=each["subject"] or "",
                source=each["source"] or "",
                target=each["target"] or "",
                reason=_numbers(each["reason"]),
            ),
        )
        for number, each in enumerate(found)
    ]


def _numbers(reason: str | None) -> dict[str, float | str | None]:
    try:
        return msgspec.json.decode(reason or "{}", type=dict[str, float | str | None])
    except msgspec.MsgspecError:
        return {"because": reason}


# -- files -------------------------------------------------------------------------------------


def _files(folder: Path, table: str) -> Iterator[pq.ParquetFile]:
    """Those that are complete: a network that still runs has one that is not."""
    for path in sorted((folder / table).rglob("*.parquet")):
        try:
            file = pq.ParquetFile(path)
        except (pa.ArrowInvalid, OSError):
            continue
        with file:
            yield file


def _batches(folder: Path, table: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    for file in _files(folder, table):
        for batch in file.iter_batches(batch_size=ROWS, columns=list(columns)):
            yield pa.Table.from_batches([batch])


def _table(folder: Path, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for file in _files(folder, table):
        rows += file.read().to_pylist()
    return rows


def _span(folder: Path, table: str) -> tuple[float, float] | None:
    ends = []
    for batch in _batches(folder, table, ["time_s"]):
        found = pc.min_max(batch["time_s"])
        ends += [found["min"].as_py(), found["max"].as_py()]
    known = [each for each in ends if each is not None]
    return (min(known), max(known)) if known else None
