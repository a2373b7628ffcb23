"""The rows that each subscriber should have received, by plain Python over the stored datasets.

For each execution of a channel the data cluster's catalog states which batches it read.  The
records of these batches and the meaning of the channel give the rows of each subscription: they
must be exactly those that its subscriber received.  The data cluster must have stopped, and must
have kept its history.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pyarrow.parquet as pq

from godwit.content.geography import GeoPoint, distance_m
from godwit.content.values import Value
from godwit.demos.emergencies.live_subscribers import SubscriptionLog

EVENT_M, SHELTER_M = 1_000.0, 500.0
REPORTS, LOCATIONS, SHELTERS = "EmergencyReports", "UserLocations", "Shelters"
SHOWN = ("report_id", "etype", "severity", "latitude", "longitude", "message")
PLACE_SHOWN = ("shelter_id", "name", "beds", "latitude", "longitude")

Stored: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[dict[str, Value]]


@dataclass(slots=True)
class CheckResult:
    executions: int = 0
    rows: int = 0
    """Rows that subscribers should have received and did."""

    faults: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ExecutionInput:
    """What one execution of a channel read."""

    new: list[Stored]
    shelters: list[Stored]
    places: Mapping[str, Stored]
    """The latest location of each user."""

    _near: dict[str, list[Stored]] = field(default_factory=dict)

    def shelters_near(self, report: Stored) -> list[Stored]:
        found = self._near.get(report["report_id"])
        if found is None:
            found = [s for s in self.shelters if metres(report, s) < SHELTER_M]
            self._near[report["report_id"]] = found
        return found


Expected: TypeAlias = Callable[[ExecutionInput, Mapping[str, Any]], Rows]


def metres(a: Stored, b: Mapping[str, Any]) -> float:
    return distance_m(
        GeoPoint(a["latitude"], a["longitude"]), GeoPoint(b["latitude"], b["longitude"])
    )


def _area(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"latitude": arguments["area_latitude"], "longitude": arguments["area_longitude"]}


def _of_type(seen: ExecutionInput, arguments: Mapping[str, Any]) -> list[Stored]:
    return [report for report in seen.new if report["etype"] == arguments["event_type"]]


def _in_area(reports: Iterable[Stored], arguments: Mapping[str, Any]) -> list[Stored]:
    return [report for report in reports if metres(report, _area(arguments)) < EVENT_M]


def _near_me(seen: ExecutionInput, arguments: Mapping[str, Any]) -> list[Stored]:
    me = seen.places.get(arguments["user"])
    return [] if me is None else [report for report in seen.new if metres(report, me) < EVENT_M]


def _shown(reports: Iterable[Stored]) -> Rows:
    return [{name: report[name] for name in SHOWN} for report in reports]


def _sheltered(seen: ExecutionInput, reports: Iterable[Stored]) -> Rows:
    return [
        {"report_id": report["report_id"], **{name: shelter[name] for name in PLACE_SHOWN}}
        for report in reports
        for shelter in seen.shelters_near(report)
    ]


def _counted(reports: Sequence[Stored]) -> Rows:
    if not reports:
        return []
    worst = max(report["severity"] for report in reports)
    return [{"etype": reports[0]["etype"], "reports": len(reports), "worst": worst}]


EXPECTED: dict[str, Expected] = {
    "EmergenciesOfType": lambda w, a: _shown(_of_type(w, a)),
    "EmergenciesNearMe": lambda w, a: _shown(_near_me(w, a)),
    "EmergenciesInArea": lambda w, a: _shown(_in_area(w.new, a)),
    "EmergenciesOfTypeInArea": lambda w, a: _shown(_in_area(_of_type(w, a), a)),
    "SheltersForType": lambda w, a: _sheltered(w, _of_type(w, a)),
    "SheltersInArea": lambda w, a: _sheltered(w, _in_area(w.new, a)),
    "SituationInArea": lambda w, a: _counted(_in_area(_of_type(w, a), a)),
}


class StoredRecords:
    """The stored records by dataset and batch, and the executions of each channel."""

    def __init__(self, folder: Path) -> None:
        catalog = sqlite3.connect(f"file:{folder / 'catalog.db'}?mode=ro", uri=True)
        self._by_batch: dict[str, defaultdict[int, list[Stored]]] = {}
        for id, name in catalog.execute("SELECT id, name FROM datasets").fetchall():
            files = catalog.execute(
                "SELECT path FROM files WHERE dataset = ? AND dropped_s IS NULL", (id,)
            ).fetchall()
            batches: defaultdict[int, list[Stored]] = defaultdict(list)
            for (path,) in files:
                for record in pq.read_table(folder / "data" / path).to_pylist():
                    batches[record["_batch"]].append(record)
            self._by_batch[name] = batches
        self.executions: defaultdict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
        rows = catalog.execute(
            """SELECT name, number, inputs FROM executions JOIN channels ON id = channel
            WHERE number > 0 AND state = 'done'"""
        )
        for name, number, inputs in rows.fetchall():
            self.executions[name][number] = msgspec.json.decode(inputs)
        catalog.close()

    def inputs(self, channel: str) -> Iterable[tuple[int, ExecutionInput]]:
        """What each execution of a channel read, in order."""
        places: dict[str, Stored] = {}
        read_through = 0
        shelters = [s for batch in self._by_batch[SHELTERS].values() for s in batch]
        for number, inputs in sorted(self.executions[channel].items()):
            new = inputs[REPORTS]
            through = inputs.get(LOCATIONS, {"through": 0})["through"]
            for batch in range(read_through + 1, through + 1):
                for record in self._by_batch[LOCATIONS][batch]:
                    places[record["user_id"]] = record
            read_through = max(read_through, through)
            batches = range(new["after"] + 1, new["through"] + 1)
            reports = [record for batch in batches for record in self._by_batch[REPORTS][batch]]
            yield number, ExecutionInput(reports, shelters, places)


def check(folder: Path, logs: Sequence[SubscriptionLog]) -> CheckResult:
    verdict = CheckResult()
    records = StoredRecords(folder)
    for channel, expected in EXPECTED.items():
        of_channel = [each for each in logs if each.channel == channel]
        got = {id(each): _by_execution(each) for each in of_channel}
        for number, seen in records.inputs(channel):
            verdict.executions += 1
            known: dict[str, list[str]] = {}
            for each in of_channel:
                wanted: list[str] = []
                if each.start <= (number, 0):
                    key = repr(sorted(each.arguments.items()))
                    if key not in known:
                        known[key] = _sorted(expected(seen, each.arguments))
                    wanted = known[key]
                _compare(verdict, each, number, wanted, got[id(each)].pop(number, []))
        for each in of_channel:
            for number in got[id(each)]:
                verdict.faults.append(f"{_of(each)}: rows of execution {number}, which is unknown")
    return verdict


def _compare(
    verdict: CheckResult,
    each: SubscriptionLog,
    number: int,
    wanted: Sequence[str],
    rows: Sequence[str],
) -> None:
    if wanted == rows:
        verdict.rows += len(rows)
        return
    missing, surplus = len(set(wanted) - set(rows)), len(set(rows) - set(wanted))
    verdict.faults.append(
        f"{_of(each)}, execution {number}: {len(rows)} rows instead of {len(wanted)};"
        f" {missing} missing, {surplus} surplus"
    )


def _of(each: SubscriptionLog) -> str:
    return f"{each.user}, {each.channel}{tuple(each.arguments.values())}"


def _by_execution(each: SubscriptionLog) -> dict[int, list[str]]:
    found: defaultdict[int, list[dict[str, Value]]] = defaultdict(list)
    for event in each.events:
        found[event.execution].append(event.content)
    return {number: _sorted(rows) for number, rows in found.items()}


def _sorted(rows: Rows) -> list[str]:
    return sorted(msgspec.json.encode(row, order="sorted").decode() for row in rows)
