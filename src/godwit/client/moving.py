"""Moves of a live client, one at a time: asked for by the application, or by its broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from godwit.client.farewell import Farewell
from godwit.client.journey import Journey, Moved, Traveller
from godwit.client.line import Line, Place
from godwit.content.messages import ID_LENGTH_MAX, MoveTo, Notice
from godwit.errors import GodwitError, StayedError, UsageError
from godwit.migration.moving import Phase
from godwit.wire.call import Opener
from godwit.wire.frames import Stayed

T = TypeVar("T")

#: For a client that moves by itself; a broker that asks for it says how long it may take.
MOVE_S = 5.0


class Resident(Traveller, Protocol):
    """The part of a client that moving needs."""

    def listening(self) -> AbstractContextManager[None]: ...


class Mover:
    def __init__(self, resident: Resident, resolve: Callable[[str], Opener]) -> None:
        """`resolve` tells how to get to the broker at an address."""
        self._resident = resident
        self._resolve = resolve
        self._journey: Journey | None = None
        self._farewells: set[Farewell] = set()
        self._one_at_a_time = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def move(self, url: str, *, within_s: float = MOVE_S) -> Moved:
        """Move, once those moves that were asked for before are over."""
        place = Place(url, self._resolve(url))
        task = self._start(self._travel(place, "", within_s))
        return await asyncio.shield(task)  # Who does not wait for it does not stop it.

    def on_asked(self, request: MoveTo) -> None:
        """The broker wants us to be elsewhere."""
        self._start(self._travel_as_asked(request))

    async def _travel_as_asked(self, request: MoveTo) -> None:
        session, asked_by = self._resident.session, self._resident.session.stream
        try:
            if self._one_at_a_time.locked():
                raise StayedError("is about to move already")
            place = Place(request.address, self._resolve(request.address))
            await self._travel(place, request.broker, request.within_s)
        except GodwitError as error:
            if session.stream is asked_by:
                session.put(Stayed(reason=str(error)[:ID_LENGTH_MAX]))
                self._resident.line.flush_soon()

    def _start(self, travelling: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(travelling)
        self._tasks.add(task)
        task.add_done_callback(self._on_end)
        return task

    def _on_end(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # Whoever waits is told; nobody has to.

    async def _travel(self, place: Place, broker: str, within_s: float) -> Moved:
        async with self._one_at_a_time:
            home = self._resident.session.broker
            if place.where == self._resident.line.places[0].where:
                return Moved(home, home, 0.0, 0.0)
            for farewell in list(self._farewells):
                if farewell.line.places[0].where == place.where:
                    farewell.end()  # It would take us for somebody else.
            self._journey = Journey(self._resident, place, broker=broker, within_s=within_s)
            try:
                with self._resident.listening():
                    return await self._journey.run()
            finally:
                self._journey = None

    def leave(self, line: Line) -> None:
        """Say goodbye to the broker that this line leads to."""
        farewell = Farewell(line, self._farewells.discard)
        if not farewell.is_over:
            self._farewells.add(farewell)

    @property
    def phase(self) -> Phase | None:
        """Of the move that is going on, if one is."""
        return None if self._journey is None else self._journey.phase

    def abort(self) -> None:
        for line in [farewell.line for farewell in self._farewells]:
            line.abort()
        if self._journey is not None:
            self._journey.abort()
        self.close()

    def close(self) -> None:
        closed = UsageError("the client was closed")
        if self._journey is not None:
            self._journey.cancel(closed)
        for task in self._tasks:
            task.cancel()
        for farewell in list(self._farewells):
            farewell.end()

    # -- what comes over the home line ---------------------------------------------------------

    def on_old(self, notice: Notice) -> None:
        if self._journey is not None:
            self._journey.on_old(notice)

    def on_progress(self) -> None:
        if self._journey is not None:
            self._journey.on_old_progress()
