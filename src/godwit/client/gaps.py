"""Gaps: what a client learns of publications that did not arrive, or may not have.

    async for gap in client.gaps: ...

A part of the network is missing: some of the client's publications do not reach their subscribers
there, and it misses what is published there.  The client is told before such a publication is
acknowledged, and again when the gap is over.  The other reasons concern subscribers: they were too
slow, or away for too long.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection
from copy import copy
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple, Self

import msgspec
from msgspec.structs import replace

from godwit.content.messages import GapNotice
from godwit.errors import GodwitError, UsageError

#: The gaps that a client remembers, the latest ones.
GAPS_KEPT_MAX = 1_000


class GapReason(StrEnum):
    """Why publications may be missing."""

    PART_LOST = "part lost"
    """A broker was given up: it cannot be reached, nor can those behind it."""

    TOO_SLOW = "too slow"
    """The client was too slow or away, and its broker has dropped publications for it."""

    SESSION_ENDED = "session ended"
    """The broker had forgotten the client, which misses what was published meanwhile.  It is over
    when the subscriptions are in effect again."""


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """Publications are missing, or may be."""

    reason: GapReason
    broker: str
    """The broker that is gone; for the other reasons, the client's own."""

    since_s: float
    """When it was last heard, in seconds since 1970."""

    lost: int = 0
    """Publications that waited there and were dropped; some of them may have arrived."""

    own_lost: int = 0
    """How many of them this client has published."""

    detail: str = ""
    is_over: bool = False
    """From now on nothing is missing for this reason."""

    def __str__(self) -> str:
        if self.reason is GapReason.TOO_SLOW:
            return f"gap: {self.broker} dropped {self.lost} publications: reading is too slow"
        since = datetime.fromtimestamp(self.since_s, UTC).isoformat(timespec="milliseconds")
        if self.reason is GapReason.SESSION_ENDED:
            if self.is_over:
                return f"gap over: the subscriptions are in effect again; it began {since}"
            missing = f"publications since {since} may be missing"
            return f"gap: {self.broker} does not know the session; {missing}"
        if self.is_over:
            return f"gap over: broker {self.broker} can be reached again; it was lost since {since}"
        lost = f"{self.lost} publications were dropped, {self.own_lost} of them of this client"
        return f"gap: broker {self.broker} is lost since {since} ({self.detail}); {lost}"


class GapKey(NamedTuple):
    """What identifies a gap that brokers tell of."""

    broker: str
    by: str
    since_s: float

    @classmethod
    def of(cls, notice: GapNotice) -> GapKey:
        return cls(notice.broker, notice.by, notice.since_s)


#: The gap of a client whose broker had forgotten it.
SESSION = GapKey("", "", 0.0)


class Gaps:
    """The gaps of one client: `async for gap in client.gaps` begins with the first of them."""

    def __init__(self) -> None:
        self.on_gap: Callable[[Gap], None] | None = None
        """Called with each gap, when it begins and when it is over."""
        self._seen: deque[Gap] = deque(maxlen=GAPS_KEPT_MAX)
        self._count = 0
        self._open: dict[GapKey, Gap] = {}
        self._doubtful: set[GapKey] = set()
        self._wake: asyncio.Future[None] | None = None
        self._is_closed = False
        self._error: GodwitError | None = None

    @property
    def seen(self) -> list[Gap]:
        """The gaps so far, up to GAPS_KEPT_MAX; one that is over is there twice."""
        return list(self._seen)

    @property
    def open(self) -> list[Gap]:
        """The parts of the network that are missing now."""
        return list(self._open.values())

    def __aiter__(self) -> GapIterator:
        return GapIterator(self, 0)

    async def next(self) -> Gap:
        """Wait for the next gap to begin or to be over."""
        try:
            return await anext(GapIterator(self, self._count))
        except StopAsyncIteration:
            raise UsageError("the client was closed; there will be no more gaps") from None

    async def take(self, position: int) -> tuple[Gap, int]:
        """The gap at this position, or the first one that is remembered, and the next position."""
        while position >= self._count:
            if self._error is not None:
                raise copy(self._error)
            if self._is_closed:
                raise StopAsyncIteration
            if self._wake is None:
                self._wake = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._wake)
        first = self._count - len(self._seen)
        position = max(position, first)
        return self._seen[position - first], position + 1

    # -- called by the client ------------------------------------------------------------------

    def on_notice(self, notice: GapNotice) -> None:
        """A broker tells of a part that is missing, perhaps once more, or is back."""
        key = GapKey.of(notice)
        self._doubtful.discard(key)
        if notice.is_over:
            self._end(key)
        elif key not in self._open:
            gap = Gap(
                reason=GapReason.PART_LOST,
                broker=notice.broker,
                since_s=notice.since_s,
                lost=notice.lost,
                own_lost=notice.own_lost,
                detail=notice.reason,
            )
            self._open[key] = gap
            self._add(gap)

    def on_dropped(self, broker: str, count: int) -> None:
        self._add(
            Gap(
                reason=GapReason.TOO_SLOW,
                broker=broker,
                since_s=time.time(),
                lost=count,
                is_over=True,
            )
        )

    def on_session_ended(self, broker: str, since_s: float) -> None:
        """The broker has no subscriptions of this client; they will be in effect again."""
        if SESSION not in self._open:
            gap = Gap(reason=GapReason.SESSION_ENDED, broker=broker, since_s=since_s)
            self._open[SESSION] = gap
            self._add(gap)

    def on_subscriptions_in_effect(self) -> None:
        self._end(SESSION)

    def doubt(self) -> None:
        """A broker that does not know the client repeats which parts are missing."""
        self._doubtful = set(self._open) - {SESSION}

    def settle(self) -> None:
        """The broker has repeated all: what it did not repeat is over."""
        doubtful, self._doubtful = self._doubtful, set()
        for key in doubtful:
            self._end(key)

    def keep(self, keys: Collection[GapKey]) -> None:
        """The client is at another broker, which has told of these."""
        for key in [key for key in self._open if key not in (*keys, SESSION)]:
            self._end(key)

    def close(self, error: GodwitError | None = None) -> None:
        """The client is closed; with an error it has ended, and the application has to know."""
        self._is_closed, self._error = True, error
        self._wake_up()

    def _end(self, key: GapKey) -> None:
        gap = self._open.pop(key, None)
        if gap is not None:
            self._add(replace(gap, is_over=True))

    def _add(self, gap: Gap) -> None:
        self._seen.append(gap)
        self._count += 1
        self._wake_up()
        if self.on_gap is not None:
            self.on_gap(gap)

    def _wake_up(self) -> None:
        if self._wake is not None:
            if not self._wake.done():
                self._wake.set_result(None)
            self._wake = None


class GapIterator:
    """Each gap when it begins, and when it is over; ends when the client is closed.

    If the client has ended otherwise (its name was taken over, for example), it raises the reason.
    """

    def __init__(self, gaps: Gaps, position: int) -> None:
        self._gaps = gaps
        self._position = position

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Gap:
        gap, self._position = await self._gaps.take(self._position)
        return gap
