"""Channels over HTTP, for subscribers that do not speak the protocol of clients.

    POST /login, /subscribe, /results, /unsubscribe, /logout (rest/subscribing.py)

G1  Results are sent until they are acknowledged, and not after that.
G2  A session that nobody asks anything of for `session_s` ends, and there are at most
    `connections_max` of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Iterator

from godwit.channels.desk import back_end_key
from godwit.content.channels import (
    ChannelSubscription,
    ChannelSubscriptionId,
    ChannelUnsubscription,
)
from godwit.network.channels import Channels
from godwit.network.node import BrokerNode
from godwit.network.outlets import Positions
from godwit.network.sessions import HttpSession, HttpSubscription
from godwit.rest.errors import RestError
from godwit.rest.operations import Served, served
from godwit.rest.subscribing import (
    LOGIN,
    LOGOUT,
    RESULTS,
    SUBSCRIBE,
    SUBSCRIPTIONS_MAX,
    UNSUBSCRIBE,
    ChannelSubscribed,
    Ended,
    LoggedIn,
    Login,
    Logout,
    ResultRows,
    Results,
    ResultsAfter,
    SubscribeChannel,
    UnsubscribeChannel,
)

log = logging.getLogger("godwit.gateway")

#: For those who are told to ask again.
AGAIN_S = 1.0


class Gateway:
    def __init__(self, node: BrokerNode) -> None:
        self._node = node
        self._sessions: dict[str, HttpSession] = {}
        self._of_user: dict[str, HttpSession] = {}
        self._is_closed = False

    @property
    def sessions(self) -> int:
        return len(self._sessions)

    def operations(self) -> list[Served]:
        return [
            served(LOGIN, self._login),
            served(SUBSCRIBE, self._subscribe),
            served(RESULTS, self._results),
            served(UNSUBSCRIBE, self._unsubscribe),
            served(LOGOUT, self._logout),
        ]

    def close(self) -> None:
        """The broker is stopping: nobody waits any longer."""
        self._is_closed = True
        for session in list(self._sessions.values()):
            self._end(session, "the broker is stopping")

    # -- sessions ------------------------------------------------------------------------------

    async def _login(self, request: Login) -> LoggedIn:
        channels, limits = self._channels(), self._node.limits
        former = self._of_user.get(request.user)
        if former is not None:
            self._end(former, "another one in its place")
        if self.sessions >= limits.connections_max:
            raise RestError(503, "too many sessions", retry_after_s=AGAIN_S)
        session = HttpSession(request.user, secrets.token_urlsafe(16))
        self._sessions[session.token] = self._of_user[session.user] = session
        channels.enter(session.name, session)
        self._expire_later(session)
        log.info("logged in", extra={"user": session.user})
        return LoggedIn(session=session.token, broker=self._node.name, session_s=limits.session_s)

    async def _logout(self, request: Logout) -> Ended:
        session = self._sessions.get(request.session)
        if session is not None:
            self._end(session, "logged out")
        return Ended()

    def _channels(self) -> Channels:
        if self._is_closed:
            raise RestError(503, f"broker {self._node.name} is stopping", retry_after_s=AGAIN_S)
        if self._node.channels is None:
            reason = f"broker {self._node.name} has no data cluster, so there are no channels"
            raise RestError(404, reason)
        return self._node.channels

    def _session(self, token: str) -> HttpSession:
        session = self._sessions.get(token)
        if session is None:
            raise no_session()
        return session

    @contextlib.contextmanager
    def _in_use(self, session: HttpSession) -> Iterator[None]:
        """It does not expire while something is being answered, and a while after."""
        session.requests += 1
        if session.expiry is not None:
            session.expiry.cancel()
        try:
            yield
        finally:
            session.requests -= 1
            if not session.requests and not session.is_over:
                self._expire_later(session)

    def _expire_later(self, session: HttpSession) -> None:
        session_s = self._node.limits.session_s
        reason = f"nothing was asked for {session_s:g} s"
        loop = asyncio.get_running_loop()
        session.expiry = loop.call_later(session_s, self._end, session, reason)

    def _end(self, session: HttpSession, reason: str) -> None:
        log.info("session over", extra={"user": session.user, "reason": reason})
        del self._sessions[session.token], self._of_user[session.user]
        session.end()
        if self._node.channels is not None:
            self._node.channels.leave(session.name)

    # -- subscriptions -------------------------------------------------------------------------

    async def _subscribe(self, request: SubscribeChannel) -> ChannelSubscribed:
        channels, session = self._channels(), self._session(request.session)
        with self._in_use(session):
            wanted = session.wanted_as(back_end_key(request.channel, request.arguments))
            if wanted is None:
                wanted = _begin(session, request, channels)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(request.wait_s):
                    await wanted.is_settled.wait()
        if wanted.refused:
            raise RestError(400, wanted.refused)
        if wanted.start is not None:
            return ChannelSubscribed(wanted.id, wanted.start)
        if session.is_over:
            raise no_session()
        if wanted.id not in session.wanted:
            raise RestError(409, "was ended by another request")
        reason = "the data cluster has not answered yet; ask again"
        raise RestError(503, reason, retry_after_s=AGAIN_S)

    async def _unsubscribe(self, request: UnsubscribeChannel) -> Ended:
        channels, session = self._channels(), self._session(request.session)
        with self._in_use(session):
            if request.subscription in session.wanted:
                session.forget(request.subscription)
                channels.ask(session.name, ChannelUnsubscription(id=request.subscription))
        return Ended()

    async def _results(self, request: ResultsAfter) -> Results:
        channels, session = self._channels(), self._session(request.session)
        check_told(session, request.positions)
        with self._in_use(session):
            poll = session.begin_poll()
            channels.begin_again(session.name, request.positions)
            try:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(request.wait_s):
                        await poll.is_over.wait()
            finally:
                session.end_poll(poll)
        if session.is_over:
            raise no_session()
        if poll.was_replaced:
            raise RestError(409, "another request for results has come in its place")
        positions = session.answered(poll, channels.desk.positions(session.name))
        rows = [
            ResultRows(
                subscription=frame.id,
                execution=frame.execution,
                first=frame.first,
                rows=frame.rows,
                executed_s=frame.executed_s,
            )
            for frame in poll.frames
        ]
        ended = {each.id: each.refused for each in session.wanted.values() if each.refused}
        return Results(rows, positions, ended)


def _begin(session: HttpSession, request: SubscribeChannel, channels: Channels) -> HttpSubscription:
    if len(session.wanted) >= SUBSCRIPTIONS_MAX:
        raise RestError(429, f"a session has at most {SUBSCRIPTIONS_MAX} subscriptions")
    id = ChannelSubscriptionId(secrets.token_hex(8))
    key = back_end_key(request.channel, request.arguments)
    wanted = session.wanted[id] = HttpSubscription(id, key)
    asked = ChannelSubscription(
        id=id, channel=request.channel, arguments=request.arguments, start=request.start
    )
    channels.ask(session.name, asked)
    return wanted


def check_told(session: HttpSession, positions: Positions) -> None:
    """Nobody can have more than it was told; of what has ended, nobody cares."""
    for id, position in positions.items():
        told = session.told.get(id)
        if told is not None and position > told:
            where = f"$.positions.{id}"
            raise RestError(400, f"results were sent up to {list(told)} only", where=where)


def no_session() -> RestError:
    return RestError(404, "no such session, or it is over: log in")
