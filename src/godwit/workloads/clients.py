"""The clients of a workload: publishers and subscribers, each with a name and a broker."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from random import Random

from godwit.content.filters import Filter
from godwit.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """A client that announces `advertisement` at broker `at` and publishes under it."""

    name: str
    at: str
    advertisement: Filter
    subject: str
    """The topic of its publications: a symbol, an author; its own name if there is none."""

    publications_per_min: float
    phase: float = 0.0
    """The part of its first period that passes before it publishes, from 0 to 1."""

    def __post_init__(self) -> None:
        check_rate(self.name, self.publications_per_min)


def publisher_at(
    broker: str, advertisement: Filter, publications_per_min: float, random: Random
) -> Publisher:
    """The one publisher of a broker, about everything, with a random phase."""
    name = f"publisher-{broker}"
    return Publisher(
        name=name,
        at=broker,
        advertisement=advertisement,
        subject=name,
        publications_per_min=publications_per_min,
        phase=random.random(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    """A client that attaches to broker `at` and wants what `filter` matches."""

    name: str
    at: str
    filter: Filter


def check_rate(publisher: str, publications_per_min: float) -> None:
    if not 0 < publications_per_min < inf:
        raise UsageError(
            f"{publisher} publishes {publications_per_min} times a minute; it must be more than 0"
        )
