"""Channels over HTTP, for subscribers without the client library.

    POST /login, /subscribe, /results, /unsubscribe, /logout (api/broker_api.py)

G1  Results are sent until they are acknowledged, and not after that.
G2  A session without a request for `session_s` ends, and there are at most `connections_max`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Iterator
from typing import Protocol

from godwit.api.broker_api import (
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
    ResultsAfter,
    ResultsPage,
    SubscribeChannel,
    UnsubscribeChannel,
)
from godwit.content.channel_messages import (
    ChannelSubscription,
    ChannelSubscriptionId,
    ChannelUnsubscription,
)
from godwit.http.errors import RestError
from godwit.http.operations import Served, served
from godwit.sharing.http_session import HttpSession, HttpSubscription
from godwit.sharing.live_channels import LiveChannels
from godwit.sharing.outlets import Positions
from godwit.sharing.shared_subscriptions import back_end_key

log = logging.getLogger("godwit.gateway")

#: The Retry-After of answers that ask for a retry.
AGAIN_S = 1.0


class SessionLimits(Protocol):
    @property
    def session_s(self) -> float: ...

    @property
    def connections_max(self) -> int: ...


class ChannelHost(Protocol):
    """What the gateway needs of its broker."""

    @property
    def name(self) -> str: ...

    @property
    def limits(self) -> SessionLimits: ...

    @property
    def is_draining(self) -> bool:
        """New sessions are refused."""
        ...

    @property
    def channels(self) -> LiveChannels | None:
        """None without a data cluster."""
        ...


class Gateway:
    def __init__(self, host: ChannelHost) -> None:
        self._host = host
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
        """The broker is stopping: end all sessions."""
        self._is_closed = True
        for session in list(self._sessions.values()):
            self._end(session, "the broker is stopping")

    # -- sessions ------------------------------------------------------------------------------

    async def _login(self, request: Login) -> LoggedIn:
        channels, limits = self._channels(), self._host.limits
        former = self._of_user.get(request.user)
        if self._host.is_draining and former is None:
            reason = f"broker {self._host.name} is being drained; log in at another broker"
            raise RestError(503, reason, retry_after_s=AGAIN_S)
        if former is not None:
            self._end(former, "another one in its place")
        if self.sessions >= limits.connections_max:
            raise RestError(503, "too many sessions", retry_after_s=AGAIN_S)
        session = HttpSession(request.user, secrets.token_urlsafe(16))
        self._sessions[session.token] = self._of_user[session.user] = session
        channels.enter(session.name, session)
        self._expire_later(session)
        log.info("logged in", extra={"user": session.user})
        return LoggedIn(session=session.token, broker=self._host.name, session_s=limits.session_s)

    async def _logout(self, request: Logout) -> Ended:
        session = self._sessions.get(request.session)
        if session is not None:
            self._end(session, "logged out")
        return Ended()

    def _channels(self) -> LiveChannels:
        if self._is_closed:
            raise RestError(503, f"broker {self._host.name} is stopping", retry_after_s=AGAIN_S)
        if self._host.channels is None:
            reason = f"broker {self._host.name} has no data cluster, so there are no channels"
            raise RestError(404, reason)
        return self._host.channels

    def _session(self, token: str) -> HttpSession:
        session = self._sessions.get(token)
        if session is None:
            raise no_session()
        return session

    @contextlib.contextmanager
    def _in_use(self, session: HttpSession) -> Iterator[None]:
        """Keep the session from expiring while a request is answered, and for `session_s` after."""
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
        session_s = self._host.limits.session_s
        reason = f"nothing was asked for {session_s:g} s"
        loop = asyncio.get_running_loop()
        session.expiry = loop.call_later(session_s, self._end, session, reason)

    def _end(self, session: HttpSession, reason: str) -> None:
        log.info("session over", extra={"user": session.user, "reason": reason})
        del self._sessions[session.token], self._of_user[session.user]
        session.end()
        if self._host.channels is not None:
            self._host.channels.leave(session.name)

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

    async def _results(self, request: ResultsAfter) -> ResultsPage:
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
        return ResultsPage(rows, positions, session.ended())


def _begin(
    session: HttpSession, request: SubscribeChannel, channels: LiveChannels
) -> HttpSubscription:
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
    """A position must not be beyond what was sent; ended subscriptions are ignored."""
    for id, position in positions.items():
        told = session.told.get(id)
        if told is not None and position > told:
            where = f"$.positions.{id}"
            raise RestError(400, f"results were sent up to {list(told)} only", where=where)


def no_session() -> RestError:
    return RestError(404, "no such session, or it is over: log in")
