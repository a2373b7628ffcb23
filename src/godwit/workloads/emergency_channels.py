"""The statements of the emergency scenario: datasets, feeds and seven channels, as text.

BS1 has three datasets and seven channels with periods of 10, 20 and 30 s, whose parameters are an
event's type, an event's location and a user's location.  The paper does not state which seven:
these use every kind of parameter, alone and with another, join static data, and count.  `distance`
is in metres: an event is near within 1 km, a shelter within 500 m; a place in town has about eight
of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

#: Values of `class` in the records of the two feeds.
EMERGENCY, LOCATION = "EMERGENCY", "LOCATION"

DATASETS = (
    """CREATE DATASET UserLocations (
    user_id STRING, latitude DOUBLE, longitude DOUBLE, at TIMESTAMP
) KEY user_id""",
    """CREATE DATASET EmergencyReports (
    report_id STRING, etype STRING, severity INT, latitude DOUBLE, longitude DOUBLE,
    message STRING, at TIMESTAMP
)""",
    """CREATE DATASET Shelters (
    shelter_id STRING, name STRING, latitude DOUBLE, longitude DOUBLE, beds INT
) STATIC""",
)

FEEDS = (
    """CREATE FEED reports FROM FILTER "class = 'EMERGENCY'" INTO EmergencyReports""",
    """CREATE FEED locations FROM FILTER "class = 'LOCATION'" INTO UserLocations""",
)


class Argument(Enum):
    """The meaning of a parameter."""

    TYPE = "event type"
    AREA = "event location"
    USER = "user location"


@dataclass(frozen=True, slots=True)
class EmergencyChannel:
    name: str
    every_s: int
    asks_for: tuple[Argument, ...]
    query: str

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """Name and type of each parameter, in order."""
        return tuple(pair for asked in self.asks_for for pair in PARAMETERS[asked])

    @property
    def statement(self) -> str:
        parameters = ", ".join(f"{name} {kind}" for name, kind in self.parameters)
        return (
            f"CREATE CHANNEL {self.name}({parameters}) EVERY {self.every_s} SECONDS AS {self.query}"
        )


PARAMETERS = {
    Argument.TYPE: (("event_type", "STRING"),),
    Argument.AREA: (("area_latitude", "DOUBLE"), ("area_longitude", "DOUBLE")),
    Argument.USER: (("user", "STRING"),),
}

CHANNELS = (
    EmergencyChannel("EmergenciesOfType", 10, (Argument.TYPE,), """\
SELECT r.report_id, r.etype, r.severity, r.latitude, r.longitude, r.message
FROM NEW EmergencyReports r
WHERE r.etype = :event_type"""),
    EmergencyChannel("EmergenciesNearMe", 10, (Argument.USER,), """\
SELECT r.report_id, r.etype, r.severity, r.latitude, r.longitude, r.message
FROM NEW EmergencyReports r
JOIN UserLocations u
  ON u.user_id = :user
 AND distance(r.latitude, r.longitude, u.latitude, u.longitude) < 1000"""),
    EmergencyChannel("EmergenciesInArea", 20, (Argument.AREA,), """\
SELECT r.report_id, r.etype, r.severity, r.latitude, r.longitude, r.message
FROM NEW EmergencyReports r
WHERE distance(r.latitude, r.longitude, :area_latitude, :area_longitude) < 1000"""),
    EmergencyChannel("EmergenciesOfTypeInArea", 20, (Argument.TYPE, Argument.AREA), """\
SELECT r.report_id, r.etype, r.severity, r.latitude, r.longitude, r.message
FROM NEW EmergencyReports r
WHERE r.etype = :event_type
  AND distance(r.latitude, r.longitude, :area_latitude, :area_longitude) < 1000"""),
    EmergencyChannel("SheltersForType", 30, (Argument.TYPE,), """\
SELECT r.report_id, s.shelter_id, s.name, s.beds, s.latitude, s.longitude
FROM NEW EmergencyReports r
JOIN Shelters s ON distance(r.latitude, r.longitude, s.latitude, s.longitude) < 500
WHERE r.etype = :event_type"""),
    EmergencyChannel("SheltersInArea", 30, (Argument.AREA,), """\
SELECT r.report_id, s.shelter_id, s.name, s.beds, s.latitude, s.longitude
FROM NEW EmergencyReports r
JOIN Shelters s ON distance(r.latitude, r.longitude, s.latitude, s.longitude) < 500
WHERE distance(r.latitude, r.longitude, :area_latitude, :area_longitude) < 1000"""),
    EmergencyChannel("SituationInArea", 30, (Argument.TYPE, Argument.AREA), """\
SELECT r.etype, count(*) AS reports, max(r.severity) AS worst
FROM NEW EmergencyReports r
WHERE r.etype = :event_type
  AND distance(r.latitude, r.longitude, :area_latitude, :area_longitude) < 1000
GROUP BY r.etype"""),
)  # fmt: skip
