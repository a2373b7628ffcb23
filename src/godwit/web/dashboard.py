"""The dashboard as a web application: the page, its operations and its streams.

    async with Dashboard(directory).serve("127.0.0.1:7680") as url: ...

D1  The page loads nothing from other hosts, and its policy (CSP) forbids it to.
D2  Everything but the page itself is for callers on this machine, or with the network's secret.
D3  A request must name this server by an address or as `localhost`: a page of another host that
    makes its name point here (DNS rebinding) is refused.
D4  Its operations and streams are for its own page and for programs: what a browser asks for a page
    from elsewhere is refused, also for one of another server on this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from godwit.api.dashboard_api import (
    ACT,
    ACTIVITY,
    CHANNELS_VIEW,
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
from godwit.errors import UsageError
from godwit.http.application import application, is_local, json_response
from godwit.http.errors import RestError, Trouble
from godwit.http.operations import Nothing, Served, served
from godwit.http.serving import serve
from godwit.protocol.addresses import address
from godwit.web.actions import Actions
from godwit.web.directory import Directory
from godwit.web.gatherer import PERIOD_S, Gatherer
from godwit.web.lab_views import lab_view
from godwit.web.live_stories import LiveStories
from godwit.web.server_calls import ServerCalls
from godwit.web.streams import event_response, page_stream
from godwit.web.table_questions import TableQuestions
from godwit.web.tails import Tails

log = logging.getLogger("godwit.dashboard")

STATIC = Path(__file__).parent / "static"
KINDS = {
    ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml",
}  # fmt: skip
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
FORBIDDEN = 403


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
        app = application(
            self._operations(),
            title="Godwit dashboard",
            secret=self._directory.secret,
            routes=[
                Route("/api/stream", self._guarded(page_stream(self.gatherer))),
                Route("/api/tail", self._guarded(self._tail)),
                Route("/", _page),
                Route("/static/{name}", _static),
            ],
        )
        app.add_middleware(_Headers)
        return app

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
            served(LAB, lab),
        ]

    def _guarded(
        self, handler: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """D2, for streams."""

        async def checked(request: Request) -> Response:
            expected = f"Bearer {self._directory.secret}".encode()
            shown = request.headers.get("authorization", "").encode("latin-1")
            is_near = request.client is not None and is_local(request.client.host)
            if not is_near and not (
                self._directory.secret and hmac.compare_digest(shown, expected)
            ):
                error = "allowed from this machine only, or with the network's secret"
                return _refusal(FORBIDDEN, error, request)
            try:
                return await handler(request)
            except RestError as error:
                return _refusal(error.status, str(error), request)
            except UsageError as error:
                return _refusal(400, str(error), request)

        return checked

    async def _tail(self, request: Request) -> Response:
        await self.gatherer.now()
        return event_response(self.tails.begin(request.query_params.get("filter", "")))

    def _broker_url(self) -> str | None:
        overview = self.gatherer.overview
        serving = [] if overview is None else [r for r in overview.brokers if r.state == "serving"]
        return serving[0].url if serving else None


def _refusal(status: int, error: str, request: Request) -> Response:
    where = f"{request.method} {request.url.path}"
    return json_response(Trouble(error=error, where=where), status_code=status)


async def _page(_request: Request) -> Response:
    return _file("index.html")


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in {path.name for path in STATIC.iterdir()}:
        return _refusal(404, f"there is no file {name}", request)
    return _file(name)


def _file(name: str) -> Response:
    kind = KINDS.get(Path(name).suffix, "text/plain")
    return FileResponse(STATIC / name, media_type=kind, headers={"cache-control": "no-cache"})


class _Headers:
    """Adds the policy to each answer (D1); refuses other names (D3) and other pages (D4)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(key.encode(), value.encode()) for key, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        error = _suspicion(Request(scope)) if scope["type"] == "http" else ""
        if error:
            refusal = _refusal(FORBIDDEN, error, Request(scope))
            await refusal(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)


def _suspicion(request: Request) -> str:
    """Why a request is refused (D3, D4), or ""."""
    host = request.headers.get("host")
    if not _names_an_address(host):
        return "ask for an address or localhost, not for another name"
    if not request.url.path.startswith("/api/"):
        return ""
    origin = request.headers.get("origin")
    # Browsers say the origin with a POST, and where a request comes from with a GET.
    is_foreign = origin is not None and urlsplit(origin).netloc != host
    if is_foreign or request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        return "the page of another server may not ask this one"
    return ""


def _names_an_address(host: str | None) -> bool:
    if host is None:
        return True  # A program, not a browser.
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    if name == "localhost":
        return True
    with contextlib.suppress(ValueError):
        ip_address(name.strip("[]"))
        return True
    return False
