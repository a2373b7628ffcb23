"""Brokers that were restarted and do not know what has happened meanwhile: they are told.

A broker that restarts has the links of its file.  If all neighbours of the file have left, or are
to call it, no broker tells it that the network has another shape, and it is alone.  So is one that
was killed while it left.  One that was away while another one has left waits for that one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Collection, Iterator, Mapping

from godwit.api.epoch_api import CHANGE_EPOCH, change_request
from godwit.api.network_api import BrokerAccount, ChangeStep, NetworkChange, StepKind, StepState
from godwit.broker.stimuli import AdoptEpoch
from godwit.content.link_messages import NetworkShape
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
        gone = departed(self._core.changes.latest(1_000), self._core.registry.brokers)
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
    """The shape in use, without brokers that have left since; changes are the latest first.

    One that has left, and was started again, is outside until a change has it as a member.
    """
    left: set[str] = set()
    for step in _latest_steps(changes):
        if step.kind is StepKind.LEAVE and step.state is StepState.DONE:
            left.add(step.broker)
        record = step.reshaping
        if record is not None and record.stage is ReshapingStage.DONE:
            shape: NetworkShape | None = record.shape
            members = {*record.shape.brokers, *record.shape.addresses}
            for name in members & left | members - set(brokers):
                shape = without(shape, name)
            assert shape is not None
            return ReshapingRecord(change=record.change, shape=shape, stage=ReshapingStage.DONE)
    return None


def departed(changes: Collection[NetworkChange], brokers: Collection[str]) -> set[str]:
    """Brokers that have left, and are not part of the network again; latest changes first.

    Nothing is known while a change of the shape is under way: it may have them as members.
    """
    left: set[str] = set()
    since_shape: set[str] | None = None
    for step in _latest_steps(changes):
        if step.reshaping is not None and not step.reshaping.stage.is_over:
            return set()
        if step.reshaping is not None and step.reshaping.stage is ReshapingStage.DONE:
            since_shape = set(left) if since_shape is None else since_shape
        if step.kind is StepKind.LEAVE and step.state is StepState.DONE:
            left.add(step.broker)
    return left - set(brokers) | (since_shape or set())


def _latest_steps(changes: Collection[NetworkChange]) -> Iterator[ChangeStep]:
    for change in changes:
        yield from reversed(change.steps)


def waiting(accounts: Mapping[str, BrokerAccount], gone: Collection[str]) -> list[tuple[str, str]]:
    """Brokers that expect a link with one that has left."""
    return [
        (name, other)
        for name, account in sorted(accounts.items())
        for other in account.awaited
        if other in gone
    ]


def behind(accounts: Mapping[str, BrokerAccount], record: ReshapingRecord) -> list[str]:
    """Brokers that use an earlier shape; those that are not part of this one are outside then.

    One that was killed while it left, and was started again, has no other way to learn of it.
    """
    return sorted(name for name, each in accounts.items() if each.epoch < record.shape.epoch)
