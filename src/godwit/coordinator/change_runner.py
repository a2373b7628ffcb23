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
    CLIENTS,
    NETWORK,
    ORDER,
    BrokerAccount,
    ChangeKind,
    ChangeState,
    ClientNames,
    Command,
    NetworkChange,
    Order,
    StepKind,
    StepState,
)
from godwit.coordinator.broker_calls import BrokerCalls
from godwit.coordinator.change_targets import Targets, loads_of, serving
from godwit.coordinator.changes import named, text_of
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.moving_clients import MovingClients
from godwit.coordinator.paced_moves import PacedMoves
from godwit.coordinator.reshaping_step import ReshapingStep
from godwit.errors import GodwitError, UnreachableError
from godwit.http.errors import RestError
from godwit.http.operations import Answer, Asked, Nothing, Operation
from godwit.protocol.supervision import survive

log = logging.getLogger("godwit.changes")

TICK_S = 0.1
#: How often the clients of a broker are listed while they move.
LOOK_S = 0.5
ANSWER_S = 5.0
#: For brokers that are asked how they are.
ACCOUNT_S = 2.0
LATER = 503

StepEnd = tuple[StepState, str]


class ChangeRunner:
    def __init__(self, core: Coordinator, calls: BrokerCalls, save: Callable[[], bool]) -> None:
        self._core = core
        self._calls = calls
        self._save = save
        self._reshaping = ReshapingStep(core, calls, save)
        self._seen: dict[str, tuple[float, BrokerAccount]] = {}
        """The last account of brokers that should be drained."""
        self._steps: dict[StepKind, Callable[[int], Awaitable[StepEnd]]] = {
            StepKind.DRAIN: self._drain,
            StepKind.UNDRAIN: self._undrain,
            StepKind.RESTART: self._restart,
            StepKind.RETURN: self._return,
            StepKind.LEAVE: self._leave,
            StepKind.JOIN: self._join,
            StepKind.RESHAPE: self._reshape,
        }

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(TICK_S)
            with survive(log, "failed"):
                if self._core.changes.current is None:
                    await self._keep_drained()
                else:
                    await self._carry_out_current()

    async def look(self) -> None:
        """Ask all brokers how they are."""
        brokers = [name for name, each in self._core.registry.brokers.items() if each.http]
        await asyncio.gather(*(self._look_at(broker) for broker in brokers))

    async def _look_at(self, broker: str) -> BrokerAccount | None:
        try:
            view = await self._calls.call(broker, NETWORK, Nothing(), answer_s=ACCOUNT_S)
        except GodwitError:
            return None
        account = view.brokers[0].account if view.brokers else None
        if account is None or account.broker != broker:
            return None
        now_s = time.time()
        self._core.registry.hear_of(broker, now_s)
        self._core.hear(account, now_s)
        return account

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
                await self.look()
                after = loads_of(account for _, account in self._core.accounts.values())
                ended = changes.end(state, because, after, time.time())
                await self._saved()
                _log_end(ended)

    async def _carry_out(self) -> tuple[ChangeState, str]:
        changes = self._core.changes
        change = self._change
        await self._announce()
        for index, step in enumerate(change.steps):
            if step.ended_s is not None:
                continue
            if changes.is_taken_back:
                break
            changes.begin_step(index, time.time())
            await self._saved()
            log.info("step", extra={"change": change.number, "step": step.kind.value,
                                    "broker": step.broker})  # fmt: skip
            state, says = await self._steps[step.kind](index)
            changes.end_step(index, state, says, time.time())
            await self._saved()
            if state is StepState.INCOMPLETE and change.request.kind is not ChangeKind.RESTART:
                return ChangeState.INCOMPLETE, f"{says}; {step.broker} still admits no new clients"
        if changes.is_taken_back:
            await self._reopen(within_s=change.request.within_s)
            return ChangeState.TAKEN_BACK, "aborted"
        left = [s.says for s in self._change.steps if s.state is StepState.INCOMPLETE]
        return ChangeState.DONE, "; ".join(left)

    async def _announce(self) -> None:
        """Tell all brokers who is in charge: none obeys a former coordinator from now on."""
        live = self._core.registry.live(time.time())
        told = await asyncio.gather(
            *(self._order(broker, "obey", within_s=ACCOUNT_S) for broker in live),
            return_exceptions=True,
        )
        for error in told:
            if isinstance(error, GodwitError) and _is_superseded(error):
                raise error

    @property
    def _change(self) -> NetworkChange:
        current = self._core.changes.current
        assert current is not None
        return current

    async def _reopen(self, *, within_s: float) -> None:
        """Let brokers that were drained, and run on, serve clients again."""
        steps = self._change.steps
        over = {s.broker for s in steps if s.kind is not StepKind.DRAIN and s.began_s is not None}
        for step in steps:
            if step.kind is StepKind.DRAIN and step.began_s and step.broker not in over:
                with contextlib.suppress(GodwitError):
                    await self._order(step.broker, "undrain", within_s=within_s)

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
                    await self._order(broker, "drain", within_s=ACCOUNT_S, reason="drained before")

    async def _saved(self) -> None:
        """Wait until the record is on the disk (H2)."""
        while not self._save():  # noqa: ASYNC110  A full disk has no event.
            await asyncio.sleep(1.0)

    # -- requests to brokers -------------------------------------------------------------------

    async def _call(
        self,
        broker: str,
        operation: Operation[Asked, Answer],
        request: Asked,
        *,
        within_s: float | None = None,
    ) -> Answer:
        """Try again for a while if the broker does not answer."""
        limit_s = self._change.request.within_s if within_s is None else within_s
        start_s = time.monotonic()
        while True:
            try:
                return await self._calls.call(broker, operation, request, answer_s=ANSWER_S)
            except GodwitError as error:
                is_later = isinstance(error, RestError) and error.status == LATER
                if not (isinstance(error, UnreachableError) or is_later):
                    raise
                if time.monotonic() - start_s > limit_s:
                    text = f"broker {broker} has not answered for {limit_s:g} s: {error}"
                    raise UnreachableError(text) from None
            await asyncio.sleep(TICK_S)

    async def _order(
        self,
        broker: str,
        command: Command,
        *,
        within_s: float | None = None,
        reason: str = "",
        start: str = "",
        about: str = "",
    ) -> BrokerAccount:
        current = self._core.changes.current
        if current is not None and not reason:
            because = f": {current.request.reason}" if current.request.reason else ""
            reason = f"change {current.number}, {text_of(current.request)}{because}"
        order = Order(
            authority=self._core.authority,
            command=command,
            reason=reason[:500],
            start=start,
            broker=about,
        )
        account = await self._call(broker, ORDER, order, within_s=within_s)
        self._core.hear(account, time.time())
        return account

    async def clients_of(self, broker: str, *, within_s: float | None = None) -> ClientNames:
        return await self._call(broker, CLIENTS, Nothing(), within_s=within_s)

    # -- steps ---------------------------------------------------------------------------------

    def targets(self, leaving: str, to: list[str]) -> Targets:
        """Brokers that may take the clients of one that they leave."""
        core, now_s = self._core, time.time()
        return Targets(
            serving(
                {name: account for name, (_, account) in core.accounts.items()},
                live=core.registry.live(now_s),
                closed={leaving, *core.changes.joining},
                only=to,
            ),
            lambda client, free, loads, turn: core.registry.choose(
                free, core.registry.location(client), loads, turn
            )[0],
        )

    def _moving(self, choose: Targets | str) -> MovingClients:
        """Moves at the rate of the change: of one broker's clients, or back to one."""
        request, settings = self._change.request, self._core.settings
        take = choose.take if isinstance(choose, Targets) else lambda _client, _avoided: choose
        moves = PacedMoves(request.per_s or settings.moves_per_s, take, now_s=time.time())
        return MovingClients(
            moves, self._calls, self._core.authority, within_s=settings.move_timeout_s
        )

    async def _drain(self, index: int) -> StepEnd:
        step, request = self._change.steps[index], self._change.request
        await self._order(step.broker, "drain")
        await self.look()
        async with self._moving(self.targets(step.broker, request.to)) as moving:
            moves = moving.moves
            moves.moved.update(step.went)
            left = ClientNames([], [])
            looked_s = 0.0
            while True:
                if time.monotonic() - looked_s >= LOOK_S:
                    await self._order(step.broker, "drain")  # It may have been restarted.
                    left = await self.clients_of(step.broker)
                    looked_s = time.monotonic()
                    moves.see(step.broker, left.connected)
                    self._note_moves(index, moves, left)
                    await self._saved()
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

    async def _undrain(self, index: int) -> StepEnd:
        await self._order(self._change.steps[index].broker, "undrain")
        return StepState.DONE, "admits clients"

    async def _restart(self, index: int) -> StepEnd:
        step, within_s = self._change.steps[index], self._change.request.within_s
        start = step.start
        if not start:
            start = await self._noted_start(index)
        began_s = time.monotonic()
        with contextlib.suppress(UnreachableError):  # It may have ended already.
            await self._order(step.broker, "restart", start=start, within_s=ACCOUNT_S)
        away_s: float | None = None
        while True:
            account = await self._look_at(step.broker)
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
        broker = self._change.steps[index].broker
        view = await self._call(broker, NETWORK, Nothing())
        (account,) = [each.account for each in view.brokers if each.account is not None]
        self._core.changes.note(index, start=account.start)
        await self._saved()
        return account.start

    async def _return(self, index: int) -> StepEnd:
        steps, request = self._change.steps, self._change.request
        broker = steps[index].broker
        (drained,) = [s for s in steps if s.kind is StepKind.DRAIN and s.broker == broker]
        async with self._moving(broker) as moving:
            moves = moving.moves
            while True:
                for source in sorted(set(drained.went.values())):
                    with contextlib.suppress(UnreachableError):
                        there = await self.clients_of(source, within_s=ACCOUNT_S)
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
                await self._saved()
                is_stuck = time.time() - moves.last_moved_s > request.give_up_s
                if self._core.changes.is_taken_back and not moving.is_asking:
                    return StepState.STOPPED, f"{moved} clients are back"
                if moves.is_idle and (is_stuck or not moves.stayed):
                    state = StepState.INCOMPLETE if stayed else StepState.DONE
                    return state, f"{moved} of {len(drained.went)} clients are back"

    async def _leave(self, index: int) -> StepEnd:
        step, within_s = self._change.steps[index], self._change.request.within_s
        start = step.start
        if not start:
            start = await self._noted_start(index)
        with contextlib.suppress(UnreachableError):  # It may have ended already.
            await self._order(step.broker, "leave", start=start, within_s=ACCOUNT_S)
        began_s = time.monotonic()
        while (account := await self._look_at(step.broker)) is not None:
            if account.start != start:
                raise GodwitError(
                    f"broker {step.broker} has left, and its supervisor has started it again: a"
                    " broker that ends with code 3 must stay away (docs/operating.md)"
                )
            if time.monotonic() - began_s > within_s:
                raise GodwitError(f"broker {step.broker} has not ended within {within_s:g} s")
            await asyncio.sleep(TICK_S)
        self._core.remove_broker(step.broker)
        await self._saved()
        for other in self._core.registry.live(time.time()):
            with contextlib.suppress(UnreachableError):
                await self._order(other, "forget", about=step.broker, within_s=ACCOUNT_S)
        return StepState.DONE, "has left"

    async def _join(self, index: int) -> StepEnd:
        step, request = self._change.steps[index], self._change.request
        began_s = time.monotonic()
        while not self._core.changes.is_taken_back:
            account = await self._look_at(step.broker)
            if account is not None and account.is_ready:
                links = {link.neighbour for link in account.links if link.status == "up"}
                if request.link in links:
                    return StepState.DONE, f"is linked with {request.link}, and serves clients"
            if time.monotonic() - began_s > request.within_s:
                raise UnreachableError(
                    f"broker {step.broker} has not joined within {request.within_s:g} s: start it"
                    f" with a link to {request.link}, `http`, and this coordinator"
                )
            await asyncio.sleep(TICK_S)
        return StepState.STOPPED, "is not waited for any more"

    async def _reshape(self, index: int) -> StepEnd:
        return await self._reshaping.run(self._change, index)


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
