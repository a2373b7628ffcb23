"""A script: which client is at which broker, and what each does, in phases, as data.

    script = random_script(17)
    play_simulated(script, seen := Deliveries())            # virtual time
    asyncio.run(play_live(script, seen := Deliveries()))    # broker processes on loopback
    seen.by_pair == expected_deliveries(script)             # brute force

In a quiet script the network is quiet between phases, and a phase either changes subscriptions and
advertisements or publishes, so what must be delivered is exact.  Otherwise there is a single phase,
messages overtake each other, and only the oracle can tell what is right.

A client does its steps of a phase in order; different clients act at the same time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from godwit.content.filters import Filter
from godwit.content.values import Value
from godwit.overlay.topology import Topology


@dataclass(frozen=True, slots=True)
class AdvertiseStep:
    filter: Filter


@dataclass(frozen=True, slots=True)
class UnadvertiseStep:
    number: int
    """Of the client's advertisements, counted from 0."""


@dataclass(frozen=True, slots=True)
class SubscribeStep:
    filter: Filter


@dataclass(frozen=True, slots=True)
class UnsubscribeStep:
    number: int
    """Of the client's subscriptions, counted from 0."""


@dataclass(frozen=True, slots=True)
class PublishStep:
    content: dict[str, Value]
    number: int
    """Of the client's advertisement that announces it, counted from 0."""


Step: TypeAlias = AdvertiseStep | UnadvertiseStep | SubscribeStep | UnsubscribeStep | PublishStep
Phase: TypeAlias = Sequence[tuple[str, Step]]
"""Clients and what they do, in order."""

Pairs: TypeAlias = dict[tuple[str, str], list[int]]
"""(Subscriber, publisher) -> numbers of the publications delivered, counted from 0."""


@dataclass(frozen=True, slots=True)
class Script:
    seed: int
    topology: Topology
    broker_of: dict[str, str]
    """Client -> broker."""

    phases: Sequence[Phase]


def expected_deliveries(script: Script) -> Pairs:
    """What a quiet script must deliver, by evaluating every filter on every publication."""
    subscribed: dict[str, list[Filter | None]] = {name: [] for name in script.broker_of}
    published: defaultdict[str, int] = defaultdict(int)
    pairs: Pairs = {}
    for name, step in (each for phase in script.phases for each in phase):
        match step:
            case SubscribeStep(filter=filter):
                subscribed[name].append(filter)
            case UnsubscribeStep(number=number):
                subscribed[name][number] = None
            case PublishStep(content=content):
                for other, filters in subscribed.items():
                    if other != name and any(
                        f is not None and f.matches_checked(content) for f in filters
                    ):
                        pairs.setdefault((other, name), []).append(published[name])
                published[name] += 1
            case AdvertiseStep() | UnadvertiseStep():
                pass
            case _:
                assert_never(step)
    return pairs
