"""Operations with their handlers as a web application.

Requests are checked before a handler sees them, and every error is answered in the form of
errors.py.  A POST must be application/json, which a form on a web page cannot send: so no page can
make a browser on this machine call an operation.
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
from godwit.http.errors import RestError, Trouble, invalid
from godwit.http.openapi import openapi, page
from godwit.http.operations import Operation, Served

log = logging.getLogger("godwit.rest")

#: The default for operations without a limit of their own.
BODY_BYTES_MAX = 1024 * 1024
#: How long a body may take to arrive.
BODY_S = 30.0


def application(
    operations: Sequence[Served],
    *,
    title: str,
    secret: str = "",
    body_bytes_max: int = BODY_BYTES_MAX,
    routes: Iterable[Route] = (),
) -> Starlette:
    """Serves the operations, their description at /openapi.json and /docs, and other `routes`."""
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
    """GET /metrics for Prometheus, with the metrics of the process."""
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    ProcessCollector(registry=registry)

    async def metrics(_request: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return Route("/metrics", metrics)


def json_response(content: object, *, status_code: int = 200) -> Response:
    """Indented, so that people can read it."""
    body = msgspec.json.format(msgspec.json.encode(content), indent=2)
    return Response(body, status_code=status_code, media_type="application/json")


def is_local(host: str) -> bool:
    """Whether the address of a caller is on this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class _Endpoint:
    """One operation as a route."""

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
            return Response(status_code=400)  # There is no client left to read it.
        except Exception:
            log.exception("failed", extra={"operation": str(self._operation)})
            return self._refusal(RestError(500, "internal error; see the log of the server"))

    def _refusal(self, error: RestError) -> Response:
        return _refusal(error, where=str(self._operation))

    def _check_caller(self, request: Request) -> None:
        if request.client is not None and is_local(request.client.host):
            return
        shown = request.headers.get("authorization", "").encode("latin-1")  # The original bytes.
        expected = f"Bearer {self._secret}".encode()
        if not self._secret or not hmac.compare_digest(shown, expected):
            raise RestError(403, "allowed from this machine only, or with the network's secret")

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
                        raise RestError(413, f"the body has more than {self._body_bytes_max} bytes")
        except TimeoutError:
            raise RestError(408, f"the body did not arrive within {BODY_S:g} s") from None
        return bytes(body)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    """The answer to a request for an unknown path, or with a wrong method."""
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
