"""What load balancing costs brokers that are at rest: PIE and detection, processor time.

    python -m benchmarks.balancing_rest [--seconds 60] [--edges 8]

A cluster-head and edge brokers as processes, without clients.  Two such networks run side by side,
one with `[balancing]` and the settings of the thesis, one without.  The cost is the difference of
the processor time that a broker needs, as a share of the time that passes.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics

import msgspec
import uvloop
from rich.console import Console

from benchmarks.usage import processor_s
from godwit.overlay.topology import star
from godwit.policies.offload.settings import BalancingSettings
from godwit.runtime.processes import Processes
from godwit.runtime.settings import NetworkSettings, network_of

#: Loads are known, and Adaptive PIE has settled.
WARM_UP_S = 35.0


def network(edges: int, balancing: BalancingSettings | None) -> NetworkSettings:
    return msgspec.structs.replace(network_of(star(edges), http_port=0), balancing=balancing)


def used_s(running: Processes) -> list[float]:
    return [processor_s(running.pid(broker.id)) for broker in running.network.broker]


async def shares(seconds: float, edges: int, *, pie: str) -> list[list[float]]:
    """The share of its time that each broker needs: without load balancing, and with it."""
    settings = BalancingSettings(pie=pie)
    async with (
        Processes(network(edges, None)) as without,
        Processes(network(edges, settings)) as balanced,
    ):
        await asyncio.sleep(WARM_UP_S)
        before = [used_s(without), used_s(balanced)]
        await asyncio.sleep(seconds)
        after = [used_s(without), used_s(balanced)]
    return [
        [(late - early) / seconds for early, late in zip(*pair, strict=True)]
        for pair in zip(before, after, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--edges", type=int, default=8)
    given = parser.parse_args()
    console = Console()
    for pie in ("plain", "adaptive"):
        without, balanced = uvloop.run(shares(given.seconds, given.edges, pie=pie))
        costs = [b - a for a, b in zip(without, balanced, strict=True)]
        console.print(
            f"{pie} PIE, {given.edges} edge brokers: head {costs[0]:.3%} of its time, edge brokers "
            f"{statistics.median(costs[1:]):.3%} (median), {max(costs[1:]):.3%} (most); "
            f"without load balancing all need {statistics.median(without):.3%}",
            highlight=False,
        )


if __name__ == "__main__":
    main()
