"""What operators ask for: changes are checked, tried dry, begun and taken back."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

import msgspec

from godwit.api import network_api
from godwit.api.network_api import (
    BrokerAccount,
    BrokerLoad,
    ChangeKind,
    ChangeRequest,
    ChangeState,
    NetworkChange,
    StepKind,
)
from godwit.coordinator.change_rules import Circumstances, check_change
from godwit.coordinator.change_runner import ACCOUNT_S, ChangeRunner
from godwit.coordinator.change_targets import loads_after, loads_of
from godwit.coordinator.changes import steps_of, text_of
from godwit.coordinator.coordinator_core import Coordinator
from godwit.http.errors import RestError
from godwit.http.operations import Nothing, Served, served

log = logging.getLogger("godwit.changes")

#: Kinds after which the clients of the broker are elsewhere.
EMPTIES = (ChangeKind.DRAIN, ChangeKind.LEAVE)


class ChangeRequests:
    def __init__(self, core: Coordinator, runner: ChangeRunner, save: Callable[[], bool]) -> None:
        self._core = core
        self._runner = runner
        self._save = save
        self._one_at_a_time = asyncio.Lock()

    def operations(self) -> list[Served]:
        return [
            served(network_api.NETWORK, self._network),
            served(network_api.BEGIN_CHANGE, self._begin),
            served(network_api.CHANGES, self._list),
            served(network_api.CHANGE, self._one),
            served(network_api.ABORT_CHANGE, self._abort),
        ]

    async def _network(self, _request: Nothing) -> network_api.NetworkView:
        return self._core.network(time.time())

    async def _list(self, request: network_api.WhichChanges) -> network_api.ChangeList:
        return network_api.ChangeList(self._core.changes.latest(request.limit))

    async def _one(self, request: network_api.WhichChange) -> NetworkChange:
        return self._core.changes.change(request.number)

    async def _abort(self, _request: Nothing) -> NetworkChange:
        aborted = self._core.changes.abort()
        log.warning("aborted", extra={"change": aborted.number, "what": text_of(aborted.request)})
        self._check_saved()
        return aborted

    async def _begin(self, request: ChangeRequest) -> NetworkChange:
        async with self._one_at_a_time:
            return await self._begun(request)

    async def _begun(self, request: ChangeRequest) -> NetworkChange:
        core = self._core
        if self._takes_back(request) and not request.dry_run:
            return await self._abort(Nothing())
        if not request.dry_run:
            core.changes.check_idle()
        await self._runner.look()
        accounts = {name: account for name, (_, account) in core.accounts.items()}
        check_change(request, self._circumstances(request, accounts))
        proposed = await self._proposed(request, loads_of(accounts.values()))
        if request.dry_run:
            return proposed
        if request.take_over:
            core.take_over()
        change = core.changes.begin(
            request,
            core.authority,
            time.time(),
            before=proposed.before,
            expected=proposed.expected,
        )
        self._check_saved()
        what, by = text_of(request), request.asked_by
        log.info("change", extra={"change": change.number, "what": what, "by": by})
        return change

    def _takes_back(self, request: ChangeRequest) -> bool:
        """To undrain a broker that is just being drained is to abort that."""
        current = self._core.changes.current
        return (
            current is not None
            and current.request.kind is ChangeKind.DRAIN
            and request.kind is ChangeKind.UNDRAIN
            and current.request.brokers == request.brokers
        )

    def _circumstances(
        self, request: ChangeRequest, accounts: dict[str, BrokerAccount]
    ) -> Circumstances:
        core, now_s = self._core, time.time()
        rooms = [self._runner.targets(name, request.to).room for name in request.brokers]
        return Circumstances(
            authority=core.authority,
            known={name: record.http for name, record in core.registry.brokers.items()},
            live=frozenset(core.registry.live(now_s)),
            accounts=accounts,
            room=min(rooms),
        )

    async def _proposed(
        self, request: ChangeRequest, before: dict[str, BrokerLoad]
    ) -> NetworkChange:
        """What the change would do; for a client that comes or goes meanwhile it may differ."""
        steps, expected = steps_of(request), dict(before)
        for index, step in enumerate(steps):
            if step.kind is not StepKind.DRAIN:
                continue
            targets = self._runner.targets(step.broker, request.to)
            names = await self._runner.clients_of(step.broker, within_s=ACCOUNT_S)
            went = {name: targets.take(name) for name in names.connected}
            moves = {name: target for name, target in went.items() if target is not None}
            steps[index] = msgspec.structs.replace(step, clients=len(names.connected), went=moves)
            if request.kind in EMPTIES:
                expected = loads_after(expected, step.broker, moves)
        if request.kind is ChangeKind.LEAVE:
            expected = {
                name: load for name, load in expected.items() if name not in request.brokers
            }
        return NetworkChange(
            number=0,
            request=request,
            state=ChangeState.PROPOSED,
            authority=self._core.authority,
            asked_s=time.time(),
            ended_s=time.time(),
            steps=steps,
            before=before,
            expected=expected,
        )

    def _check_saved(self) -> None:
        if not self._save():
            raise RestError(503, "the state cannot be saved", retry_after_s=1)
