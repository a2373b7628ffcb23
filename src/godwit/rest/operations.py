"""What can be asked of a server, as values that both sides share.

    REGISTER_USER = Operation("POST", "/registeruser", User, Registered, "A user is known.")

    served(REGISTER_USER, handler)                 # answering.py
    await caller.call(REGISTER_USER, User("u17"))  # calling.py

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
    """A request that needs no more words."""


@dataclass(frozen=True, slots=True)
class Operation(Generic[Asked, Answer]):
    method: Literal["GET", "POST"]
    path: str
    asked: type[Asked]
    answer: type[Answer]
    summary: str
    """One sentence, for the page of the server."""

    is_idempotent: bool = False
    """Whether it may be asked again when nobody knows if it was heard.  Every GET may."""

    is_guarded: bool = False
    """Whether only this machine may ask, and those who know the secret of the network."""

    body_bytes_max: int | None = None
    """If it may be larger than what the server usually takes."""

    @property
    def name(self) -> str:
        return self.path.strip("/").replace("/", "_").replace("{", "").replace("}", "")

    @property
    def may_be_repeated(self) -> bool:
        return self.is_idempotent or self.method == "GET"

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Served(NamedTuple):
    """An operation, and who sees to it."""

    operation: Operation[Any, Any]
    handler: Callable[[Any], Awaitable[Any]]


def served(
    operation: Operation[Asked, Answer], handler: Callable[[Asked], Awaitable[Answer]]
) -> Served:
    """The handler raises RestError, or UsageError, which is answered with 400."""
    return Served(operation, handler)
