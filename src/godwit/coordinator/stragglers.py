"""Brokers that were restarted and do not know what has happened meanwhile: they are told.

A broker that restarts has the links of its file.  If all neighbours of the file have left, or are
to call it, no broker tells it that the network has another shape, and it is alone.  One that was
away while another one has left waits for that one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Collection, Mapping

from godwit.api.epoch_api import CHANGE_EPOCH, change_request
from godwit.api.network_api import BrokerAccount, NetworkChange, StepKind, StepState
from godwit.broker.stimuli import AdoptEpoch
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.ordering import ANSWER_S, Ordering
from godwit.errors import GodwitError
from godwit.migration.reshaping import ReshapingRecord, ReshapingStage
from godwit.overlay.epochs.epoch_places import without
from godwit.protocol.supervision import survive

log = logging.getLogger("godwit.changes")

LOOK_S = 1.0
#: Neighbours are quicker, if there are any.
ALONE_S = 3.0


class Stragglers:
    def __init__(self, core: Coordinator, ordering: Ordering) -> None:
        self._core = core
        self._ordering = ordering
        self._seen: dict[str, BrokerAccount] = {}
        """The last account of each that was looked at."""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            with survive(log, "failed"):
                await self.tell()
                await self.remind()

    async def remind(self) -> None:
        """Brokers that wait for one that has left are told again that it has."""
        accounts = {name: account for name, (_, account) in self._core.accounts.items()}
        gone = departed(self._core.changes.latest(1_000)) - self._core.registry.brokers.keys()
        for name, other in waiting(accounts, gone):
            if self._core.is_live(name, time.time()):
                with contextlib.suppress(GodwitError):
                    await self._ordering.order(name, "forget", about=other, within_s=ANSWER_S)

    async def tell(self) -> None:
        """Look at those that are behind, once for each report."""
        accounts = {name: account for name, (_, account) in self._core.accounts.items()}
        record = last_shape(self._core.changes.latest(1_000), self._core.registry.brokers)
        if record is None:
            return
        for name in behind(accounts, record):
            if self._seen.get(name) == accounts[name]:
                continue
            account = await self._ordering.look_at(name)
            if account is None or account.epoch >= record.shape.epoch:
                continue
            if time.time() - account.started_s < ALONE_S:
                continue
            self._seen[name] = self._core.accounts[name][1]
            request = change_request(
                AdoptEpoch(record.change, record.shape), record.shape, self._core.authority.number
            )
            with contextlib.suppress(GodwitError):  # It is busy, and learns of it.
                await self._ordering.calls.call(name, CHANGE_EPOCH, request, answer_s=ANSWER_S)


def last_shape(
    changes: Collection[NetworkChange], brokers: Collection[str]
) -> ReshapingRecord | None:
    """The shape in use, without brokers that have left since; changes are the latest first."""
    records = [step.reshaping for change in changes for step in change.steps]
    done = [each for each in records if each is not None and each.stage is ReshapingStage.DONE]
    if not done:
        return None
    shape = done[0].shape
    for name in {*shape.brokers, *shape.addresses} - set(brokers):
        remaining = without(shape, name)
        assert remaining is not None
        shape = remaining
    return ReshapingRecord(change=done[0].change, shape=shape, stage=ReshapingStage.DONE)


def departed(changes: Collection[NetworkChange]) -> set[str]:
    """Brokers that have left; some may be back."""
    steps = [step for change in changes for step in change.steps]
    return {s.broker for s in steps if s.kind is StepKind.LEAVE and s.state is StepState.DONE}


def waiting(accounts: Mapping[str, BrokerAccount], gone: Collection[str]) -> list[tuple[str, str]]:
    """Brokers that expect a link with one that has left."""
    return [
        (name, link.neighbour)
        for name, account in sorted(accounts.items())
        for link in account.links
        if link.neighbour in gone and link.status == "expected"
    ]


def behind(accounts: Mapping[str, BrokerAccount], record: ReshapingRecord) -> list[str]:
    """Brokers of the shape that use an earlier one."""
    members = {*record.shape.brokers, *record.shape.addresses}
    return sorted(
        name
        for name, account in accounts.items()
        if name in members and account.epoch < record.shape.epoch
    )
