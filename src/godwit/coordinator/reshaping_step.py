"""The step of a change that gives the network another tree, by epochs (docs/reshaping.md).

The record of the reshaping is part of the step, and on the disk before brokers are asked for what
follows from it: a coordinator that was killed goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from godwit.api.epoch_api import CHANGE_EPOCH, READ_EPOCH, change_request
from godwit.api.network_api import NetworkChange, StepKind, StepState
from godwit.broker.routing import EpochStatus
from godwit.broker.stimuli import EpochStimulus
from godwit.coordinator.broker_calls import BrokerCalls
from godwit.coordinator.coordinator_core import Coordinator
from godwit.errors import GodwitError, UsageError
from godwit.http.errors import RestError
from godwit.http.operations import Nothing
from godwit.migration.reshaping import ReshapingRecord, ReshapingStage, shape_of
from godwit.overlay.topology import topology
from godwit.runtime.reshaping_run import carry_out

ANSWER_S = 5.0
CONFLICT = 409


class ReshapingStep:
    def __init__(self, core: Coordinator, calls: BrokerCalls, save: Callable[[], bool]) -> None:
        self._core = core
        self._calls = calls
        self._save = save

    async def run(self, change: NetworkChange, index: int) -> tuple[StepState, str]:
        step = change.steps[index]
        record, brokers = step.reshaping, tuple(step.members or change.request.brokers)
        if record is None:
            record = await self._begun(change, index)
            self._keep(index, record)

        async def ask(broker: str, stimulus: EpochStimulus) -> EpochStatus:
            request = change_request(stimulus, record.shape, self._core.authority.number)
            try:
                return await self._calls.call(broker, CHANGE_EPOCH, request, answer_s=ANSWER_S)
            except RestError as error:
                if error.status == CONFLICT:
                    raise UsageError(str(error)) from None
                raise

        ended = await carry_out(
            record,
            ask,
            lambda record: self._keep(index, record),
            brokers=brokers,
            build_s=change.request.within_s,
            is_called_off=lambda: self._core.changes.is_taken_back,
        )
        if ended.stage is ReshapingStage.DONE:
            return StepState.DONE, f"{len(brokers)} brokers use epoch {ended.shape.epoch}"
        if self._core.changes.is_taken_back:
            return StepState.STOPPED, "the network has its old shape"
        raise GodwitError(f"the network keeps its shape: {ended.reason}")

    async def _begun(self, change: NetworkChange, index: int) -> ReshapingRecord:
        step, request = change.steps[index], change.request
        brokers = step.members or request.brokers
        links = step.links if step.members else request.links
        found = await asyncio.gather(
            *(
                self._calls.call(broker, READ_EPOCH, Nothing(), answer_s=ANSWER_S)
                for broker in brokers
            )
        )
        statuses = dict(zip(brokers, found, strict=True))
        new = {s.broker for s in change.steps if s.kind in (StepKind.START, StepKind.JOIN)}
        used = [status.epoch for broker, status in statuses.items() if broker not in new]
        accounts = self._core.accounts
        shape = shape_of(
            topology(brokers, links),
            _next_epoch(found),
            {broker: accounts[broker][1].url for broker in brokers},
            follows=max(used, default=0),
        )
        return ReshapingRecord(change=f"change-{change.number}", shape=shape)

    def _keep(self, index: int, record: ReshapingRecord) -> None:
        self._core.changes.note(index, reshaping=record)
        if not self._save():
            raise GodwitError("the state of the coordinator cannot be saved")


def _next_epoch(statuses: Iterable[EpochStatus]) -> int:
    """A number that no broker has seen."""
    return 1 + max(max(each.epoch, each.next_epoch or 0) for each in statuses)
