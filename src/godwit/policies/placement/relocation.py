"""Common to POP and GRAPE: a broker's local publishers, decisions and deadlines.

    TRACING    publications are marked and their deliveries recorded
    DECIDING   waiting for other brokers; nothing is traced
    MOVING     the publisher was asked to move; nothing is traced

After a decision the publisher stays, and tracing starts again; or it moves, and tracing starts at
its new broker after a hold time.  migration/ moves it: this module only waits until it has left.

L1  A publisher that has just moved here, or was asked to move and did not, is not traced for
    `hold_s`, so there is no decision about it.
L2  Waiting for a letter or a move has a deadline.  Letters are lost when brokers fail.
L3  A timer is set exactly while something can expire.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from godwit.broker.effects import Decision
from godwit.broker.modules import AskToMove, BrokerView, PolicyModule, Request, Timer
from godwit.policies.placement.letters import BrokerAddress
from godwit.policies.placement.settings import RelocationSettings

#: How often deadlines are checked.
TICK_S = 10.0
TICK = "tick"


class RelocationPhase(Enum):
    TRACING = "tracing"
    DECIDING = "deciding"
    MOVING = "moving"


class Action:
    """Kinds of decisions in reports.  The simulator reports arrivals."""

    STAYED = "stayed"
    PROPOSED = "proposed"
    ASKED = "asked"
    LEFT = "left"
    GAVE_UP = "gave up"


@dataclass(slots=True)
class LocalPublisher:
    """A client of this broker that publishes."""

    phase: RelocationPhase = RelocationPhase.TRACING
    deadline_s: float = 0.0
    """When the phase ends, unless it is tracing."""

    asked_s: float = 0.0
    """When the other brokers were asked."""

    hold_until_s: float = 0.0
    target: str = ""
    """The broker that it was asked to move to."""

    def may_be_traced(self, now_s: float) -> bool:
        return self.phase is RelocationPhase.TRACING and now_s >= self.hold_until_s


R = TypeVar("R", bound=LocalPublisher)


class Relocation(PolicyModule, ABC, Generic[R]):
    def __init__(self, settings: RelocationSettings) -> None:
        self._relocation = settings
        self._locals: dict[str, R] = {}
        self._is_ticking = False

    # -- hooks of a policy ---------------------------------------------------------------------

    @abstractmethod
    def _new_local(self) -> R:
        """The state of a new publisher."""

    @abstractmethod
    def _reset(self, local: R) -> None:
        """Reset the traces of a publisher."""

    @abstractmethod
    def _drop_expired(self, now_s: float) -> None:
        """Drop expired state."""

    @property
    @abstractmethod
    def _has_expiring_state(self) -> bool:
        """Whether some state can expire."""

    # -- the publishers of this broker ---------------------------------------------------------

    def start(self, view: BrokerView, now_s: float) -> Iterable[Request]:
        self._view = view
        self._here = BrokerAddress(view.broker, view.address)
        return ()

    def _local(self, publisher: str) -> R:
        local = self._locals.get(publisher)
        if local is None:
            local = self._locals[publisher] = self._new_local()
        return local

    def on_publisher_arrived(self, client: str, now_s: float) -> Iterable[Request]:
        local = self._locals[client] = self._new_local()
        local.hold_until_s = now_s + self._relocation.hold_s  # L1
        return ()

    def on_departed(self, client: str, now_s: float) -> Iterable[Request]:
        local = self._locals.pop(client, None)
        if local is None or local.phase is not RelocationPhase.MOVING:
            return ()
        asked_s = local.deadline_s - self._relocation.move_timeout_s
        reason = {"took_s": now_s - asked_s}
        return [self._decision(Action.LEFT, client, local.target, reason)]

    # -- decisions -----------------------------------------------------------------------------

    def _wait(self, local: R, now_s: float) -> Iterable[Request]:
        """Wait for other brokers."""
        local.phase = RelocationPhase.DECIDING
        local.asked_s = now_s
        local.deadline_s = now_s + self._relocation.answer_timeout_s
        return self._tick(now_s)

    def _decide(
        self, publisher: str, target: BrokerAddress, reason: Mapping[str, float | str], now_s: float
    ) -> Iterable[Request]:
        local = self._locals[publisher]
        has_asked = local.phase is RelocationPhase.DECIDING
        reason = {**reason, "selection_s": now_s - local.asked_s if has_asked else 0.0}
        is_here = target.broker == self._here.broker
        if is_here or self._relocation.dry_run:
            action = Action.STAYED if is_here else Action.PROPOSED
            self._restart_tracing(local)
            yield self._decision(action, publisher, target.broker, reason)
            return
        local.phase = RelocationPhase.MOVING
        local.deadline_s = now_s + self._relocation.move_timeout_s
        local.target = target.broker
        yield self._decision(Action.ASKED, publisher, target.broker, reason)
        yield AskToMove(publisher, target.broker, target.address)
        yield from self._tick(now_s)

    def _restart_tracing(self, local: R) -> None:
        local.phase = RelocationPhase.TRACING
        self._reset(local)

    def _decision(
        self, action: str, publisher: str, target: str, reason: Mapping[str, float | str]
    ) -> Decision:
        return Decision(action, publisher, self._here.broker, target, reason)

    # -- deadlines -----------------------------------------------------------------------------

    def _tick(self, now_s: float) -> list[Request]:
        """Set the timer unless it is set."""
        if self._is_ticking:
            return []
        self._is_ticking = True
        return [Timer(TICK, now_s + TICK_S)]

    def on_timer(self, name: str, now_s: float) -> Iterable[Request]:
        self._is_ticking = False
        requests = list(self._give_up(now_s))
        self._drop_expired(now_s)
        waits = any(r.phase is not RelocationPhase.TRACING for r in self._locals.values())
        if waits or self._has_expiring_state:  # L3
            requests += self._tick(now_s)
        return requests

    def _drop_if_expired(self, publisher: str, touched_s: float, now_s: float) -> bool:
        """Whether the state of a publisher has expired; if so, it is dropped here too."""
        local = self._locals.get(publisher)
        if now_s - touched_s < self._relocation.forget_s:
            return False
        if local is not None and local.phase is not RelocationPhase.TRACING:
            return False  # Its deadline is earlier.
        self._locals.pop(publisher, None)
        return True

    def _give_up(self, now_s: float) -> Iterable[Request]:
        """End what has passed its deadline (L2)."""
        for publisher, local in self._locals.items():
            if local.phase is RelocationPhase.TRACING or now_s < local.deadline_s:
                continue
            if local.phase is RelocationPhase.MOVING:
                local.hold_until_s = now_s + self._relocation.hold_s  # L1
                reason, target = "did not move", local.target
            else:
                reason, target = "brokers did not answer", ""
            self._restart_tracing(local)
            yield self._decision(Action.GAVE_UP, publisher, target, {"because": reason})
