"""Two checkouts of Godwit against each other: is the change slower?

    python -m benchmarks.versus OTHER_CHECKOUT [PART ...] [--rounds 5]

Each part runs in a process of its own with the code of one checkout, in turns (A B, B A, A B), so
that a machine whose speed changes treats both alike.  The ratio is this checkout's speed over the
other's: the median of the ratios of the rounds, with the smallest and the largest beside it.

    forwarding W1, topics    one broker process, raw clients: published/s, wall time
    matching W1              10,000 stock filters: matches/s of processor time
    simulator                GS1, without the oracle: messages/s of processor time
    ingest                   records/s of processor time of all processes, Java included

The exit code is 1 if a ratio is below its bar.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent.parent

FORWARDING = """
from benchmarks.forwarding_godwit import published_per_s
from benchmarks.forwarding_workloads import WORKLOADS
print(published_per_s(WORKLOADS[{name!r}]()))
"""

MATCHING = """
import time
from benchmarks import matching
workload = matching.stock_quotes()
index = workload.index(10_000)
records = [workload.record() for _ in range(1_024)]
speeds = []
for _ in range(7):
    start = time.process_time()
    for _ in range(5):
        for record in records:
            len(index.match(record))
    speeds.append(5 * len(records) / (time.process_time() - start))
print(sorted(speeds)[len(speeds) // 2])
"""

SIMULATOR = """
import time
from benchmarks.simulator import SEED, Statistics, StockScenario
counted = Statistics()
scenario = StockScenario(duration_s=80.0)
simulator = scenario.build(seed=SEED, observers=(counted,), check=False)
simulator.run(until_s=scenario.joining_s)
handled, start = counted.handled, time.process_time()
simulator.run(until_s=scenario.duration_s)
print((counted.handled - handled) / (time.process_time() - start))
"""

INGEST = """
from benchmarks import ingest
rows = [row for rows in ingest.rows(quick=True) for row in rows]
print(next(row.measured for row in rows if "second of a core" in row.measure))
"""


class Part(NamedTuple):
    code: str
    bar: float


PARTS = {
    "W1": Part(FORWARDING.format(name="W1"), 0.97),
    "topics": Part(FORWARDING.format(name="topics"), 0.97),
    "matching": Part(MATCHING, 0.97),
    "simulator": Part(SIMULATOR, 1.0),
    "ingest": Part(INGEST, 0.97),
}


def speed(checkout: Path, code: str) -> float:
    environment = {**os.environ, "PYTHONPATH": f"{checkout / 'src'}:{checkout}"}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"in {checkout}:\n{done.stderr[-2_000:]}")
    return float(done.stdout.split()[-1])


def rounds_of(part: Part, other: Path, rounds: int, console: Console) -> list[tuple[float, float]]:
    """Speeds of this checkout and the other, for each round."""
    found: list[tuple[float, float]] = []
    for number in range(rounds):
        order = (HERE, other) if number % 2 else (other, HERE)
        measured = {checkout: speed(checkout, part.code) for checkout in order}
        found.append((measured[HERE], measured[other]))
        console.print(f"  {measured[other]:,.0f} -> {measured[HERE]:,.0f}", style="dim")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versus", description=__doc__)
    parser.add_argument("other", type=Path, help="checkout to compare with")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="default: all of them")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    console = Console(width=100)
    table = Table("part", "other", "this", "ratio", "smallest", "largest", "bar", "verdict")
    is_slower = False
    for name in arguments.parts or PARTS:
        part = PARTS[name]
        console.print(name)
        found = rounds_of(part, arguments.other.resolve(), arguments.rounds, console)
        ratios = sorted(this / other for this, other in found)
        ratio = statistics.median(ratios)
        holds = ratio >= part.bar
        is_slower |= not holds
        these, others = (statistics.median(column) for column in zip(*found, strict=True))
        table.add_row(
            name, f"{others:,.0f}", f"{these:,.0f}", f"{ratio:.3f}", f"{ratios[0]:.3f}",
            f"{ratios[-1]:.3f}", f">= {part.bar}", "held" if holds else "MISSED",
        )  # fmt: skip
    console.print(table)
    return 1 if is_slower else 0


if __name__ == "__main__":
    sys.exit(main())
