"""What an operator does from the dashboard: first what it would do, then an account of it.

drain, undrain, apply, abort   a change of the coordinator, which carries it out step by step
drain without a coordinator    the broker itself moves its clients, to a broker that is named
reject                         the coordinator proposes the move no more for a while
move                           the broker of the clients
pause, resume                  every broker that balances its load
"""

from __future__ import annotations

import getpass
import time
from collections.abc import Sequence

import msgspec

from godwit.api.balancing_api import BALANCING, COMMAND_BALANCING, BalancingCommand, Command
from godwit.api.broker_api import DRAIN, MOVE, DrainRequest, MoveOutcome, MoveRequest
from godwit.api.coordinator_api import REJECT_MOVE, Outcome, RejectedMove
from godwit.api.dashboard_api import ActionAccount, ActionKind, ActionRequest
from godwit.api.network_api import (
    ABORT_CHANGE,
    BEGIN_CHANGE,
    AbortRequest,
    ChangeKind,
    ChangeRequest,
    ChangeState,
    NetworkChange,
)
from godwit.api.plan_requests import PlanToApply, request_of
from godwit.errors import GodwitError, UsageError
from godwit.http.operations import Nothing
from godwit.web.gatherer import Gatherer

#: A broker answers when its clients have moved.
MOVE_S = 120.0
#: A coordinator looks at all brokers before it begins a change.
BEGIN_S = 30.0
NAMED_MAX = 10


class Actions:
    def __init__(self, gatherer: Gatherer) -> None:
        self._gatherer = gatherer

    async def act(self, request: ActionRequest) -> ActionAccount:
        await self._gatherer.now()
        match request.kind:
            case ActionKind.DRAIN | ActionKind.UNDRAIN:
                return await self._drain(request)
            case ActionKind.MOVE:
                return await self._move(request)
            case ActionKind.REJECT:
                return await self._reject(request)
            case ActionKind.PAUSE | ActionKind.RESUME:
                return await self._balancing(request)
            case ActionKind.ABORT:
                return await self._abort(request)
            case ActionKind.APPLY:
                return await self._apply(request)

    # -- changes of the coordinator ------------------------------------------------------------

    async def _drain(self, request: ActionRequest) -> ActionAccount:
        broker = self._known(request.broker, "broker")
        if self._gatherer.directory.coordinator() is None:
            return await self._drain_alone(request, broker)
        to = [] if request.to is None else [self._known(request.to, "to")]
        kind = ChangeKind(request.kind.value)
        return await self._change(ChangeRequest(kind=kind, brokers=[broker], to=to), request)

    async def _apply(self, request: ActionRequest) -> ActionAccount:
        try:
            plan = msgspec.json.decode(request.plan, type=PlanToApply)
        except msgspec.DecodeError as error:
            raise UsageError(f"this is not a plan of `godwit croc plan --json`: {error}") from None
        return await self._change(request_of(plan), request)

    async def _change(self, change: ChangeRequest, request: ActionRequest) -> ActionAccount:
        facts = {
            "dry_run": request.dry_run,
            "reason": request.reason,
            "asked_by": f"dashboard of {_user()}",
        }
        asked: ChangeRequest = msgspec.structs.replace(change, **facts)
        url = self._coordinator()
        begun = await self._gatherer.calls.call(url, BEGIN_CHANGE, asked, answer_s=BEGIN_S)
        return ActionAccount(
            is_done=begun.state is ChangeState.DONE,
            says=change_sentences(begun),
            change=None if request.dry_run else begun.number,
        )

    async def _abort(self, request: ActionRequest) -> ActionAccount:
        url = self._coordinator()
        overview = self._gatherer.overview
        if overview is None or overview.change is None or overview.change.is_over:
            return ActionAccount(is_done=False, says=["No change is under way."])
        asked = AbortRequest(dry_run=request.dry_run)
        change = await self._gatherer.calls.call(url, ABORT_CHANGE, asked, answer_s=BEGIN_S)
        if request.dry_run:
            says = [f"Change {change.number} would be taken back.", *change_sentences(change)]
            return ActionAccount(is_done=False, says=says)
        return ActionAccount(is_done=False, says=change_sentences(change), change=change.number)

    def _coordinator(self) -> str:
        url = self._gatherer.directory.coordinator()
        if url is None:
            raise UsageError(
                "this needs a coordinator: run one, and set `coordinator` in the network file, or"
                " [services.coordinator]"
            )
        return url

    # -- brokers -------------------------------------------------------------------------------

    async def _drain_alone(self, request: ActionRequest, broker: str) -> ActionAccount:
        if request.kind is ActionKind.UNDRAIN:
            self._coordinator()
        to = self._known(request.to, "to")
        if to == broker:
            raise UsageError(f"broker {broker} cannot take its own clients; choose another one")
        clients = self._clients(broker)
        if request.dry_run:
            says = [f"Broker {broker} would refuse new clients.", _would_move(clients, broker, to)]
            return ActionAccount(is_done=False, says=says)
        asked = DrainRequest(address=self._address(to), broker=to)
        url = self._url(broker)
        began_s = time.monotonic()
        outcome = await self._gatherer.calls.call(url, DRAIN, asked, answer_s=MOVE_S)
        says = [f"Broker {broker} refuses new clients.", *_moved(outcome, to, began_s)]
        return ActionAccount(is_done=not outcome.stayed, says=says)

    async def _move(self, request: ActionRequest) -> ActionAccount:
        broker, to = self._known(request.broker, "broker"), self._known(request.to, "to")
        if bool(request.clients) == bool(request.count):
            raise UsageError("say who moves: names of clients, or a number of them")
        if to == broker:
            raise UsageError(f"the clients are at {broker} already; choose another broker")
        count = request.count or len(request.clients)
        if request.dry_run:
            names = _names(request.clients) if request.clients else f"{count} clients"
            says = [f"{names} would be asked to move from {broker} to {to}, without loss."]
            return ActionAccount(is_done=False, says=says)
        asked = MoveRequest(
            address=self._address(to), broker=to, clients=request.clients, count=request.count
        )
        began_s = time.monotonic()
        outcome = await self._gatherer.calls.call(self._url(broker), MOVE, asked, answer_s=MOVE_S)
        is_done = not outcome.stayed and not outcome.unknown
        return ActionAccount(is_done=is_done, says=_moved(outcome, to, began_s))

    async def _reject(self, request: ActionRequest) -> ActionAccount:
        url = self._coordinator()
        moves = self._gatherer.activity.moves
        move = next((each for each in moves if each.number == request.move), None)
        if move is None or move.outcome is not Outcome.PROPOSED:
            raise UsageError(f"move {request.move} is not proposed now; look again")
        what = f"{move.client} from {move.source} to {move.target}"
        if request.dry_run:
            says = f"The proposal to move {what} would be rejected, and not be made again soon."
            return ActionAccount(is_done=False, says=[says])
        reason = request.reason or f"rejected on the dashboard of {_user()}"
        asked = RejectedMove(number=move.number, reason=reason)
        await self._gatherer.calls.call(url, REJECT_MOVE, asked)
        return ActionAccount(is_done=True, says=[f"The proposal to move {what} is rejected."])

    async def _balancing(self, request: ActionRequest) -> ActionAccount:
        calls, urls = self._gatherer.calls, self._gatherer.urls()
        accounts = await calls.call_all(urls, BALANCING, Nothing())
        balancing = {
            name: urls[name] for name, each in accounts.items() if not isinstance(each, GodwitError)
        }
        if not balancing:
            raise UsageError("no broker balances its load: the network file has no [balancing]")
        word: Command = "pause" if request.kind is ActionKind.PAUSE else "resume"
        if request.dry_run:
            meaning = "no session begins" if word == "pause" else "sessions begin again"
            says = [f"{len(balancing)} brokers would {word} balancing: {meaning}."]
            return ActionAccount(is_done=False, says=says)
        answers = await calls.call_all(balancing, COMMAND_BALANCING, BalancingCommand(word))
        errors = {n: each for n, each in answers.items() if isinstance(each, GodwitError)}
        done = len(answers) - len(errors)
        says = [f"{done} of {len(answers)} brokers have obeyed: {word}."]
        says += [f"{name}: {error}" for name, error in errors.items()]
        return ActionAccount(is_done=not errors, says=says)

    # -- names ---------------------------------------------------------------------------------

    def _known(self, broker: str | None, field: str) -> str:
        known = self._rows()
        if broker is None or broker not in known:
            raise UsageError(
                f"{field}: there is no broker {broker!r}; there are {_names(list(known))}"
            )
        return broker

    def _rows(self) -> dict[str, str]:
        overview = self._gatherer.overview
        return {} if overview is None else {row.broker: row.url for row in overview.brokers}

    def _clients(self, broker: str) -> int:
        overview = self._gatherer.overview
        rows = [] if overview is None else overview.brokers
        return next((row.clients for row in rows if row.broker == broker), 0)

    def _address(self, broker: str) -> str:
        return self._rows()[broker]

    def _url(self, broker: str) -> str:
        url = self._gatherer.urls().get(broker)
        if url is None:
            raise UsageError(f"broker {broker} has no HTTP address; set `http` in the network file")
        return url


def change_sentences(change: NetworkChange) -> list[str]:
    """What a change is about, and how far it is."""
    what = f"{change.request.kind.value} {_names(change.request.brokers)}"
    if change.state is ChangeState.PROPOSED:
        says = [f"The coordinator would {what}:"]
    else:
        says = [f"Change {change.number} ({what}) is {change.state.value}."]
    for step in change.steps[:20]:
        clients = f", {step.clients} clients" if step.clients else ""
        says.append(f"{step.kind.value} {step.broker}{clients}. {step.says}".rstrip())
    names = sorted({*change.before, *change.expected})
    for name in names[:20]:
        before, then = change.before.get(name), change.expected.get(name)
        if before is not None and then is not None and before.clients != then.clients:
            says.append(f"{name}: {before.clients} clients, then {then.clients}.")
    if change.because:
        says.append(change.because)
    return says


def _would_move(clients: int, broker: str, to: str) -> str:
    return f"{clients} clients of {broker} would be asked to move to {to}, without loss."


def _moved(outcome: MoveOutcome, to: str, began_s: float) -> list[str]:
    took_s = time.monotonic() - began_s
    says = [f"{len(outcome.moved)} clients have moved to {to} in {took_s:.1f} s."]
    says += [f"{name} stayed: {why}" for name, why in list(outcome.stayed.items())[:NAMED_MAX]]
    if outcome.unknown:
        says.append(f"Not connected there: {_names(outcome.unknown)}.")
    return says


def _names(names: Sequence[str]) -> str:
    more = len(names) - NAMED_MAX
    text = ", ".join(names[:NAMED_MAX]) or "none"
    return f"{text} and {more} others" if more > 0 else text


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "an unknown user"
