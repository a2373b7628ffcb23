"""Asking a server what it serves, with the operations that both share.

    async with Caller("http://127.0.0.1:7500") as coordinator:
        answer = await coordinator.call(REQUEST_BROKER, RequestBroker(user="u17"))

An error is RestError if the server said no, UnreachableError if nobody answered, or not in a form
that can be understood.  What may be repeated is repeated when nobody answered, or when the server
said that it may be able to later.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx
import msgspec

from godwit.errors import UnreachableError, UsageError
from godwit.rest.errors import RestError, Trouble
from godwit.rest.operations import Answer, Asked, Operation
from godwit.wire.call import Pauses

ANSWER_S = 10.0
ATTEMPTS = 4
#: Longer than that a caller does not wait, whatever the server says.
RETRY_AFTER_S_MAX = 5.0
LATER = frozenset({429, 503})


def server_url(text: str) -> str:
    """`http://HOST:PORT`, checked."""
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, UnicodeError):
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(f"{text!r} is no address of a server: write http://HOST:PORT")
    return text.rstrip("/")


class Caller:
    """A server, seen from outside; keeps its connections until it is left."""

    def __init__(
        self,
        url: str,
        *,
        secret: str = "",
        answer_s: float = ANSWER_S,
        attempts: int = ATTEMPTS,
    ) -> None:
        """`answer_s` is for one attempt; `attempts` are for what may be repeated."""
        self.url = server_url(url)
        self._attempts = attempts
        self._client = httpx.AsyncClient(
            base_url=self.url,
            headers={b"authorization": f"Bearer {secret}".encode()} if secret else {},
            timeout=answer_s,
            trust_env=False,  # Our servers are neighbours; no proxy is between us.
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
        pauses = Pauses()
        attempts = self._attempts if operation.may_be_repeated else 1
        for attempt in range(attempts):
            is_last = attempt == attempts - 1
            try:
                return await self._once(operation, request, answer_s)
            except UnreachableError:
                if is_last:
                    raise
                await pauses.take()
            except RestError as error:
                if is_last or error.status not in LATER:
                    raise
                if error.retry_after_s is None:
                    await pauses.take()
                else:
                    await asyncio.sleep(min(error.retry_after_s, RETRY_AFTER_S_MAX))
        raise AssertionError("there is at least one attempt")

    async def _once(
        self, operation: Operation[Asked, Answer], request: Asked, answer_s: float | None
    ) -> Answer:
        path, fields = _on_the_wire(operation, request)
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
            raise _said_no(response, where)
        try:
            return msgspec.json.decode(response.content, type=operation.answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnreachableError(f"{where}: an answer that cannot be read: {error}") from None


def _on_the_wire(operation: Operation[Asked, Answer], request: Asked) -> tuple[str, dict[str, Any]]:
    """The path, and what else goes with it."""
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


def _said_no(response: httpx.Response, where: str) -> RestError:
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
