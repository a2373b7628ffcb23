"""One move of a live client: the state machine of migration/move.py between two connections.

    old connection --> Client --> on_old ----+
                                             +--> Move --> orders --> both streams, application
    new connection --> LiveMove.on_message --+

Both connections are re-established when they are lost, and the move goes on.  A broker that has
forgotten the client counts as lost, and so does one that is not connected when the time is up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, assert_never

import msgspec
from msgspec.structs import replace

from godwit.client.broker_connection import BrokerConnection, BrokerPlace
from godwit.client.dispatch import EVENTS_WAITING_MAX
from godwit.client.gaps import GapKey
from godwit.client.stream_endpoint import NumberedFrame, StreamEndpoint
from godwit.content.channel_messages import ChannelInEffect, ChannelResults
from godwit.content.link_messages import NetworkStatus
from godwit.content.messages import (
    Advertisement,
    GapNotice,
    Notice,
    Paused,
    Publication,
    Refusal,
    SubscriptionInEffect,
    Sweep,
)
from godwit.errors import RefusedError, StayedError, TakenOverError, UnreachableError
from godwit.migration.move import Hand, Move, Order, Phase, ToNew, ToOld
from godwit.protocol.backoff import Backoff
from godwit.protocol.frames import Dropped, MeasureRoundTrips, MoveCompleted

if TYPE_CHECKING:
    from godwit.client.client import Client

#: A broker refuses a client of this name until it knows that the client had left it.
REFUSALS_MAX = 3


class Moved(msgspec.Struct, frozen=True):
    """A client has arrived at another broker."""

    source: str
    target: str
    took_s: float
    pause_s: float
    """How long publications waited in the client."""


class LiveMove:
    """The listener of the new connection."""

    def __init__(
        self,
        client: Client,
        place: BrokerPlace,
        *,
        broker: str,
        within_s: float,
        session: str = "",
    ) -> None:
        """`broker` is the name of the broker at `place`, or "" if it does not matter."""
        self._client = client
        self._session = client.session
        self._old = client.broker_connection
        self._place = place
        self._broker = broker
        self._within_s = within_s
        self._policy_session = session
        self._start_s = _now_s()
        self._pause_s = 0.0
        self._pause_start_s = 0.0
        self._new = self._new_connection()
        self._move: Move | None = None
        self._why = ""
        self._paused: Paused | None = None
        self._gaps: set[GapKey] = set()
        """Parts of the network that are missing, as the new broker tells."""
        self._timer: asyncio.TimerHandle | None = None
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def _new_connection(self) -> BrokerConnection:
        endpoint = StreamEndpoint(self._session.name, claimed=self._session.claimed)
        return BrokerConnection(
            endpoint, [self._place], listener=self, fall_back_s=self._old.fall_back_s
        )

    async def run(self) -> Moved:
        """Move.  Raises StayedError, with the reason, if the client stays."""
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
        backoff, refusals = Backoff(), 0
        while True:
            left_s = self._start_s + self._within_s - _now_s()
            try:
                await self._new.open(max(left_s, 0.0))
                break
            except RefusedError as error:
                refusals += 1
                if refusals >= REFUSALS_MAX:
                    raise StayedError(f"{self._place.where} refused: {error}") from None
            except UnreachableError as error:
                raise StayedError(str(error)) from None
            await backoff.wait()
            self._new = self._new_connection()
        answering = self._new.endpoint.broker
        if self._broker not in ("", answering):
            self._new.leave("the client expects another broker here")
            raise StayedError(f"{answering} answers at {self._place.where}, not {self._broker}")

    @property
    def phase(self) -> Phase | None:
        """None until the new broker has answered."""
        return None if self._move is None else self._move.phase

    def abort(self) -> None:
        self._new.abort()

    def cancel(self, error: Exception) -> None:
        """The client is closed."""
        if self._timer is not None:
            self._timer.cancel()
        self._new.leave("the client was closed")
        if not self._over.done():
            self._over.set_exception(error)
            self._over.exception()  # Retrieved, so that asyncio does not log it.

    # -- what the brokers send -----------------------------------------------------------------

    def on_old(self, notice: Notice) -> None:
        """A notice of the old broker."""
        if not self._is_under_way:
            return
        if isinstance(notice, Paused) and not self._session.stream.is_idle:
            self._paused = notice  # Other brokers have not acknowledged all publications yet.
        else:
            self._carry_out(self._under_way.on_old(notice))

    def on_old_progress(self) -> None:
        """The old broker has acknowledged something, or was connected again."""
        if not self._is_under_way:
            return
        if self._session.is_forgotten:
            self._why = self._why or f"{self._session.broker} has forgotten the client"
            self._carry_out(self._under_way.lose_source())
        elif self._paused is not None and self._session.stream.is_idle:
            paused, self._paused = self._paused, None
            self._carry_out(self._under_way.on_old(paused))

    def on_message(self, message: NumberedFrame, hops: int) -> None:
        """A message of the new broker."""
        if isinstance(message, GapNotice):
            self._on_gap(message)
            return
        if not self._is_under_way:
            return
        move = self._under_way
        if isinstance(message, Publication):
            self._carry_out(move.publication_from_new(message, hops))
            # A broker at a full window holds publishers back, for a while.
            self._new.fall_behind(move.waiting > EVENTS_WAITING_MAX)
        elif isinstance(message, MeasureRoundTrips | NetworkStatus):
            pass  # The one who asked asks again after the move.
        elif isinstance(message, ChannelInEffect | ChannelResults):
            pass  # Channels are subscribed to after the move.
        elif isinstance(message, Dropped):
            if move.new_broker_counts:
                self._client.on_message(message, hops)
            else:
                self._abort("the new broker dropped publications, because too many waited")
        else:
            if isinstance(message, Refusal):
                broker = self._new.endpoint.broker
                self._why = f"{broker} refused {message.about}: {message.reason}"
            self._carry_out(move.on_new(message))

    def _on_gap(self, notice: GapNotice) -> None:
        if notice.is_over:
            self._gaps.discard(GapKey.of(notice))
        else:
            self._gaps.add(GapKey.of(notice))
        self._client.gaps.on_notice(notice)

    def on_progress(self) -> None:
        """The new broker has acknowledged something, or was connected again."""
        if self._is_under_way and self._new.endpoint.is_forgotten:
            self._abort(f"{self._new.endpoint.broker} has forgotten the client")

    def on_taken_over(self, error: TakenOverError) -> None:
        self._client.on_taken_over(error)

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
        self._why = self._why or f"not moved within {self._within_s:g} s, still {move.phase.value}"
        orders = move.on_time_out(
            old_is_connected=self._old.connection is not None,
            new_is_connected=self._new.connection is not None,
        )
        self._carry_out(orders)
        if not move.is_over:  # Returning: wait for the old broker to confirm that.
            self._plan_time_out(self._within_s)

    def _abort(self, why: str) -> None:
        self._why = self._why or why
        self._carry_out(self._under_way.abort())

    # -- what the move orders ------------------------------------------------------------------

    def _carry_out(self, orders: Iterable[Order]) -> None:
        session, move = self._session, self._under_way
        for order in orders:
            match order:
                case ToOld(message=Advertisement() as advertisement):
                    session.advertise_again(advertisement)
                case ToOld(message=message):
                    session.put(message)
                case ToNew(message=Sweep() as sweep):
                    self._new.endpoint.put(replace(sweep, age_s=_now_s() - self._start_s))
                case ToNew(message=message):
                    self._new.endpoint.put(message)
                case Hand(publication=publication, hops=hops):
                    if session.deliveries.is_new(publication):
                        self._client.on_message(publication, hops)
                case _:
                    assert_never(order)
        self._note_pause(move.holds_publications)
        if move.is_over:
            self._finish(move)
        else:
            self._old.flush_soon()
            self._new.flush_soon()

    def _note_pause(self, is_paused: bool) -> None:
        if is_paused and not self._session.held.is_paused:
            self._pause_start_s = _now_s()
        if self._session.held.is_paused and not is_paused:
            self._pause_s += _now_s() - self._pause_start_s
        self._session.held.is_paused = is_paused

    def _finish(self, move: Move) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._over.set_result(None)
        if move.phase is Phase.MOVED:
            self._arrive(move)
            home, left = self._new, self._old
        else:
            self._stay()
            home, left = self._old, self._new
        self._session.settle()
        self._client.on_move_over(home, left)

    def _stay(self) -> None:
        """The new broker becomes a place to fall back to."""
        places = self._old.places
        if self._place.where not in {place.where for place in places}:
            places.append(self._place)

    def _arrive(self, move: Move) -> None:
        """The new connection carries the session from now on."""
        session, old, new = self._session, self._old, self._new
        source = session.broker
        old.endpoint = session.arrive(new.endpoint, move)
        session.put(MoveCompleted(source=source, session=self._policy_session))
        new.endpoint, new.listener = session, self._client
        self._client.gaps.keep(self._gaps)
        new.places.extend(place for place in old.places if place.where != self._place.where)
        for subscription in move.subscriptions.values():
            in_effect = SubscriptionInEffect(id=session.known_as(subscription.id))
            self._client.on_message(in_effect, 0)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
