"""A session as the offloader sees it: request, sample, plan, let clients move.

Paper    Cheung, thesis 4.1.4, "Mediating Load Balancing Sessions" and "Mediating Subscriber
         Migration".

    REQUESTING   LbRequest was sent                              until reply_timeout_s
    SAMPLING     the acceptor agreed; PRESS counts publications  until press_timeout_s
    MIGRATING    clients are asked to move                       until LbDone, or N x 5 s + margin;
                 and until those that arrived have left          until margin
                 all have left, without LbDone: SessionEnd       until reply_timeout_s, twice

Departs  1. The acceptor learns N, the time and the prediction from one message, Migrate, and not
            from every subscriber.
         2. Clients are asked at a limited rate, and the time that takes is added to N x 5 s; so
            is what a request and the barrier of a move wait for in the queues of this broker.
            In an overload N x 5 s may be shorter than that, and no client could ever leave.
         3. A session ends early if no client has left for a while: one client that cannot move
            would keep both brokers BUSY for N x 5 s.
         4. Clients that publish here, and those that are held, are never asked.
         5. An offload against an overload may end as soon as the offloader is just below the lower
            threshold.  While subscribers join, that is too little, too late: each session takes
            half a minute, and the queues grow meanwhile.  So the ordinary plan, which goes on until
            the two brokers meet, is computed as well, and the one that ends nearer to balance is
            taken.
         6. If the difference has fallen to the trigger while it sampled, no client is asked.
Tested   tests/policies/offload/test_mediation.py.

F1  Each phase ends by a timer of this broker, whatever the other one does.
F2  No client is asked whose move is not expected to make the difference smaller (L39).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from godwit.broker.modules import AskToMove, Request
from godwit.broker.stimuli import Hop
from godwit.content.filters import Filter
from godwit.content.messages import Publication, is_control_filter
from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.detection import Candidate, Triggers, overloads
from godwit.policies.offload.edge_context import EdgeContext
from godwit.policies.offload.load_status import StatusEvent
from godwit.policies.offload.mediation_messages import (
    LbDone,
    LbReply,
    LbRequest,
    Migrate,
    SessionEnd,
    css_filters,
)
from godwit.policies.offload.obstacles import LargestSubscriber
from godwit.policies.offload.outcomes import Prediction
from godwit.policies.offload.pie import PieValues
from godwit.policies.offload.press import Press, Sampled
from godwit.policies.offload.report_cards import OffloadPlan

#: Alarms of a session.
REPLY, SAMPLING, ASKING, SESSION, STALL = "reply", "sampling", "asking", "session", "stall"
SESSION_ALARMS = (REPLY, SAMPLING, ASKING, SESSION, STALL)


class OffloaderPhase(Enum):
    REQUESTING = "requesting"
    SAMPLING = "sampling"
    MIGRATING = "migrating"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a session ended, on this side."""

    reason: str
    planned: int = 0
    asked: int = 0
    moved: int = 0
    closed: int = 0
    """Clients that were asked, and have left without moving: the acceptor has not seen them."""

    is_obstacle: bool = False
    """There was a difference, and nothing that could be moved; the reason says why."""

    is_needless: bool = False
    """The difference had gone before a client was asked."""

    is_failure: bool = False
    """The other side did not answer, or an operator aborted it."""

    prediction: Prediction | None = None


class OffloaderSession:
    def __init__(
        self, context: EdgeContext, candidate: Candidate, session: str, *, overloaded: bool
    ) -> None:
        self.session = session
        self.partner = candidate.partner
        self.action = candidate.action
        self.phase = OffloaderPhase.REQUESTING
        self.ending: Ending | None = None
        self._context = context
        self._candidate = candidate
        self._overloaded = overloaded
        self._press: Press | None = None
        self._began_s = 0.0
        self._remote: BrokerInfo | None = None
        self._css: tuple[Filter, ...] = ()
        self._address = ""
        self._plan: OffloadPlan | None = None
        self._to_ask: deque[str] = deque()
        self._asked: dict[str, None] = {}
        self._departed: set[str] = set()
        self._departed_at_last_look = 0
        self._arrived: int | None = None
        """Clients that arrived at the acceptor, once it has said so."""
        self._is_ending = False
        self._within_s = 0.0
        self._stall_s = 0.0

    # -- requesting ----------------------------------------------------------------------------

    def request(self, now_s: float) -> list[Request]:
        message = LbRequest(session=self.session, action=self.action)
        return [*self._context.send(self.partner, message), self.wait_for(REPLY, now_s)]

    def wait_for(self, alarm: str, now_s: float) -> Request:
        """The acceptor should answer now."""
        deadline_s = now_s + self._context.settings.reply_timeout_s
        return self._context.alarms.set(alarm, deadline_s)

    def is_worthwhile(self, remote: BrokerInfo) -> bool:
        """Whether this broker is still the heavier one, by enough."""
        settings, own = self._context.settings, self._context.averages.info()
        if self._overloaded and overloads(own, settings.higher_overload_threshold):
            return True
        triggers = Triggers.local_of(settings)
        difference = PieValues.of(own).difference(
            PieValues.of(remote), self.action, triggers.normalization_s
        )
        return difference > triggers.of(self.action)

    # -- sampling ------------------------------------------------------------------------------

    def on_agreed(self, reply: LbReply, now_s: float) -> list[Request]:
        """The acceptor has agreed: sample what its subscriptions and ours match."""
        context = self._context
        assert reply.info is not None
        context.alarms.cancel(REPLY)
        context.status.apply(StatusEvent.GRANTED)
        self.phase = OffloaderPhase.SAMPLING
        self._remote, self._address = reply.info, reply.address
        self._css = css_filters(reply.css)
        self._began_s = now_s
        subscriptions = [s for s in context.view.subscriptions() if not is_control_filter(s.filter)]
        self._press = Press(
            subscriptions,
            self._css,
            samples_max=context.settings.press_samples,
            now_s=now_s,
            staying=self._staying(now_s),
        )
        context.watch(True)
        reason: dict[str, float | str] = {
            "session": self.session,
            "metric": self.action.value,
            "difference": self._candidate.difference,
            "overloaded": float(self._overloaded),
        }
        return [
            context.report("session", self.session, self.partner, reason),
            context.alarms.set(SAMPLING, now_s + context.settings.press_timeout_s),
        ]

    def _staying(self, now_s: float) -> frozenset[str]:
        """Clients that publish here would take their advertisements along; others are held."""
        return self._context.holds.held(now_s) | frozenset(self._context.view.publishers())

    def on_publication(
        self, publication: Publication, destinations: Sequence[Hop], now_s: float
    ) -> list[Request]:
        if self._press is None or publication.is_control:
            return []
        is_full = self._press.on_publication(publication, destinations, now_s)
        return self._decide(now_s) if is_full else []

    def _decide(self, now_s: float) -> list[Request]:
        """Sampling is over: plan, and let clients move."""
        context, press, remote = self._context, self._press, self._remote
        assert press is not None
        assert remote is not None
        self._press = None
        context.watch(False)
        context.alarms.cancel(SAMPLING)
        settings = context.settings
        if now_s - self._began_s > settings.press_timeout_s + settings.session_margin_s:
            # The process was stopped meanwhile.  The acceptor has given up (N1).
            return self._end("this broker stood still while it sampled")
        if not self.is_worthwhile(remote):
            reason = "the difference has fallen to the trigger or below while this broker sampled"
            return self._end(reason, is_needless=True)
        sampled = press.result(now_s)
        if not sampled.samples:
            return self._end("no publication arrived while sampling", is_obstacle=True)
        plan = self._plan = self._best_plan(remote, sampled)
        if not plan.clients:
            return self._end(plan.reason, is_obstacle=True)
        if context.dry_run:
            proposed = [self._move_report("proposed", client) for client in plan.clients]
            return [*proposed, *self._end("dry run")]
        return self._migrate(plan, now_s)

    def _best_plan(self, remote: BrokerInfo, sampled: Sampled) -> OffloadPlan:
        """In an overload, the one that ends nearer to balance (departure 5)."""
        context = self._context
        local = context.averages.info()

        def plan(*, overloaded: bool) -> OffloadPlan:
            return context.planner(
                self.action,
                local,
                remote,
                self._css,
                sampled,
                context.settings,
                overloaded=overloaded,
                random=context.random,
            )

        found = plan(overloaded=self._overloaded)
        if not self._overloaded or context.settings.algorithm == "random":
            return found
        further = plan(overloaded=False)
        is_nearer = abs(further.difference_after) < abs(found.difference_after)
        return further if further.clients and is_nearer else found

    # -- migrating -----------------------------------------------------------------------------

    def _migrate(self, plan: OffloadPlan, now_s: float) -> list[Request]:
        context, settings = self._context, self._context.settings
        self.phase = OffloaderPhase.MIGRATING
        self._to_ask = deque(plan.clients)
        queueing_s = context.queueing_s
        clients = len(plan.clients)
        self._within_s = clients * settings.migration_timeout_s + queueing_s
        self._stall_s = settings.session_margin_s + queueing_s
        all_within_s = self._within_s + clients / settings.moves_per_s
        migrate = Migrate(
            session=self.session,
            clients=clients,
            within_s=all_within_s,
            stall_s=self._stall_s,
            predicted=plan.remote_after,
        )
        deadline_s = now_s + all_within_s + settings.session_margin_s
        return [
            *context.send(self.partner, migrate),
            context.alarms.set(SESSION, deadline_s),
            self._watch_for_stall(now_s),
            *self._ask(now_s),
        ]

    def _watch_for_stall(self, now_s: float) -> Request:
        self._departed_at_last_look = len(self._departed)
        # The acceptor notices first, and says so.
        stall_s = self._stall_s + self._context.settings.session_margin_s
        return self._context.alarms.set(STALL, now_s + stall_s)

    def _ask(self, now_s: float) -> Iterable[Request]:
        """Ask as many clients as the rate allows."""
        context = self._context
        per_s = context.settings.moves_per_s
        batch = min(len(self._to_ask), max(1, int(per_s)))
        for _ in range(batch):
            client = self._to_ask.popleft()
            self._asked[client] = None
            yield self._move_report("asked", client)
            yield AskToMove(
                client,
                self.partner,
                self._address,
                within_s=self._within_s,
                session=self.session,
            )
        if self._to_ask:
            yield context.alarms.set(ASKING, now_s + batch / per_s)

    def _move_report(self, action: str, client: str) -> Request:
        plan = self._plan
        assert plan is not None
        reason: dict[str, float | str] = {
            "session": self.session,
            "metric": plan.action.value,
            "local_before": _value(plan.local_before, plan.action),
            "local_expected": _value(plan.local_after, plan.action),
            "remote_before": _value(plan.remote_before, plan.action),
            "remote_expected": _value(plan.remote_after, plan.action),
            "overloaded": float(self._overloaded),
        }
        return self._context.report(action, client, self.partner, reason)

    def on_departed(self, client: str, now_s: float) -> list[Request]:
        if self._press is not None:
            self._press.on_departed(client)
        if client not in self._asked or client in self._departed:
            return []
        self._departed.add(client)
        self._over_if_all_left()
        if not self._have_all_left or self._arrived is not None:
            return []
        # The acceptor should say any moment that it is done.
        return [self.wait_for(SESSION, now_s)]

    @property
    def _have_all_left(self) -> bool:
        return not self._to_ask and len(self._departed) == len(self._asked)

    def on_done(self, done: LbDone, now_s: float) -> list[Request]:
        """The acceptor expects no more clients; those that arrived there have to leave here."""
        self._arrived = done.arrived
        self._to_ask.clear()
        self._context.alarms.cancel(ASKING)
        self._over_if_all_left()
        margin_s = self._context.settings.session_margin_s
        return [self._context.alarms.set(SESSION, now_s + margin_s)]

    def _over_if_all_left(self) -> None:
        if self._arrived is None or len(self._departed) < self._arrived:
            return
        if self._arrived:
            self._over("every client that arrived at the acceptor has left this broker")
        else:
            self._over("none of the clients that were asked has moved", is_obstacle=True)

    # -- the end -------------------------------------------------------------------------------

    def on_alarm(self, purpose: str, now_s: float) -> list[Request]:
        match purpose:
            case "sampling":
                return self._decide(now_s)
            case "asking":
                return list(self._ask(now_s))
            case "stall" if self._arrived is not None or self._have_all_left:
                return []  # The other alarm follows.
            case "stall" if len(self._departed) > self._departed_at_last_look or self._to_ask:
                return [self._watch_for_stall(now_s)]
            case "stall":
                return self.abort("no client has left for a while")
            case _ if self._arrived is not None:
                self._over("some clients that arrived at the acceptor have not left this broker")
                return []
            case _ if self._have_all_left and not self._is_ending:
                self._is_ending = True  # An acceptor that waits for others says now who arrived.
                ended = SessionEnd(session=self.session, reason="all clients have left")
                return [*self._context.send(self.partner, ended), self.wait_for(SESSION, now_s)]
            case _ if self._have_all_left:
                self._over("all clients have left; the acceptor did not say that it was done")
                return []
            case _:
                return self.abort("the acceptor did not say that it was done")

    def abort(self, reason: str) -> list[Request]:
        """End it; clients that were asked may still move."""
        ended = SessionEnd(session=self.session, reason=reason)
        requests = self._context.send(self.partner, ended)
        self._over(reason, is_failure=True)
        return requests

    def on_ended(self, reason: str) -> list[Request]:
        """The acceptor has ended it."""
        self._over(reason, is_failure=True)
        return []

    def _end(
        self, reason: str, *, is_obstacle: bool = False, is_needless: bool = False
    ) -> list[Request]:
        """There is nothing more to move; the acceptor need not wait."""
        requests = self._context.send(self.partner, SessionEnd(session=self.session, reason=reason))
        self._over(reason, is_obstacle=is_obstacle, is_needless=is_needless)
        return requests

    def _over(
        self,
        reason: str,
        *,
        is_failure: bool = False,
        is_obstacle: bool = False,
        is_needless: bool = False,
    ) -> None:
        context, plan = self._context, self._plan
        if self._press is not None:
            self._press = None
            context.watch(False)
        # Without a word of the acceptor, all that left may have moved.
        left = len(self._departed)
        moved = left if self._arrived is None else min(left, self._arrived)
        prediction = None
        if plan is not None and moved:
            prediction = Prediction(
                session=self.session,
                source=context.broker,
                target=self.partner,
                planned=len(plan.clients),
                moved=moved,
                before=plan.local_before,
                predicted=plan.local_after,
            )
        self.ending = Ending(
            reason,
            planned=0 if plan is None else len(plan.clients),
            asked=len(self._asked),
            moved=moved,
            closed=left - moved,
            is_obstacle=is_obstacle,
            is_needless=is_needless,
            is_failure=is_failure,
            prediction=prediction,
        )

    def hold_those_that_stayed(self, now_s: float) -> None:
        """Leave clients alone that were asked and have not left: they may still be about to."""
        stayed = [client for client in self._asked if client not in self._departed]
        for_s = max(self._context.settings.hold_s, self._within_s)
        self._context.holds.hold(stayed, now_s, for_s)

    @property
    def largest_subscriber(self) -> LargestSubscriber | None:
        """Once it has planned."""
        plan = self._plan
        if plan is None:
            return None
        used = plan.local_before.output_used_bytes_s
        return LargestSubscriber(plan.largest_subscriber_bytes_s, used)

    def differences(self) -> dict[str, float]:
        """The estimated difference before and after, for reports."""
        plan = self._plan
        if plan is None:
            return {}
        return {
            "difference_before": plan.difference_before,
            "difference_after": plan.difference_after,
        }


def _value(info: BrokerInfo, metric: OffloadAction) -> float:
    return PieValues.of(info).value(metric)
