"""Serves the page, its operations and its streams, to those who may have them.

D1  The page loads nothing from other hosts, and its policy (CSP) forbids it to.
D2  Everything but the page itself is for callers on this machine, or with the network's secret.
D3  A request must name this server by an address or as `localhost`: a page of another host that
    makes its name point here (DNS rebinding) is refused.
D4  Its operations and streams are for its own page and for programs: what a browser asks for a page
    from elsewhere is refused, also for one of another server on this machine.
"""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from godwit.errors import UsageError
from godwit.http.application import application, is_local, json_response
from godwit.http.errors import RestError, Trouble
from godwit.http.operations import Served

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

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


def page_application(
    operations: Sequence[Served], streams: Mapping[str, Handler], *, secret: str = ""
) -> Starlette:
    """The page with these operations, and these streams by path."""
    guarded = [Route(path, _guarded(handler, secret)) for path, handler in streams.items()]
    app = application(
        operations,
        title="Godwit dashboard",
        secret=secret,
        routes=[*guarded, Route("/", _page), Route("/static/{name}", _static)],
    )
    app.add_middleware(_Headers)
    return app


def _guarded(handler: Handler, secret: str) -> Handler:
    """D2, for streams."""

    async def checked(request: Request) -> Response:
        expected = f"Bearer {secret}".encode()
        shown = request.headers.get("authorization", "").encode("latin-1")
        is_near = request.client is not None and is_local(request.client.host)
        if not is_near and not (secret and hmac.compare_digest(shown, expected)):
            error = "allowed from this machine only, or with the network's secret"
            return _refusal(FORBIDDEN, error, request)
        try:
            return await handler(request)
        except RestError as error:
            return _refusal(error.status, str(error), request)
        except UsageError as error:
            return _refusal(400, str(error), request)

    return checked


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
