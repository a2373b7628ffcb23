"""Faults.  A scenario declares them as values of these classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """The broker dies: its tables, its queues and what it was sending are lost."""

    broker: str
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """A crashed broker comes back, with empty tables."""

    broker: str
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPause:
    """The broker handles nothing for a while; what arrives waits.  Nothing is lost."""

    broker: str
    at_s: float
    for_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """What is sent over the link meanwhile takes longer, in both directions.

    Where delays overlap, the longest counts, for as long as the last of them.
    """

    link: tuple[str, str]
    at_s: float
    for_s: float
    extra_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Nothing that is sent between `brokers` and the rest arrives for a while.

    It is shorter than any timeout: connections survive, and what was sent meanwhile arrives,
    in order, when the partition heals.
    """

    brokers: frozenset[str]
    at_s: float
    for_s: float


Fault: TypeAlias = Crash | Restart | BrokerPause | Delay | Partition
