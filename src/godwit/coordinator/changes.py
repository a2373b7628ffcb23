"""Changes of the network: one at a time, each a record that says how far it is.  Pure.

    RUNNING --> DONE | INCOMPLETE | FAILED
       |  abort
       v
    TAKING_BACK --> TAKEN_BACK | FAILED

A change is a list of steps.  A step can be repeated: a coordinator that was killed goes on with the
first step that is not over.  What a change of another kind needs, such as another tree, is another
list of steps.

H1  At most one change is not over.
H2  The record says that a step has begun before anything of it is ordered.
H3  A change that is over does not change any more.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from godwit.api.network_api import (
    Authority,
    BrokerLoad,
    ChangeKind,
    ChangeRequest,
    ChangeState,
    ChangeStep,
    NetworkChange,
    StepKind,
    StepState,
)
from godwit.coordinator.broker_records import Change, ForgottenChange, Memory
from godwit.http.errors import RestError

#: Changes that are kept.
CHANGES_KEPT = 1_000
#: Clients that stayed which a record names, at most.
NAMED_MAX = 200

CONFLICT, NOT_FOUND = 409, 404


def steps_of(request: ChangeRequest) -> list[ChangeStep]:
    match request.kind:
        case ChangeKind.DRAIN:
            kinds = [StepKind.DRAIN]
        case ChangeKind.UNDRAIN:
            kinds = [StepKind.UNDRAIN]
        case ChangeKind.JOIN:
            kinds = [StepKind.JOIN]
        case ChangeKind.LEAVE:
            kinds = [StepKind.DRAIN, StepKind.LEAVE]
        case ChangeKind.RESTART:
            kinds = [StepKind.RESTART]
            if request.drains:
                kinds = [StepKind.DRAIN, *kinds, *([StepKind.RETURN] if request.returns else [])]
        case ChangeKind.RESHAPE:
            return [ChangeStep(kind=StepKind.RESHAPE, broker="the network")]
        case ChangeKind.ALLOCATE:
            raise AssertionError("allocating.py has its steps")
    return [ChangeStep(kind=kind, broker=broker) for broker in request.brokers for kind in kinds]


class NetworkChanges:
    def __init__(self, memory: Memory, keep: Callable[[Change], None]) -> None:
        self._memory = memory
        self._keep = keep

    @property
    def current(self) -> NetworkChange | None:
        last = self._memory.changes.get(max(self._memory.changes, default=0))
        return None if last is None or last.is_over else last

    @property
    def joining(self) -> frozenset[str]:
        """Brokers that do not get clients before they have learnt everything."""
        current = self.current
        if current is None:
            return frozenset()
        if current.request.kind is ChangeKind.JOIN:
            return frozenset(current.request.brokers)
        if any(s.kind is StepKind.RESHAPE and s.ended_s is not None for s in current.steps):
            return frozenset()
        return frozenset(s.broker for s in current.steps if s.kind is StepKind.START)

    @property
    def awaited(self) -> frozenset[str]:
        """Brokers that should be started."""
        current = self.current
        if current is None or current.state is not ChangeState.RUNNING:
            return frozenset()
        steps = [s for s in current.steps if s.kind is StepKind.START and s.ended_s is None]
        return frozenset(step.broker for step in steps)

    @property
    def drained(self) -> frozenset[str]:
        """Brokers that were drained, and should be when they are restarted by accident."""
        found: set[str] = set()
        for _, change in sorted(self._memory.changes.items()):
            brokers = change.request.brokers
            is_kept = change.state in (ChangeState.DONE, ChangeState.INCOMPLETE)
            match change.request.kind:
                case ChangeKind.DRAIN if is_kept:
                    found.update(brokers)
                case ChangeKind.LEAVE if change.state is ChangeState.INCOMPLETE:
                    found.update(brokers)
                case ChangeKind.DRAIN | ChangeKind.LEAVE | ChangeKind.ALLOCATE if not (
                    change.is_over
                ):
                    pass  # It is being done.
                case ChangeKind.RESHAPE:
                    pass  # All brokers are in it, and clients stay where they are.
                case ChangeKind.ALLOCATE if is_kept:
                    found.difference_update(brokers)
                    found.update(_still_drained(change))
                case _:
                    found.difference_update(brokers)
        return frozenset(found)

    # -- asked by operators --------------------------------------------------------------------

    def check_idle(self) -> None:
        current = self.current
        if current is not None:
            raise RestError(
                CONFLICT,
                f"change {current.number} ({text_of(current.request)}) is {current.state.value};"
                " wait for its end, or abort it: godwit network abort",
            )

    def begin(
        self,
        request: ChangeRequest,
        authority: Authority,
        now_s: float,
        *,
        before: dict[str, BrokerLoad],
        expected: dict[str, BrokerLoad],
        steps: list[ChangeStep] | None = None,
    ) -> NetworkChange:
        self.check_idle()  # H1
        number = max(self._memory.changes, default=0) + 1
        change = NetworkChange(
            number=number,
            request=request,
            state=ChangeState.RUNNING,
            authority=authority,
            asked_s=now_s,
            steps=steps_of(request) if steps is None else steps,
            before=before,
            expected=expected,
        )
        self._keep(change)
        if len(self._memory.changes) > CHANGES_KEPT:
            self._keep(ForgottenChange(min(self._memory.changes)))
        return change

    def abort(self) -> NetworkChange:
        self.abortable()
        return self._replaced(state=ChangeState.TAKING_BACK)

    def abortable(self) -> NetworkChange:
        """The change that can be aborted; RestError if there is none, or it is too late."""
        current = self.current
        if current is None:
            raise RestError(CONFLICT, "no change is under way")
        if any(s.kind is StepKind.LEAVE and s.state is StepState.RUNNING for s in current.steps):
            reason = f"change {current.number}: the broker was told to leave; it is too late"
            raise RestError(CONFLICT, reason)
        if any(_goes_forward(step, current.request.kind) for step in current.steps):
            reason = f"change {current.number}: the new shape is committed, and goes forward"
            raise RestError(CONFLICT, reason)
        return current

    def change(self, number: int) -> NetworkChange:
        found = self._memory.changes.get(number)
        if found is None:
            raise RestError(NOT_FOUND, f"there is no change {number}", where="number")
        return found

    def latest(self, limit: int) -> list[NetworkChange]:
        numbers = sorted(self._memory.changes, reverse=True)[:limit]
        return [self._memory.changes[number] for number in numbers]

    # -- told by the one who carries it out ----------------------------------------------------

    @property
    def is_taken_back(self) -> bool:
        current = self.current
        return current is not None and current.state is ChangeState.TAKING_BACK

    def begin_step(self, index: int, now_s: float) -> None:
        step = self._present.steps[index]
        began_s = now_s if step.began_s is None else step.began_s
        self.note(index, state=StepState.RUNNING, began_s=began_s)

    def end_step(self, index: int, state: StepState, says: str, now_s: float) -> None:
        self.note(index, state=state, says=says, ended_s=now_s)

    def note(self, index: int, **facts: object) -> None:
        """How far a step is."""
        steps = list(self._present.steps)
        steps[index] = msgspec.structs.replace(steps[index], **facts)
        if steps != self._present.steps:
            self._replaced(steps=steps)

    def end(
        self, state: ChangeState, because: str, after: dict[str, BrokerLoad], now_s: float
    ) -> NetworkChange:
        steps = [msgspec.structs.replace(step, went={}) for step in self._present.steps]
        return self._replaced(state=state, because=because, after=after, ended_s=now_s, steps=steps)

    @property
    def _present(self) -> NetworkChange:
        current = self.current
        assert current is not None, "no change is under way"  # H3
        return current

    def _replaced(self, **facts: object) -> NetworkChange:
        changed = msgspec.structs.replace(self._present, **facts)
        self._keep(changed)
        return changed


def _goes_forward(step: ChangeStep, kind: ChangeKind) -> bool:
    """Whether a new shape is committed; what follows it in a plan can be taken back."""
    if step.reshaping is None or not step.reshaping.stage.is_committed:
        return False
    return step.ended_s is None or kind is ChangeKind.RESHAPE


def _still_drained(change: NetworkChange) -> set[str]:
    """Brokers that a plan has emptied, and that have not left."""
    left = {
        s.broker for s in change.steps if s.kind is StepKind.LEAVE and s.state is StepState.DONE
    }
    return {s.broker for s in change.steps if s.kind is StepKind.DRAIN} - left


def text_of(request: ChangeRequest) -> str:
    return f"{request.kind.value} {', '.join(request.brokers)}"


def named(stayed: dict[str, str]) -> dict[str, str]:
    """At most NAMED_MAX of those that stayed."""
    return dict(list(stayed.items())[:NAMED_MAX])
