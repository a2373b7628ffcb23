"""The check of the emergency scenario notices what is missing, double, or not asked for."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from godwit.client import ChannelEvent
from godwit.content.values import Value
from godwit.demos.emergencies.checking import EXPECTED, check
from godwit.demos.emergencies.live_subscribers import SubscriptionLog
from godwit.demos.emergencies.scenario import EmergencyScenario, broker_places
from godwit.workloads.emergency_channels import CHANNELS

HERE = {"latitude": 60.17, "longitude": 24.94}
FAR = {"latitude": 60.27, "longitude": 24.94}


def report(number: int, kind: str, place: dict[str, float], batch: int) -> dict[str, object]:
    return {
        "report_id": f"r{number}", "etype": kind, "severity": number, "message": "help",
        **place, "_batch": batch, "_position": number,
    }  # fmt: skip


REPORTS = [
    report(1, "fire", HERE, 1),
    report(2, "flood", HERE, 1),
    report(3, "fire", FAR, 2),
    report(4, "fire", HERE, 3),
]
LOCATIONS = [
    {"user_id": "u", **FAR, "_batch": 1, "_position": 1},
    {"user_id": "u", **HERE, "_batch": 2, "_position": 2},
]
SHELTERS = [
    {"shelter_id": "s", "name": "S", "beds": 9, **HERE, "_batch": 0, "_position": 1},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a data cluster would have left: batches 1 and 2 in one execution, 3 in another."""
    catalog = sqlite3.connect(tmp_path / "catalog.db")
    catalog.executescript(
        """CREATE TABLE datasets (id INTEGER, name TEXT);
        CREATE TABLE files (dataset INTEGER, path TEXT, dropped_s REAL);
        CREATE TABLE channels (id INTEGER, name TEXT);
        CREATE TABLE executions (channel INTEGER, number INTEGER, inputs BLOB, state TEXT);"""
    )
    data = {"EmergencyReports": REPORTS, "UserLocations": LOCATIONS, "Shelters": SHELTERS}
    for id, (name, records) in enumerate(data.items(), 1):
        path = tmp_path / "data" / str(id) / "x.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(records), path)
        catalog.execute("INSERT INTO datasets VALUES (?, ?)", (id, name))
        catalog.execute("INSERT INTO files VALUES (?, ?, NULL)", (id, f"{id}/x.parquet"))
    for id, channel in enumerate(CHANNELS, 1):
        catalog.execute("INSERT INTO channels VALUES (?, ?)", (id, channel.name))
        for number, (after, through, located) in enumerate(((0, 2, 1), (2, 3, 2)), 1):
            inputs = {
                "EmergencyReports": {"after": after, "through": through},
                "UserLocations": {"after": 0, "through": located},
            }
            row = (id, number, msgspec.json.encode(inputs), "done")
            catalog.execute("INSERT INTO executions VALUES (?, ?, ?, ?)", row)
    catalog.commit()
    catalog.close()
    return tmp_path


def shown(number: int) -> dict[str, Value]:
    names = ("report_id", "etype", "severity", "latitude", "longitude", "message")
    return {name: REPORTS[number - 1][name] for name in names}  # type: ignore[misc]


def log_of(
    channel: str, arguments: dict[str, Value], *rows: tuple[int, dict[str, Value]]
) -> SubscriptionLog:
    events = [ChannelEvent(row, channel, execution, 0, 0.0) for execution, row in rows]
    return SubscriptionLog("u", channel, arguments, (1, 0), events)


AREA: dict[str, Value] = {"area_latitude": 60.17, "area_longitude": 24.941}


def test_what_is_right_is_right(folder: Path) -> None:
    sheltered: dict[str, Value] = {
        "report_id": "r1", "shelter_id": "s", "name": "S", "beds": 9, **HERE
    }  # fmt: skip
    again = {**sheltered, "report_id": "r4"}
    fire: dict[str, Value] = {"event_type": "fire"}
    right = [
        log_of("EmergenciesOfType", fire, (1, shown(1)), (1, shown(3)), (2, shown(4))),
        # At the first execution the user was far, at the second near.
        log_of("EmergenciesNearMe", {"user": "u"}, (1, shown(3)), (2, shown(4))),
        log_of("EmergenciesNearMe", {"user": "nobody"}),
        log_of("EmergenciesInArea", AREA, (1, shown(1)), (1, shown(2)), (2, shown(4))),
        log_of("EmergenciesOfTypeInArea", {**fire, **AREA}, (1, shown(1)), (2, shown(4))),
        log_of("SheltersForType", fire, (1, sheltered), (2, again)),
        log_of("SheltersInArea", AREA, (1, sheltered), (1, {**sheltered, "report_id": "r2"}),
             (2, again)),
        log_of("SituationInArea", {**fire, **AREA},
               (1, {"etype": "fire", "reports": 1, "worst": 1}),
               (2, {"etype": "fire", "reports": 1, "worst": 4})),
    ]  # fmt: skip
    verdict = check(folder, right)
    assert verdict.faults == []
    assert (verdict.rows, verdict.executions) == (17, 14)


RIGHT = ((1, shown(1)), (1, shown(3)), (2, shown(4)))
WRONG: dict[str, Callable[[], tuple[tuple[int, dict[str, Value]], ...]]] = {
    "a row is missing": lambda: RIGHT[:2],
    "a row came twice": lambda: (*RIGHT, RIGHT[-1]),
    "a row that nobody asked for": lambda: (*RIGHT, (2, shown(2))),
    "a row in another execution": lambda: (*RIGHT[:2], (1, shown(4))),
    "rows of an execution that never was": lambda: (*RIGHT, (9, shown(4))),
    "a row with another value": lambda: (*RIGHT[:2], (2, {**shown(4), "severity": 7})),
}


@pytest.mark.parametrize("fault", WRONG)
def test_what_is_wrong_is_noticed(fault: str, folder: Path) -> None:
    wrong = log_of("EmergenciesOfType", {"event_type": "fire"}, *WRONG[fault]())
    assert len(check(folder, [wrong]).faults) >= 1


def test_rows_from_before_the_subscription_are_wrong(folder: Path) -> None:
    late = log_of("EmergenciesOfType", {"event_type": "fire"}, *RIGHT)
    late.start = (2, 0)
    assert len(check(folder, [late]).faults) == 1


def test_every_channel_can_be_checked() -> None:
    assert set(EXPECTED) == {channel.name for channel in CHANNELS}


def test_the_scenario_follows_from_its_seed() -> None:
    scenario = EmergencyScenario(users=20, seed=5)
    assert scenario.town().subscribers == scenario.town().subscribers
    assert "EVERY 2 SECONDS" in scenario.channel_statements()[0]
    assert scenario.duration_s == 96 + 90


def test_most_people_are_nearest_the_broker_in_the_middle() -> None:
    town = EmergencyScenario(users=300).town()
    places = broker_places(town.roads, 5)

    def nearest(latitude: float, longitude: float) -> int:
        away = [(p.latitude - latitude) ** 2 + (p.longitude - longitude) ** 2 / 4 for p in places]
        return away.index(min(away))

    found = [nearest(s.place.latitude, s.place.longitude) for s in town.subscribers]
    assert found.count(0) > 0.4 * len(found)
