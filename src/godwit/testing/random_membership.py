"""A simulated run with a busy random overlay whose brokers come and go, for each seed.

As `random_moves`; meanwhile leaf brokers join, are drained and leave.  The oracle checks what
clients receive, as if the tree had never changed.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from random import Random

from godwit.overlay import Overlay
from godwit.overlay.topology import random_tree
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.simulation.broker_drain import drain
from godwit.simulation.oracle import Oracle
from godwit.simulation.resources import BrokerResources, LinkOptions
from godwit.simulation.simulator import Simulator
from godwit.simulation.statistics import Statistics
from godwit.testing.overlay_shapes import check_is_tree, shape_for
from godwit.testing.random_moves import DURATION_S, SETTLE_S, MovingClient
from godwit.testing.random_runs import RandomRun, count_unconfirmed, finished_run
from godwit.testing.random_soft_links import CopyCount

#: Long enough for most moves in these slow networks; others are requested again.
MOVE_WITHIN_S = 30.0


def random_membership(seed: int, overlay: Overlay = TreeRouting) -> RandomRun:
    """Build and run the scenario of `seed`, checking invariants after every step."""
    check_is_tree(overlay, "brokers that join and leave")
    random = Random(seed)
    tree = random_tree(random.randint(2, 6), random)
    topology, settings, modules = shape_for(overlay, tree, seed=seed)
    oracle, statistics, copies = Oracle(settle_s=SETTLE_S), Statistics(), CopyCount()
    simulator = Simulator(
        topology,
        seed=seed,
        resources=BrokerResources(cpu_speed=10 ** random.uniform(0.0, 1.5), matching_work_base=0.1),
        link=LinkOptions(latency_s_min=0.0, latency_s_mean=random.choice((0.001, 0.2))),
        observers=(oracle, statistics, copies),
        overlay=overlay,
        settings=settings,
        modules=modules,
    )
    membership = _Membership(simulator, random)
    clients = [
        MovingClient(
            simulator.client(f"c{i}", at=random.choice(topology.brokers)),
            simulator,
            random,
            membership.open_brokers,
        )
        for i in range(random.randint(2, 6))
    ]
    for client in clients:
        client.plan()
    membership.plan()
    simulator.run(until_s=DURATION_S + 2 * SETTLE_S)
    unconfirmed = count_unconfirmed(simulator)
    unconfirmed += len(membership.draining & set(simulator.topology.brokers))
    for client in (*clients, *membership.clients):
        client.withdraw_everything()
    run = finished_run(seed, simulator, oracle, statistics, unconfirmed)
    return replace(run, repeated=copies.repeated)


class _Membership:
    """Leaf brokers that join, with new clients, and that are drained."""

    def __init__(self, simulator: Simulator, random: Random) -> None:
        self._simulator = simulator
        self._random = random
        self._numbers = count(1)
        self.draining: set[str] = set()
        self.clients: list[MovingClient] = []
        """Those that joined with a broker."""

    def open_brokers(self) -> list[str]:
        """Brokers that accept clients and links."""
        return [name for name in self._simulator.topology.brokers if name not in self.draining]

    def plan(self) -> None:
        random, at = self._random, self._simulator.at
        for _ in range(random.randint(1, 4)):
            at(random.uniform(0.0, DURATION_S), self._join)
        for _ in range(random.randint(1, 4)):
            at(random.uniform(1.0, DURATION_S), self._drain)

    def _join(self) -> None:
        random, simulator = self._random, self._simulator
        number = next(self._numbers)
        name = f"L{number}"
        simulator.add_broker(name, [random.choice(self.open_brokers())])
        if random.random() < 0.7:  # At once, before it has learnt anything.
            client = simulator.client(f"l{number}", at=name)
            joined = MovingClient(client, simulator, random, self.open_brokers)
            joined.start()
            self.clients.append(joined)

    def _drain(self) -> None:
        topology = self._simulator.topology
        leaves = [name for name in self.open_brokers() if len(topology.neighbours(name)) == 1]
        if len(self.open_brokers()) < 3 or not leaves:
            return
        leaf = self._random.choice(leaves)
        if self.draining & set(topology.neighbours(leaf)):
            return  # Its only neighbour is about to leave.
        self.draining.add(leaf)
        drain(self._simulator, leaf, self._choose, within_s=MOVE_WITHIN_S)

    def _choose(self) -> str:
        return self._random.choice(self.open_brokers())
