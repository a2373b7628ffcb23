"""Publications per second that one live broker accepts, matches and delivers, and its peers.

    python -m benchmarks forwarding [--quick]

A broker process, a publisher process and a subscriber process on loopback; the subscriber holds all
filters on one connection, and every delivery is checked.  Workloads: forwarding_workloads.py.  The
reference is a peer measured in the same run, between two measurements of Godwit: ActiveMQ's
selectors where content decides, mosquitto's topics where equality does.  Peers come from Debian's
packages; without them there is no ratio, as the row says.  ActiveMQ is measured twice: warmed up by
eight seconds of the same work, and in its first seconds, before Java has compiled hot code.  Both
are compared with the bar.

Clients are raw on both sides (peers/clients.py, forwarding_raw.py); "with the client library" is
what an application gets.  ActiveMQ sends a copy for each matching filter, Godwit one for each
client: on W1 that is 39 to 1, and part of the difference.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import NamedTuple

from benchmarks import forwarding_godwit
from benchmarks.forwarding_workloads import TOPICS, WORKLOADS, ForwardingWorkload
from benchmarks.peers import activemq, mosquitto
from benchmarks.report import Row


class Peer(NamedTuple):
    name: str
    is_installed: Callable[[], str | None]
    published_per_s: dict[str, Callable[[ForwardingWorkload], float]]
    """Ways to measure it, by label."""

    bar: float
    """The ratio that Godwit must reach."""


def _activemq_at_first(workload: ForwardingWorkload) -> float:
    return activemq.published_per_s(workload, warm_up_s=0.0)


ACTIVEMQ = Peer(
    "ActiveMQ",
    activemq.is_installed,
    {"ActiveMQ warm": activemq.published_per_s, "ActiveMQ at first": _activemq_at_first},
    50.0,
)
MOSQUITTO = Peer("mosquitto", mosquitto.is_installed, {"mosquitto": mosquitto.published_per_s}, 0.5)
PEERS = {"W1": ACTIVEMQ, "equality and range": ACTIVEMQ, TOPICS: MOSQUITTO}


def rows(*, quick: bool) -> Iterator[list[Row]]:
    for name, make in WORKLOADS.items():
        yield list(_measured(make(), PEERS[name], quick=quick))


def _measured(workload: ForwardingWorkload, peer: Peer, *, quick: bool) -> Iterator[Row]:
    size = len(workload.filters)
    ours = [forwarding_godwit.published_per_s(workload)]
    missing = peer.is_installed()
    if missing is None:
        theirs = {name: measure(workload) for name, measure in peer.published_per_s.items()}
        ours.append(forwarding_godwit.published_per_s(workload))
        measured = statistics.mean(ours)
        for name, reference in theirs.items():
            ratio = measured / reference
            yield Row(
                f"published/s; {name}", workload.name, size, reference, measured, ratio, peer.bar
            )
    else:
        measure = f"published/s ({peer.name}: {missing})"
        yield Row(measure, workload.name, size, None, ours[0], ours[0])
    if not quick:
        library = forwarding_godwit.published_per_s(workload, raw=False)
        yield Row("... with the client library", workload.name, size, None, library, library)
