"""Moves of a live client, one at a time: requested by the application, or by its broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from godwit.client.broker_connection import BrokerConnection, BrokerPlace
from godwit.client.draining import DrainingConnection
from godwit.client.live_move import LiveMove, Moved
from godwit.content.messages import MoveTo, Notice
from godwit.content.wired import ID_LENGTH_MAX
from godwit.errors import GodwitError, StayedError, UsageError
from godwit.migration.move import Phase
from godwit.protocol.call import Opener
from godwit.protocol.frames import Stayed

if TYPE_CHECKING:
    from godwit.client.client import Client

T = TypeVar("T")

#: For a move that the application requests; the request of a broker has a limit in it.
MOVE_S = 5.0


class Mover:
    def __init__(self, client: Client, resolve: Callable[[str], Opener]) -> None:
        """`resolve` makes the opener for a broker's address."""
        self._client = client
        self._session = client.session
        self._resolve = resolve
        self._move: LiveMove | None = None
        self._draining: set[DrainingConnection] = set()
        self._one_at_a_time = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def move(self, url: str, *, within_s: float = MOVE_S) -> Moved:
        """Move, after the moves that were requested before."""
        place = BrokerPlace(url, self._resolve(url))
        task = self._start(self._run(place, "", within_s))
        try:
            return await asyncio.shield(task)  # A caller that is cancelled does not stop the move.
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if task.cancelled() and caller is not None and not caller.cancelling():
                self._client.check_open()  # Raises: the client was closed meanwhile.
            raise

    def on_asked(self, request: MoveTo) -> None:
        """The broker requests a move."""
        self._start(self._run_request(request))

    async def _run_request(self, request: MoveTo) -> None:
        session, asked_by = self._session, self._session.stream
        try:
            if self._one_at_a_time.locked():
                raise StayedError("another move is under way")
            place = BrokerPlace(request.address, self._resolve(request.address))
            await self._run(place, request.broker, request.within_s, request.session)
        except GodwitError as error:
            if session.stream is asked_by:
                session.put(Stayed(reason=str(error)[:ID_LENGTH_MAX]))
                self._client.flush_soon()

    def _start(self, moving: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(moving)
        self._tasks.add(task)
        task.add_done_callback(self._on_end)
        return task

    def _on_end(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # Retrieved, so that asyncio does not log it.

    async def _run(
        self, place: BrokerPlace, broker: str, within_s: float, session: str = ""
    ) -> Moved:
        client = self._client
        async with self._one_at_a_time:
            home = self._session.broker
            if place.where == client.broker_connection.places[0].where:
                return Moved(home, home, 0.0, 0.0)
            for draining in list(self._draining):
                if draining.connection.places[0].where == place.where:
                    draining.end()  # The broker would refuse a second client of this name.
            self._move = LiveMove(client, place, broker=broker, within_s=within_s, session=session)
            try:
                with client.awaiting_notice():
                    return await self._move.run()
            finally:
                self._move = None

    def leave(self, connection: BrokerConnection) -> None:
        """Close a connection to a broker that the client has left."""
        draining = DrainingConnection(connection, self._draining.discard)
        if not draining.is_over:
            self._draining.add(draining)

    @property
    def phase(self) -> Phase | None:
        """The phase of the current move, if there is one."""
        return None if self._move is None else self._move.phase

    def abort(self) -> None:
        for connection in [draining.connection for draining in self._draining]:
            connection.abort()
        if self._move is not None:
            self._move.abort()
        self.close()

    def close(self) -> None:
        closed = UsageError("the client was closed")
        if self._move is not None:
            self._move.cancel(closed)
        for task in self._tasks:
            task.cancel()
        for draining in list(self._draining):
            draining.end()

    # -- called by the client, about its broker ------------------------------------------------

    def on_old(self, notice: Notice) -> None:
        if self._move is not None:
            self._move.on_old(notice)

    def on_progress(self) -> None:
        if self._move is not None:
            self._move.on_old_progress()
