"""Calling a server, with the operations that both sides share.

    async with HttpClient("http://127.0.0.1:7500") as coordinator:
        answer = await coordinator.call(REQUEST_BROKER, RequestBroker(user="u17"))

Raises RestError if the server answers with an error, UnreachableError if there is no answer, or one
that cannot be decoded.  Operations that may be repeated are retried if there is no answer, or if
the server answers 429 or 503.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx
import msgspec

from godwit.errors import UnreachableError, UsageError
from godwit.http.errors import RestError, Trouble
from godwit.http.operations import Answer, Asked, Operation
from godwit.protocol.backoff import Backoff

ANSWER_S = 10.0
ATTEMPTS = 4
#: The longest wait, whatever the server's `Retry-After`.
RETRY_AFTER_S_MAX = 5.0
LATER = frozenset({429, 503})


def server_url(text: str) -> str:
    """`http://HOST:PORT`, checked."""
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, UnicodeError):
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(f"{text!r} is not the address of a server: write http://HOST:PORT")
    return text.rstrip("/")


def server_urls(text: str) -> list[str]:
    """`http://HOST:PORT,http://HOST:PORT`: a server and its standbys, checked."""
    return [server_url(each.strip()) for each in text.split(",")]


class HttpClient:
    """Calls one server; keeps its connections open until it is closed."""

    def __init__(
        self,
        url: str,
        *,
        secret: str = "",
        answer_s: float = ANSWER_S,
        attempts: int = ATTEMPTS,
    ) -> None:
        """`answer_s` limits one attempt; `attempts` is for operations that may be repeated."""
        self.url = server_url(url)
        self._attempts = attempts
        self._client = httpx.AsyncClient(
            base_url=self.url,
            headers={b"authorization": f"Bearer {secret}".encode()} if secret else {},
            timeout=answer_s,
            trust_env=False,  # No proxies: the servers are on the same network.
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._client.aclose()

    async def call(
        self, operation: Operation[Asked, Answer], request: Asked, *, answer_s: float | None = None
    ) -> Answer:
        backoff = Backoff()
        attempts = self._attempts if operation.may_be_repeated else 1
        for attempt in range(attempts):
            is_last = attempt == attempts - 1
            try:
                return await self._once(operation, request, answer_s)
            except UnreachableError:
                if is_last:
                    raise
                await backoff.wait()
            except RestError as error:
                if is_last or error.status not in LATER:
                    raise
                if error.retry_after_s is None:
                    await backoff.wait()
                else:
                    await asyncio.sleep(min(error.retry_after_s, RETRY_AFTER_S_MAX))
        raise UsageError(f"{attempts} attempts: give at least one")

    async def _once(
        self, operation: Operation[Asked, Answer], request: Asked, answer_s: float | None
    ) -> Answer:
        path, fields = _encoded(operation, request)
        where = f"{operation.method} {self.url}{path}"
        if answer_s is not None:
            fields["timeout"] = answer_s
        try:
            response = await self._client.request(operation.method, path, **fields)
        except httpx.TimeoutException:
            raise UnreachableError(f"{where}: no answer in time") from None
        except httpx.HTTPError as error:
            raise UnreachableError(f"{where}: {_why(error)}") from None
        if not response.is_success:
            raise _error(response, where)
        try:
            return msgspec.json.decode(response.content, type=operation.answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnreachableError(f"{where}: the answer cannot be read: {error}") from None


def _encoded(operation: Operation[Asked, Answer], request: Asked) -> tuple[str, dict[str, Any]]:
    """The path, and the other arguments for httpx."""
    if operation.method == "POST":
        headers = {"content-type": "application/json"}
        return operation.path, {"content": msgspec.json.encode(request), "headers": headers}
    given = {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in msgspec.to_builtins(request).items()
        if value is not None
    }
    in_path = {
        name: quote(given[name], safe="") for name in given if f"{{{name}}}" in operation.path
    }
    in_query = {name: value for name, value in given.items() if name not in in_path}
    return operation.path.format_map(in_path), {"params": in_query}


def _why(error: Exception) -> str:
    return str(error).lower() or type(error).__name__


def _error(response: httpx.Response, where: str) -> RestError:
    try:
        trouble = msgspec.json.decode(response.content, type=Trouble)
    except (msgspec.DecodeError, UnicodeDecodeError):
        trouble = Trouble(error=f"status {response.status_code}", where=where)
    after = response.headers.get("retry-after", "")
    return RestError(
        response.status_code,
        trouble.error,
        where=trouble.where,
        retry_after_s=float(after) if after.isdigit() else None,
    )
