"""Carries out changes of the network, step by step, by orders to brokers.

Each step can be repeated, so a coordinator that was killed goes on where its record says.  The
record is on the disk before a step begins, and after each batch of moves.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable

from godwit.api.network_api import (
    BrokerAccount,
    ChangeKind,
    ChangeState,
    NetworkChange,
    StepKind,
    StepState,
)
from godwit.coordinator.broker_calls import BrokerCalls
from godwit.coordinator.broker_steps import BrokerSteps, StepEnd
from godwit.coordinator.change_targets import loads_of
from godwit.coordinator.changes import text_of
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.newcomers import Newcomers
from godwit.coordinator.ordering import ACCOUNT_S, ANSWER_S, TICK_S, Ordering
from godwit.coordinator.planned_moves import PlannedMoves
from godwit.coordinator.reshaping_step import ReshapingStep
from godwit.coordinator.stragglers import Stragglers
from godwit.errors import GodwitError
from godwit.http.errors import RestError
from godwit.protocol.supervision import survive

log = logging.getLogger("godwit.changes")


class ChangeRunner:
    def __init__(self, core: Coordinator, calls: BrokerCalls, save: Callable[[], bool]) -> None:
        self._core = core
        self.ordering = Ordering(core, calls, save)
        self._reshaping = ReshapingStep(core, calls, save)
        self._stragglers = Stragglers(core, self.ordering)
        """Also during a change: one that was killed has to come back into it."""
        self._seen: dict[str, tuple[float, BrokerAccount]] = {}
        """The last account of brokers that should be drained."""
        steps, newcomers = BrokerSteps(core, self.ordering), Newcomers(core, self.ordering)
        self._steps: dict[StepKind, Callable[[int], Awaitable[StepEnd]]] = {
            StepKind.DRAIN: steps.drain,
            StepKind.UNDRAIN: steps.undrain,
            StepKind.RESTART: steps.restart,
            StepKind.RETURN: steps.return_clients,
            StepKind.LEAVE: steps.leave,
            StepKind.JOIN: newcomers.join,
            StepKind.START: newcomers.start,
            StepKind.RESHAPE: self._reshape,
            StepKind.MOVE: PlannedMoves(core, self.ordering).move,
        }

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as both:
            both.create_task(self._stragglers.run())
            both.create_task(self._run())

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            with survive(log, "failed"):
                if self._core.changes.current is None:
                    await self._keep_drained()
                else:
                    await self._carry_out_current()

    # -- a change ------------------------------------------------------------------------------

    async def _carry_out_current(self) -> None:
        changes = self._core.changes
        try:
            state, because = await self._carry_out()
        except GodwitError as error:
            state, because = ChangeState.FAILED, str(error)
            if not _is_superseded(error):
                await self._reopen(within_s=ANSWER_S)
        except Exception:
            state, because = ChangeState.FAILED, "internal error; see the log of the coordinator"
            raise
        finally:
            if changes.current is not None and not _is_cancelled():
                await self.ordering.look()
                after = loads_of(account for _, account in self._core.accounts.values())
                ended = changes.end(state, because, after, time.time())
                await self.ordering.saved()
                _log_end(ended)

    async def _carry_out(self) -> tuple[ChangeState, str]:
        changes = self._core.changes
        change = self.ordering.change
        await self._announce()
        for index, step in enumerate(change.steps):
            if self.ordering.change.steps[index].ended_s is not None:
                continue
            if changes.is_taken_back:
                break
            changes.begin_step(index, time.time())
            await self.ordering.saved()
            log.info("step", extra={"change": change.number, "step": step.kind.value,
                                    "broker": step.broker})  # fmt: skip
            state, says = await self._steps[step.kind](index)
            changes.end_step(index, state, says, time.time())
            await self.ordering.saved()
            if state is StepState.INCOMPLETE and change.request.kind is ChangeKind.ALLOCATE:
                self._skip_leave(step.broker)
            elif state is StepState.INCOMPLETE and change.request.kind is not ChangeKind.RESTART:
                return ChangeState.INCOMPLETE, f"{says}; {step.broker} still admits no new clients"
        if changes.is_taken_back:
            await self._reopen(within_s=change.request.within_s)
            return ChangeState.TAKEN_BACK, "aborted"
        left = [s.says for s in self.ordering.change.steps if s.state is StepState.INCOMPLETE]
        is_short = bool(left) and change.request.kind is ChangeKind.ALLOCATE
        return ChangeState.INCOMPLETE if is_short else ChangeState.DONE, "; ".join(left)

    def _skip_leave(self, broker: str) -> None:
        """A broker that still has clients stays."""
        for index, step in enumerate(self.ordering.change.steps):
            if step.kind is StepKind.LEAVE and step.broker == broker:
                says = "it stays, drained: it still has clients"
                self._core.changes.end_step(index, StepState.STOPPED, says, time.time())

    async def _announce(self) -> None:
        """Tell all brokers who is in charge: none obeys a former coordinator from now on."""
        live = self._core.registry.live(time.time())
        told = await asyncio.gather(
            *(self.ordering.order(broker, "obey", within_s=ACCOUNT_S) for broker in live),
            return_exceptions=True,
        )
        for error in told:
            if isinstance(error, GodwitError) and _is_superseded(error):
                raise error

    async def _reopen(self, *, within_s: float) -> None:
        """Let brokers that were drained, and run on, serve clients again."""
        steps = self.ordering.change.steps
        over = {s.broker for s in steps if s.kind is not StepKind.DRAIN and s.began_s is not None}
        for step in steps:
            if step.kind is StepKind.DRAIN and step.began_s and step.broker not in over:
                with contextlib.suppress(GodwitError):
                    await self.ordering.order(step.broker, "undrain", within_s=within_s)

    async def _keep_drained(self) -> None:
        """A broker that was drained, and was restarted by accident, is drained again."""
        core, now_s = self._core, time.time()
        for broker in core.changes.drained:
            known = core.accounts.get(broker)
            if known is None or known == self._seen.get(broker):
                continue  # Once for each report: it may refuse.
            self._seen[broker] = known
            if not known[1].is_draining and core.is_live(broker, now_s):
                with contextlib.suppress(GodwitError):
                    await self.ordering.order(
                        broker, "drain", within_s=ACCOUNT_S, reason="drained before"
                    )

    async def _reshape(self, index: int) -> StepEnd:
        return await self._reshaping.run(self.ordering.change, index)


def _is_superseded(error: GodwitError) -> bool:
    return isinstance(error, RestError) and error.where == "authority"


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _log_end(change: NetworkChange) -> None:
    facts = {
        "change": change.number,
        "what": text_of(change.request),
        "by": change.request.asked_by,
        "state": change.state.value,
        "why": change.because,
        "took_s": round((change.ended_s or change.asked_s) - change.asked_s, 1),
        "moved": sum(step.moved for step in change.steps),
    }
    level = logging.INFO if change.state is ChangeState.DONE else logging.WARNING
    log.log(level, "changed", extra=facts)
