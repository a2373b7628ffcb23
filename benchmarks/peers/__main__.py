"""Measures the peers several times on every workload that they support.

python -m benchmarks.peers [mosquitto] [activemq] [--repeats 3]
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable

from benchmarks.forwarding_workloads import TOPICS, WORKLOADS, ForwardingWorkload
from benchmarks.peers import activemq, mosquitto

PEERS = {"mosquitto": mosquitto, "activemq": activemq}
WORKLOADS_BY_PEER = {"mosquitto": [TOPICS], "activemq": list(WORKLOADS)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *PEERS], help="default: all of them")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    for peer in arguments.names or PEERS:
        missing = PEERS[peer].is_installed()
        if missing is not None:
            print(f"{peer}: not measured, {missing}")
            continue
        for name in WORKLOADS_BY_PEER[peer]:
            measured = _repeated(PEERS[peer].published_per_s, WORKLOADS[name](), arguments.repeats)
            print(f"{peer}, {name}: {measured}", flush=True)
    return 0


def _repeated(
    published_per_s: Callable[[ForwardingWorkload], float],
    workload: ForwardingWorkload,
    repeats: int,
) -> str:
    figures = [published_per_s(workload) for _ in range(repeats)]
    each = ", ".join(f"{figure:,.0f}" for figure in figures)
    copies = workload.deliveries / len(workload.records)
    return (
        f"{statistics.median(figures):,.0f} published/s (median of {each});"
        f" {len(workload.filters):,} filters, {copies:.3g} matches for each record"
    )


if __name__ == "__main__":
    sys.exit(main())
