"""A session as the acceptor sees it: agree, wait for the clients that were asked to come.

Paper    Cheung, thesis 4.1.4.

    ACCEPTED    agreed; the offloader samples and plans    until press_timeout_s + margin
    RECEIVING   N clients are on their way                 until all arrived, or N x 5 s

Departs  As in offloader_session.py.  DONE tells the offloader that the session is over; nothing
         else waits for it, because each move has a barrier of its own (migration/move.py).
Tested   tests/policies/offload/test_mediation.py.

N1  Each phase ends by a timer of this broker, whatever the other one does.
"""

from __future__ import annotations

from enum import Enum

from godwit.broker.modules import Request
from godwit.content.messages import is_control_filter
from godwit.policies.offload.broker_load import BrokerInfo
from godwit.policies.offload.css import covering_set
from godwit.policies.offload.edge_context import EdgeContext
from godwit.policies.offload.load_status import LoadStatus, StatusEvent
from godwit.policies.offload.mediation_messages import (
    LbDone,
    LbReply,
    LbRequest,
    Migrate,
    SessionEnd,
    css_texts,
)
from godwit.policies.offload.offloader_session import SESSION, STALL, Ending
from godwit.policies.offload.outcomes import Prediction


class AcceptorPhase(Enum):
    ACCEPTED = "accepted"
    RECEIVING = "receiving"


class AcceptorSession:
    def __init__(self, context: EdgeContext, partner: str, request: LbRequest) -> None:
        self.session = request.session
        self.partner = partner
        self.action = request.action
        self.phase = AcceptorPhase.ACCEPTED
        self.ending: Ending | None = None
        self._context = context
        self._before: BrokerInfo = context.averages.info()
        self._migrate: Migrate | None = None
        self._arrived: set[str] = set()
        self._arrived_at_last_look = 0

    @property
    def was_used(self) -> bool:
        """Whether clients were announced."""
        return self._migrate is not None

    def agree(self, now_s: float) -> list[Request]:
        context, settings = self._context, self._context.settings
        context.status.apply(StatusEvent.ACCEPTED)
        filters = (s.filter for s in context.view.subscriptions())
        css = covering_set(filter for filter in filters if not is_control_filter(filter))
        reply = LbReply(
            session=self.session,
            status=LoadStatus.OK,
            info=self._before,
            css=css_texts(css),
            address=context.view.address,
        )
        deadline_s = now_s + settings.press_timeout_s + settings.session_margin_s
        return [*context.send(self.partner, reply), context.alarms.set(SESSION, deadline_s)]

    def on_migrate(self, migrate: Migrate, now_s: float) -> list[Request]:
        if self._migrate is not None:
            return []
        self.phase = AcceptorPhase.RECEIVING
        self._migrate = migrate
        deadline = self._context.alarms.set(SESSION, now_s + migrate.within_s)
        return [deadline, self._watch_for_stall(now_s), *self._done_if_complete()]

    def _watch_for_stall(self, now_s: float) -> Request:
        assert self._migrate is not None
        self._arrived_at_last_look = len(self._arrived)
        return self._context.alarms.set(STALL, now_s + self._migrate.stall_s)

    def on_arrived(self, client: str) -> list[Request]:
        self._arrived.add(client)
        return self._done_if_complete()

    def _done_if_complete(self) -> list[Request]:
        if self._migrate is None or len(self._arrived) < self._migrate.clients:
            return []
        return self._done("all clients have arrived")

    def _done(self, reason: str) -> list[Request]:
        self._over(reason)
        return self._context.send(
            self.partner, LbDone(session=self.session, arrived=len(self._arrived))
        )

    def on_alarm(self, purpose: str, now_s: float) -> list[Request]:
        if self._migrate is None:
            return self.abort("the offloader did not say who comes")
        if purpose == STALL and len(self._arrived) > self._arrived_at_last_look:
            return [self._watch_for_stall(now_s)]
        return self._done("no more clients came in time")

    def abort(self, reason: str) -> list[Request]:
        self._over(reason, is_failure=True)
        return self._context.send(self.partner, SessionEnd(session=self.session, reason=reason))

    def on_ended(self, reason: str) -> list[Request]:
        """The offloader has ended it; it may want to know how many have arrived."""
        if self._migrate is None:
            self._over(reason)
            return []
        return self._done(reason)

    def _over(self, reason: str, *, is_failure: bool = False) -> None:
        migrate = self._migrate
        planned = 0 if migrate is None else migrate.clients
        prediction = None
        if migrate is not None and self._arrived:
            prediction = Prediction(
                session=self.session,
                source=self.partner,
                target=self._context.broker,
                planned=planned,
                moved=len(self._arrived),
                before=self._before,
                predicted=migrate.predicted,
            )
        self.ending = Ending(
            reason,
            planned=planned,
            moved=len(self._arrived),
            is_failure=is_failure,
            prediction=prediction,
        )
