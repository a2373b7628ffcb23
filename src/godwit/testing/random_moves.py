"""A simulated run with a busy random overlay whose clients move, for each seed.

As `random_runs`, with small trees, brokers that can hardly keep up, so that every queue and link
holds publications at any time, and clients that move while they publish, subscribe and unsubscribe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random

from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, SubscriptionId
from godwit.content.values import Value
from godwit.overlay import Overlay
from godwit.overlay.topology import random_tree
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.simulation.resources import BrokerResources, LinkOptions
from godwit.simulation.simulated_client import SimulatedClient
from godwit.simulation.simulator import Modules, Simulator, no_modules
from godwit.simulation.statistics import Statistics
from godwit.testing.overlay_shapes import check_is_live, shape_for
from godwit.testing.random_runs import RandomRun, count_unconfirmed, finished_run
from godwit.testing.random_soft_links import CopyCount

#: Longer than all moves of a run together take.
SETTLE_S = 2_000.0
DURATION_S = 20.0


def random_moves(
    seed: int,
    overlay: Overlay = TreeRouting,
    *,
    modules: Modules = no_modules,
    observers: Iterable[Observer] = (),
) -> RandomRun:
    """Build and run the scenario of `seed`, checking invariants after every step.

    With `modules`, policies move clients too.
    """
    check_is_live(overlay, "clients that move")
    random = Random(seed)
    tree = random_tree(random.randint(2, 8), random)
    topology, settings, of_overlay = shape_for(overlay, tree, seed=seed)
    oracle, statistics, copies = Oracle(settle_s=SETTLE_S), Statistics(), CopyCount()
    # Ten to a hundred messages a second, different for each broker.
    resources = {
        name: BrokerResources(cpu_speed=10 ** random.uniform(0.0, 1.0), matching_work_base=0.1)
        for name in topology.brokers
    }
    simulator = Simulator(
        topology,
        seed=seed,
        resources=resources,
        link=LinkOptions(latency_s_min=0.0, latency_s_mean=random.choice((0.001, 0.2))),
        observers=(oracle, statistics, copies, *observers),
        overlay=overlay,
        settings=settings,
        modules=lambda broker: [*of_overlay(broker), *modules(broker)],
    )
    clients = [
        MovingClient(
            simulator.client(f"c{i}", at=random.choice(topology.brokers)),
            simulator,
            random,
        )
        for i in range(random.randint(2, 6))
    ]
    for client in clients:
        client.plan()
    simulator.run(until_s=DURATION_S + 2 * SETTLE_S)
    unconfirmed = count_unconfirmed(simulator)
    for client in clients:
        client.withdraw_everything()
    run = finished_run(seed, simulator, oracle, statistics, unconfirmed)
    return replace(run, repeated=copies.repeated)


class MovingClient:
    """Publishes steadily or not at all, subscribes once or twice, and moves a few times."""

    def __init__(
        self,
        client: SimulatedClient,
        simulator: Simulator,
        random: Random,
        targets: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        """`targets` are the brokers that it may move to, all by default."""
        self._targets = targets or (lambda: simulator.topology.brokers)
        self._client = client
        self._simulator = simulator
        self._random = random
        self._publishes = random.random() < 0.6
        self._period_s = 10 ** random.uniform(-1.3, 0.0)
        self._advertisements: list[AdvertisementId] = []
        self._subscriptions: list[SubscriptionId] = []

    def plan(self) -> None:
        random, at = self._random, self._simulator.at
        if self._publishes:
            at(0.0, self._publish_steadily)
        for _ in range(random.randint(0 if self._publishes else 1, 2)):
            at(random.uniform(0.0, 3.0), self._subscribe)
        for _ in range(random.randint(1, 3)):
            at(random.uniform(2.0, DURATION_S), self._move)
        if random.random() < 0.3:
            at(random.uniform(5.0, DURATION_S), self._subscribe)
        if random.random() < 0.2:
            at(random.uniform(5.0, DURATION_S), self._unsubscribe)

    def start(self) -> None:
        """Subscribe and publish at once, and move later."""
        self._subscribe()
        if self._publishes:
            self._publish_steadily()
        self._simulator.at(self._simulator.now_s + self._random.uniform(1.0, 10.0), self._move)

    def _publish_steadily(self) -> None:
        # A class that no other client advertises: no other advertisement keeps subscriptions alive.
        announced = f"class = '{self._client.name}' and size > -1 and size < 100"
        id = self._client.advertise(Filter.parse(announced))
        self._advertisements.append(id)
        self._client.publish_all(id, self._contents())

    def _contents(self) -> Iterator[tuple[float, dict[str, Value]]]:
        at_s = self._simulator.now_s
        while at_s < DURATION_S:
            at_s += self._random.expovariate(1.0 / self._period_s)
            yield at_s, {"class": self._client.name, "size": self._random.randrange(100)}

    def _subscribe(self) -> None:
        interest = f"size > {self._random.choice((-1, 30, 60))}"
        if self._random.random() < 0.7:
            interest += f" and class = '{self._random.choice(list(self._simulator.clients))}'"
        self._subscriptions.append(self._client.subscribe(Filter.parse(interest)))

    def _unsubscribe(self) -> None:
        if self._subscriptions:
            self._client.unsubscribe(self._subscriptions.pop())

    def _move(self) -> None:
        self._client.move(self._random.choice(self._targets()))

    def withdraw_everything(self) -> None:
        while self._subscriptions:
            self._unsubscribe()
        while self._advertisements:
            self._client.unadvertise(self._advertisements.pop())
