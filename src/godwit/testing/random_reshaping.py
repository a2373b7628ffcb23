"""A simulated run with a busy random overlay that changes its shape, for each seed.

As `random_moves`, with clients that leave, too; meanwhile the network changes from random tree to
random tree, with brokers that flip at different times.  The oracle checks what clients receive, as
if the tree had never changed.  Afterwards all tables are those of the last tree.

`random_overlay_changes` does the same with overlays of any kind: from a tree, clusters or a mesh to
a tree, clusters or a mesh, also of the same kind.  Soft links of meshes change all the time.  Moves
have a time limit there, as live ones have: a move that meets the end of an epoch may stay.

`random_delta_moves` does the same in a mesh, whose brokers leave a neighbour for another one within
delta, with all that is behind them.

With `faults`, in a random phase: the coordinator crashes and is started again, or a change is given
up, or a broker or link is slow, or the network is parted for a while.  Brokers do not crash here: a
simulated broker has no peers that send again what it lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from random import Random

from godwit.broker.routing import Reshapable, in_use
from godwit.migration.delta_moves import delta_moves
from godwit.migration.reshaping import ReshapingStage
from godwit.overlay import OVERLAYS, Overlay
from godwit.overlay.clusters.cluster_structure import structure_of
from godwit.overlay.epochs.epoch_phases import EpochPhase
from godwit.overlay.mesh.mesh_routing import MeshRouting
from godwit.overlay.topology import Topology, random_tree
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.simulation.faults import BrokerPause, Delay, Fault, Partition
from godwit.simulation.oracle import Oracle
from godwit.simulation.resources import BrokerResources, LinkOptions
from godwit.simulation.simulated_client import SimulatedClient
from godwit.simulation.simulated_reshaping import SimulatedReshaping, reshape
from godwit.simulation.simulator import Simulator
from godwit.simulation.statistics import Statistics
from godwit.testing.overlay_shapes import (
    OverlayShape,
    check_is_tree,
    shape_for,
    soft_link_modules,
)
from godwit.testing.random_moves import DURATION_S, SETTLE_S, MovingClient
from godwit.testing.random_runs import RandomRun, count_unconfirmed, finished_run
from godwit.testing.random_soft_links import CopyCount
from godwit.testing.table_checks import ClientHoldings, cluster_holding_errors, holding_errors

#: What a client is told that wants to move meanwhile.
CHANGING = "changes its shape"


@dataclass(slots=True)
class ReshapingRun:
    """The result of one seed."""

    run: RandomRun
    changes: list[ReshapingStage]
    refused_moves: int
    wrong: list[str] = field(default_factory=list)
    kinds: list[tuple[str, str]] = field(default_factory=list)
    """The overlays before and after each change that was done."""

    @property
    def is_flawless(self) -> bool:
        return self.run.is_flawless and not self.wrong

    def __str__(self) -> str:
        changes = ", ".join(stage.value for stage in self.changes) or "none"
        wrong = "".join(f"\n  {each}" for each in self.wrong[:10])
        return f"{self.run}changes: {changes}; {self.refused_moves} moves refused{wrong}"


def random_reshaping(
    seed: int, overlay: Overlay = TreeRouting, *, faults: bool = False
) -> ReshapingRun:
    """Build and run the scenario of `seed`, checking invariants after every step."""
    check_is_tree(overlay, "a network that changes its shape")
    random = Random(f"reshaping {seed}")
    tree = random_tree(random.randint(2, 8), random)
    return _run(seed, random, OverlayShape(tree, {}), overlay, _Changes, faults=faults)


def random_overlay_changes(seed: int, *, faults: bool = False) -> ReshapingRun:
    """As `random_reshaping`, with overlays of any kind."""
    random = Random(f"overlays {seed}")
    tree = random_tree(random.randint(2, 8), random)
    kind = random.choice(sorted(OVERLAYS))
    shape = shape_for(OVERLAYS[kind], tree, seed=random.randrange(2**32))
    modules = soft_link_modules(seed, every_s=random.choice((0.5, 2.0)))
    started = OverlayShape(shape.topology, shape.settings, modules)
    return _run(seed, random, started, OVERLAYS[kind], _OverlayChanges, faults=faults)


def random_delta_moves(seed: int, *, faults: bool = False) -> ReshapingRun:
    """As `random_reshaping`, in a mesh: one broker after the other moves within delta."""
    random = Random(f"delta moves {seed}")
    tree = random_tree(random.randint(3, 10), random)
    shape = shape_for(MeshRouting, tree, seed=random.randrange(2**32))
    return _run(seed, random, shape, MeshRouting, _DeltaMoves, faults=faults)


def _run(
    seed: int,
    random: Random,
    shape: OverlayShape,
    overlay: Overlay,
    make_changes: type[_Changes],
    *,
    faults: bool,
) -> ReshapingRun:
    topology = shape.topology
    oracle, statistics = Oracle(settle_s=SETTLE_S), Statistics()
    resources = {
        name: BrokerResources(cpu_speed=10 ** random.uniform(0.3, 1.5), matching_work_base=0.1)
        for name in topology.brokers
    }
    simulator = Simulator(
        topology,
        seed=seed,
        resources=resources,
        link=LinkOptions(latency_s_min=0.0, latency_s_mean=random.choice((0.001, 0.2, 0.5))),
        observers=(oracle, statistics, copies := CopyCount()),
        overlay=overlay,
        settings=shape.settings,
        modules=shape.modules,
    )
    changes = make_changes(simulator, random, faults=faults)
    clients = [
        _ReshapedClient(
            simulator.client(f"c{i}", at=random.choice(topology.brokers)), simulator, random
        )
        for i in range(random.randint(2, 6))
    ]
    for client in clients:
        client.within_s = changes.moves_within_s
        client.plan()
    changes.clients = clients
    changes.plan()
    simulator.run(until_s=DURATION_S + 2 * SETTLE_S)
    unconfirmed = count_unconfirmed(simulator)
    wrong = [*changes.errors(), *_table_errors(simulator, changes.kinds[-1])]
    if copies.repeated:
        wrong.append(f"{copies.repeated} copies came to a broker that had one")
    changes.end()
    for client in clients:
        client.withdraw_everything()
    refused = _forget_refused_moves(simulator.clients.values())
    run = finished_run(seed, simulator, oracle, statistics, unconfirmed)
    stages = [change.stage for change in changes.begun]
    return ReshapingRun(run, stages, refused, wrong, list(pairwise(changes.kinds)))


class _ReshapedClient(MovingClient):
    """Moves only sometimes, and may leave."""

    within_s = inf
    """How long a move may take."""

    def plan(self) -> None:
        random = self._random
        super().plan()
        for _ in range(random.randint(0, 3)):
            self._simulator.at(random.uniform(3.0, DURATION_S), self._subscribe)
        for _ in range(random.randint(0, 2)):
            self._simulator.at(random.uniform(5.0, DURATION_S), self._unsubscribe)
        if not self._publishes and random.random() < 0.2:
            self._simulator.at(random.uniform(8.0, DURATION_S), self._leave)

    def _leave(self) -> None:
        self._subscriptions.clear()
        self._client.leave()

    def _subscribe(self) -> None:
        if not self._client.has_left:
            super()._subscribe()

    def _move(self) -> None:
        self.move()

    def move(self) -> None:
        """Move anywhere."""
        if not self._client.has_left:
            self._client.move(self._random.choice(self._targets()), within_s=self.within_s)


class _Changes:
    """Changes of the shape, one after the other, and what happens to them."""

    moves_within_s = inf

    def __init__(self, simulator: Simulator, random: Random, *, faults: bool) -> None:
        self._simulator = simulator
        self._random = random
        self._faults = faults
        self._epoch = 0
        self.clients: Sequence[_ReshapedClient] = ()
        self.begun: list[SimulatedReshaping] = []
        first = type(in_use(next(iter(simulator.brokers.values())).broker.routing))
        self._first = next((name for name, kind in OVERLAYS.items() if kind is first), "tree")

    @property
    def kinds(self) -> list[str]:
        """The overlays, one after the other, as far as changes were done."""
        done = [c.record.shape.overlay for c in self.begun if c.stage is ReshapingStage.DONE]
        return [self._first, *(kind or self._first for kind in done)]

    def plan(self) -> None:
        random = self._random
        for _ in range(random.randint(1, 3)):
            self._simulator.at(random.uniform(1.0, DURATION_S), self._begin)

    def _begin(self) -> None:
        random, simulator = self._random, self._simulator
        if self.begun and not self.begun[-1].stage.is_over:
            return
        self._epoch += 1
        change = self._reshape(f"change-{self._epoch}")
        self.begun.append(change)
        if self._faults:
            for _ in range(random.randint(1, 3)):
                at_s = simulator.now_s + random.expovariate(1.0 / random.choice((0.1, 1.0, 5.0)))
                simulator.at(at_s, self._fail, change)

    def _reshape(self, change: str) -> SimulatedReshaping:
        random, simulator = self._random, self._simulator
        return reshape(
            simulator,
            shuffled_tree(simulator.topology, random),
            change=change,
            seed=random.randrange(2**32),
            epoch=self._epoch,
            request_s=10 ** random.uniform(-2.0, 0.3),
        )

    def _fail(self, change: SimulatedReshaping) -> None:
        random, simulator = self._random, self._simulator
        if change.stage.is_over:
            return
        kind = random.choice(("crash", "abort", "pause", "delay", "partition"))
        later_s = simulator.now_s + random.expovariate(0.3)
        if kind == "crash":
            change.crash()
            simulator.at(later_s, change.start)
        elif kind == "abort":
            change.abort("an operator gave it up")
        else:
            simulator.inject(self._fault(kind, later_s - simulator.now_s))

    def _fault(self, kind: str, for_s: float) -> Fault:
        random, topology, now_s = self._random, self._simulator.topology, self._simulator.now_s
        if kind == "pause":
            return BrokerPause(broker=random.choice(topology.brokers), at_s=now_s, for_s=for_s)
        if kind == "delay":
            link = random.choice(sorted(topology.links))
            return Delay(link=link, at_s=now_s, for_s=for_s, extra_s=random.uniform(0.0, 5.0))
        parted = frozenset(each for each in topology.brokers if random.random() < 0.5)
        return Partition(brokers=parted, at_s=now_s, for_s=for_s)

    def end(self) -> None:
        """Let no coordinator ask for ever."""
        for change in self.begun:
            change.crash()

    def errors(self) -> list[str]:
        """What is wrong long after the last change: not over, or not everywhere the same."""
        wrong = [f"{c.record.change} is {c.stage.value}" for c in self.begun if not c.stage.is_over]
        for name, node in self._simulator.brokers.items():
            routing = node.broker.routing
            assert isinstance(routing, Reshapable)
            status = routing.status
            if status.phase != EpochPhase.STEADY.value or status.epoch != self._simulator.lane:
                wrong.append(f"{name} is {status}, the network at epoch {self._simulator.lane}")
        return wrong


class _OverlayChanges(_Changes):
    moves_within_s = 30.0

    def _reshape(self, change: str) -> SimulatedReshaping:
        random, simulator = self._random, self._simulator
        request_s = 10 ** random.uniform(-2.0, 0.3)
        for client in self.clients:  # Moves that meet every phase of the change.
            for _ in range(random.randint(0, 3)):
                simulator.at(simulator.now_s + random.uniform(0.0, 8 * request_s), client.move)
        kind = random.choice(sorted(OVERLAYS))
        tree = shuffled_tree(simulator.topology, random)
        shape = shape_for(OVERLAYS[kind], tree, seed=random.randrange(2**32))
        return reshape(
            simulator,
            shape.topology,
            change=change,
            seed=random.randrange(2**32),
            epoch=self._epoch,
            request_s=request_s,
            overlay=kind,
            settings=shape.settings,
        )


class _DeltaMoves(_Changes):
    moves_within_s = 30.0

    def _reshape(self, change: str) -> SimulatedReshaping:
        random, simulator = self._random, self._simulator
        return reshape(
            simulator,
            after_delta_move(simulator.topology, simulator.settings["delta"], random),
            change=change,
            seed=random.randrange(2**32),
            epoch=self._epoch,
            request_s=10 ** random.uniform(-2.0, 0.3),
        )


def after_delta_move(tree: Topology, delta: int, random: Random) -> Topology:
    """The tree after one of its brokers has left a neighbour for another one within delta."""
    return random.choice(list(delta_moves(tree, delta))).apply(tree)


def shuffled_tree(topology: Topology, random: Random) -> Topology:
    """A random tree of the same brokers."""
    brokers = list(topology.brokers)
    drawn = random_tree(len(brokers), random)
    shuffled = random.sample(brokers, len(brokers))
    names = dict(zip(drawn.brokers, shuffled, strict=True))
    links = [sorted((names[a], names[b])) for a, b in drawn.links]
    return Topology(topology.brokers, frozenset((a, b) for a, b in links))


def _table_errors(simulator: Simulator, kind: str) -> list[str]:
    tables = {name: node.broker.routing.tables() for name, node in simulator.brokers.items()}
    holdings = [
        ClientHoldings(
            client.name,
            client.home.broker,
            client.holdings.advertisements,
            [held.id for held in client.holdings.subscriptions.values()],
        )
        for client in simulator.clients.values()
    ]
    if kind == "clusters":
        structure = structure_of(simulator.settings)
        return cluster_holding_errors(structure, tables, holdings, simulator.lane)
    return holding_errors(simulator.topology, tables, holdings, simulator.lane)


def _forget_refused_moves(clients: Iterable[SimulatedClient]) -> int:
    """Moves are refused during a change: that is no flaw."""
    count = 0
    for client in clients:
        kept = [refusal for refusal in client.refusals if CHANGING not in refusal.reason]
        count += len(client.refusals) - len(kept)
        client.refusals[:] = kept
    return count
