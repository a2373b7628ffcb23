"""Who takes part in a workload: publishers and subscribers, by name, at a broker."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from godwit.content.filters import Filter
from godwit.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """A client that announces `advertisement` at broker `at` and publishes under it."""

    name: str
    at: str
    advertisement: Filter
    subject: str
    """What it publishes about: a symbol, an author; its own name if it is about everything."""

    publications_per_min: float
    phase: float = 0.0
    """Which part of its first period passes before it publishes, from 0 to 1."""

    def __post_init__(self) -> None:
        check_rate(self.name, self.publications_per_min)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    """A client that attaches to broker `at` and wants what `filter` matches."""

    name: str
    at: str
    filter: Filter


def check_rate(publisher: str, publications_per_min: float) -> None:
    if not 0 < publications_per_min < inf:
        raise UsageError(
            f"{publisher} publishes {publications_per_min} times a minute; more than 0 is possible"
        )
