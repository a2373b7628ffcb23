"""Where the servers of a network are.  They may come, go and change their ports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


def _none() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Directory:
    """Functions, because a server that was started again may have another address."""

    brokers: Callable[[], Mapping[str, str]] = field(default=dict)
    """The HTTP address of each broker that has one."""

    coordinator: Callable[[], str | None] = _none
    datacluster: Callable[[], str | None] = _none
    secret: str = ""
