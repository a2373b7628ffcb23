"""Callers of a server get answers with types, and errors by who has to act on them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.asynchronous import run
from tests.http.shop import LOOK, ORDER, REORDER, Bill, Order, Shelf, Shop

from godwit.errors import UnreachableError, UsageError
from godwit.http.errors import RestError
from godwit.http.http_client import HttpClient
from godwit.http.operations import Operation


async def with_shop(shop: Shop, scenario: Callable[[HttpClient], Awaitable[None]]) -> None:
    async with shop.opened() as url, HttpClient(url) as caller:
        await scenario(caller)


def test_answers_have_types() -> None:
    async def scenario(caller: HttpClient) -> None:
        assert await caller.call(ORDER, Order("nut", 3)) == Bill("3 nut")
        assert await caller.call(LOOK, Shelf(7, is_open=False)) == Bill("7 False None")
        assert await caller.call(LOOK, Shelf(7, limit=2)) == Bill("7 True 2")

    run(with_shop(Shop(), scenario))


def test_a_refusal_says_what_and_where() -> None:
    async def scenario(caller: HttpClient) -> None:
        with pytest.raises(RestError, match=r"^item gone: no such item$") as refused:
            await caller.call(ORDER, Order("gone"))
        assert refused.value.status == 404
        with pytest.raises(RestError) as refused:
            await caller.call(ORDER, Order("crowd"))
        assert (refused.value.status, refused.value.retry_after_s) == (429, 2.0)

    run(with_shop(Shop(), scenario))


def test_what_may_be_repeated_is_until_it_is_done() -> None:
    shop = Shop()
    shop.busy = 2

    async def scenario(caller: HttpClient) -> None:
        assert await caller.call(REORDER, Order("nut")) == Bill("1 nut")

    run(with_shop(shop, scenario))
    assert shop.asked == 3


@pytest.mark.parametrize(
    ("operation", "asked"),
    [
        pytest.param(REORDER, 4, id="not for ever"),
        pytest.param(ORDER, 1, id="not what may not be repeated"),
    ],
)
def test_repeating_has_an_end(operation: Operation[Order, Bill], asked: int) -> None:
    shop = Shop()
    shop.busy = 9

    async def scenario(caller: HttpClient) -> None:
        with pytest.raises(RestError, match="not now"):
            await caller.call(operation, Order("nut"))

    run(with_shop(shop, scenario))
    assert shop.asked == asked


def test_a_refusal_for_good_is_not_repeated() -> None:
    shop = Shop()

    async def scenario(caller: HttpClient) -> None:
        with pytest.raises(RestError):
            await caller.call(REORDER, Order("sold"))

    run(with_shop(shop, scenario))
    assert shop.asked == 1


def test_nobody_there() -> None:
    async def scenario() -> None:
        async with Shop().opened() as url:
            pass
        async with HttpClient(url, attempts=2) as caller:
            with pytest.raises(UnreachableError, match=f"^GET {url}/shelves"):
                await caller.call(LOOK, Shelf(1))

    run(scenario())


class Saying(asyncio.Protocol):
    """A server that sends the same bytes, or none, whatever the request."""

    def __init__(self, line: bytes) -> None:
        self._line = line

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, _data: bytes) -> None:
        if self._line:
            self._transport.write(self._line)
            self._transport.close()


@pytest.mark.parametrize(
    ("line", "error"),
    [
        pytest.param(b"", "no answer in time", id="silence"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]", "cannot be read", id="array"
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{", "closed", id="half of it"),
        pytest.param(b"hm?\r\n\r\n", "illegal", id="no HTTP"),
        pytest.param(b"HTTP/1.1 502 Oh\r\ncontent-length: 2\r\n\r\nno", "status 502", id="a proxy"),
    ],
)
def test_strange_servers(line: bytes, error: str) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Saying(line), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        answer_s = 10.0 if line else 0.2  # Only silence is waited out.
        async with (
            server,
            HttpClient(f"http://127.0.0.1:{port}", attempts=1, answer_s=answer_s) as caller,
        ):
            with pytest.raises((UnreachableError, RestError), match=error):
                await caller.call(LOOK, Shelf(1))

    run(scenario())


@pytest.mark.parametrize("url", ["godwit://a:1", "a:1", "", "http://a:b", "http://[::1"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(UsageError, match="is not the address of a server"):
        HttpClient(url)
