"""One move of a live client: the state machine of migration/moving.py between two lines.

    home line --> Client --> Journey.on_old --+
                                              +--> Move --> orders --> both streams, application
    new line  ----------->  Journey ----------+

Both lines are kept as ever: a connection that is lost is resumed, and the move goes on.  A broker
that has forgotten us is lost.  So is one that is not connected when the time is up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol, assert_never

import msgspec

from godwit.client.events import EVENTS_WAITING_MAX
from godwit.client.line import Line, Listener, Place
from godwit.client.post import Arrived, Post
from godwit.client.session import ClientSession
from godwit.content.channels import ChannelInEffect, ChannelResults
from godwit.content.messages import (
    Advertisement,
    Notice,
    Paused,
    Publication,
    Refusal,
    SubscriptionInEffect,
)
from godwit.errors import RefusedError, StayedError, UnreachableError
from godwit.migration.moving import Hand, Move, Order, Phase, ToNew, ToOld
from godwit.wire.call import Pauses
from godwit.wire.frames import Dropped, HowFar

#: The broker may not have heard yet that we had left it.
REFUSALS_MAX = 3


class Moved(msgspec.Struct, frozen=True):
    """A client has arrived at another broker."""

    source: str
    target: str
    took_s: float
    pause_s: float
    """How long publications waited in the client."""


class Traveller(Listener, Protocol):
    """The part of a client that a journey needs."""

    session: ClientSession
    line: Line

    def on_journey_over(self, left: Line) -> None:
        """The session is settled; `left` leads to the broker where it is not."""
        ...


class Journey:
    """Receives what comes over the new line."""

    def __init__(self, traveller: Traveller, place: Place, *, broker: str, within_s: float) -> None:
        """`broker` is who should answer there, if anybody in particular."""
        self._traveller = traveller
        self._session = traveller.session
        self._place = place
        self._broker = broker
        self._within_s = within_s
        self._start_s = _now_s()
        self._pause_s = 0.0
        self._pause_start_s = 0.0
        self._line = self._new_line()
        self._move: Move | None = None
        self._why = ""
        self._paused: Paused | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def _new_line(self) -> Line:
        fall_back_s = self._traveller.line.fall_back_s
        post = Post(self._session.name)
        return Line(post, [self._place], listener=self, fall_back_s=fall_back_s)

    async def run(self) -> Moved:
        """Move; StayedError says why not."""
        session, source = self._session, self._session.broker
        await self._open()
        self._move = session.plan_move()
        self._plan_time_out(self._start_s + self._within_s - _now_s())
        self._carry_out(self._move.start())
        await self._over
        if self._move.phase is Phase.STAYED:
            raise StayedError(f"{session.name} stayed at {source}: {self._why}")
        took_s = _now_s() - self._start_s
        return Moved(source, session.broker, took_s, self._pause_s)

    async def _open(self) -> None:
        pauses, refusals = Pauses(), 0
        while True:
            left_s = self._start_s + self._within_s - _now_s()
            try:
                await self._line.open(max(left_s, 0.0))
                break
            except RefusedError as error:
                refusals += 1
                if refusals >= REFUSALS_MAX:
                    raise StayedError(f"{self._place.where} refused: {error}") from None
            except UnreachableError as error:
                raise StayedError(str(error)) from None
            await pauses.take()
            self._line = self._new_line()
        answering = self._line.post.broker
        if self._broker not in ("", answering):
            self._line.hang_up("not the broker that was meant")
            raise StayedError(f"{answering} answers at {self._place.where}, not {self._broker}")

    @property
    def phase(self) -> Phase | None:
        """None while the new broker is being called."""
        return None if self._move is None else self._move.phase

    def abort(self) -> None:
        self._line.abort()

    def cancel(self, error: Exception) -> None:
        """The client is closed."""
        if self._timer is not None:
            self._timer.cancel()
        self._line.hang_up("the client was closed")
        if not self._over.done():
            self._over.set_exception(error)
            self._over.exception()  # Whoever waits is told; nobody has to.

    # -- what is heard -------------------------------------------------------------------------

    def on_old(self, notice: Notice) -> None:
        """Something came over the home line."""
        if not self._is_under_way:
            return
        if isinstance(notice, Paused) and not self._session.stream.is_idle:
            self._paused = notice  # It has handled all; others on the way may not have.
        else:
            self._carry_out(self._under_way.on_old(notice))

    def on_old_progress(self) -> None:
        if not self._is_under_way:
            return
        if self._session.is_forgotten:
            self._why = self._why or f"{self._session.broker} has forgotten us"
            self._carry_out(self._under_way.lose_source())
        elif self._paused is not None and self._session.stream.is_idle:
            paused, self._paused = self._paused, None
            self._carry_out(self._under_way.on_old(paused))

    def on_arrived(self, frame: Arrived, hops: int) -> None:
        """Something came over the new line."""
        if not self._is_under_way:
            return
        move = self._under_way
        if isinstance(frame, Publication):
            self._carry_out(move.publication_from_new(frame, hops))
            # A broker that may not send more holds its publishers back, for a while.
            self._line.fall_behind(move.waiting > EVENTS_WAITING_MAX)
        elif isinstance(frame, HowFar):
            pass  # Whoever asks will ask again, if we come.
        elif isinstance(frame, ChannelInEffect | ChannelResults):
            pass  # Channels are asked for on arrival.
        elif isinstance(frame, Dropped):
            if move.new_broker_counts:
                self._traveller.on_arrived(frame, hops)
            else:
                self._abort("too much waited at the new broker")
        else:
            if isinstance(frame, Refusal):
                self._why = f"{self._line.post.broker} refused {frame.about}: {frame.reason}"
            self._carry_out(move.on_new(frame))

    def on_progress(self) -> None:
        if self._is_under_way and self._line.post.is_forgotten:
            self._abort(f"{self._line.post.broker} has forgotten us")

    @property
    def _is_under_way(self) -> bool:
        return self._move is not None and not self._over.done()

    @property
    def _under_way(self) -> Move:
        assert self._move is not None
        return self._move

    # -- when the time is up -------------------------------------------------------------------

    def _plan_time_out(self, delay_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(delay_s, 0.0), self._on_time_out)

    def _on_time_out(self) -> None:
        move = self._under_way
        old_is_there = self._traveller.line.connection is not None
        new_is_there = self._line.connection is not None
        if new_is_there and not old_is_there and move.phase in (Phase.TURNING, Phase.RETURNING):
            self._carry_out(move.lose_source())
        elif move.phase is not Phase.RETURNING or not new_is_there:
            self._abort(f"not there within {self._within_s:g} s, still {move.phase.value}")
        if not move.is_over:  # Returning to the old broker: it will say when that is done.
            self._plan_time_out(self._within_s)

    def _abort(self, why: str) -> None:
        self._why = self._why or why
        self._carry_out(self._under_way.abort())

    # -- what is done --------------------------------------------------------------------------

    def _carry_out(self, orders: Iterable[Order]) -> None:
        session, move = self._session, self._under_way
        for order in orders:
            match order:
                case ToOld(message=Advertisement() as advertisement):
                    session.advertise_again(advertisement)
                case ToOld(message=message):
                    session.put(message)
                case ToNew(message=message):
                    self._line.post.put(message)
                case Hand(publication=publication, hops=hops):
                    if session.is_news(publication):
                        self._traveller.on_arrived(publication, hops)
                case _:
                    assert_never(order)
        self._note_pause(move.holds_publications)
        if move.is_over:
            self._finish(move)
        else:
            self._traveller.line.flush_soon()
            self._line.flush_soon()

    def _note_pause(self, is_paused: bool) -> None:
        if is_paused and not self._session.is_paused:
            self._pause_start_s = _now_s()
        if self._session.is_paused and not is_paused:
            self._pause_s += _now_s() - self._pause_start_s
        self._session.is_paused = is_paused

    def _finish(self, move: Move) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._over.set_result(None)
        left = self._arrive(move) if move.phase is Phase.MOVED else self._stay()
        self._session.settle()
        self._traveller.on_journey_over(left)

    def _stay(self) -> Line:
        """If our broker is never to be found again, we know where else to go."""
        places = self._traveller.line.places
        if self._place.where not in {place.where for place in places}:
            places.append(self._place)
        return self._line

    def _arrive(self, move: Move) -> Line:
        """The new line leads home from now on; the answer is the one that did so before."""
        traveller, session, new = self._traveller, self._session, self._line
        left, traveller.line = traveller.line, new
        left.post = Post(session.name, session.stream)
        left.post.is_forgotten = session.is_forgotten
        session.arrive(new.post, move)
        new.post, new.listener = session, traveller
        new.places.extend(place for place in left.places if place.where != self._place.where)
        for subscription in move.subscriptions.values():
            traveller.on_arrived(SubscriptionInEffect(id=session.known(subscription.id)), 0)
        return left


def _now_s() -> float:
    return asyncio.get_running_loop().time()
