"""Operations with their handlers as a web application.

Requests are checked before a handler sees them, and everything that goes wrong is answered in the
form of errors.py.  A POST must be application/json: that is a kind of content which a form on some
web page cannot send, so that no page can make a browser on this machine ask for it.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Iterable, Sequence
from ipaddress import ip_address

import msgspec
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from godwit.errors import GodwitError, UsageError
from godwit.rest.describing import openapi, page
from godwit.rest.errors import RestError, Trouble, invalid
from godwit.rest.operations import Operation, Served

log = logging.getLogger("godwit.rest")

#: Unless an operation says otherwise.
BODY_BYTES_MAX = 1024 * 1024
#: For a body to arrive.
BODY_S = 30.0


def application(
    operations: Sequence[Served],
    *,
    title: str,
    secret: str = "",
    body_bytes_max: int = BODY_BYTES_MAX,
    routes: Iterable[Route] = (),
) -> Starlette:
    """Answers the operations, describes them at /openapi.json and /docs, and has other `routes`."""
    described = [each.operation for each in operations]
    document, text = openapi(described, title=title), page(described, title=title)

    async def show_openapi(_request: Request) -> Response:
        return json_response(document)

    async def show_page(_request: Request) -> Response:
        return HTMLResponse(text)

    own = [_Endpoint(each, secret, body_bytes_max).route for each in operations]
    about = [Route("/openapi.json", show_openapi), Route("/docs", show_page)]
    return Starlette(
        routes=[*own, *routes, *about], exception_handlers={HTTPException: _on_http_exception}
    )


def metrics_route(*collectors: Collector) -> Route:
    """GET /metrics for Prometheus, with the figures of the process."""
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    ProcessCollector(registry=registry)

    async def metrics(_request: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return Route("/metrics", metrics)


def json_response(content: object, *, status_code: int = 200) -> Response:
    """For people who look, too."""
    body = msgspec.json.format(msgspec.json.encode(content), indent=2)
    return Response(body, status_code=status_code, media_type="application/json")


def is_local(host: str) -> bool:
    """Whether a caller is on this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class _Endpoint:
    """One operation, on the web."""

    def __init__(self, each: Served, secret: str, body_bytes_max: int) -> None:
        self._operation: Operation[msgspec.Struct, object] = each.operation
        self._handler = each.handler
        self._secret = secret
        self._body_bytes_max = self._operation.body_bytes_max or body_bytes_max
        self._decoder = msgspec.json.Decoder(self._operation.asked)

    @property
    def route(self) -> Route:
        return Route(self._operation.path, self._answer, methods=[self._operation.method])

    async def _answer(self, request: Request) -> Response:
        try:
            if self._operation.is_guarded:
                self._check_caller(request)
            if self._operation.method == "GET":
                return json_response(await self._handler(self._from_query(request)))
            answer = await self._handler(await self._from_body(request))
            return Response(msgspec.json.encode(answer), media_type="application/json")
        except RestError as error:
            return self._refusal(error)
        except UsageError as error:
            return self._refusal(RestError(400, str(error)))
        except GodwitError as error:
            return self._refusal(RestError(503, str(error)))
        except ClientDisconnect:
            return Response(status_code=400)  # Which nobody will read.
        except Exception:
            log.exception("failed", extra={"operation": str(self._operation)})
            return self._refusal(RestError(500, "something went wrong here; the log has more"))

    def _refusal(self, error: RestError) -> Response:
        return _refusal(error, where=str(self._operation))

    def _check_caller(self, request: Request) -> None:
        if request.client is not None and is_local(request.client.host):
            return
        shown = request.headers.get("authorization", "").encode("latin-1")  # As it came.
        expected = f"Bearer {self._secret}".encode()
        if not self._secret or not hmac.compare_digest(shown, expected):
            raise RestError(403, "from this machine only, or with the secret of the network")

    def _from_query(self, request: Request) -> msgspec.Struct:
        given = {**request.query_params, **request.path_params}
        try:
            return msgspec.convert(given, self._operation.asked, strict=False)
        except msgspec.ValidationError as error:
            raise invalid(error, self._operation.name) from None

    async def _from_body(self, request: Request) -> msgspec.Struct:
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            raise RestError(415, "send application/json")
        try:
            return self._decoder.decode(await self._body(request))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise invalid(error, self._operation.name) from None

    async def _body(self, request: Request) -> bytes:
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_S):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > self._body_bytes_max:
                        raise RestError(413, f"more than {self._body_bytes_max} bytes")
        except TimeoutError:
            raise RestError(408, f"the body did not arrive within {BODY_S:g} s") from None
        return bytes(body)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    """For what no operation has seen: no such path, no such method."""
    assert isinstance(error, HTTPException)
    refused = RestError(error.status_code, error.detail.lower())
    response = _refusal(refused, where=f"{request.method} {request.url.path}")
    response.headers.update(error.headers or {})
    return response


def _refusal(error: RestError, *, where: str) -> Response:
    said = Trouble(error=str(error.args[0]), where=error.where or where)
    response = json_response(said, status_code=error.status)
    response.headers.update(error.headers())
    return response
