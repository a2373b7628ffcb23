"""A network in which all have subscribed: set up once, and forked for every case that goes on.

Set-up takes longer than a run: 120 brokers exchange several hundred thousand subscriptions and
confirmations.  A process keeps the last network that it has set up, at the moment before the first
publication; a case goes on with a copy of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from godwit.broker.effects import Decision, Effect
from godwit.broker.stimuli import Received
from godwit.content.messages import Publication
from godwit.experiments.mesh.datasets import DELTA, dataset_of
from godwit.experiments.watched import judge, run_to_the_end
from godwit.lab.declaration import Case
from godwit.overlay.mesh.mesh_routing import MeshRouting
from godwit.overlay.topology import Topology, balanced_tree
from godwit.simulation.forking import fork
from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.simulation.playing import play
from godwit.simulation.resources import BrokerResources, LinkOptions
from godwit.simulation.simulated_client import SimulatedClient
from godwit.simulation.simulation_trace import SimulationTrace
from godwit.simulation.simulator import Simulator
from godwit.trace.recorder import Recorder
from godwit.trace.writer import TraceWriter
from godwit.workloads.workload import Workload
from godwit.workloads.zipf import zipf_workload

#: Parameters of a case that change the set-up.
SET_UP_BY = ("brokers", "dataset", "subscriptions", "rate")
#: Subscriptions are made one after the other, at this distance.
JOINS_EVERY_S = 0.005
#: From the last subscription to the first publication.
QUIET_S = 2.0
#: A broker takes 0.7 ms for a publication, whatever it has in its tables.
RESOURCES = BrokerResources(matching_work_base=0.7, matching_work_per_subscription=0.0)
LINK = LinkOptions(latency_s_min=0.001, latency_s_mean=0.001)


class LateTrace(Observer):
    """Records what happens from the moment on at which it is given a trace."""

    def __init__(self) -> None:
        self._trace: Observer | None = None

    def begin(self, trace: Observer) -> None:
        self._trace = trace

    def on_matched(
        self,
        broker: str,
        received: Received,
        effects: Sequence[Effect],
        time_s: float,
        queue_delay_s: float,
        matching_delay_s: float,
        size_bytes: int,
    ) -> None:
        if self._trace is not None:
            self._trace.on_matched(
                broker, received, effects, time_s, queue_delay_s, matching_delay_s, size_bytes
            )

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        if self._trace is not None:
            self._trace.on_delivered(clients, publication, hops, now_s)

    def on_decision(self, broker: str, policy: str, decision: Decision, now_s: float) -> None:
        if self._trace is not None:
            self._trace.on_decision(broker, policy, decision, now_s)


@dataclass(frozen=True, slots=True)
class PreparedNetwork:
    simulator: Simulator
    oracle: Oracle
    trace: LateTrace

    def go_on(
        self, change: Callable[[Simulator], None], folder: Path, *, until_s: float, checked: bool
    ) -> None:
        """Go on with a copy from here, with changes, until then; leave a trace in the folder."""
        fork(
            self.simulator,
            {"run": lambda copy: self._go_on(copy, change, folder, until_s, checked)},
        )

    def _go_on(
        self,
        simulator: Simulator,
        change: Callable[[Simulator], None],
        folder: Path,
        until_s: float,
        checked: bool,
    ) -> None:
        with TraceWriter(folder) as writer:
            tracing = SimulationTrace(Recorder(writer))
            self.trace.begin(tracing)
            tracing.read_gauges(simulator)
            change(simulator)
            if checked:
                run_to_the_end(simulator, until_s=until_s)
            else:
                simulator.run(until_s=until_s)
        if checked:
            judge(simulator, self.oracle)


_last: dict[tuple[object, ...], PreparedNetwork] = {}


def prepared(case: Case, seed: int, *, publishing_s: float) -> PreparedNetwork:
    """The network of a case before its first publication, new or as set up before."""
    key = (*(case[name] for name in SET_UP_BY), publishing_s, seed)
    if key not in _last:
        _last.clear()  # Before the next one is made: it takes much memory.
        _last[key] = _set_up(case, seed, publishing_s)
    return _last[key]


def topology_of(case: Case) -> Topology:
    return balanced_tree(int(case["brokers"]), fanout=2)


def begins_s(case: Case) -> float:
    """When publications begin."""
    return int(case["subscriptions"]) * JOINS_EVERY_S + QUIET_S


def _set_up(case: Case, seed: int, publishing_s: float) -> PreparedNetwork:
    topology, oracle, trace = topology_of(case), Oracle(), LateTrace()
    workload = zipf_workload(dataset_of(case), topology.brokers, Random(f"zipf {seed}"))
    simulator = Simulator(
        topology,
        seed=seed,
        overlay=MeshRouting,
        settings={"delta": DELTA},
        resources=RESOURCES,
        link=LINK,
        observers=(oracle, trace),
        check=False,
    )
    from_s = begins_s(case)
    play(simulator, workload, (), from_s=from_s, until_s=from_s + publishing_s)
    _subscribe(simulator, workload)
    while any(client.unconfirmed for client in simulator.clients.values()):
        assert simulator.now_s < from_s - QUIET_S / 2, "subscriptions are not in effect in time"
        simulator.run(until_s=simulator.now_s + QUIET_S / 4)
        if simulator.now_s < from_s - QUIET_S:
            simulator.run(until_s=from_s - QUIET_S)
    return PreparedNetwork(simulator, oracle, trace)


def _subscribe(simulator: Simulator, workload: Workload) -> None:
    """One client for each broker has all its subscriptions."""
    clients: dict[str, SimulatedClient] = {}
    for number, subscriber in enumerate(workload.subscribers):
        if subscriber.at not in clients:
            clients[subscriber.at] = simulator.client(f"log-{subscriber.at}", at=subscriber.at)
        client = clients[subscriber.at]
        simulator.at((number + 1) * JOINS_EVERY_S, client.subscribe, subscriber.filter)
