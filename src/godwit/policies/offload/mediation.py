"""The mediator of an edge broker: at most one session at a time, as offloader or as acceptor.

Paper    Cheung, thesis 4.1.4, "Mediating Load Balancing Sessions".
Words    local mediator -> Mediator; broker-action list -> candidates.
Claim    Sessions of disjoint pairs of brokers do not know of each other, and cannot wait for each
         other: a broker is in one session, and answers all other requests at once.

Departs  1. A broker whose own request is outstanding answers BUSY (open).
         2. If two brokers request each other, the request of the lower name counts (open).
         3. The acceptor's answer has its present load: if the difference is gone, the next broker
            is asked.  What a PIE said may be half a minute old.
         4. A late agreement is answered with SessionEnd: the acceptor need not wait for its timer.
Tested   tests/policies/offload/test_mediation.py.

M1  A broker is BUSY exactly while it is in a session that both sides agreed to.
M2  A session ends on each side without the other (F1, N1).  Each side reports it once; an acceptor
    that got no clients leaves it to the offloader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TypeAlias, assert_never

from godwit.broker.modules import Request
from godwit.broker.stimuli import Hop
from godwit.content.messages import Publication
from godwit.policies.offload.acceptor_session import AcceptorSession
from godwit.policies.offload.detection import Candidate
from godwit.policies.offload.edge_context import EdgeContext
from godwit.policies.offload.holds import BlockedPairs
from godwit.policies.offload.load_status import LoadStatus, StatusEvent
from godwit.policies.offload.mediation_messages import (
    LbDone,
    LbReply,
    LbRequest,
    Migrate,
    SessionEnd,
)
from godwit.policies.offload.obstacles import Obstacle, Obstacles
from godwit.policies.offload.offloader_session import (
    REPLY,
    SESSION_ALARMS,
    Ending,
    OffloaderPhase,
    OffloaderSession,
)
from godwit.policies.offload.outcomes import Prediction

SessionMessage: TypeAlias = LbRequest | LbReply | Migrate | LbDone | SessionEnd


class Mediator:
    def __init__(self, context: EdgeContext) -> None:
        self.session: OffloaderSession | AcceptorSession | None = None
        self.sessions = 0
        """Sessions since the start, agreed to by both sides."""
        self.moving_sessions = 0
        """... in which clients moved, and which are over."""
        self.pairs = BlockedPairs()
        self.obstacles = Obstacles(context.broker)
        self.is_paused = False
        self.prediction: Prediction | None = None
        """Of the last session that moved clients, until the load has settled."""
        self._context = context
        self._candidates: deque[Candidate] = deque()
        self._overloaded = False

    @property
    def is_requesting(self) -> bool:
        session = self.session
        return isinstance(session, OffloaderSession) and session.phase is OffloaderPhase.REQUESTING

    # -- the offloader -------------------------------------------------------------------------

    def ask(
        self, candidates: Iterable[Candidate], now_s: float, *, overloaded: bool
    ) -> list[Request]:
        """Request the candidates one after the other, until one agrees."""
        assert self.session is None, "M1"
        self._candidates = deque(candidates)
        self._overloaded = overloaded
        return self._request_next(now_s)

    def _request_next(self, now_s: float) -> list[Request]:
        self.session = None
        if not self._candidates:
            return []
        session = OffloaderSession(
            self._context,
            self._candidates.popleft(),
            self._new_id(now_s),
            overloaded=self._overloaded,
        )
        self.session = session
        return session.request(now_s)

    def _new_id(self, now_s: float) -> str:
        """Unique also after a restart: by the time, and by chance."""
        context = self._context
        return f"{context.broker}-{int(now_s * 1000):x}-{context.random.getrandbits(24):06x}"

    # -- messages ------------------------------------------------------------------------------

    def on_message(self, sender: str, message: SessionMessage, now_s: float) -> list[Request]:
        if isinstance(message, LbRequest):
            return self._on_request(sender, message, now_s)
        session = self.session
        if session is None or (session.session, session.partner) != (message.session, sender):
            return self._on_unknown(sender, message)
        requests: list[Request] = []
        match message:
            case LbReply():
                return self._on_reply(message, now_s)
            case Migrate():
                if isinstance(session, AcceptorSession):
                    requests = session.on_migrate(message, now_s)
            case LbDone():
                if isinstance(session, OffloaderSession):
                    requests = session.on_done(message, now_s)
            case SessionEnd(reason=reason):
                requests = session.on_ended(f"{sender}: {reason}")
            case _:
                assert_never(message)
        return [*requests, *self._finish_if_over(now_s)]

    def on_part(self, sender: str, now_s: float) -> list[Request]:
        """A part of a long message has arrived: the sender is alive."""
        session = self.session
        if (
            isinstance(session, OffloaderSession)
            and self.is_requesting
            and session.partner == sender
        ):
            return [session.wait_for(REPLY, now_s)]
        return []

    def _on_unknown(self, sender: str, message: SessionMessage) -> list[Request]:
        is_waiting = isinstance(message, Migrate) or (
            isinstance(message, LbReply) and message.status is LoadStatus.OK
        )
        if not is_waiting:
            return []
        ended = SessionEnd(session=message.session, reason="this session is over, or unknown")
        return self._context.send(sender, ended)

    def _on_reply(self, reply: LbReply, now_s: float) -> list[Request]:
        session = self.session
        if not isinstance(session, OffloaderSession) or not self.is_requesting:
            return []
        if reply.status is not LoadStatus.OK or reply.info is None:
            return self._request_next(now_s)
        if not session.is_worthwhile(reply.info):
            changed = SessionEnd(session=session.session, reason="the loads have changed")
            return [*self._context.send(session.partner, changed), *self._request_next(now_s)]
        self._candidates.clear()
        self.sessions += 1
        return session.on_agreed(reply, now_s)

    def _on_request(self, sender: str, request: LbRequest, now_s: float) -> list[Request]:
        context, session = self._context, self.session
        if self.is_requesting and session is not None and session.partner == sender:
            if context.broker < sender:
                return self._refuse(sender, request, LoadStatus.BUSY)
            # Theirs counts; they refuse ours, which is forgotten here.
            self._cancel_alarms()
            self._candidates.clear()
            self.session = session = None
        if session is not None or self.is_paused:
            return self._refuse(sender, request, LoadStatus.BUSY)
        context.update_availability()  # The last detection may be a while ago.
        if context.status.status is not LoadStatus.OK:
            return self._refuse(sender, request, context.status.status)
        accepting = AcceptorSession(context, sender, request)
        self.session = accepting
        self.sessions += 1
        return accepting.agree(now_s)

    def _refuse(self, to: str, request: LbRequest, status: LoadStatus) -> list[Request]:
        return self._context.send(to, LbReply(session=request.session, status=status))

    # -- what else happens ---------------------------------------------------------------------

    def on_alarm(self, purpose: str, now_s: float) -> list[Request]:
        session = self.session
        if session is None:
            return []
        if self.is_requesting:  # No answer in time; if it comes late, it is refused then.
            late = SessionEnd(session=session.session, reason="the answer came too late")
            return [*self._context.send(session.partner, late), *self._request_next(now_s)]
        return [*session.on_alarm(purpose, now_s), *self._finish_if_over(now_s)]

    def on_publication(
        self, publication: Publication, destinations: Sequence[Hop], now_s: float
    ) -> list[Request]:
        session = self.session
        if not isinstance(session, OffloaderSession):
            return []
        requests = session.on_publication(publication, destinations, now_s)
        return [*requests, *self._finish_if_over(now_s)] if requests else []

    def on_arrived(self, client: str, session: str, now_s: float) -> list[Request]:
        if session:
            self._context.holds.hold([client], now_s, self._context.settings.hold_s)
        accepting = self.session
        if not isinstance(accepting, AcceptorSession) or accepting.session != session:
            return []
        return [*accepting.on_arrived(client), *self._finish_if_over(now_s)]

    def on_departed(self, client: str, now_s: float) -> list[Request]:
        self._context.holds.drop(client)
        self.obstacles.on_departed()
        if not isinstance(self.session, OffloaderSession):
            return []
        return [*self.session.on_departed(client, now_s), *self._finish_if_over(now_s)]

    def abort(self, reason: str, now_s: float) -> list[Request]:
        """End the present session, if there is one."""
        session = self.session
        self._candidates.clear()
        if session is None:
            return []
        if self.is_requesting:
            self.session = None
            self._cancel_alarms()
            late = SessionEnd(session=session.session, reason=reason)
            return self._context.send(session.partner, late)
        return [*session.abort(reason), *self._finish_if_over(now_s)]

    # -- the end -------------------------------------------------------------------------------

    def _cancel_alarms(self) -> None:
        for purpose in SESSION_ALARMS:
            self._context.alarms.cancel(purpose)

    def _finish_if_over(self, now_s: float) -> list[Request]:
        session = self.session
        if session is None or session.ending is None:
            return []
        ending = session.ending
        self.session = None
        self._cancel_alarms()
        if isinstance(session, OffloaderSession):
            session.hold_those_that_stayed(now_s)
            self._learn(session, ending)
        self._leave_busy(ending)
        if isinstance(session, AcceptorSession) and not session.was_used and not ending.is_failure:
            return []  # The offloader says why.
        return [self._report_of(session, ending)]

    def _learn(self, session: OffloaderSession, ending: Ending) -> None:
        """Whether it is worthwhile to ask the same broker again."""
        if session.largest_subscriber is not None:
            self.obstacles.largest_subscriber = session.largest_subscriber
        if ending.moved:
            self.pairs.free(session.partner)
            self.obstacles.on_success()
            return
        if ending.is_needless:
            return
        self.pairs.block(session.partner, session.action)
        if ending.is_obstacle:
            self.obstacles.on_failed(Obstacle(session.partner, session.action, ending.reason))
        elif ending.planned and not ending.asked:
            self.obstacles.on_success()  # A dry run: it could be balanced.

    def _leave_busy(self, ending: Ending) -> None:
        context = self._context
        if ending.moved:
            self.moving_sessions += 1
            context.status.apply(StatusEvent.MOVED)
            context.averages.forget()
            self.prediction = ending.prediction
            return
        context.status.apply(StatusEvent.ENDED_HIGH if context.is_high else StatusEvent.ENDED)

    def _report_of(self, session: OffloaderSession | AcceptorSession, ending: Ending) -> Request:
        reason: dict[str, float | str] = {
            "session": session.session,
            "side": "offloader" if isinstance(session, OffloaderSession) else "acceptor",
            "metric": session.action.value,
            "because": ending.reason,
            "planned": ending.planned,
            "moved": ending.moved,
        }
        if isinstance(session, OffloaderSession):
            reason |= {"asked": ending.asked, "closed": ending.closed}
            reason |= session.differences()
        action = "gave up" if ending.is_failure else "ended"
        return self._context.report(action, session.session, session.partner, reason)
