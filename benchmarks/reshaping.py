"""What a change of the network's shape costs: 127 brokers, 6,000 subscribers, GS1 traffic.

    python -m benchmarks.reshaping            # some minutes
    python -m benchmarks.reshaping --quick    # 31 brokers, 600 subscribers

A simulated balanced tree changes to a random other tree of the same brokers while 30 publishers
publish (the thesis's setup GS1).  Printed are the routing messages of the change for each entry in
the tables of the new shape, deliveries and their delay before and during the change, and the
longest time without any delivery; the exit code is 1 if a delivery was lost, doubled or out of
order, or the messages are more than the bar.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random
from statistics import mean

from rich.console import Console

from godwit.broker.stimuli import Neighbour, Received
from godwit.content.messages import Publication
from godwit.demos.stocks.stock_scenario import StockScenario
from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.simulation.simulated_broker import SimulatedBroker
from godwit.simulation.simulated_reshaping import SimulatedReshaping, reshape
from godwit.testing.random_reshaping import shuffled_tree

MESSAGES_PER_ENTRY_MAX = 3.0
JOINING_S = 60.0
CHANGE_S = 80.0
END_S = 110.0


class Watch(Observer):
    """Routing messages between brokers, and deliveries with their delays."""

    def __init__(self) -> None:
        self.routing: list[float] = []
        self.deliveries: list[tuple[float, float, int]] = []
        """Time, delay, and how many clients."""

    def on_handled(self, broker: str, received: Received, done_s: float) -> None:
        is_routing = not isinstance(received.message, Publication)
        if is_routing and isinstance(received.last_hop, Neighbour):
            self.routing.append(done_s)

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        self.deliveries.append((now_s, now_s - publication.accepted_s, len(clients)))

    def between(self, from_s: float, until_s: float) -> list[tuple[float, float, int]]:
        return [each for each in self.deliveries if from_s <= each[0] < until_s]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reshaping", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    scenario = StockScenario(joining_s=JOINING_S, duration_s=END_S)
    if arguments.quick:
        scenario = StockScenario(
            brokers=31, subscribers_per_publisher=20, joining_s=JOINING_S, duration_s=END_S
        )
    watch, oracle = Watch(), Oracle(settle_s=20.0)
    simulator = scenario.build(seed=arguments.seed, observers=(watch, oracle), check=False)
    begun: list[SimulatedReshaping] = []

    def begin() -> None:
        target = shuffled_tree(simulator.topology, Random(arguments.seed))
        begun.append(reshape(simulator, target, change="bar-5", seed=arguments.seed))

    simulator.at(CHANGE_S, begin)
    simulator.run(until_s=END_S + 20.0)
    oracle.finish(simulator.now_s)
    return report(Console(width=100), simulator.brokers, watch, oracle, begun[0])


def report(
    console: Console,
    brokers: Mapping[str, SimulatedBroker],
    watch: Watch,
    oracle: Oracle,
    change: SimulatedReshaping,
) -> int:
    over_s = change.over_s
    console.print(f"{len(brokers)} brokers: {change.stage.value} {change.record.reason}")
    if over_s is None or change.committed_s is None:
        return 1
    entries = sum(
        node.broker.routing.subscription_count + node.broker.routing.advertisement_count
        for node in brokers.values()
    )
    messages = sum(change.began_s <= at_s < over_s for at_s in watch.routing)
    per_entry = messages / entries
    took_s = over_s - change.began_s
    before = watch.between(change.began_s - took_s, change.began_s)
    during = watch.between(change.began_s, over_s)
    console.print(
        f"build {change.committed_s - change.began_s:.2f} s, flip to drop"
        f" {over_s - change.committed_s:.2f} s of virtual time"
    )
    console.print(f"{messages:,} routing messages, {entries:,} entries: {per_entry:.2f} for each")
    for name, found in (("before", before), ("during", during)):
        delays_ms = [1_000 * delay_s for _, delay_s, _ in found]
        times = [at_s for at_s, *_ in found]
        gaps_ms = [1_000 * (b - a) for a, b in pairwise(times)]
        console.print(
            f"{name}: {sum(count for *_, count in found):,} deliveries, delay mean"
            f" {mean(delays_ms):.1f} ms, highest {max(delays_ms):.1f} ms; longest time without a"
            f" delivery {max(gaps_ms):.0f} ms"
        )
    console.print(f"oracle: {oracle.violation_count} violations")
    return 0 if oracle.is_satisfied and per_entry <= MESSAGES_PER_ENTRY_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
