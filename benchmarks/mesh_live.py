"""Twelve live brokers as a tree and as a mesh: links, delay, messages, deliveries.

    python -m benchmarks.mesh_live
    python -m benchmarks.mesh_live --rounds 1 --filters 50

As clusters_live.py: stock quotes, filters dealt to one subscriber at each broker, a publisher at
each broker; both networks run at the same time and are measured in turns.  Before that, both are
given records for a while, in which the brokers of the mesh open soft links.

Each record must reach exactly the subscribers with a matching filter.  The exit code is 1 if one
does not, or if links, messages or the median delay are not lower in the mesh.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from statistics import mean, median

import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.clusters_live import LiveNetwork, check, expected, forward, live, pace
from benchmarks.forwarding_workloads import stock_quotes
from benchmarks.moving import quantile
from godwit.overlay.mesh.mesh_settings import MeshSettings
from godwit.overlay.topology import balanced_tree
from godwit.runtime.settings import network_of

SETTINGS = MeshSettings(period_s=2.0)
#: Time in which soft links are opened: a few periods.
WARM_UP_S = 10.0


class Figures:
    """What was measured of one network."""

    def __init__(self, network: LiveNetwork) -> None:
        self.network = network
        self.deliveries_per_s: list[float] = []
        self.hops: Counter[int] = Counter()

    @property
    def links(self) -> float:
        return sum(hops * count for hops, count in self.hops.items()) / self.hops.total()

    @property
    def messages(self) -> float:
        slices = self.network.slices
        return sum(each.handled for each in slices) / sum(each.published for each in slices)

    @property
    def published_per_busy_s(self) -> float:
        slices = self.network.slices
        return sum(each.published for each in slices) / sum(each.busy_s for each in slices)

    def delay_ms(self, share: float) -> float:
        """The median of all turns."""
        return 1e3 * median(quantile(delays, share) for delays in self.network.delays_s)


async def measure(arguments: argparse.Namespace, console: Console) -> bool:
    rounds, per_round = arguments.rounds, arguments.records
    paced, warm = round(arguments.per_s * arguments.paced_s), round(arguments.per_s * WARM_UP_S)
    work = stock_quotes(filters=arguments.filters, records=warm + rounds * (per_round + paced))
    due = expected(work, arguments.brokers)
    topology = balanced_tree(arguments.brokers, fanout=2)
    settings = [network_of(topology, mesh=each, http_port=0) for each in (None, SETTINGS)]
    async with live(settings[0], work) as tree, live(settings[1], work) as mesh:
        found = [Figures(tree), Figures(mesh)]
        for each in found:
            await pace(each.network, work, range(warm), arguments.per_s)
            await check(each.network, due, range(warm))
            each.network.delays_s.clear()
        for turn in range(rounds):
            first = warm + turn * (per_round + paced)
            for each in found if turn % 2 else found[::-1]:
                numbers = range(first, first + per_round)
                start_s = time.monotonic()
                await forward(each.network, work, numbers)
                await check(each.network, due, numbers)
                deliveries = sum(due[number] for number in numbers)
                each.deliveries_per_s.append(deliveries / (time.monotonic() - start_s))
            for each in found if turn % 2 else found[::-1]:
                numbers = range(first + per_round, first + per_round + paced)
                before = each.network.hops.copy()
                await pace(each.network, work, numbers, arguments.per_s)
                await check(each.network, due, numbers)
                each.hops += each.network.hops - before
        return _report(found[0], found[1], arguments, console)


def _report(tree: Figures, mesh: Figures, arguments: argparse.Namespace, console: Console) -> bool:
    rows = (
        ("links of a delivery, mean", tree.links, mesh.links),
        ("publications handled for each published", tree.messages, mesh.messages),
        ("delay, p50, ms", tree.delay_ms(0.5), mesh.delay_ms(0.5)),
        ("delay, p99, ms", tree.delay_ms(0.99), mesh.delay_ms(0.99)),
        ("deliveries/s", mean(tree.deliveries_per_s), mean(mesh.deliveries_per_s)),
        (
            "published in a second of brokers' processor time",
            tree.published_per_busy_s,
            mesh.published_per_busy_s,
        ),
    )
    title = f"{arguments.brokers} brokers, load average {os.getloadavg()[0]:.1f}"
    table = Table("", "tree", "mesh", "mesh / tree", title=title)
    for name, of_tree, of_mesh in rows:
        table.add_row(name, f"{of_tree:,.2f}", f"{of_mesh:,.2f}", f"{of_mesh / of_tree:.2f}")
    console.print(table)
    return all(of_mesh < of_tree for _, of_tree, of_mesh in rows[:3])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--brokers", type=int, default=12)
    parser.add_argument("--filters", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=3_000, help="as fast as they are taken")
    parser.add_argument("--per-s", type=float, default=100.0, help="for delays, in all")
    parser.add_argument("--paced-s", type=float, default=10.0)
    arguments = parser.parse_args()
    return 0 if uvloop.run(measure(arguments, Console(width=100))) else 1


if __name__ == "__main__":
    sys.exit(main())
