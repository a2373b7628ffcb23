"""Runs a simulation that is traced and checked by the oracle, as most experiments do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from godwit.content.messages import Publication
from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.simulation.simulation_trace import GAUGES_EVERY_S, SimulationTrace
from godwit.simulation.simulator import Simulator
from godwit.trace.recorder import Recorder
from godwit.trace.writer import TraceWriter

#: Longer than a message takes over a few links without queues.
LINKS_S = 1.0


class Sampling(Observer):
    """Shows an oracle one in so many publications of each publisher, and what becomes of them.

    With thousands of subscribers the oracle takes a good part of the time of a run.
    """

    def __init__(self, oracle: Oracle, every: int) -> None:
        self._oracle = oracle
        self._every = every
        # What is about subscriptions goes to the oracle directly.
        self.on_subscribing = oracle.on_subscribing  # type: ignore[method-assign]
        self.on_in_effect = oracle.on_in_effect  # type: ignore[method-assign]
        self.on_unsubscribing = oracle.on_unsubscribing  # type: ignore[method-assign]
        self.on_dropped = oracle.on_dropped  # type: ignore[method-assign]

    def on_published(self, publication: Publication, now_s: float) -> None:
        if not publication.sequence % self._every:
            self._oracle.on_published(publication, now_s)

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        if not publication.sequence % self._every:
            self._oracle.on_delivered(clients, publication, hops, now_s)


def run_watched(
    build: Callable[[tuple[Observer, ...]], Simulator],
    folder: Path,
    *,
    until_s: float,
    gauges_every_s: float = GAUGES_EVERY_S,
    deliveries_every: int = 1,
    checked_every: int = 1,
) -> None:
    """Run the simulator that `build` makes until `until_s`, and on until all queues are empty.

    The trace has one in `deliveries_every` deliveries.  The oracle checks all deliveries of one in
    `checked_every` publications of each publisher: one that is lost, duplicate, unwanted or out of
    order is an error.
    """
    oracle = Oracle()
    with TraceWriter(folder) as writer:
        tracing = SimulationTrace(Recorder(writer, deliveries_every=deliveries_every))
        watching = oracle if checked_every == 1 else Sampling(oracle, checked_every)
        simulator = build((tracing, watching))
        tracing.read_gauges(simulator, every_s=gauges_every_s)
        run_to_the_end(simulator, until_s=until_s)
    judge(simulator, oracle)


def run_to_the_end(simulator: Simulator, *, until_s: float) -> None:
    """Run until then, and on until all queues are empty."""
    simulator.run(until_s=until_s)
    while any(node.waiting for node in simulator.brokers.values()):
        simulator.run(until_s=simulator.now_s + LINKS_S)
    simulator.run(until_s=simulator.now_s + LINKS_S)


def judge(simulator: Simulator, oracle: Oracle) -> None:
    """An error if the run was not as brokers promise."""
    oracle.finish(simulator.now_s)
    wrong = "; ".join(map(str, oracle.violations[:3]))
    assert oracle.is_satisfied, f"{oracle.violation_count} violations: {wrong}"
    refused = [refusal for client in simulator.clients.values() for refusal in client.refusals]
    assert not refused, f"a broker refused a request: {refused[0].reason}"
    assert oracle.deliveries, "the run has no deliveries"
