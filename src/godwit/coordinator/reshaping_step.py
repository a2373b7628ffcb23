"""The step of a change that gives the network another shape, by epochs (docs/reshaping.md).

The record of the reshaping is part of the step, and on the disk before brokers are asked for what
follows from it: a coordinator that was killed goes on from there.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

from godwit.api.epoch_api import CHANGE_EPOCH, READ_EPOCH, change_request
from godwit.api.network_api import NetworkChange, StepKind, StepState
from godwit.broker.routing import EpochStatus
from godwit.broker.stimuli import EpochStimulus
from godwit.coordinator.broker_calls import BrokerCalls
from godwit.coordinator.coordinator_core import Coordinator
from godwit.errors import GodwitError, UnreachableError, UsageError
from godwit.http.errors import RestError
from godwit.http.operations import Nothing
from godwit.migration.reshaping import ReshapingRecord, ReshapingStage, shape_of
from godwit.overlay.topology import topology
from godwit.protocol.backoff import Backoff
from godwit.runtime.reshaping_run import carry_out

log = logging.getLogger("godwit.changes")

ANSWER_S = 5.0
#: Between two attempts: the first time, and the longest; a broker that has failed recovers.
AGAIN_S, AGAIN_S_MAX = 1.0, 5.0
CONFLICT = 409


class ReshapingStep:
    def __init__(self, core: Coordinator, calls: BrokerCalls, save: Callable[[], bool]) -> None:
        self._core = core
        self._calls = calls
        self._save = save

    async def run(self, change: NetworkChange, index: int) -> tuple[StepState, str]:
        """It is tried again, for `within_s`, if a broker fails before the commit."""
        began_s, count = time.monotonic(), len(_members(change, index))
        backoff = Backoff(first_s=AGAIN_S, max_s=AGAIN_S_MAX, jitter=0.0)
        while True:
            try:
                ended = await self._tried(change, index)
                reason = ended.reason
            except UnreachableError as error:
                ended, reason = None, str(error)
            if ended is not None and ended.stage is ReshapingStage.DONE:
                return StepState.DONE, f"{count} brokers use epoch {ended.shape.epoch}"
            if self._core.changes.is_taken_back:
                return StepState.STOPPED, "the network has its old shape"
            if time.monotonic() - began_s > change.request.within_s:
                raise GodwitError(f"the network keeps its shape: {reason}")
            log.info("again", extra={"change": change.number, "reason": reason})
            self._core.changes.note(index, reshaping=None, says=f"is tried again: {reason}")
            await backoff.wait()

    async def _tried(self, change: NetworkChange, index: int) -> ReshapingRecord:
        record = self._core.changes.change(change.number).steps[index].reshaping
        if record is None:
            record = await self._begun(change, index)
            self._keep(index, record)
        shape = record.shape

        async def ask(broker: str, stimulus: EpochStimulus) -> EpochStatus:
            request = change_request(stimulus, shape, self._core.authority.number)
            try:
                return await self._calls.call(broker, CHANGE_EPOCH, request, answer_s=ANSWER_S)
            except RestError as error:
                if error.status == CONFLICT:
                    raise UsageError(str(error)) from None
                raise

        return await carry_out(
            record,
            ask,
            lambda record: self._keep(index, record),
            brokers=_members(change, index),
            build_s=change.request.within_s,
            is_called_off=lambda: self._core.changes.is_taken_back,
        )

    async def _begun(self, change: NetworkChange, index: int) -> ReshapingRecord:
        step, request = change.steps[index], change.request
        brokers = _members(change, index)
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
            overlay=step.overlay if step.members else request.overlay,
            settings=step.settings if step.members else request.settings,
        )
        # Each attempt has a name of its own: a broker may have kept something of the one before.
        return ReshapingRecord(change=f"change-{change.number}/{shape.epoch}", shape=shape)

    def _keep(self, index: int, record: ReshapingRecord) -> None:
        self._core.changes.note(index, reshaping=record)
        if not self._save():
            raise GodwitError("the state of the coordinator cannot be saved")


def _members(change: NetworkChange, index: int) -> tuple[str, ...]:
    return tuple(change.steps[index].members or change.request.brokers)


def _next_epoch(statuses: Iterable[EpochStatus]) -> int:
    """A number that no broker has seen."""
    return 1 + max(max(each.epoch, each.next_epoch or 0, each.ended) for each in statuses)
