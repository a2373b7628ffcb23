"""What the seven channels of the emergency scenario find, without Spark: bytes, not rows.

The rows of a BE subscription at an execution follow from the reports since the last one, the places
of users and shelters, and the meaning of its channel.  The load of a broker needs only the size of
these rows as the data cluster sends them, in JSON.  An execution reads every report that was
published before it, and the places of users at that time.

Tested   tests/experiments/test_emergency_results.py: against plain Python over rows
         (demos/emergencies/checking.py), which checks the live scenario as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from godwit.content.geography import distances_m
from godwit.content.values import Record, Value
from godwit.demos.emergencies.checking import EVENT_M, PLACE_SHOWN, SHELTER_M, SHOWN
from godwit.policies.staged.loads import Floats
from godwit.workloads.emergency_channels import CHANNELS, EmergencyChannel

Integers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Arguments: TypeAlias = tuple[Value, ...]

CHANNEL = {channel.name: channel for channel in CHANNELS}


class EmergencyResults:
    """All reports of a run, and their results.

    `places` has the place of a user at each execution of a channel that reads it, as a row of
    latitude and longitude.
    """

    def __init__(
        self,
        reports: Sequence[tuple[float, Record]],
        shelters: Sequence[Record],
        places: Mapping[str, Floats],
        *,
        pace: float,
        until_s: float,
    ) -> None:
        self._at_s = np.array([at_s for at_s, _ in reports])
        records = [record for _, record in reports]
        self._type = np.array([record["etype"] for record in records])
        self._severity = np.array([record["severity"] for record in records])
        self._latitude = np.array([record["latitude"] for record in records], dtype=np.float64)
        self._longitude = np.array([record["longitude"] for record in records], dtype=np.float64)
        self._places, self._pace, self._until_s = places, pace, until_s
        shown = [_json_bytes({name: record[name] for name in SHOWN}) for record in records]
        self._shown_bytes = np.array(shown) + 1  # With a comma.
        self._sheltered_bytes = self._with_shelters(records, shelters)
        self._find: dict[str, Callable[[EmergencyChannel, Arguments], Integers]] = {
            "EmergenciesOfType": lambda c, a: self._sum(c, self._of_type(a[0])),
            "EmergenciesNearMe": lambda c, a: self._sum(c, self._near(c, str(a[0]))),
            "EmergenciesInArea": lambda c, a: self._sum(c, self._in_area(*a)),
            "EmergenciesOfTypeInArea": lambda c, a: self._sum(
                c, self._of_type(a[0]) & self._in_area(*a[1:])
            ),
            "SheltersForType": lambda c, a: self._sum_sheltered(c, self._of_type(a[0])),
            "SheltersInArea": lambda c, a: self._sum_sheltered(c, self._in_area(*a)),
            "SituationInArea": lambda c, a: self._situation(
                c, a[0], self._of_type(a[0]) & self._in_area(*a[1:])
            ),
        }

    def every_s(self, channel: str) -> float:
        return CHANNEL[channel].every_s / self._pace

    def executions(self, channel: str) -> int:
        """The first is one period after the start."""
        return int(self._until_s / self.every_s(channel) + 1e-9)

    def bytes_of(self, channel: str, arguments: Arguments) -> Integers:
        """Sizes of the results of a BE subscription, for each execution."""
        return self._find[channel](CHANNEL[channel], arguments)

    # -- which reports -------------------------------------------------------------------------

    def _of_type(self, etype: Value) -> Flags:
        return np.asarray(self._type == etype)

    def _in_area(self, latitude: Value, longitude: Value) -> Flags:
        centre = np.array([latitude, longitude], dtype=np.float64)
        away_m = distances_m(self._latitude, self._longitude, centre[:1], centre[1:])
        return np.asarray(away_m < EVENT_M)

    def _near(self, channel: EmergencyChannel, user: str) -> Flags:
        number = np.minimum(self._execution(channel), self.executions(channel.name) - 1)
        place = self._places[user][number]
        away_m = distances_m(self._latitude, self._longitude, place[:, 0], place[:, 1])
        return np.asarray(away_m < EVENT_M)

    def _execution(self, channel: EmergencyChannel) -> Integers:
        """The execution that reads each report, from 0."""
        numbers = np.ceil(self._at_s / self.every_s(channel.name)).astype(np.int64) - 1
        return np.maximum(numbers, 0)

    # -- how many bytes ------------------------------------------------------------------------

    def _with_shelters(self, records: Sequence[Record], shelters: Sequence[Record]) -> Integers:
        """Sizes of each report's rows, with commas, in channels that show the shelters near it."""
        latitude = np.array([each["latitude"] for each in shelters], dtype=np.float64)
        longitude = np.array([each["longitude"] for each in shelters], dtype=np.float64)
        away_m = distances_m(
            self._latitude[:, None], self._longitude[:, None], latitude[None], longitude[None]
        )
        of_report = np.array([_json_bytes({"report_id": each["report_id"]}) for each in records])
        of_shelter = np.array(
            [_json_bytes({name: each[name] for name in PLACE_SHOWN}) for each in shelters]
        )
        # Two objects as one have a pair of braces less, and a comma more; another comma follows.
        sizes = np.where(away_m < SHELTER_M, of_report[:, None] + of_shelter[None], 0)
        found: Integers = sizes.sum(axis=1).astype(np.int64)
        return found

    def _sum(self, channel: EmergencyChannel, wanted: Flags) -> Integers:
        return self._summed(channel, wanted, self._shown_bytes)

    def _sum_sheltered(self, channel: EmergencyChannel, wanted: Flags) -> Integers:
        return self._summed(channel, wanted, self._sheltered_bytes)

    def _summed(self, channel: EmergencyChannel, wanted: Flags, sizes: Integers) -> Integers:
        executions = self.executions(channel.name)
        number = self._execution(channel)[wanted]
        sums = np.bincount(number, weights=sizes[wanted], minlength=executions)[:executions]
        return (sums + (sums > 0)).astype(np.int64)  # Brackets, and no comma after the last.

    def _situation(self, channel: EmergencyChannel, etype: Value, wanted: Flags) -> Integers:
        executions = self.executions(channel.name)
        number, severity = self._execution(channel)[wanted], self._severity[wanted]
        found = np.zeros(executions, dtype=np.int64)
        for execution in np.unique(number[number < executions]).tolist():
            seen = severity[number == execution]
            row = {"etype": etype, "reports": len(seen), "worst": int(seen.max())}
            found[execution] = _json_bytes([row])
        return found


def _json_bytes(value: object) -> int:
    return len(msgspec.json.encode(value))
