"""The operations of a server, as values that both sides share.

    REGISTER_USER = Operation("POST", "/registeruser", User, Registered, "Register a user.")

    served(REGISTER_USER, handler)                 # application.py
    await caller.call(REGISTER_USER, User("u17"))  # http_client.py

A GET takes its request from the query (and from the path, if that has fields: `/brokers/{id}`), a
POST from its body, which is JSON.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgspec

Asked = TypeVar("Asked", bound=msgspec.Struct)
Answer = TypeVar("Answer")


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request without fields."""


@dataclass(frozen=True, slots=True)
class Operation(Generic[Asked, Answer]):
    method: Literal["GET", "POST"]
    path: str
    asked: type[Asked]
    answer: type[Answer]
    summary: str
    """One sentence, for the server's page."""

    is_idempotent: bool = False
    """Whether it may be repeated if there was no answer.  Every GET may."""

    is_guarded: bool = False
    """Whether only callers on this machine, or with the network's secret, are allowed."""

    body_bytes_max: int | None = None
    """The size of a body, at most; None for the server's default."""

    @property
    def name(self) -> str:
        return self.path.strip("/").replace("/", "_").replace("{", "").replace("}", "")

    @property
    def may_be_repeated(self) -> bool:
        return self.is_idempotent or self.method == "GET"

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Served(NamedTuple):
    """An operation and its handler."""

    operation: Operation[Any, Any]
    handler: Callable[[Any], Awaitable[Any]]


def served(
    operation: Operation[Asked, Answer], handler: Callable[[Asked], Awaitable[Answer]]
) -> Served:
    """The handler raises RestError, or UsageError, which is answered with 400."""
    return Served(operation, handler)
