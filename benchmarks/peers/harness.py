"""Measures a broker from outside: records per second that it takes in and delivers.

    publisher ──records──▶ broker ──deliveries──▶ subscriber        three processes, loopback only

The clock runs from before the first record is sent to the last delivery received.  One connection
holds all subscriptions.  A measurement is a series of rounds on the same connections, each with the
first records of the workload, as many as take about ROUND_AIM_S.  The early rounds find that
number, and warm up a broker that compiles while it runs: cold, ActiveMQ is 2 to 20 times slower.
The result is the median of the last ROUNDS_COUNTED.  With fewer cores than processes, it includes
the processor time of the clients.

Invariant H1: in every round each subscription gets the records that match it, in the order in which
they were published, and no others.  Otherwise a PeerError is raised.

Read next: clients.py, processes.py, and a peer, such as mosquitto.py.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import Connection

from benchmarks.forwarding_workloads import ForwardingWorkload
from benchmarks.peers.clients import Delivery, Wire, publish, receive
from benchmarks.peers.processes import PeerError, answer, client

ROUNDS_COUNTED = 3
ROUND_AIM_S = 2.5
#: A shorter round does not count, unless it has all records.
ROUND_MIN_S = 1.0
FIRST_ROUND_RECORDS = 200
GROWTH_MAX = 10.0


def measure(
    wire: Wire, workload: ForwardingWorkload, port: int, *, warm_up_s: float = 0.0
) -> float:
    """Records per second through the broker that listens on `port`, after `warm_up_s` of work."""
    frames = [wire.encode(record) for record in workload.records]
    with (
        client(receive, wire, port) as subscriber,
        client(publish, wire, port, frames) as publisher,
    ):
        return median_per_s(
            lambda count: _round_s(publisher, subscriber, workload.matches[:count]),
            records=len(frames),
            warm_up_s=warm_up_s,
        )


def median_per_s(round_s: Callable[[int], float], *, records: int, warm_up_s: float = 0.0) -> float:
    """Records per second; `round_s` plays a round with so many records and returns its seconds."""
    count = min(FIRST_ROUND_RECORDS, records)
    worked_s = 0.0
    counted: list[float] = []
    while len(counted) < ROUNDS_COUNTED:
        taken_s = round_s(count)
        is_long = taken_s >= ROUND_MIN_S or count == records
        if is_long and worked_s >= warm_up_s:
            counted.append(count / taken_s)
        worked_s += taken_s
        growth = min(ROUND_AIM_S / taken_s, GROWTH_MAX)
        count = min(max(int(count * growth), 1), records)
    return statistics.median(counted)


def _round_s(
    publisher: Connection, subscriber: Connection, matches: Sequence[Sequence[int]]
) -> float:
    """Seconds for the first records, as many as there are `matches`."""
    due = sum(map(len, matches))
    assert due, "nothing to wait for"
    subscriber.send(due)
    publisher.send(len(matches))
    start_s: float = answer(publisher)
    end_s, received = answer(subscriber)
    check(received, matches)
    taken_s: float = end_s - start_s
    return taken_s


def check(received: Iterable[Delivery], matches: Sequence[Sequence[int]]) -> None:
    """H1.  `matches` has the numbers of the filters for each record."""
    due: dict[int, list[int]] = defaultdict(list)
    for record, filters in enumerate(matches):
        for filter in filters:
            due[filter].append(record)
    came: dict[int, list[int]] = defaultdict(list)
    for filter, record in received:
        came[filter].append(record)
    for filter in sorted(due.keys() | came.keys()):
        if due[filter] != came[filter]:
            raise PeerError(
                f"{_total(due)} deliveries were due, {_total(came)} arrived; for filter {filter}"
                f" records {_few(due[filter])} were due, {_few(came[filter])} arrived"
            )


def _total(records: dict[int, list[int]]) -> int:
    return sum(map(len, records.values()))


def _few(records: list[int]) -> str:
    return f"{records[:5]} ({len(records)} in all)"
