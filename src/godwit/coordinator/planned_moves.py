"""The step of a plan that moves clients to the brokers that it has for them, at a limited rate."""

from __future__ import annotations

import asyncio
import time

from godwit.api.network_api import StepState
from godwit.coordinator.broker_steps import LOOK_S, StepEnd, left_text
from godwit.coordinator.changes import named
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.ordering import ACCOUNT_S, TICK_S, Ordering
from godwit.coordinator.paced_moves import PacedMoves
from godwit.errors import UnreachableError


class PlannedMoves:
    def __init__(self, core: Coordinator, ordering: Ordering) -> None:
        self._core = core
        self._ordering = ordering

    async def move(self, index: int) -> StepEnd:
        step, request = self._ordering.change.steps[index], self._ordering.change.request
        changes = self._core.changes
        async with self._ordering.moving(
            lambda name, _avoided: request.clients.get(name)
        ) as moving:
            moves = moving.moves
            moves.moved.update(step.went)
            looked_s, elsewhere = 0.0, 0
            while True:
                if time.monotonic() - looked_s >= LOOK_S:
                    elsewhere = await self._look(moves)
                    looked_s = time.monotonic()
                    self._note(index, moves, elsewhere)
                    await self._ordering.saved()
                    if not elsewhere and not moving.is_asking:
                        return StepState.DONE, f"{len(moves.moved)} clients moved"
                if changes.is_taken_back:
                    if not moving.is_asking:
                        return StepState.STOPPED, f"{len(moves.moved)} clients have moved"
                else:
                    moving.ask()
                moving.check()
                is_stuck = time.time() - moves.last_moved_s > request.give_up_s
                if moves.is_idle and is_stuck and not changes.is_taken_back:
                    self._note(index, moves, elsewhere)
                    return StepState.INCOMPLETE, f"{elsewhere} clients {left_text(moves.stayed)}"
                await asyncio.sleep(TICK_S)

    async def _look(self, moves: PacedMoves) -> int:
        """See who is where; return how many are not where they should be."""
        planned, count = self._ordering.change.request.clients, 0
        for broker in self._core.registry.live(time.time()):
            try:
                there = await self._ordering.clients_of(broker, within_s=ACCOUNT_S)
            except UnreachableError:
                continue  # It may be restarted: its clients come back to it.
            mine = {name for name in there.connected if planned.get(name, broker) != broker}
            moves.see(broker, mine)
            count += len(mine)
        return count

    def _note(self, index: int, moves: PacedMoves, elsewhere: int) -> None:
        self._core.changes.note(
            index,
            clients=len(moves.moved) + elsewhere,
            moved=len(moves.moved),
            went=dict(moves.moved),
            stayed=named(moves.stayed),
        )
