"""Global sessions: two cluster-heads let the edge brokers of their clusters see each other.

Paper    Cheung, thesis 4.1.4: the global mediator.
Words    global load balancing session -> GlobalSession; balancedSet -> PieDetails.balanced.
Claim    While it lasts, each edge broker knows the loads of both clusters, and ordinary sessions
         cross the border; afterwards each knows its own cluster again.

    head A                          head B
      |-- GlobalRequest --------------->|
      |<-------------- GlobalReply -----|
    PieLease to its edges             PieLease to its edges      they subscribe to the other's PIE
      |-- GlobalKeep, every round ----->|                        leases are renewed
      |-- GlobalEnd ------------------->|
    PieLease for no time              the same                   they unsubscribe

Departs  1. It ends when every edge broker lists all others in its balanced set, as in the thesis;
            also after three rounds (detections of the head that requested it) in which no client
            moved, because the offload algorithms may stop short of balance; and after
            `global_rounds_max` rounds, so that other clusters get their turn.  A session that finds
            nothing to move is tried again and again while loads differ: it counts for nothing.
         2. Leases and GlobalKeep have deadlines: if a head dies, the other one and the edge
            brokers of both end the session by themselves (open in the thesis).
Tested   tests/policies/offload/test_global_mediation.py.

X1  A head is in one global session at most, and BUSY exactly while both heads agreed to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from random import Random

from godwit.broker.effects import Decision
from godwit.broker.modules import Request
from godwit.policies.offload.alarms import Alarms
from godwit.policies.offload.control_post import ControlPost
from godwit.policies.offload.load_status import LoadStatus, StatusEvent, StatusMachine
from godwit.policies.offload.mediation_messages import (
    GlobalEnd,
    GlobalKeep,
    GlobalReply,
    GlobalRequest,
    MediationMessage,
    PieLease,
    send,
)
from godwit.policies.offload.pie import Pie
from godwit.policies.offload.settings import BalancingSettings

GLOBAL_REPLY, GLOBAL_KEEP = "global-reply", "global-keep"
GLOBAL_ALARMS = (GLOBAL_REPLY, GLOBAL_KEEP)
#: Rounds in which no client moved after which a global session ends.
QUIET_ROUNDS_MAX = 3
#: A lease, and the patience with the other head, last for so many of the longest rounds.
LEASE_ROUNDS = 2.5


@dataclass(slots=True)
class GlobalSession:
    session: str
    partner: str
    """The other head, which is also the name of its cluster."""

    is_ours: bool
    """Whether this head has requested it, and decides when it ends."""

    is_running: bool = False
    rounds: int = 0
    quiet_rounds: int = 0
    sessions: int = 0
    """Sessions of the edge brokers of both clusters, since it has begun, in which clients moved."""

    before: dict[str, int] = field(default_factory=dict)
    """How many each edge broker had had: when it began, or when the broker was heard first."""

    leased: set[str] = field(default_factory=set)

    def count(self, pies: Iterable[Pie]) -> None:
        """Take in in how many sessions of the edge brokers clients have moved.

        One that has restarted counts from 0, and adds nothing until it has caught up.
        """
        sessions = 0
        for pie in pies:
            now = pie.details.moving_sessions
            sessions += max(0, now - self.before.setdefault(pie.broker, now))
        self.sessions = max(sessions, self.sessions)


class GlobalMediator:
    def __init__(
        self,
        broker: str,
        settings: BalancingSettings,
        random: Random,
        post: ControlPost,
        alarms: Alarms,
        status: StatusMachine,
        *,
        edges: Callable[[], Collection[Pie]],
        has_high_edges: Callable[[], bool],
    ) -> None:
        """`edges` are the latest loads of the edge brokers of this cluster."""
        self.session: GlobalSession | None = None
        self.sessions = 0
        """Global sessions since the start, agreed to by both heads."""
        self.is_paused = False
        self._broker = broker
        self._settings = settings
        self._random = random
        self._post = post
        self._alarms = alarms
        self._status = status
        self._edges = edges
        self._has_high_edges = has_high_edges

    @property
    def other_cluster(self) -> str | None:
        """The cluster that this one balances with."""
        session = self.session
        return session.partner if session is not None and session.is_running else None

    def _send(self, to: str, message: MediationMessage) -> list[Request]:
        return send(self._post, self._broker, to, message)

    # -- handshake -----------------------------------------------------------------------------

    def request(self, partner: str, now_s: float) -> list[Request]:
        assert self.session is None, "X1"
        id = f"{self._broker}-g{int(now_s * 1000):x}-{self._random.getrandbits(24):06x}"
        self.session = GlobalSession(id, partner, is_ours=True)
        deadline = self._alarms.set(GLOBAL_REPLY, now_s + self._settings.reply_timeout_s)
        return [*self._send(partner, GlobalRequest(session=id)), deadline]

    def on_message(self, sender: str, message: MediationMessage, now_s: float) -> list[Request]:
        if isinstance(message, GlobalRequest):
            return self._on_request(sender, message, now_s)
        session = self.session
        is_known = session is not None and (session.session, session.partner) == (
            message.session,
            sender,
        )
        if not is_known or session is None:
            is_waiting = isinstance(message, GlobalKeep) or (
                isinstance(message, GlobalReply) and message.status is LoadStatus.OK
            )
            unknown = GlobalEnd(session=message.session, reason="this session is over, or unknown")
            return self._send(sender, unknown) if is_waiting else []
        match message:
            case GlobalReply(status=status) if not session.is_running:
                self._alarms.cancel(GLOBAL_REPLY)
                if status is not LoadStatus.OK:
                    self.session = None
                    return []
                self._status.apply(StatusEvent.GRANTED)
                return self._begin(session, now_s)
            case GlobalKeep():
                return [self._patience(now_s), *self._lease_all(session)]
            case GlobalEnd(reason=reason):
                return self._over(f"{sender}: {reason}")
            case _:
                return []

    def _on_request(self, sender: str, request: GlobalRequest, now_s: float) -> list[Request]:
        session = self.session
        if session is not None and not session.is_running and session.partner == sender:
            if self._broker < sender:
                return self._refuse(sender, request, LoadStatus.BUSY)
            self._alarms.cancel(GLOBAL_REPLY)  # Theirs counts; they refuse ours.
            self.session = session = None
        if session is not None or self.is_paused or not self._edges():
            return self._refuse(sender, request, LoadStatus.BUSY)
        if self._status.status is not LoadStatus.OK:
            return self._refuse(sender, request, self._status.status)
        self._status.apply(StatusEvent.ACCEPTED)
        session = self.session = GlobalSession(request.session, sender, is_ours=False)
        agreed = GlobalReply(session=request.session, status=LoadStatus.OK)
        return [
            *self._send(sender, agreed),
            self._patience(now_s),
            *self._begin(session, now_s),
        ]

    def _refuse(self, to: str, request: GlobalRequest, status: LoadStatus) -> list[Request]:
        return self._send(to, GlobalReply(session=request.session, status=status))

    # -- while it lasts ------------------------------------------------------------------------

    def _begin(self, session: GlobalSession, now_s: float) -> list[Request]:
        session.is_running = True
        session.count(self._edges())
        self.sessions += 1
        reason: dict[str, float | str] = {
            "session": session.session,
            "ours": float(session.is_ours),
        }
        report = self._report("global session", session, reason)
        return [report, *self._lease_all(session)]

    def _patience(self, now_s: float) -> Request:
        return self._alarms.set(GLOBAL_KEEP, now_s + self._lease_s)

    @property
    def _lease_s(self) -> float:
        return LEASE_ROUNDS * self._settings.global_detection_max_s

    def _lease_all(self, session: GlobalSession) -> list[Request]:
        return self._lease(session, [pie.broker for pie in self._edges()])

    def _lease(self, session: GlobalSession, edges: Iterable[str]) -> list[Request]:
        lease = PieLease(session=session.session, cluster=session.partner, for_s=self._lease_s)
        requests: list[Request] = []
        for edge in edges:
            session.leased.add(edge)
            requests += self._send(edge, lease)
        return requests

    def on_new_edge(self, pie: Pie) -> list[Request]:
        """An edge broker of one of the clusters is heard for the first time."""
        session = self.session
        if session is None or not session.is_running:
            return []
        session.before.setdefault(pie.broker, pie.details.moving_sessions)
        return self._lease(session, [pie.broker]) if pie.cluster == self._broker else []

    def round(self, pies: Collection[Pie], now_s: float) -> list[Request]:
        """A round is over; `pies` are the latest of the edge brokers of both clusters."""
        session = self.session
        assert session is not None
        if not session.is_ours or not session.is_running:
            return []
        before = session.sessions
        session.count(pies)
        session.rounds += 1
        if session.sessions > before:
            session.quiet_rounds = 0
        elif not any(pie.details.in_session for pie in pies):  # Else it may still move some.
            session.quiet_rounds += 1
        if session.rounds > 1 and are_all_balanced(pies, session.partner):
            return self.end("all edge brokers of both clusters are balanced")
        if session.quiet_rounds >= QUIET_ROUNDS_MAX:
            return self.end(f"no client has moved in {QUIET_ROUNDS_MAX} rounds")
        if session.rounds >= self._settings.global_rounds_max:
            return self.end("it has taken its time; others get their turn")
        keep = self._send(session.partner, GlobalKeep(session=session.session))
        return [*keep, *self._lease_all(session)]

    # -- the end -------------------------------------------------------------------------------

    def on_alarm(self, purpose: str, now_s: float) -> list[Request]:
        session = self.session
        if session is None:
            return []
        if purpose == GLOBAL_REPLY and not session.is_running:
            self.session = None
            late = GlobalEnd(session=session.session, reason="the answer came too late")
            return self._send(session.partner, late)
        return self.end("the other head is silent")

    def end(self, reason: str) -> list[Request]:
        """End the session; the other head is told."""
        session = self.session
        if session is None:
            return []
        ended = self._send(session.partner, GlobalEnd(session=session.session, reason=reason))
        return [*ended, *self._over(reason)]

    def _over(self, reason: str) -> list[Request]:
        session, self.session = self.session, None
        assert session is not None
        for alarm in GLOBAL_ALARMS:
            self._alarms.cancel(alarm)
        if not session.is_running:
            return []
        is_high = self._has_high_edges()
        self._status.apply(StatusEvent.ENDED_HIGH if is_high else StatusEvent.ENDED)
        requests: list[Request] = []
        for edge in sorted(session.leased):
            over = PieLease(session=session.session, cluster=session.partner, for_s=0.0)
            requests += self._send(edge, over)
        why: dict[str, float | str] = {
            "session": session.session,
            "because": reason,
            "rounds": session.rounds,
            "sessions": session.sessions,
        }
        return [*requests, self._report("global ended", session, why)]

    def _report(
        self, action: str, session: GlobalSession, reason: dict[str, float | str]
    ) -> Decision:
        source, target = self._broker, session.partner
        if not session.is_ours:
            source, target = target, source
        return Decision(action, session.session, source, target, reason)


def are_all_balanced(pies: Collection[Pie], partner: str) -> bool:
    """Whether each edge broker of both clusters lists all others as balanced with it."""
    names = {pie.broker for pie in pies}
    if not any(pie.cluster == partner for pie in pies):
        return False
    return all(names - {pie.broker} <= set(pie.details.balanced) for pie in pies)
