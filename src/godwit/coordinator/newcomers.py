"""Steps that wait for a broker to be there: one that joins, and one that is started again.

At first the links of a network are those of its files (epoch 0), and a broker links itself.  Later
it is outside the epoch in use: it is told so (`adopt`), serves no client, and becomes part of the
network by the next one, which is the step behind this (docs/reshaping.md).
"""

from __future__ import annotations

import asyncio
import time

from godwit.api.epoch_api import CHANGE_EPOCH, READ_EPOCH, change_request
from godwit.api.network_api import BrokerAccount, StepState
from godwit.broker.stimuli import AdoptEpoch
from godwit.content.link_messages import NetworkShape
from godwit.coordinator.broker_steps import StepEnd
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.ordering import ANSWER_S, TICK_S, Ordering
from godwit.errors import GodwitError, UnreachableError
from godwit.http.operations import Nothing
from godwit.overlay.epochs.epoch_phases import EpochPhase

#: A broker whose configured neighbours are gone is taken out of the first epoch after this time.
LINK_ITSELF_S = 10.0


class Newcomers:
    def __init__(self, core: Coordinator, ordering: Ordering) -> None:
        self._core = core
        self._ordering = ordering

    async def join(self, index: int) -> StepEnd:
        request = self._ordering.change.request
        step = self._ordering.change.steps[index]
        late = f"start it with a link to {request.link}, `http`, and this coordinator"
        if await self._entered(step.broker, request.link, late):
            is_last = len(self._ordering.change.steps) == index + 1
            linked = f"is linked with {request.link}, and serves clients"
            return StepState.DONE, linked if is_last else "is there"
        return StepState.STOPPED, "is not waited for any more"

    async def start(self, index: int) -> StepEnd:
        step = self._ordering.change.steps[index]
        late = f"see why it does not start; or start it: {start_command(step.broker)}"
        if await self._entered(step.broker, None, late):
            return StepState.DONE, "runs"
        return StepState.STOPPED, "is not waited for any more"

    async def _entered(self, broker: str, link: str | None, late: str) -> bool:
        """Wait until a broker is linked, or is outside the epoch that is in use."""
        within_s = self._ordering.change.request.within_s
        began_s = time.monotonic()
        while not self._core.changes.is_taken_back:
            account = await self._ordering.look_at(broker)
            after_s = time.monotonic() - began_s
            if account is not None and await self._is_in(account, link, after_s):
                return True
            if after_s > within_s:
                raise UnreachableError(f"broker {broker} is not there after {within_s:g} s: {late}")
            await asyncio.sleep(TICK_S)
        return False

    async def _is_in(self, account: BrokerAccount, link: str | None, after_s: float) -> bool:
        others = [a for name, (_, a) in self._core.accounts.items() if name != account.broker]
        epoch = max((each.epoch for each in others), default=0)
        linked = {each.neighbour for each in account.links if each.status == "up"}
        if not epoch and not any(each.clusters for each in others):
            if account.is_ready and (linked if link is None else link in linked):
                return True
            if link is not None or after_s < LINK_ITSELF_S:
                return False
        return await self._is_outside(account, max(epoch, 1))

    async def _is_outside(self, account: BrokerAccount, epoch: int) -> bool:
        """Whether a broker knows the epoch in use; it is told."""
        broker, calls = account.broker, self._ordering.calls
        try:
            status = await calls.call(broker, READ_EPOCH, Nothing(), answer_s=ANSWER_S)
            if status.phase != EpochPhase.STEADY.value or status.epoch >= epoch:
                return status.phase == EpochPhase.STEADY.value
            shape = self._present_shape(broker, epoch)
            number = self._core.authority.number
            request = change_request(AdoptEpoch("", shape), shape, number)
            await calls.call(broker, CHANGE_EPOCH, request, answer_s=ANSWER_S)
        except GodwitError:
            pass  # It is busy: it learns of the epoch from a neighbour.
        return False

    def _present_shape(self, without: str, epoch: int) -> NetworkShape:
        view = self._core.network(time.time())
        addresses = {
            each.broker: each.account.url
            for each in view.brokers
            if each.account is not None and each.broker != without
        }
        links = [
            (each.one, each.other) for each in view.links if without not in (each.one, each.other)
        ]
        return NetworkShape(epoch=epoch, links=tuple(sorted(links)), addresses=addresses)


def start_command(broker: str) -> str:
    return f"godwit broker --config FILE --id {broker}"
