"""Two checkouts of Godwit against each other: is the change slower?

    python -m benchmarks.versus OTHER_CHECKOUT [PART ...] [--slices 40]

Each part runs in two processes, one with the code of each checkout, which work in turns, a slice of
a second or less each.  The speed of a shared machine changes from second to second; two slices that
follow each other see the same machine.  The ratio is this checkout's speed over the other's: the
median of the ratios of the pairs, with the quartiles beside it.

    W1, topics    one broker process, raw clients: published/s, wall time
    matching      10,000 stock filters: matches/s of processor time
    simulator     GS1, without the oracle: messages/s of processor time
    ingest        records/s of processor time of all processes, Java included; few, long slices

The exit code is 1 if a ratio is below its bar.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent.parent

#: Answers each line of the standard input with the speed of one more slice.
SERVE = """
import sys
def prepared():
    print("prepared", flush=True)
    sys.stdin.readline()
def serve(speed):
    print("ready", flush=True)
    for _ in sys.stdin:
        print(speed(), flush=True)
"""

FORWARDING = """
from benchmarks import forwarding_godwit
from benchmarks.forwarding_workloads import WORKLOADS
def measure(round_s, *, records):
    count = min(records, 20_000)
    round_s(count)
    serve(lambda: count / round_s(count))
    return 0.0
forwarding_godwit.median_per_s = measure
workload = WORKLOADS[{name!r}]()
prepared()  # Raw clients send no heartbeats: they must not wait for the other checkout.
forwarding_godwit.published_per_s(workload)
"""

MATCHING = """
import time
from benchmarks import matching
workload = matching.stock_quotes()
index = workload.index(10_000)
records = [workload.record() for _ in range(1_024)]
def speed():
    start = time.process_time()
    for _ in range(20):
        for record in records:
            len(index.match(record))
    return 20 * len(records) / (time.process_time() - start)
prepared()
speed()
serve(speed)
"""

SIMULATOR = """
import time
from benchmarks.simulator import SEED, Statistics, StockScenario
counted = Statistics()
scenario = StockScenario(duration_s=3_600.0)
simulator = scenario.build(seed=SEED, observers=(counted,), check=False)
until_s = scenario.joining_s
def speed():
    global until_s
    until_s += 2.0
    handled, start = counted.handled, time.process_time()
    simulator.run(until_s=until_s)
    return (counted.handled - handled) / (time.process_time() - start)
simulator.run(until_s=until_s)
prepared()
speed()
serve(speed)
"""

INGEST = """
from benchmarks import ingest
def speed():
    rows = [row for rows in ingest.rows(quick=True) for row in rows]
    return next(row.measured for row in rows if "second of a core" in row.measure)
if __name__ == "__main__":
    prepared()
    serve(speed)
"""


class Part(NamedTuple):
    code: str
    bar: float
    slices_max: int = 1_000


PARTS = {
    "W1": Part(FORWARDING.format(name="W1"), 0.97),
    "topics": Part(FORWARDING.format(name="topics"), 0.97),
    "matching": Part(MATCHING, 0.97),
    "simulator": Part(SIMULATOR, 1.0),
    "ingest": Part(INGEST, 0.97, slices_max=12),
}


class Contestant:
    """A process with the code of one checkout."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def speed(self) -> float:
        self.send()
        return float(self.answer())

    def send(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit("a checkout cannot be measured; its error is above")
        return line


@contextmanager
def contestant(checkout: Path, part: Part) -> Iterator[Contestant]:
    environment = {**os.environ, "PYTHONPATH": f"{checkout / 'src'}:{checkout}"}
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", SERVE + part.code],
        cwd=checkout,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Contestant(process)
        assert process.stdin is not None
        process.stdin.close()


def pairs(part: Part, other: Path, slices: int) -> list[tuple[float, float]]:
    """Speeds of this checkout and the other, in turns."""
    found: list[tuple[float, float]] = []
    with ExitStack() as stack:
        ours, theirs = (
            stack.enter_context(contestant(checkout, part)) for checkout in (HERE, other)
        )
        for each in (ours, theirs):
            each.answer()  # It has prepared its work.
        for each in (ours, theirs):
            each.send()
        for each in (ours, theirs):
            each.answer()  # It is ready to be measured.
        for number in range(min(slices, part.slices_max)):
            if number % 2:
                this = ours.speed()
                found.append((this, theirs.speed()))
            else:
                that = theirs.speed()
                found.append((ours.speed(), that))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versus", description=__doc__)
    parser.add_argument("other", type=Path, help="checkout to compare with")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="default: all of them")
    parser.add_argument("--slices", type=int, default=40)
    arguments = parser.parse_args()
    table = Table("part", "other", "this", "ratio", "quartiles", "bar", "verdict")
    is_slower = False
    for name in arguments.parts or PARTS:
        part = PARTS[name]
        found = pairs(part, arguments.other.resolve(), arguments.slices)
        low, ratio, high = statistics.quantiles([this / other for this, other in found], n=4)
        holds = ratio >= part.bar
        is_slower |= not holds
        these, others = (statistics.median(column) for column in zip(*found, strict=True))
        figures = (f"{others:,.0f}", f"{these:,.0f}", f"{ratio:.3f}", f"{low:.3f} to {high:.3f}")
        table.add_row(name, *figures, f">= {part.bar}", "held" if holds else "MISSED")
    Console(width=100).print(table)
    return 1 if is_slower else 0


if __name__ == "__main__":
    sys.exit(main())
