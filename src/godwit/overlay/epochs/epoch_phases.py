"""The phases of a change of the network's shape at one broker, as a table that the code runs and
the docs draw.

    the coordinator asks for a shape   BUILDING, and BUILT when all has been told
    it commits, and says flip          HOLDING: what comes in the new epoch waits for the old one
    the old epoch has drained          STEADY, in the new epoch

A broker that was away comes back STEADY, in the old epoch, and is told by its neighbours or by the
coordinator that the new one is committed: REJOINING.

F1  A phase changes only by a row of its table; every other change raises IllegalPhaseChange.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class EpochPhase(Enum):
    STEADY = "steady"
    BUILDING = "building"
    BUILT = "built"
    REJOINING = "rejoining"
    HOLDING = "holding"

    @property
    def is_committed(self) -> bool:
        """Whether there is a next epoch, and no way back."""
        return self in (EpochPhase.REJOINING, EpochPhase.HOLDING)


class EpochEvent(Enum):
    BUILD = "build"
    TOLD = "told all"
    ABORT = "abort"
    BREAK = "break"
    FLIP = "flip"
    DRAINED = "drained"


@dataclass(frozen=True, slots=True)
class PhaseChange:
    source: EpochPhase
    event: EpochEvent
    target: EpochPhase
    condition: str
    """When it happens, in words."""

    action: str
    """What the broker does, in words."""


class IllegalPhaseChange(Exception):  # noqa: N818  An error in the code, not in its use.
    """An event that the present phase has no row for."""


_STEADY, _BUILDING, _BUILT = EpochPhase.STEADY, EpochPhase.BUILDING, EpochPhase.BUILT
_REJOINING, _HOLDING = EpochPhase.REJOINING, EpochPhase.HOLDING
_OPENS = "opens the links of the next epoch and enters there what its clients hold"
_DROPS = "drops the next epoch and its links"
_LOST = "a link of the next epoch is given up"
_SWITCHES = "local publications go to the next epoch; Last follows the earlier ones"

PHASE_CHANGES = (
    PhaseChange(_STEADY, EpochEvent.BUILD, _BUILDING, "the coordinator asks for a shape", _OPENS),
    PhaseChange(
        _BUILDING,
        EpochEvent.TOLD,
        _BUILT,
        "neighbours have told all, and all that is in effect is in effect in the next epoch",
        "says so when it is asked",
    ),
    PhaseChange(_BUILDING, EpochEvent.ABORT, _STEADY, "the coordinator gives up", _DROPS),
    PhaseChange(_BUILT, EpochEvent.ABORT, _STEADY, "the coordinator gives up", _DROPS),
    PhaseChange(_BUILDING, EpochEvent.BREAK, _STEADY, _LOST, _DROPS),
    PhaseChange(_BUILT, EpochEvent.BREAK, _STEADY, _LOST, _DROPS),
    PhaseChange(
        _BUILT,
        EpochEvent.FLIP,
        _HOLDING,
        "the coordinator has committed, or a neighbour has sent Last",
        _SWITCHES,
    ),
    PhaseChange(
        _STEADY,
        EpochEvent.FLIP,
        _REJOINING,
        "the next epoch is committed, and this broker has lost it in a failure",
        _OPENS,
    ),
    PhaseChange(
        _BUILDING,
        EpochEvent.FLIP,
        _REJOINING,
        "the next epoch is committed, and this broker began to build it again after a failure",
        "goes on",
    ),
    PhaseChange(_REJOINING, EpochEvent.TOLD, _HOLDING, "neighbours have told all", _SWITCHES),
    PhaseChange(
        _HOLDING,
        EpochEvent.DRAINED,
        _STEADY,
        "Last was sent to all neighbours of the old epoch, and has come from all",
        "drops the old epoch and its links; what waited is handled",
    ),
)


class PhaseMachine:
    """The present phase of a broker."""

    _rows: Mapping[tuple[EpochPhase, EpochEvent], PhaseChange] = {
        (row.source, row.event): row for row in PHASE_CHANGES
    }

    def __init__(self) -> None:
        self.phase = EpochPhase.STEADY

    def apply(self, event: EpochEvent) -> None:
        """Change the phase (F1)."""
        row = self._rows.get((self.phase, event))
        if row is None:
            raise IllegalPhaseChange(f"{event.value!r} while {self.phase.value}")
        self.phase = row.target

    def permits(self, event: EpochEvent) -> bool:
        return (self.phase, event) in self._rows


def phase_table() -> str:
    """The table as the manual has it."""
    rows = [
        f"| {row.source.value} | {row.event.value} | {row.target.value} | {row.condition} |"
        f" {row.action} |"
        for row in PHASE_CHANGES
    ]
    head = ["| from | event | to | when | the broker |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*head, *rows])


def phase_diagram() -> str:
    """The table as a picture, for pages that can draw it."""
    rows = [
        f"    {row.source.value} --> {row.target.value}: {row.event.value}" for row in PHASE_CHANGES
    ]
    return "\n".join(["stateDiagram-v2", "    [*] --> steady", *rows])
