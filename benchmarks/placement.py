"""GRAPE's choice: its duration and the size of its input, by number of candidates.

The reference is the thesis's 70 ms at most for 63 candidates (5.2.2), for a walk of all candidates
from each.  The bar for 1,000 is a tenth of a second: the publisher's broker is blocked meanwhile.
CPU time of the shortest of several runs, because machines are shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from time import process_time

from benchmarks.report import Row
from godwit.overlay.topology import balanced_tree
from godwit.policies.placement.letters import TraceInformationAnswer, write
from godwit.policies.placement.selection import Entry, candidates, choose
from godwit.policies.placement.settings import Metric

SIZES = (63, 125, 250, 500, 1000)
SESSION = 100
PAPER_MS = {63: 70.0}
BARS_MS = {63: 70.0, 1000: 100.0}
REPEATS = 21


def entries(brokers: int, random: Random) -> list[Entry]:
    """A balanced tree; two thirds of its brokers have subscribers, half of those for a tenth."""
    shape = balanced_tree(brokers, fanout=2)
    found = []
    for name in shape.brokers:
        share = random.choice((0.0, 0.0, 0.1, 0.1, 0.5, 1.0))
        bits = sum(1 << place for place in range(SESSION) if random.random() < share)
        found.append(
            Entry(
                broker=name,
                address="192.0.2.1:7001",
                bits=bits.to_bytes((bits.bit_length() + 7) // 8, "little"),
                deliveries=bits.bit_count() * random.randint(1, 20),
                input_queue_s=random.expovariate(1000),
                matching_s=random.expovariate(1000),
                to_clients_s=random.expovariate(1000),
                to_neighbours_s={n: random.expovariate(1000) for n in shape.neighbours(name)},
            )
        )
    return found


def rows(*, quick: bool) -> Iterator[list[Row]]:
    for brokers in SIZES[:2] if quick else SIZES:
        known = entries(brokers, Random(brokers))
        yield [
            _choosing(known, Metric.LOAD),
            _choosing(known, Metric.DELAY),
            _letter(known),
        ]


def _choosing(known: list[Entry], primary: Metric) -> Row:
    taken_ms = []
    for _ in range(REPEATS):
        start = process_time()
        choose(candidates(known, known[-1].broker), primary, 75.0)
        taken_ms.append((process_time() - start) * 1000)
    size, shortest = len(known), min(taken_ms)
    return Row(
        measure="choose, ms",
        workload=f"GRAPE {primary.value} 75%",
        size=size,
        reference=PAPER_MS.get(size),
        measured=shortest,
        compared=shortest,
        bar=BARS_MS.get(size),
        is_at_most=True,
    )


def _letter(known: list[Entry]) -> Row:
    size = len(write(TraceInformationAnswer("publisher", 1, 0.0, tuple(known)))) / len(known)
    return Row(
        measure="bytes per candidate",
        workload="GRAPE",
        size=len(known),
        reference=None,
        measured=size,
        compared=size,
        bar=200.0,
        is_at_most=True,
    )
