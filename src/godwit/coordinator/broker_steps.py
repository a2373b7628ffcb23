"""The steps of a change at one broker: drain, undrain, restart, return, leave.

Each can be repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

from godwit.api.network_api import NETWORK, BrokerAccount, ClientNames, StepKind, StepState
from godwit.coordinator.change_targets import RenewedTargets, planned_first
from godwit.coordinator.changes import named
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.ordering import ACCOUNT_S, TICK_S, Choose, Ordering
from godwit.coordinator.paced_moves import PacedMoves
from godwit.errors import GodwitError, UnreachableError
from godwit.http.operations import Nothing

#: How often the clients of a broker are listed while they move.
LOOK_S = 0.5
#: So many runs of a broker are ordered to leave, should it be killed meanwhile.
LEAVES_MAX = 3

StepEnd = tuple[StepState, str]


class BrokerSteps:
    def __init__(self, core: Coordinator, ordering: Ordering) -> None:
        self._core = core
        self._ordering = ordering

    def _choose(self, leaving: str) -> Choose:
        """Where the clients of a broker go: as planned, or where there is room."""
        request = self._ordering.change.request
        only = request.brokers if request.clients else request.to
        targets = RenewedTargets(lambda: self._ordering.targets(leaving, only))
        return planned_first(request.clients, targets.take)

    async def drain(self, index: int) -> StepEnd:
        step, request = self._ordering.change.steps[index], self._ordering.change.request
        await self._ordering.order(step.broker, "drain")
        await self._ordering.look()
        async with self._ordering.moving(self._choose(step.broker)) as moving:
            moves = moving.moves
            moves.moved.update(step.went)
            left = ClientNames([], [])
            looked_s = 0.0
            while True:
                if time.monotonic() - looked_s >= LOOK_S:
                    await self._ordering.order(step.broker, "drain")  # It may have been restarted.
                    left = await self._ordering.clients_of(step.broker)
                    looked_s = time.monotonic()
                    moves.see(step.broker, left.connected)
                    self._note_moves(index, moves, left)
                    await self._ordering.saved()
                    if not (left.connected or left.away or moving.is_asking):
                        return StepState.DONE, f"{len(moves.moved)} clients moved"
                if self._core.changes.is_taken_back:
                    if not moving.is_asking:
                        self._note_moves(index, moves, left)
                        return StepState.STOPPED, f"{len(moves.moved)} clients have moved"
                else:
                    moving.ask()
                moving.check()
                is_stuck = time.time() - moves.last_moved_s > request.give_up_s
                if moves.is_idle and is_stuck and not self._core.changes.is_taken_back:
                    return self._incomplete(index, moves, left)
                await asyncio.sleep(TICK_S)

    def _note_moves(self, index: int, moves: PacedMoves, left: ClientNames) -> None:
        total = len(moves.moved) + len(set(left.connected + left.away) - moves.moved.keys())
        self._core.changes.note(
            index,
            clients=total,
            moved=len(moves.moved),
            went=dict(moves.moved),
            stayed=named(moves.stayed),
        )

    def _incomplete(self, index: int, moves: PacedMoves, left: ClientNames) -> StepEnd:
        away = "it is away: its session ends after `session_s`, or it comes back and moves"
        stayed = {**dict.fromkeys(left.away, away), **moves.stayed}
        self._note_moves(index, moves, left)
        self._core.changes.note(index, stayed=named(stayed))
        return StepState.INCOMPLETE, f"{len(stayed)} clients of {left_text(stayed)}"

    async def undrain(self, index: int) -> StepEnd:
        await self._ordering.order(self._ordering.change.steps[index].broker, "undrain")
        return StepState.DONE, "admits clients"

    async def restart(self, index: int) -> StepEnd:
        step, within_s = self._ordering.change.steps[index], self._ordering.change.request.within_s
        start = step.start
        if not start:
            start = await self._noted_start(index)
        began_s = time.monotonic()
        with contextlib.suppress(UnreachableError):  # It may have ended already.
            await self._ordering.order(step.broker, "restart", start=start, within_s=ACCOUNT_S)
        away_s: float | None = None
        while True:
            account = await self._ordering.look_at(step.broker)
            took_s = time.monotonic() - began_s
            if account is not None and account.start != start:
                away_s = took_s if away_s is None else away_s
                if account.is_ready:
                    _check_in_time(account, away_s)
                    return StepState.DONE, f"is back after {took_s:.1f} s"
            if took_s > within_s:
                raise UnreachableError(
                    f"broker {step.broker} has not come back within {within_s:g} s; start it, then"
                    " restart those that are left"
                )
            await asyncio.sleep(TICK_S)

    async def _noted_start(self, index: int) -> str:
        """Which run of the broker is to end, in the record before it is ordered to."""
        broker = self._ordering.change.steps[index].broker
        view = await self._ordering.call(broker, NETWORK, Nothing())
        (account,) = [each.account for each in view.brokers if each.account is not None]
        self._core.changes.note(index, start=account.start)
        await self._ordering.saved()
        return account.start

    async def return_clients(self, index: int) -> StepEnd:
        steps, request = self._ordering.change.steps, self._ordering.change.request
        broker = steps[index].broker
        (drained,) = [s for s in steps if s.kind is StepKind.DRAIN and s.broker == broker]
        async with self._ordering.moving(lambda _client, _avoided: broker) as moving:
            moves = moving.moves
            while True:
                for source in sorted(set(drained.went.values())):
                    with contextlib.suppress(UnreachableError):
                        there = await self._ordering.clients_of(source, within_s=ACCOUNT_S)
                        mine = {c for c in there.connected if drained.went.get(c) == source}
                        moves.see(source, mine)
                until_s = time.monotonic() + LOOK_S
                while time.monotonic() < until_s:
                    if not self._core.changes.is_taken_back:
                        moving.ask()
                    moving.check()
                    await asyncio.sleep(TICK_S)
                moved, stayed = len(moves.moved), named(moves.stayed)
                self._core.changes.note(
                    index, clients=len(drained.went), moved=moved, stayed=stayed
                )
                await self._ordering.saved()
                is_stuck = time.time() - moves.last_moved_s > request.give_up_s
                if self._core.changes.is_taken_back and not moving.is_asking:
                    return StepState.STOPPED, f"{moved} clients are back"
                if moves.is_idle and (is_stuck or not moves.stayed):
                    state = StepState.INCOMPLETE if stayed else StepState.DONE
                    return state, f"{moved} of {len(drained.went)} clients are back"

    async def _empty_leaf(self, index: int) -> None:
        """Wait until the broker can leave: it may have been killed, and be on its way back."""
        broker = self._ordering.change.steps[index].broker
        within_s = self._ordering.change.request.within_s
        began_s = time.monotonic()
        while True:
            account = await self._ordering.look_at(broker)
            if account is not None and account.clients + account.clients_away:
                state, says = await self.drain(index)
                if state is not StepState.DONE:
                    raise GodwitError(f"broker {broker} cannot leave: {says}")
            elif account is not None:
                epoch = max(each.epoch for _, each in self._core.accounts.values())
                is_aside = account.clusters is not None or len(account.links) <= 1
                if account.is_ready and account.epoch >= epoch and is_aside:
                    return
            if time.monotonic() - began_s > within_s:
                raise GodwitError(f"broker {broker} is not an empty leaf after {within_s:g} s")
            await asyncio.sleep(TICK_S)

    async def leave(self, index: int) -> StepEnd:
        step = self._ordering.change.steps[index]
        start = step.start
        for _ in range(LEAVES_MAX):
            if not start:
                await self._empty_leaf(index)
                start = await self._noted_start(index)
            with contextlib.suppress(UnreachableError):  # It may have ended already.
                await self._ordering.order(step.broker, "leave", start=start, within_s=ACCOUNT_S)
            if await self._has_ended(step.broker, start):
                break
            start = ""  # It was killed before it could leave, and started again.
        else:
            raise GodwitError(
                f"broker {step.broker} has left, and its supervisor has started it again: a"
                " broker that ends with code 3 must stay away (docs/operating.md)"
            )
        self._core.remove_broker(step.broker)
        await self._ordering.saved()
        for other in self._core.registry.live(time.time()):
            with contextlib.suppress(UnreachableError):
                await self._ordering.order(other, "forget", about=step.broker, within_s=ACCOUNT_S)
        return StepState.DONE, "has left"

    async def _has_ended(self, broker: str, start: str) -> bool:
        """Wait until a run of a broker has ended; False if there is another one."""
        within_s, began_s = self._ordering.change.request.within_s, time.monotonic()
        while (account := await self._ordering.look_at(broker)) is not None:
            if account.start != start:
                return False
            if time.monotonic() - began_s > within_s:
                raise GodwitError(f"broker {broker} has not ended within {within_s:g} s")
            await asyncio.sleep(TICK_S)
        return True


def left_text(stayed: dict[str, str]) -> str:
    """Some of those that stayed, with reasons."""
    shown = [f"{name} ({why})" for name, why in list(stayed.items())[:3]]
    more = f" and {len(stayed) - 3} others" if len(stayed) > 3 else ""
    return f"stayed: {', '.join(shown)}{more}"


def _check_in_time(account: BrokerAccount, away_s: float) -> None:
    """Stop a rolling restart that loses something: the next broker would, too."""
    if away_s > account.link_s:
        raise GodwitError(
            f"broker {account.broker} was away for {away_s:.1f} s, longer than `link_s`"
            f" ({account.link_s:g} s): its neighbours have given it up, and clients were told of"
            " gaps; find out why it starts slowly, or raise `link_s`, before the next one"
        )
