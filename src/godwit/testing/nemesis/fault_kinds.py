"""What can go wrong in a run, and how often at least in thirty seconds of it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class FaultKind(Enum):
    """Each value is the word for `--kinds` and for the story of a run."""

    KILL = "kill"
    """SIGKILL of a broker, which starts again at once on the same port."""

    KILL_LONG = "kill-long"
    """... which starts again when its neighbours have given it up."""

    KILL_TWO = "kill-two"
    """Two brokers at once."""

    STOP = "stop"
    """SIGSTOP of a broker, shorter than `link_s`; perhaps longer than its peers put up with."""

    STOP_LONG = "stop-long"
    """... longer than every time-out."""

    CUT_ONE_WAY = "cut-one-way"
    """What one end of a link sends does not arrive."""

    CUT = "cut"
    """Nothing passes a link."""

    SLOW = "slow"
    """A link takes long for everything."""

    DROP = "drop"
    """The connections of a link break."""

    CONNECTIONS = "connections"
    """The connections of all clients of a broker break, or nothing passes them for a while."""

    CLOCK = "clock"
    """The clock of a broker, or of the machine with the clients, is set back or forth."""

    CLIENT = "client"
    """A client crashes and comes back under its name."""

    SECOND = "second"
    """A second client of the same name comes, which does not ask to take over."""

    TAKE_OVER = "take-over"
    """... which does."""

    EXTRA_LINK = "extra-link"
    """Another broker joins with one link too many, which would close a cycle, and leaves."""

    DISK_FULL = "disk-full"
    """The files of the data cluster do not grow."""

    COORDINATOR = "coordinator"
    """SIGKILL of the coordinator in the middle of a plan, and it starts again."""

    DATACLUSTER = "datacluster"
    """SIGKILL of the data cluster, Spark included, and it starts again."""


#: Of runs with services; all others are of runs without.
SERVICE_KINDS = (FaultKind.DISK_FULL, FaultKind.COORDINATOR, FaultKind.DATACLUSTER)
NETWORK_KINDS = tuple(kind for kind in FaultKind if kind not in SERVICE_KINDS)


class FaultRule(NamedTuple):
    """How a kind of fault is drawn."""

    per_30_s: int
    lasts_s: tuple[float, float]
    """For so long, before what was broken is mended."""


#: Runs in which everything is back in time: nothing may be lost, and nothing needs to be told.
PATIENT = {
    FaultKind.KILL: FaultRule(4, (0.0, 1.0)),
    FaultKind.KILL_TWO: FaultRule(3, (0.0, 1.0)),
    FaultKind.STOP: FaultRule(4, (0.1, 3.0)),
    FaultKind.CUT_ONE_WAY: FaultRule(3, (0.3, 3.0)),
    FaultKind.CUT: FaultRule(3, (0.3, 3.0)),
    FaultKind.SLOW: FaultRule(3, (1.0, 3.0)),
    FaultKind.DROP: FaultRule(5, (0.0, 0.0)),
    FaultKind.CONNECTIONS: FaultRule(4, (0.0, 1.0)),
    FaultKind.CLOCK: FaultRule(4, (0.0, 0.0)),
    FaultKind.CLIENT: FaultRule(4, (0.0, 2.0)),
    FaultKind.SECOND: FaultRule(4, (0.0, 0.0)),
    FaultKind.TAKE_OVER: FaultRule(4, (0.0, 0.0)),
    FaultKind.EXTRA_LINK: FaultRule(3, (1.0, 3.0)),
}
#: Runs in which brokers and clients are given up: what is lost must be told.
IMPATIENT = {
    FaultKind.KILL: FaultRule(2, (0.0, 0.3)),
    FaultKind.KILL_LONG: FaultRule(6, (2.0, 3.5)),
    FaultKind.KILL_TWO: FaultRule(3, (0.0, 3.0)),
    FaultKind.STOP: FaultRule(2, (0.1, 1.0)),
    FaultKind.STOP_LONG: FaultRule(6, (3.2, 4.5)),
    FaultKind.CUT_ONE_WAY: FaultRule(3, (0.3, 3.0)),
    FaultKind.CUT: FaultRule(3, (0.3, 3.0)),
    FaultKind.SLOW: FaultRule(3, (1.0, 2.0)),
    FaultKind.DROP: FaultRule(3, (0.0, 0.0)),
    FaultKind.CONNECTIONS: FaultRule(3, (0.0, 2.0)),
    FaultKind.CLOCK: FaultRule(3, (0.0, 0.0)),
    FaultKind.CLIENT: FaultRule(4, (0.0, 2.0)),
    FaultKind.SECOND: FaultRule(4, (0.0, 0.0)),
    FaultKind.TAKE_OVER: FaultRule(4, (0.0, 0.0)),
    FaultKind.EXTRA_LINK: FaultRule(3, (1.0, 3.0)),
}
