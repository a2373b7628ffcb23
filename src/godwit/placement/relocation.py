"""What POP and GRAPE have in common: the publishers of a broker, and how one is asked to move.

    TRACING    publications are marked, and what becomes of them is noted
    DECIDING   other brokers were asked; nothing is traced
    MOVING     the publisher was asked to move; nothing is traced

A decision ends with the publisher where it is, and tracing begins anew; or it moves, and tracing
begins at its new broker after a hold time.  It is the migration that moves it (migration/): here
nobody waits for more than that it has left.

L1  A publisher that has just moved here, or was asked to move and did not, is not traced for
    `hold_s`, and so not decided about.
L2  Whoever waits for a letter or a move has a deadline.  Letters get lost when brokers fail.
L3  There is a timer exactly while there is something that time can end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from godwit.broker.effects import Decision
from godwit.broker.modules import AskToMove, BrokerView, PolicyModule, Request, Timer
from godwit.placement.letters import Place
from godwit.placement.settings import RelocationSettings

#: How often deadlines are looked at.
TICK_S = 10.0
TICK = "tick"


class Phase(Enum):
    TRACING = "tracing"
    DECIDING = "deciding"
    MOVING = "moving"


class Action:
    """What is reported of a decision.  That a client has arrived, the simulator reports."""

    STAYED = "stayed"
    PROPOSED = "proposed"
    ASKED = "asked"
    LEFT = "left"
    GAVE_UP = "gave up"


@dataclass(slots=True)
class Resident:
    """A client of this broker that publishes."""

    phase: Phase = Phase.TRACING
    deadline_s: float = 0.0
    """Of the phase, unless it is tracing."""

    asked_s: float = 0.0
    """When other brokers were asked."""

    hold_until_s: float = 0.0
    target: str = ""
    """Where it was asked to go."""

    def may_be_traced(self, now_s: float) -> bool:
        return self.phase is Phase.TRACING and now_s >= self.hold_until_s


R = TypeVar("R", bound=Resident)


class Relocation(PolicyModule, ABC, Generic[R]):
    def __init__(self, settings: RelocationSettings) -> None:
        self._relocation = settings
        self._residents: dict[str, R] = {}
        self._is_ticking = False

    # -- what a policy adds --------------------------------------------------------------------

    @abstractmethod
    def _new_resident(self) -> R:
        """A publisher that has just come."""

    @abstractmethod
    def _begin_anew(self, resident: R) -> None:
        """Start to trace from nothing."""

    @abstractmethod
    def _forget_old(self, now_s: float) -> None:
        """Drop what is overdue."""

    @property
    @abstractmethod
    def _has_something_to_forget(self) -> bool:
        """Is something going to be overdue?"""

    # -- the publishers of this broker ---------------------------------------------------------

    def start(self, view: BrokerView, now_s: float) -> Iterable[Request]:
        self._view = view
        self._here = Place(view.broker, view.address)
        return ()

    def _resident(self, publisher: str) -> R:
        resident = self._residents.get(publisher)
        if resident is None:
            resident = self._residents[publisher] = self._new_resident()
        return resident

    def on_arrived(self, client: str, now_s: float) -> Iterable[Request]:
        resident = self._residents[client] = self._new_resident()
        resident.hold_until_s = now_s + self._relocation.hold_s  # L1
        return ()

    def on_departed(self, client: str, now_s: float) -> Iterable[Request]:
        resident = self._residents.pop(client, None)
        if resident is None or resident.phase is not Phase.MOVING:
            return ()
        asked_s = resident.deadline_s - self._relocation.move_timeout_s
        reason = {"took_s": now_s - asked_s}
        return [self._decision(Action.LEFT, client, resident.target, reason)]

    # -- decisions -----------------------------------------------------------------------------

    def _wait(self, resident: R, now_s: float) -> Iterable[Request]:
        """Other brokers were asked."""
        resident.phase = Phase.DECIDING
        resident.asked_s = now_s
        resident.deadline_s = now_s + self._relocation.answer_timeout_s
        return self._tick(now_s)

    def _decide(
        self, publisher: str, target: Place, reason: Mapping[str, float | str], now_s: float
    ) -> Iterable[Request]:
        resident = self._residents[publisher]
        has_asked = resident.phase is Phase.DECIDING
        reason = {**reason, "selection_s": now_s - resident.asked_s if has_asked else 0.0}
        is_here = target.broker == self._here.broker
        if is_here or self._relocation.dry_run:
            action = Action.STAYED if is_here else Action.PROPOSED
            self._trace_anew(resident)
            yield self._decision(action, publisher, target.broker, reason)
            return
        resident.phase = Phase.MOVING
        resident.deadline_s = now_s + self._relocation.move_timeout_s
        resident.target = target.broker
        yield self._decision(Action.ASKED, publisher, target.broker, reason)
        yield AskToMove(publisher, target.broker, target.address)
        yield from self._tick(now_s)

    def _trace_anew(self, resident: R) -> None:
        resident.phase = Phase.TRACING
        self._begin_anew(resident)

    def _decision(
        self, action: str, publisher: str, target: str, reason: Mapping[str, float | str]
    ) -> Decision:
        return Decision(action, publisher, self._here.broker, target, reason)

    # -- deadlines -----------------------------------------------------------------------------

    def _tick(self, now_s: float) -> list[Request]:
        """See to it that deadlines are looked at."""
        if self._is_ticking:
            return []
        self._is_ticking = True
        return [Timer(TICK, now_s + TICK_S)]

    def on_timer(self, name: str, now_s: float) -> Iterable[Request]:
        self._is_ticking = False
        requests = list(self._give_up(now_s))
        self._forget_old(now_s)
        waits = any(r.phase is not Phase.TRACING for r in self._residents.values())
        if waits or self._has_something_to_forget:  # L3
            requests += self._tick(now_s)
        return requests

    def _is_forgotten(self, publisher: str, touched_s: float, now_s: float) -> bool:
        """Is it time to forget what is known about a publisher?"""
        resident = self._residents.get(publisher)
        if now_s - touched_s < self._relocation.forget_s:
            return False
        if resident is not None and resident.phase is not Phase.TRACING:
            return False  # Its deadline comes first.
        self._residents.pop(publisher, None)
        return True

    def _give_up(self, now_s: float) -> Iterable[Request]:
        """L2."""
        for publisher, resident in self._residents.items():
            if resident.phase is Phase.TRACING or now_s < resident.deadline_s:
                continue
            if resident.phase is Phase.MOVING:
                resident.hold_until_s = now_s + self._relocation.hold_s  # L1
                reason, target = "did not move", resident.target
            else:
                reason, target = "brokers did not answer", ""
            self._trace_anew(resident)
            yield self._decision(Action.GAVE_UP, publisher, target, {"because": reason})
