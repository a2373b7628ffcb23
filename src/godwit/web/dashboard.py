"""The dashboard as a web application: the page, its operations and its streams.

async with Dashboard(directory).serve("127.0.0.1:7680") as url: ...
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from godwit.api.dashboard_api import (
    ACT,
    ACTIVITY,
    CHANNELS_VIEW,
    CLIENT_STORY,
    FILTERS,
    HISTORY,
    LAB,
    MATCHES,
    OVERVIEW,
    WHY,
    Activity,
    ChannelsView,
    History,
    LabView,
    Overview,
    WhichHistory,
)
from godwit.http.operations import Nothing, Served, served
from godwit.http.serving import serve
from godwit.protocol.addresses import address
from godwit.web.actions import Actions
from godwit.web.client_stories import ClientStories
from godwit.web.directory import Directory
from godwit.web.gatherer import PERIOD_S, Gatherer
from godwit.web.lab_views import lab_view
from godwit.web.live_stories import LiveStories
from godwit.web.page_serving import page_application
from godwit.web.server_calls import ServerCalls
from godwit.web.streams import event_response, page_stream
from godwit.web.table_questions import TableQuestions
from godwit.web.tails import Tails


class Dashboard:
    def __init__(self, directory: Directory, *, period_s: float = PERIOD_S) -> None:
        self._directory = directory
        self._calls = ServerCalls(directory.secret)
        self.gatherer = Gatherer(directory, self._calls, period_s=period_s)
        self.tails = Tails(self._broker_url)
        self._actions = Actions(self.gatherer)
        self._tables = TableQuestions(self.gatherer)
        self._stories = LiveStories(self.gatherer)
        self._lab: LabView | None = None
        self._reading_lab = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def serve(self, listen: str) -> AsyncIterator[str]:
        """Serve on HOST:PORT inside the context, which is the URL."""
        async with self._calls, serve(self.application(), *address(listen)) as url:
            gathering = asyncio.create_task(self.gatherer.run())
            try:
                yield url
            finally:
                gathering.cancel()
                await asyncio.gather(gathering, return_exceptions=True)

    def application(self) -> Starlette:
        return page_application(
            self._operations(),
            {"/api/stream": page_stream(self.gatherer), "/api/tail": self._tail},
            secret=self._directory.secret,
        )

    def _operations(self) -> list[Served]:
        gatherer = self.gatherer

        async def overview(_request: Nothing) -> Overview:
            return await gatherer.now()

        async def history(request: WhichHistory) -> History:
            return gatherer.series.history(request.broker)

        async def activity(_request: Nothing) -> Activity:
            await gatherer.now()
            return gatherer.activity

        async def channels(_request: Nothing) -> ChannelsView:
            await gatherer.now()
            return gatherer.channels

        async def lab(_request: Nothing) -> LabView:
            async with self._reading_lab:  # Slow: one at a time, and the others wait for it.
                if self._lab is None:
                    self._lab = await asyncio.to_thread(lab_view)
            return self._lab

        return [
            served(OVERVIEW, overview),
            served(HISTORY, history),
            served(ACTIVITY, activity),
            served(CHANNELS_VIEW, channels),
            served(FILTERS, self._tables.filters),
            served(MATCHES, self._tables.matches),
            served(ACT, self._actions.act),
            served(WHY, self._stories.why),
            served(CLIENT_STORY, ClientStories(gatherer).tell),
            served(LAB, lab),
        ]

    async def _tail(self, request: Request) -> Response:
        await self.gatherer.now()
        return event_response(self.tails.begin(request.query_params.get("filter", "")))

    def _broker_url(self) -> str | None:
        overview = self.gatherer.overview
        serving = [] if overview is None else [r for r in overview.brokers if r.state == "serving"]
        return serving[0].url if serving else None
