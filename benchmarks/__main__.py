"""Runs benchmarks by name, shows progress, and prints one table.

python -m benchmarks [NAME ...] [--quick]
"""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from benchmarks import (
    allocation,
    channels,
    forwarding,
    ingest,
    matching,
    mesh,
    offload,
    placement,
    planning,
    profiling,
    simulator,
    traces,
)
from benchmarks.report import Row, as_table

BENCHMARKS = {
    "matching": matching.rows,
    "simulator": simulator.rows,
    "forwarding": forwarding.rows,
    "traces": traces.rows,
    "placement": placement.rows,
    "offload": offload.rows,
    "planning": planning.rows,
    "profiling": profiling.rows,
    "allocation": allocation.rows,
    "mesh": mesh.rows,
    "ingest": ingest.rows,
    "channels": channels.rows,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *BENCHMARKS], help="default: all of them")
    parser.add_argument("--quick", action="store_true", help="small sizes, about a minute")
    arguments = parser.parse_args()
    console = Console(width=100)  # Also if the output is a file.
    results: list[Row] = []
    for name in arguments.names or BENCHMARKS:
        for measured in BENCHMARKS[name](quick=arguments.quick):
            results += measured
            for row in measured:
                console.print(f"{row.workload} {row.size:>9,} {row.measure}", style="dim")
    console.print(as_table("Benchmarks", results))
    return 1 if any(row.holds is False for row in results) else 0


if __name__ == "__main__":
    sys.exit(main())
