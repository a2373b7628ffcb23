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
    ChangeStep,
    NetworkChange,
    StepKind,
)
from godwit.coordinator.allocating import (
    THE_NETWORK,
    allocation_steps,
    check_allocation,
    expected_loads,
    planned_moves,
)
from godwit.coordinator.change_rules import Circumstances, check_change
from godwit.coordinator.change_targets import loads_after, loads_of
from godwit.coordinator.changes import steps_of, text_of
from godwit.coordinator.cluster_membership import MEMBERSHIP, cluster_steps, present_clusters
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.ordering import ACCOUNT_S, Ordering
from godwit.http.errors import RestError
from godwit.http.operations import Nothing, Served, served

log = logging.getLogger("godwit.changes")

#: Kinds after which the clients of the broker are elsewhere.
EMPTIES = (ChangeKind.DRAIN, ChangeKind.LEAVE)


def steps_for(request: ChangeRequest, now: Circumstances) -> list[ChangeStep]:
    if request.kind is ChangeKind.ALLOCATE:
        return allocation_steps(request, now)
    steps = steps_of(request)
    clusters = present_clusters(now.accounts)
    if clusters is not None and request.kind in MEMBERSHIP:
        return cluster_steps(request, clusters, steps)
    if request.kind is ChangeKind.JOIN and any(each.epoch for each in now.accounts.values()):
        # The links are not those of the files any more: the new broker is part of the next epoch.
        members = [*sorted(now.live), *request.brokers]
        links = [*sorted(now.links), (request.link or "", request.brokers[0])]
        tree = ChangeStep(kind=StepKind.RESHAPE, broker=THE_NETWORK, members=members, links=links)
        steps.append(tree)
    return steps


class ChangeRequests:
    def __init__(self, core: Coordinator, ordering: Ordering, save: Callable[[], bool]) -> None:
        self._core = core
        self._ordering = ordering
        self._save = save
        self._one_at_a_time = asyncio.Lock()

    def operations(self) -> list[Served]:
        return [
            served(network_api.NETWORK, self._network),
            served(network_api.BEGIN_CHANGE, self.begin),
            served(network_api.CHANGES, self._list),
            served(network_api.CHANGE, self._one),
            served(network_api.ABORT_CHANGE, self._abort),
            served(network_api.STARTS, self._starts),
        ]

    async def _network(self, _request: Nothing) -> network_api.NetworkView:
        return self._core.network(time.time())

    async def _starts(self, request: network_api.Startable) -> network_api.ToStart:
        core = self._core
        core.startable.update(dict.fromkeys(request.brokers, time.time()))
        return network_api.ToStart(sorted(core.changes.awaited & set(request.brokers)))

    async def _list(self, request: network_api.WhichChanges) -> network_api.ChangeList:
        return network_api.ChangeList(self._core.changes.latest(request.limit))

    async def _one(self, request: network_api.WhichChange) -> NetworkChange:
        return self._core.changes.change(request.number)

    async def _abort(self, request: network_api.AbortRequest) -> NetworkChange:
        if request.dry_run:
            return self._core.changes.abortable()
        aborted = self._core.changes.abort()
        log.warning("aborted", extra={"change": aborted.number, "what": text_of(aborted.request)})
        self._check_saved()
        return aborted

    async def begin(self, request: ChangeRequest) -> NetworkChange:
        async with self._one_at_a_time:
            return await self._begun(request)

    async def _begun(self, request: ChangeRequest) -> NetworkChange:
        core = self._core
        if self._takes_back(request) and not request.dry_run:
            return await self._abort(network_api.AbortRequest())
        if not request.dry_run:
            core.changes.check_idle()
        await self._ordering.look()
        accounts = {name: account for name, (_, account) in core.accounts.items()}
        now = self._circumstances(request, accounts)
        check_change(request, now)
        if request.kind is ChangeKind.ALLOCATE:
            check_allocation(request, now)
        proposed = await self._proposed(request, now)
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
            steps=steps_for(request, now),
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
        rooms = [self._ordering.targets(name, request.to).room for name in request.brokers]
        return Circumstances(
            authority=core.authority,
            known={name: record.http for name, record in core.registry.brokers.items()},
            live=frozenset(core.registry.live(now_s)),
            accounts=accounts,
            room=min(rooms),
            links=core.tree(now_s),
            startable=core.can_be_started(now_s),
        )

    async def _proposed(self, request: ChangeRequest, now: Circumstances) -> NetworkChange:
        """What the change would do; for a client that comes or goes meanwhile it may differ."""
        before = loads_of(now.accounts.values())
        steps, expected = steps_for(request, now), dict(before)
        if request.kind is ChangeKind.ALLOCATE:
            steps, expected = await self._planned(request, steps, now)
        for index, step in enumerate(steps):
            if step.kind is not StepKind.DRAIN or request.kind is ChangeKind.ALLOCATE:
                continue
            targets = self._ordering.targets(step.broker, request.to)
            names = await self._ordering.clients_of(step.broker, within_s=ACCOUNT_S)
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

    async def _planned(
        self, request: ChangeRequest, steps: list[ChangeStep], now: Circumstances
    ) -> tuple[list[ChangeStep], dict[str, BrokerLoad]]:
        """The steps of a plan with the clients that would move, and the loads to expect."""
        homes: dict[str, str] = {}
        for broker in sorted(now.live):
            names = await self._ordering.clients_of(broker, within_s=ACCOUNT_S)
            homes |= dict.fromkeys(names.connected, broker)
        others: dict[str, str] = {}
        for index, step in enumerate(steps):
            went: dict[str, str] = {}
            if step.kind is StepKind.MOVE:
                went = planned_moves(request, homes)
            elif step.kind is StepKind.DRAIN:
                targets = self._ordering.targets(step.broker, request.brokers)
                left = [
                    name
                    for name, home in homes.items()
                    if home == step.broker and name not in request.clients
                ]
                taken = {name: targets.take(name) for name in left}
                went = {name: to for name, to in taken.items() if to is not None}
                others |= went
            steps[index] = msgspec.structs.replace(step, clients=len(went), went=went)
        return steps, expected_loads(request, homes, others)

    def _check_saved(self) -> None:
        if not self._save():
            raise RestError(503, "the state cannot be saved", retry_after_s=1)
