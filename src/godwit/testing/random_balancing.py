"""A simulated run with random clusters whose brokers balance their load, for each seed.

Subscribers join unevenly, publishers change their rates, capacities differ, and periods are short,
so that a run has many sessions.  In half of the runs something fails in a random phase of a
session: a link or a whole cluster is cut off for a while, a link becomes slow, or a broker stops
handling anything.  Nothing is lost by such a fault, but answers come late or not in time.  Brokers
that crash are in `godwit.testing.storms`, where they recover as in production.

The oracle checks what clients receive, as if no client had moved.  Besides:

    no broker is BUSY when a long quiet time is over
    each session expects a smaller difference at its end than at its beginning (L39)
    the tables have what clients and modules hold, and nothing else
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from godwit.broker.effects import Decision
from godwit.broker.stimuli import Module
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId
from godwit.content.values import Value
from godwit.overlay import Overlay
from godwit.overlay.topology import Topology, peer
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.policies import offload
from godwit.policies.offload.peer import edges_of
from godwit.policies.offload.settings import BalancingSettings
from godwit.simulation.faults import BrokerPause, Delay, Fault, Partition
from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.simulation.resources import BrokerResources, LinkOptions
from godwit.simulation.simulated_client import SimulatedClient
from godwit.simulation.simulator import Simulator
from godwit.simulation.statistics import Statistics
from godwit.testing.random_runs import count_unconfirmed

DURATION_S = 150.0
#: Until every time-out is over, and what was queued has been delivered.
QUIET_S = 600.0
SETTLE_S = 2_000.0
#: How often tables are looked at that are not right yet, and how many times.
CHECK_EVERY_S, CHECKS_MAX = 97.0, 30
#: About what a publication has on a link.
MESSAGE_BYTES = 75
#: What a fault may happen with: a random decision of this kind.
MOMENTS = ("session", "session", "asked", "ended", "global session")


@dataclass
class BalancingRun:
    """The result of one seed."""

    seed: int
    brokers: int
    oracle: Oracle
    statistics: Statistics
    decisions: Counter[str] = field(default_factory=Counter)
    fault: str = "no fault"
    wrong: list[str] = field(default_factory=list)

    @property
    def is_flawless(self) -> bool:
        return self.oracle.is_satisfied and not self.wrong

    def __str__(self) -> str:
        found = [str(violation) for violation in self.oracle.violations[:10]]
        decided = ", ".join(f"{count} {action}" for action, count in sorted(self.decisions.items()))
        head = (
            f"seed {self.seed}: {self.brokers} brokers, {self.statistics.publications}"
            f" publications, {self.statistics.deliveries} deliveries, {decided or 'no decisions'};"
            f" {self.fault}; {self.oracle.violation_count} violations"
        )
        return "\n".join([head, *(f"  {each}" for each in (*found, *self.wrong))])


def random_settings(random: Random) -> BalancingSettings:
    """Short periods; everything else as it may be set."""
    return BalancingSettings(
        algorithm="random" if random.random() < 0.2 else "thesis",
        pie=random.choice(("plain", "adaptive")),
        hold_s=random.choice((0.0, 10.0)),
        moves_per_s=random.choice((2.0, 100.0)),
        local_pie_period_s=5.0,
        global_pie_period_s=10.0,
        local_detection_min_s=5.0,
        local_detection_max_s=10.0,
        global_detection_min_s=10.0,
        global_detection_max_s=15.0,
        global_rounds_max=random.choice((3, 20)),
        stabilize_s=random.choice((10.0, 20.0)),
        press_samples=random.choice((5, 20)),
        press_timeout_s=random.choice((2.0, 10.0)),
        reply_timeout_s=random.choice((0.5, 5.0)),
        session_margin_s=random.choice((2.0, 10.0)),
        migration_timeout_s=random.choice((0.2, 5.0)),
    )


def random_balancing(seed: int, overlay: Overlay = TreeRouting) -> BalancingRun:
    """Build and run the scenario of `seed`, checking invariants after every step."""
    random = Random(seed)
    topology = peer(
        clusters=random.randint(1, 3), edges=random.randint(2, 3), fanout=random.randint(1, 2)
    )
    heads = [name for name in topology.brokers if len(topology.neighbours(name)) > 1]
    edges = [edge for head in heads for edge in edges_of(topology, head)]
    settings = random_settings(random)
    rates = [10 ** random.uniform(-0.3, 0.7) for _ in range(3)]
    subscriber_count = random.randint(6, 30)
    oracle, statistics, watcher = Oracle(settle_s=SETTLE_S), Statistics(), _Watcher(settings)
    simulator = Simulator(
        topology,
        seed=seed,
        modules=offload.modules(settings, seed=seed),
        resources=_resources(random, heads, edges, sum(rates), subscriber_count),
        link=LinkOptions(latency_s_min=0.0, latency_s_mean=random.choice((0.001, 0.05))),
        observers=(oracle, statistics, watcher),
        overlay=overlay,
    )
    publishers = [
        _Publisher(simulator, f"p{number}", random.choice(heads), per_s, random)
        for number, per_s in enumerate(rates)
    ]
    subscribers = _Subscribers(simulator, edges, publishers, subscriber_count, random)
    run = BalancingRun(seed, len(topology.brokers), oracle, statistics, watcher.decisions)
    if random.random() < 0.5:
        watcher.plan_fault(simulator, random, run)
    simulator.run(until_s=DURATION_S)
    for name in topology.brokers:
        simulator.brokers[name].command("offload", "pause")
    simulator.run(until_s=DURATION_S + QUIET_S)
    run.wrong += watcher.wrong
    run.wrong += _wrong_statuses(simulator)
    run.wrong += _wrong_clients(simulator)
    subscribers.leave()
    for publisher in publishers:
        publisher.client.unadvertise(publisher.advertisement)
    run.wrong += _wrong_tables(simulator)
    oracle.finish(simulator.now_s)
    return run


def _resources(
    random: Random, heads: list[str], edges: list[str], per_s: float, subscribers: int
) -> dict[str, BrokerResources]:
    """Fast heads; edge brokers that all subscribers together would use to a third, or three times.

    A subscriber draws half of one of the three classes, and one in five half of all.
    """
    output_bytes_s = subscribers * 0.5 * per_s * (0.8 / 3 + 0.2) * MESSAGE_BYTES
    found = dict.fromkeys(heads, BrokerResources(cpu_speed=2000.0))
    for name in edges:
        found[name] = BrokerResources(
            # All subscribers together make the matching delay three times that of none.
            cpu_speed=0.3 * per_s * 10 ** random.uniform(0.0, 1.5),
            matching_work_base=0.1,
            matching_work_per_subscription=0.2 / subscribers,
            output_bandwidth_bytes_s=output_bytes_s * 10 ** random.uniform(-0.5, 0.5),
        )
    return found


class _Publisher:
    """Publishes steadily in a class of its own; its rate changes once."""

    def __init__(
        self, simulator: Simulator, name: str, at: str, per_s: float, random: Random
    ) -> None:
        self.client = simulator.client(name, at=at)
        announced = f"class = '{name}' and size > -1 and size < 100"
        self.advertisement: AdvertisementId = self.client.advertise(Filter.parse(announced))
        self._random = random
        self._period_s = 1.0 / per_s
        self.client.publish_all(self.advertisement, self._contents())

    def _contents(self) -> Iterator[tuple[float, dict[str, Value]]]:
        at_s, step_s = 1.0, self._random.uniform(40.0, 100.0)
        factor = self._random.choice((0.5, 1.0, 2.0))
        while at_s < DURATION_S:
            period_s = self._period_s if at_s < step_s else self._period_s * factor
            at_s += self._random.expovariate(1.0 / period_s)
            yield at_s, {"class": self.client.name, "size": self._random.randrange(100)}


class _Subscribers:
    """They join mostly at one edge broker; some leave, some move by themselves."""

    def __init__(
        self,
        simulator: Simulator,
        edges: list[str],
        publishers: list[_Publisher],
        count: int,
        random: Random,
    ) -> None:
        self._simulator = simulator
        self._edges = edges
        self._classes = [publisher.client.name for publisher in publishers]
        self._random = random
        self._clients: list[SimulatedClient] = []
        crowded = random.choice(edges)
        for number in range(count):
            at = crowded if random.random() < 0.8 else random.choice(edges)
            simulator.at(random.uniform(0.0, 60.0), self._join, f"s{number}", at)

    def _join(self, name: str, at: str) -> None:
        random = self._random
        client = self._simulator.client(name, at=at)
        self._clients.append(client)
        for _ in range(random.choice((1, 1, 1, 2))):
            interest = f"size > {random.choice((-1, 30, 60, 98))}"
            if random.random() < 0.8:
                interest += f" and class = '{random.choice(self._classes)}'"
            client.subscribe(Filter.parse(interest))
        later_s = self._simulator.now_s + random.uniform(10.0, 60.0)
        if random.random() < 0.1:
            self._simulator.at(later_s, self._leave, client)
        elif random.random() < 0.1:
            self._simulator.at(later_s, client.move, random.choice(self._edges))

    def _leave(self, client: SimulatedClient) -> None:
        self._clients.remove(client)
        client.leave()

    def leave(self) -> None:
        for client in self._clients:
            client.leave()


class _Watcher(Observer):
    """Counts decisions, checks L39, and injects a fault in a phase of a session."""

    def __init__(self, settings: BalancingSettings) -> None:
        self.decisions: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._must_improve = settings.algorithm == "thesis"
        self._simulator: Simulator | None = None

    def plan_fault(self, simulator: Simulator, random: Random, run: BalancingRun) -> None:
        self._simulator, self._random, self._run = simulator, random, run
        self._moment, self._countdown = random.choice(MOMENTS), random.randint(1, 4)

    def on_decision(self, broker: str, policy: str, decision: Decision, now_s: float) -> None:
        self.decisions[decision.action] += 1
        before, after = (
            decision.reason.get(f"difference_{when}", 0.0) for when in ("before", "after")
        )
        assert isinstance(before, float)
        assert isinstance(after, float)
        planned = decision.reason.get("planned", 0)
        if planned and self._must_improve and before and abs(after) >= abs(before):
            self.wrong.append(f"L39: {decision}")
        if self._simulator is None or decision.action != self._moment:
            return
        self._countdown -= 1
        if self._countdown == 0:
            late_s = self._random.choice((0.0, self._random.uniform(0.0, 3.0)))
            self._simulator.at(
                now_s + late_s, self._inject, decision.source, decision.target, now_s + late_s
            )

    def _inject(self, source: str, target: str, at_s: float) -> None:
        assert self._simulator is not None
        fault = _random_fault(self._random, self._simulator.topology, source, target, at_s)
        self._run.fault = f"{fault} with {self._moment}"
        self._simulator.inject(fault)


def _random_fault(
    random: Random, topology: Topology, source: str, target: str, at_s: float
) -> Fault:
    """Something that happens to one of two brokers of a session, or to what is between them."""
    for_s = random.choice((1.0, 10.0, 40.0))
    broker = random.choice((source, target))
    path = topology.path(source, target)
    match random.randrange(4):
        case 0:
            return BrokerPause(broker=broker, at_s=at_s, for_s=for_s)
        case 1:
            return Partition(brokers=frozenset({broker}), at_s=at_s, for_s=for_s)
        case 2:
            beyond = path[1:2]
            near = [b for b in topology.brokers if topology.path(source, b)[1:2] != beyond]
            return Partition(brokers=frozenset(near), at_s=at_s, for_s=for_s)
        case _:
            link = (path[0], path[1])
            extra_s = random.choice((0.5, 6.0))
            return Delay(link=link, at_s=at_s, for_s=for_s, extra_s=extra_s)


def _wrong_statuses(simulator: Simulator) -> list[str]:
    """Brokers that are in a session, or believe it, when all is quiet."""
    wrong = []
    for name, node in simulator.brokers.items():
        account = node.broker.modules["offload"].account(simulator.now_s)
        if account["status"] in ("BUSY", "STABILIZING") or account["session"] is not None:
            wrong.append(f"{name} is {account['status']}, in session {account['session']}")
        if node.broker.modules["offload"].is_watching:
            wrong.append(f"{name} watches publications")
    return wrong


def _wrong_clients(simulator: Simulator) -> list[str]:
    wrong = [
        f"{client.name} was refused: {client.refusals}"
        for client in simulator.clients.values()
        if client.refusals
    ]
    unconfirmed = count_unconfirmed(simulator)
    if unconfirmed:
        wrong.append(f"{unconfirmed} requests are not in effect")
    return wrong


def _wrong_tables(simulator: Simulator) -> list[str]:
    """All clients have left: the tables have what the modules hold, and nothing else.

    Messages are under way at any time: an overloaded broker has a long queue, and Adaptive PIE
    replaces its subscriptions.  Wrong is what stays wrong.
    """
    simulator.run(until_s=simulator.now_s + 100.0)
    wrong = _differences(simulator)
    for _ in range(CHECKS_MAX):
        if not wrong:
            break
        simulator.run(until_s=simulator.now_s + CHECK_EVERY_S)
        wrong &= _differences(simulator)
    return [f"tables of {broker}: {id} is wrong or missing" for broker, id in sorted(wrong)[:5]]


def _differences(simulator: Simulator) -> set[tuple[str, str]]:
    """Brokers, and ids that their tables have and should not have, or lack."""
    advertised: set[str] = set()
    subscribed: set[str] = set()
    for node in simulator.brokers.values():
        session = node.broker.sessions.of(Module("offload"))
        advertised |= set(session.advertisements)
        subscribed |= set(session.subscriptions)
    wrong: set[tuple[str, str]] = set()
    for name, node in simulator.brokers.items():
        tables = node.broker.routing.tables()
        different = (set(tables.advertisements) ^ advertised) | (
            set(tables.subscriptions) - subscribed
        )
        wrong |= {(name, id) for id in different}
    return wrong
