"""The status of a broker in the load balancer, as tables that the code runs and the docs draw.

Paper    Cheung, thesis 4.1.3, figures 4.3 (edge broker) and 4.4 (cluster-head), which are lost:
         reconstructed from the text.
Words    OK, N/A, STABILIZING, BUSY -> LoadStatus.
Departs  1. A session that moved no client leads straight back: there is nothing to settle.
         2. A cluster-head has no STABILIZING: its load is that of its edge brokers, which have it.
         3. A request that waits for its answer is not a status: meanwhile a broker answers BUSY
            (mediation.py), but does not publish it.
Tested   tests/policies/offload/test_load_status.py; docs/offload.md shows these tables.

S1  A status changes only by a row of its table; every other change raises IllegalTransition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum


class LoadStatus(Enum):
    OK = "OK"
    NOT_AVAILABLE = "N/A"
    STABILIZING = "STABILIZING"
    BUSY = "BUSY"


class StatusEvent(Enum):
    EXCEEDED = "exceeded"
    RELIEVED = "relieved"
    ACCEPTED = "accepted"
    GRANTED = "granted"
    MOVED = "moved"
    ENDED = "ended"
    ENDED_HIGH = "ended high"
    SETTLED = "settled"
    SETTLED_HIGH = "settled high"


@dataclass(frozen=True, slots=True)
class StatusTransition:
    source: LoadStatus
    event: StatusEvent
    target: LoadStatus
    condition: str
    """When it happens, in words."""


class IllegalTransition(Exception):  # noqa: N818  An error in the code of the load balancer.
    """An event that the present status has no row for."""


_OK, _NA = LoadStatus.OK, LoadStatus.NOT_AVAILABLE
_STABILIZING, _BUSY = LoadStatus.STABILIZING, LoadStatus.BUSY

EDGE_TRANSITIONS = (
    StatusTransition(_OK, StatusEvent.EXCEEDED, _NA, "a utilisation exceeds the lower threshold"),
    StatusTransition(_NA, StatusEvent.RELIEVED, _OK, "no utilisation exceeds the lower threshold"),
    StatusTransition(_OK, StatusEvent.ACCEPTED, _BUSY, "it accepts the request of another broker"),
    StatusTransition(_OK, StatusEvent.GRANTED, _BUSY, "another broker accepts its request"),
    StatusTransition(_NA, StatusEvent.GRANTED, _BUSY, "another broker accepts its request"),
    StatusTransition(
        _STABILIZING,
        StatusEvent.GRANTED,
        _BUSY,
        "a utilisation exceeds the higher threshold, and another broker accepts its request",
    ),
    StatusTransition(_BUSY, StatusEvent.MOVED, _STABILIZING, "the session is over; clients moved"),
    StatusTransition(_BUSY, StatusEvent.ENDED, _OK, "the session is over; no client moved"),
    StatusTransition(
        _BUSY,
        StatusEvent.ENDED_HIGH,
        _NA,
        "the session is over; no client moved; a utilisation exceeds the lower threshold",
    ),
    StatusTransition(
        _STABILIZING, StatusEvent.SETTLED, _OK, "its load was steady for the stabilize duration"
    ),
    StatusTransition(
        _STABILIZING,
        StatusEvent.SETTLED_HIGH,
        _NA,
        "the same; a utilisation exceeds the lower threshold",
    ),
)

HEAD_TRANSITIONS = (
    StatusTransition(_OK, StatusEvent.EXCEEDED, _NA, "an edge broker of the cluster is N/A"),
    StatusTransition(_NA, StatusEvent.RELIEVED, _OK, "no edge broker of the cluster is N/A"),
    StatusTransition(_OK, StatusEvent.ACCEPTED, _BUSY, "it accepts the request of another head"),
    StatusTransition(_OK, StatusEvent.GRANTED, _BUSY, "another head accepts its request"),
    StatusTransition(_NA, StatusEvent.GRANTED, _BUSY, "another head accepts its request"),
    StatusTransition(_BUSY, StatusEvent.ENDED, _OK, "the global session is over"),
    StatusTransition(
        _BUSY,
        StatusEvent.ENDED_HIGH,
        _NA,
        "the global session is over; an edge broker of the cluster is N/A",
    ),
)


class StatusMachine:
    """The present status of a broker."""

    def __init__(self, transitions: Iterable[StatusTransition]) -> None:
        self._rows: Mapping[tuple[LoadStatus, StatusEvent], StatusTransition] = {
            (row.source, row.event): row for row in transitions
        }
        self.status = LoadStatus.OK

    def apply(self, event: StatusEvent) -> StatusTransition:
        """Change the status (S1)."""
        row = self._rows.get((self.status, event))
        if row is None:
            raise IllegalTransition(f"a broker that is {self.status.value} cannot be {event.value}")
        self.status = row.target
        return row

    def permits(self, event: StatusEvent) -> bool:
        return (self.status, event) in self._rows


def markdown_table(transitions: Iterable[StatusTransition]) -> str:
    """The table as the manual has it."""
    rows = [
        f"| {row.source.value} | {row.event.value} | {row.target.value} | {row.condition} |"
        for row in transitions
    ]
    return "\n".join(["| from | event | to | when |", "| --- | --- | --- | --- |", *rows])


def mermaid_diagram(transitions: Iterable[StatusTransition]) -> str:
    """The table as a picture, for pages that can draw it."""
    rows = [
        f"    {_node(row.source)} --> {_node(row.target)}: {row.event.value}" for row in transitions
    ]
    return "\n".join(["stateDiagram-v2", "    [*] --> OK", *rows])


def _node(status: LoadStatus) -> str:
    return "NA" if status is _NA else status.value
