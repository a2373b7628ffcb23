"""The common setup of the load-balancing experiments, in words and as cases."""

from __future__ import annotations

from collections.abc import Iterable

from godwit.experiments.balance.claims import THESIS
from godwit.lab.declaration import Case, Parameter

#: Experiments with the same cases, such as the star with all settings of table 7.1, run them once.
SHARED = "balance"

SETUP = """\
Clients are those of the thesis (7.1.1): publishers of one stock each, 30 quotes a minute;
subscriptions of the six templates LS3; a share of them matches nothing.  All publishers are at the
(first) head, and all subscribers join one edge broker, at random times within the first minutes.
Later half of the publishers double their rate.  All settings are those of table 7.1 unless the
case says otherwise.

| platform | publishers | subscribers (matching nothing) | join within | rate steps up at |
| --- | --- | --- | --- | --- |
| *simulation* | 40 | 2,000 (25%) | 1,010 s | 3,000 s; with clusters 8,000 s |
| *quarter* of the simulation | 40 | 500 (25%) | 1,010 s | 3,000 s; with clusters 8,000 s |
| *cluster*, heterogeneous | 60 | 600 (50%) | 600 s | 1,500 s |
| *homogeneous* cluster | 60 | 600 (50%) | 600 s | 1,500 s |
| *planetlab* | 15 | 120 (50%) | 500 s | 1,000 s |
| *small*, *small-alike* | 10, twice as fast | 150 (25%) | 300 s | 750 s; with clusters 1,200 s |

All platforms are simulated here.  CPU, memory and bandwidth of *simulation* are those of tables 7.2
and 7.4, delay factors and bandwidth of *cluster* as well; *small* is the simulation with slower
brokers for the scale *small*, and *small-alike* has equal ones.  *quarter* has a quarter of the
simulation's subscribers: edge brokers have a quarter of the bandwidth and memory, and matching
takes four times as long for each subscription, so they are as busy.  The scale *medium* has it
instead of the simulation, *small-alike* instead of the homogeneous cluster, and fewer cases.

Chosen where the thesis is silent: the matching delay of a CPU of 1,000 "MHz" is 0.1 ms plus 2 µs
for each subscription in the simulation; on the clusters it is 10 µs plus 4 µs, and a delay factor
(B0 has 0) is what is added: with 1 matching takes twice as long. A quote has 235 bytes in the
simulation and, as a serialised object, 3,000 on the other platforms (we divide their bandwidth and
memory by the ratio). These let B1 be overloaded for a while in the simulation and not elsewhere,
and the brokers use a third to a half of their bandwidth when the loads have converged. With
matching ten times as slow on the heterogeneous cluster, our first choice, Ir weighs as much as Or
there, and it never settles: input sessions undo output sessions (70 sessions; B1 to B4 differ by
0.13 to 0.23 in Ir and by 0.14 to 0.17 in Or). The lines of the homogeneous cluster carry 8 Mbps
each, those of PlanetLab a tenth of the heterogeneous cluster's. CPU and bandwidth are disturbed:
every 10 s each broker of the cluster gets another factor, with a standard deviation of 3%; of
PlanetLab with 5%, and its links take 50 ms on average.

The oracle checks every delivery, on the platform *simulation* those of one in five publications,
and on both clusters those of one in three; a violation is an error.
"""


def cases(
    platforms: Iterable[str],
    *,
    overlay: str = "star",
    joins: str = "one",
    algorithm: str = THESIS,
    settings: str = "default",
    **more: Parameter,
) -> list[Case]:
    """A case for each platform."""
    return [
        {
            "platform": platform, "overlay": overlay, "joins": joins, "algorithm": algorithm,
            "settings": settings, **more,
        }
        for platform in platforms
    ]  # fmt: skip
