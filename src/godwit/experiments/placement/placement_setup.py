"""The common setup of the experiments about publisher placement: GS1 of the thesis."""

from __future__ import annotations

from godwit.experiments.placement.claims import POLICIES
from godwit.lab.declaration import Case

SETUP = """\
Setup GS1 of the thesis (7.2.1): a balanced tree; each publisher, of one stock, sits
at a random broker, and its subscribers sit at X brokers drawn for it.  Four policies: *static*
(no moves), POP, GRAPE load 100%, GRAPE delay 100%.

| | 63 brokers (the thesis's PlanetLab) | 127 brokers (its cluster) | 31 brokers (scale small) |
| --- | --- | --- | --- |
| publishers | 20 | 30 | 6 |
| quotes per minute, of each | 10 to 40 | 30 to 300 | 60 to 180 |
| subscribers of each | 80 | 200 | 40 |
| P_threshold = G_threshold | 50 | 100 | 40 |
| simulated | 18 minutes | 12 minutes | 5 minutes |
| measured | the last 3 minutes | the last 2 minutes | the last minute |

POP traces at most half of P_threshold in a minute.  After a move a publisher is not moved for a
minute; the thesis has no such pause.  Brokers and links have the simulator's defaults (0.1 ms and
1 µs for each subscription to match a message, 100 Mbit/s, 0.5 ms between neighbours): no broker is
near overload, and the differences between the thesis's machines are not modelled.

The oracle checks every delivery of every run; a violation is an error.  Moves lose nothing.
"""


def cases(mix: str, *swept: tuple[int, int, tuple[int, ...]]) -> list[Case]:
    """Trees, each with its number of brokers, its fan-out, and its values of X."""
    return [
        {"brokers": brokers, "fanout": fanout, "mix": mix, "x": x, "policy": policy}
        for brokers, fanout, places in swept
        for x in places
        for policy in POLICIES
    ]
