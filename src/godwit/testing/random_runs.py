"""A simulated run with a random overlay, random clients and random actions, for each seed.

For authors of overlays and policies: whatever you change, `random_run(seed)` must be flawless for
every seed.  Links have long random delays, so that messages on different links overtake each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random

from godwit.broker.routing import Routing
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, SubscriptionId
from godwit.overlay import Overlay
from godwit.overlay.topology import random_tree
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.simulation.resources import BrokerResources, LinkOptions
from godwit.simulation.simulated_client import SimulatedClient
from godwit.simulation.simulator import Modules, Simulator, no_modules
from godwit.simulation.statistics import Statistics
from godwit.testing.overlay_shapes import is_dht, shape_for
from godwit.testing.random_content import RandomContent
from godwit.testing.random_soft_links import CopyCount

#: Longer than any message takes in these runs, by a wide margin.
SETTLE_S = 60.0
#: ... and where publications wait for those before them at every change of their owner.
DHT_SETTLE_S = 6_000.0


@dataclass(frozen=True, slots=True)
class RandomRun:
    """The result of one seed."""

    seed: int
    brokers: int
    oracle: Oracle
    statistics: Statistics
    refusals: int
    unconfirmed: int
    """Requests that are not in effect after a long quiet time."""

    moves: int
    """Moves that clients began."""

    leftovers: int
    """Table entries of all brokers after all clients have withdrawn everything."""

    repeated: int = 0
    """Copies of publications that a broker had got before."""

    @property
    def is_flawless(self) -> bool:
        wrong = self.refusals + self.unconfirmed + self.leftovers + self.repeated
        return self.oracle.is_satisfied and not wrong

    def __str__(self) -> str:
        found = "\n".join(f"  {violation}" for violation in self.oracle.violations[:10])
        return (
            f"seed {self.seed}: {self.brokers} brokers, {self.statistics.publications}"
            f" publications, {self.statistics.deliveries} deliveries,"
            f" {self.oracle.violation_count} violations, {self.refusals} refusals,"
            f" {self.unconfirmed} unconfirmed, {self.leftovers} leftovers,"
            f" {self.repeated} repeated copies\n{found}"
        )


def random_run(
    seed: int,
    overlay: Overlay = TreeRouting,
    *,
    brokers_max: int = 40,
    actions: int = 200,
    modules: Modules = no_modules,
    observers: Iterable[Observer] = (),
) -> RandomRun:
    """Build and run the scenario of `seed`, checking invariants after every step."""
    random = Random(seed)
    # Small overlays make things meet more often, large ones make them meet later.
    tree = random_tree(random.randint(2, random.choice((6, brokers_max))), random)
    topology, settings, of_overlay = shape_for(overlay, tree, seed=seed)
    settle_s = DHT_SETTLE_S if is_dht(overlay) else SETTLE_S
    oracle, statistics, copies = Oracle(settle_s=settle_s), Statistics(), CopyCount()
    # Half of the runs are nearly instantaneous, the others slow and far from FIFO across links.
    latency_s_mean = random.choice((0.001, 0.5))
    simulator = Simulator(
        topology,
        seed=seed,
        resources=BrokerResources(cpu_speed=random.choice((1.0, 1000.0)), matching_work_base=0.01),
        link=LinkOptions(latency_s_min=0.0, latency_s_mean=latency_s_mean),
        observers=(oracle, statistics, copies, *observers),
        overlay=overlay,
        settings=settings,
        modules=lambda broker: [*of_overlay(broker), *modules(broker)],
    )
    # Half of the runs have sizes only: nearly every filter covers another.
    content = RandomContent(random.choice((("class", "name", "size"), ("size",))), random)
    clients = [
        RandomClient(simulator.client(f"c{i}", at=random.choice(topology.brokers)), content, random)
        for i in range(random.randint(2, 12))
    ]
    for client in clients[::2]:  # Or half of the run would pass without publications.
        simulator.at(0.0, client.advertise)
    now_s = 0.0
    for _ in range(actions):
        now_s += random.expovariate(1.0 / random.choice((0.001, 0.2)))
        simulator.at(now_s, random.choice(clients).act)
    # Before anything is withdrawn, all must have arrived: the oracle does not count as lost what
    # was under way to a subscriber that leaves.
    quiet_s = now_s + 2 * settle_s
    simulator.run(until_s=quiet_s)
    unconfirmed = count_unconfirmed(simulator)
    # The oracle has forgotten earlier subscriptions by now: a delivery to one is a violation.
    for client in clients:
        simulator.at(quiet_s, client.publish)
    for client in clients:
        leaves_s = quiet_s + 2 * settle_s + random.uniform(0.0, 1.0)
        simulator.at(leaves_s, client.withdraw_everything)
    run = finished_run(seed, simulator, oracle, statistics, unconfirmed)
    return replace(run, repeated=copies.repeated)


def count_unconfirmed(simulator: Simulator) -> int:
    return sum(len(client.unconfirmed) for client in simulator.clients.values())


def finished_run(
    seed: int, simulator: Simulator, oracle: Oracle, statistics: Statistics, unconfirmed: int
) -> RandomRun:
    """The result of a run whose clients have withdrawn everything, or are about to."""
    simulator.run()
    oracle.finish(simulator.now_s)
    clients = simulator.clients.values()
    return RandomRun(
        seed=seed,
        brokers=len(simulator.brokers),
        oracle=oracle,
        statistics=statistics,
        refusals=sum(len(client.refusals) for client in clients),
        unconfirmed=unconfirmed + sum(client.mover.is_moving for client in clients),
        moves=sum(client.mover.moves for client in clients),
        leftovers=sum(
            _entries(node.broker.routing)
            for node in simulator.brokers.values()
            if not node.has_left
        ),
    )


def _entries(routing: Routing) -> int:
    return routing.subscription_count + routing.advertisement_count


class RandomClient:
    """Does one random thing that is allowed at each `act`."""

    def __init__(self, client: SimulatedClient, content: RandomContent, random: Random) -> None:
        self._client = client
        self._draw = content
        self._random = random
        self._advertisements: dict[AdvertisementId, Filter] = {}
        self._subscriptions: list[SubscriptionId] = []

    def act(self) -> None:
        action = self._random.choices(
            (self.advertise, self._subscribe, self.publish, self._unsubscribe, self._unadvertise),
            weights=(1, 6, 12, 5, 1),
        )[0]
        action()

    def advertise(self) -> None:
        filter = self._draw.filter(every_attribute=True)
        if filter.is_satisfiable and len(self._advertisements) < 3:
            self._advertisements[self._client.advertise(filter)] = filter

    def _unadvertise(self) -> None:
        if self._advertisements:
            id = self._random.choice(list(self._advertisements))
            del self._advertisements[id]
            self._client.unadvertise(id)

    def withdraw_everything(self) -> None:
        while self._subscriptions:
            self._unsubscribe()
        while self._advertisements:
            self._unadvertise()

    def _subscribe(self) -> None:
        filter = self._draw.filter(every_attribute=False)
        if filter.is_satisfiable:
            self._subscriptions.append(self._client.subscribe(filter))

    def _unsubscribe(self) -> None:
        if self._subscriptions:
            chosen = self._random.randrange(len(self._subscriptions))
            self._client.unsubscribe(self._subscriptions.pop(chosen))

    def publish(self) -> None:
        if not self._advertisements:
            return
        id = self._random.choice(list(self._advertisements))
        advertised = self._advertisements[id]
        for _ in range(self._random.randint(1, 10)):
            content = self._draw.content(advertised)
            if advertised.permits_checked(content):
                self._client.publish(id, content)
