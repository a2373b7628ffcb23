"""A small server, for tests of the HTTP framework."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
from starlette.applications import Starlette

from godwit.errors import UnreachableError, UsageError
from godwit.http.application import application
from godwit.http.errors import RestError
from godwit.http.operations import Operation, served
from godwit.http.serving import serve

SECRET = "sésame"  # noqa: S105  Everybody knows it.


class Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An order."""

    item: Annotated[str, msgspec.Meta(max_length=20)]
    count: Annotated[int, msgspec.Meta(ge=1)] = 1


class Shelf(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where to look."""

    number: int
    is_open: bool = True
    limit: int | None = None


class Bill(msgspec.Struct, frozen=True):
    """The price."""

    text: str


ORDER = Operation("POST", "/order", Order, Bill, "Order something.")
REORDER = Operation(
    "POST", "/again", Order, Bill, "The same, any number of times.", is_idempotent=True
)
BREAK_IN = Operation("POST", "/till", Order, Bill, "For those who may.", is_guarded=True)
LOOK = Operation("GET", "/shelves/{number}", Shelf, Bill, "See what is there.")


class Shop:
    """Answers according to the item, and counts the requests."""

    def __init__(self) -> None:
        self.asked = 0
        self.busy = 0
        """The number of requests to refuse first."""

    async def order(self, order: Order) -> Bill:
        self.asked += 1
        if self.busy:
            self.busy -= 1
            raise RestError(503, "not now", retry_after_s=0.0)
        match order.item:
            case "gone":
                raise RestError(404, "no such item", where="item gone")
            case "sold":
                raise RestError(409, "sold already")
            case "crowd":
                raise RestError(429, "one at a time", retry_after_s=1.5)
            case "closed":
                raise UnreachableError("nobody is there")
            case "silly":
                raise UsageError("who would want that")
            case "fire":
                raise ZeroDivisionError
        return Bill(f"{order.count} {order.item}")

    async def look(self, shelf: Shelf) -> Bill:
        return Bill(f"{shelf.number} {shelf.is_open} {shelf.limit}")

    def application(self, secret: str = SECRET) -> Starlette:
        return application(
            [
                served(ORDER, self.order),
                served(REORDER, self.order),
                served(BREAK_IN, self.order),
                served(LOOK, self.look),
            ],
            title="Shop <1>",
            secret=secret,
            body_bytes_max=200,
        )

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[str]:
        async with serve(self.application(), "127.0.0.1", 0) as url:
            yield url
