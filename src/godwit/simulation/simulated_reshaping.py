"""A change of the network's shape in virtual time: the coordinator, and its way to the brokers.

    reshaping = reshape(simulator, random_tree(7, random), change="c1", seed=1)
    simulator.run(until_s=60.0)
    assert reshaping.stage is ReshapingStage.DONE

The rules of the coordinator are those of production (migration/reshaping.py).  Each request takes
its own random time to its broker, and the answer as much again, so that no two brokers flip at the
same time.  The coordinator may crash: what it knows besides its record is lost, and it asks again.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from godwit.broker.stimuli import EpochStimulus
from godwit.migration.reshaping import (
    Reshaping,
    ReshapingRecord,
    ReshapingStage,
    shape_of,
)
from godwit.overlay.topology import Topology
from godwit.simulation.simulator import NO_SETTINGS, Simulator

#: How often brokers that have not done what was asked of them are asked again.
ASK_AGAIN_S = 1.0
#: How long a request, or an answer, takes on average.
REQUEST_S = 0.05


class SimulatedReshaping:
    def __init__(
        self, simulator: Simulator, record: ReshapingRecord, *, request_s: float, random: Random
    ) -> None:
        self.began_s = simulator.now_s
        self.over_s: float | None = None
        """When it was done or aborted."""
        self.committed_s: float | None = None
        self._simulator = simulator
        self._request_s = request_s
        self._random = random
        self._record = record
        """As it is on the disk of the coordinator."""
        self._coordinator: Reshaping | None = None
        self.start()

    @property
    def stage(self) -> ReshapingStage:
        return self._record.stage

    @property
    def record(self) -> ReshapingRecord:
        return self._record

    # -- the coordinator -----------------------------------------------------------------------

    def start(self) -> None:
        """Start the coordinator, or start it again after a crash."""
        if self._coordinator is None:
            self._coordinator = Reshaping(self._record, self._simulator.topology.brokers)
            self._ask(self._coordinator)

    def crash(self) -> None:
        """The coordinator dies; the record is kept."""
        self._coordinator = None

    def abort(self, reason: str) -> None:
        """An operator gives the change up."""
        if self._coordinator is not None and not self.stage.is_over:
            self._coordinator.abort(reason)
            self._save(self._coordinator)

    def _ask(self, coordinator: Reshaping) -> None:
        if coordinator is not self._coordinator or self.stage.is_over:
            return  # It has crashed, or all is done.
        for broker, stimulus in coordinator.requests():
            self._later(self._request, coordinator, broker, stimulus)
        self._simulator.at(self._simulator.now_s + ASK_AGAIN_S, self._ask, coordinator)

    def _save(self, coordinator: Reshaping) -> None:
        if coordinator.record == self._record:
            return
        self._record = coordinator.record  # Before anything follows from it.
        if self.stage is ReshapingStage.COMMITTED:
            self.committed_s = self._simulator.now_s
        if self.stage.is_over:
            self.over_s = self._simulator.now_s
        if self.stage is ReshapingStage.DONE:
            self._simulator.use_shape(self._record.shape)
        for broker, stimulus in coordinator.requests():
            self._later(self._request, coordinator, broker, stimulus)

    def _on_answer(self, coordinator: Reshaping, broker: str, asked: EpochStimulus) -> None:
        node = self._simulator.brokers[broker]
        if coordinator is not self._coordinator or not node.is_up:
            return
        assert node.broker.epochs is not None
        if node.hold.refusal is not None:
            coordinator.on_refusal(broker, node.hold.refusal, asked)
            node.hold.refusal = None
        coordinator.on_status(broker, node.broker.epochs.status, asked)
        self._save(coordinator)

    # -- the way to the brokers ----------------------------------------------------------------

    def _request(self, coordinator: Reshaping, broker: str, stimulus: EpochStimulus) -> None:
        """It arrives, also if the coordinator has crashed meanwhile."""
        self._simulator.brokers[broker].arrive_in_order(stimulus)
        self._later(self._on_answer, coordinator, broker, stimulus)

    def _later(self, act: object, *args: object) -> None:
        assert callable(act)
        delay_s = self._random.expovariate(1.0 / self._request_s)
        self._simulator.at(self._simulator.now_s + delay_s, act, *args)


def reshape(
    simulator: Simulator,
    target: Topology,
    *,
    change: str,
    seed: int,
    epoch: int | None = None,
    request_s: float = REQUEST_S,
    overlay: str = "",
    settings: Mapping[str, Any] = NO_SETTINGS,
) -> SimulatedReshaping:
    """Begin to change the shape of a simulated network to `target`, which has the same brokers.

    With `overlay` and its `settings` it changes to another kind of overlay, too.
    """
    number = simulator.lane + 1 if epoch is None else epoch
    shape = shape_of(target, number, follows=simulator.lane, overlay=overlay, settings=settings)
    record = ReshapingRecord(change=change, shape=shape)
    return SimulatedReshaping(
        simulator, record, request_s=request_s, random=Random(f"reshaping {seed}")
    )
