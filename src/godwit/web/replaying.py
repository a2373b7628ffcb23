"""Plays a recorded trace on the page: where it is, how fast it goes.

P1  While it plays, the moment moves on by `speed` seconds per second, and stops at the end.
P2  All pages of one server see the same moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator

from msgspec.structs import replace

from godwit.api.dashboard_api import (
    ACTIVITY,
    CHANNELS_VIEW,
    HISTORY,
    LAB,
    OVERVIEW,
    REPLAY,
    Activity,
    ChannelsView,
    History,
    LabView,
    Overview,
    ReplayRequest,
    ReplayState,
    WhichHistory,
)
from godwit.http.operations import Nothing, Served, served
from godwit.http.serving import serve
from godwit.protocol.addresses import address
from godwit.web.lab_views import lab_view
from godwit.web.page_serving import page_application
from godwit.web.recorded_trace import RecordedTrace
from godwit.web.streams import page_stream

#: Real seconds between two pictures.
STEP_S = 0.5


class Replay:
    def __init__(self, trace: RecordedTrace, name: str, *, step_s: float = STEP_S) -> None:
        self._trace = trace
        self._step_s = step_s
        self._on_step: set[Callable[[], None]] = set()
        span_s = trace.end_s - trace.start_s
        self.state = ReplayState(
            trace=name,
            start_s=trace.start_s,
            end_s=trace.end_s,
            at_s=trace.start_s,
            speed=max(1.0, round(span_s / 60)),  # All of it in a minute.
        )
        self.channels = ChannelsView(datasets=[], channels=[])
        self.overview: Overview = self._shown()
        self.activity: Activity = trace.activity(trace.start_s)

    @contextlib.contextmanager
    def watching(self, on_step: Callable[[], None]) -> Iterator[None]:
        self._on_step.add(on_step)
        try:
            yield
        finally:
            self._on_step.discard(on_step)

    async def run(self) -> None:
        last_s = time.monotonic()
        while True:
            await asyncio.sleep(self._step_s)
            now_s = time.monotonic()
            if self.state.is_playing and self._on_step:
                self.go_on(now_s - last_s)
            last_s = now_s

    def go_on(self, seconds: float) -> None:
        """P1"""
        at_s = min(self.state.end_s, self.state.at_s + seconds * self.state.speed)
        self.set(replace(self.state, at_s=at_s, is_playing=at_s < self.state.end_s))

    def set(self, state: ReplayState) -> None:
        self.state = state
        self.overview = self._shown()
        self.activity = self._trace.activity(state.at_s)
        for on_step in list(self._on_step):
            on_step()

    def command(self, request: ReplayRequest) -> ReplayState:
        state = self.state
        at_s = state.at_s if request.at_s is None else request.at_s
        is_playing = state.is_playing if request.is_playing is None else request.is_playing
        if request.is_playing and at_s >= state.end_s:
            at_s = state.start_s
        self.set(
            replace(
                state,
                at_s=min(state.end_s, max(state.start_s, at_s)),
                speed=request.speed or state.speed,
                is_playing=is_playing,
            )
        )
        return self.state

    def history(self, broker: str) -> History:
        return self._trace.history(broker, self.state.at_s)

    def _shown(self) -> Overview:
        return replace(self._trace.overview(self.state.at_s), replay=self.state)

    # -- as a web application ------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def serve(self, listen: str) -> AsyncIterator[str]:
        """Serve on HOST:PORT inside the context, which is the URL."""
        app = page_application(self._operations(), {"/api/stream": page_stream(self)})
        async with serve(app, *address(listen)) as url:
            playing = asyncio.create_task(self.run())
            try:
                yield url
            finally:
                playing.cancel()
                await asyncio.gather(playing, return_exceptions=True)

    def _operations(self) -> list[Served]:
        async def overview(_request: Nothing) -> Overview:
            return self.overview

        async def history(request: WhichHistory) -> History:
            return await asyncio.to_thread(self.history, request.broker)

        async def activity(_request: Nothing) -> Activity:
            return self.activity

        async def channels(_request: Nothing) -> ChannelsView:
            return self.channels

        async def lab(_request: Nothing) -> LabView:
            return await asyncio.to_thread(lab_view)

        async def replay(request: ReplayRequest) -> ReplayState:
            return self.command(request)

        return [
            served(OVERVIEW, overview),
            served(HISTORY, history),
            served(ACTIVITY, activity),
            served(CHANNELS_VIEW, channels),
            served(LAB, lab),
            served(REPLAY, replay),
        ]
