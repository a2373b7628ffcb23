"""Gatherings at one broker: BIR on to the neighbours, BIA back, page by page.

Paper    Cheung, thesis 6.1.1.
Claim    The first broker gets the pages of every broker that answers, each page once.  It ends if
         every broker either answers or falls silent, however deep the overlay is.

    a broker that is asked   asks its other neighbours, and begins to answer
    pages                    its own, and those from behind it, go on as the receiver has room
    the last answer          when its own pages and those of all it asked are through

Departs  1. The thesis has no time-outs.  Each broker says that it is still there, four times in the
            time after which silence counts as failure, so a broker only judges its neighbours: a
            long path needs no longer time-outs.  A broker that fails ends nothing but the answers
            behind it.
         2. Aggregated means passed on over one link in one stream, not held until all are there:
            memory is bounded by the pages that a receiver takes ahead (PAGES_AHEAD for each link).
         3. A broker that is asked twice, because links form a cycle, answers the second with
            nothing: the overlay need not be a tree.
Tested   tests/policies/allocation/test_cbc_gathering.py.

A1  A broker sends at most as many pages as it was given room for.
A2  A gathering ends at a broker with its last answer, with an order to end, or when its asker has
    been silent; it is not begun again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from godwit.broker.modules import Request, Timer, ToNeighbour
from godwit.broker.stimuli import Neighbour
from godwit.errors import UsageError
from godwit.policies.allocation.cbc_letters import (
    BrokerInformationAnswer,
    BrokerInformationRequest,
    CbcLetter,
    GatheringEnd,
    MorePages,
    StillThere,
    write_letter,
)

#: Pages on their way over one link, and waiting behind it.
PAGES_AHEAD = 4
#: Pages that wait at the first broker until they are fetched.
PAGES_HELD = 64
#: Gatherings that begin at one broker, at a time.
GATHERINGS_MAX = 8
#: Gatherings that are over and remembered, so that a late request does not begin them again.
REMEMBERED = 256
#: How often a broker says that it is there, in the time after which silence counts.
SIGNS_OF_LIFE = 4
#: The first broker gives up if nothing is fetched for so many times that time.
IDLE_FACTOR = 3
SILENCE_S = 10.0
SILENCE_S_MIN, SILENCE_S_MAX = 0.1, 3_600.0
TIMER = "gathering "

#: Makes the pages of this broker, which asks these neighbours.
OwnPages: TypeAlias = Callable[[list[Neighbour], float], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class HeldPages:
    """What the first broker has for the one that asked."""

    first: int
    """The number of the first of these pages."""

    pages: tuple[bytes, ...]
    is_complete: bool
    """No more will come."""


@dataclass(slots=True)
class _Gathering:
    silence_s: float
    asker: Neighbour | None
    """None at the first broker."""

    own: Iterator[bytes]
    heard_s: dict[Neighbour, float]
    """Neighbours whose last answer is awaited, and when they were heard."""

    asker_heard_s: float
    room: int
    """Pages that the asker takes now."""

    ready: deque[tuple[bytes, Neighbour]] = field(default_factory=deque)
    """Pages from behind, to be passed on."""

    has_own: bool = True
    held: deque[bytes] = field(default_factory=deque)
    first_held: int = 0
    is_over: bool = False


class Gatherings:
    """All gatherings that one broker takes part in."""

    def __init__(self, own_pages: OwnPages) -> None:
        self._own_pages = own_pages
        self._open: dict[str, _Gathering] = {}
        self._over: deque[str] = deque(maxlen=REMEMBERED)

    @property
    def count(self) -> int:
        return len(self._open)

    # -- the first broker ----------------------------------------------------------------------

    def begin(
        self, id: str, silence_s: float, neighbours: list[Neighbour], now_s: float
    ) -> list[Request]:
        if id in self._open or id in self._over:
            raise UsageError(f"gathering {id!r} has begun already; use another id")
        if not SILENCE_S_MIN <= silence_s <= SILENCE_S_MAX:
            raise UsageError(
                f"a broker cannot be missing after {silence_s} s of silence; it takes"
                f" {SILENCE_S_MIN} to {SILENCE_S_MAX} s"
            )
        begun_here = sum(each.asker is None for each in self._open.values())
        if begun_here >= GATHERINGS_MAX:
            raise UsageError(
                f"{begun_here} gatherings are going on at this broker; wait until one has ended,"
                " or ask another broker"
            )
        return self._begin(id, silence_s, None, neighbours, PAGES_HELD, now_s)

    def _begin(
        self,
        id: str,
        silence_s: float,
        asker: Neighbour | None,
        asked: list[Neighbour],
        room: int,
        now_s: float,
    ) -> list[Request]:
        own = self._own_pages(asked, now_s)
        heard_s = dict.fromkeys(asked, now_s)
        gathering = self._open[id] = _Gathering(silence_s, asker, own, heard_s, now_s, room)
        request = write_letter(BrokerInformationRequest(id, silence_s))
        return [
            *(ToNeighbour(neighbour, request) for neighbour in asked),
            _next_sign(id, gathering, now_s),
            *self._go_on(id, gathering),
        ]

    def fetch(self, id: str, received: int, now_s: float) -> list[Request]:
        """The pages before number `received` have arrived: make room for others."""
        gathering = self._begun_here(id)
        gathering.asker_heard_s = now_s
        while gathering.held and gathering.first_held < received:
            gathering.held.popleft()
            gathering.first_held += 1
            gathering.room += 1
        return self._go_on(id, gathering)

    def held(self, id: str) -> HeldPages:
        gathering = self._begun_here(id)
        return HeldPages(gathering.first_held, tuple(gathering.held), gathering.is_over)

    def end(self, id: str) -> list[Request]:
        """Forget a gathering, complete or not."""
        self._begun_here(id)
        return self._end(id)

    def _begun_here(self, id: str) -> _Gathering:
        gathering = self._open.get(id)
        if gathering is None or gathering.asker is not None:
            raise UsageError(
                f"there is no gathering {id!r} at this broker, or nothing was fetched for too"
                " long; begin another"
            )
        return gathering

    # -- every broker --------------------------------------------------------------------------

    def on_letter(
        self, letter: CbcLetter, source: Neighbour, neighbours: list[Neighbour], now_s: float
    ) -> list[Request]:
        id = letter.gathering
        if isinstance(letter, BrokerInformationRequest):
            if id in self._open or id in self._over:  # A cycle of links.
                return [_to(source, BrokerInformationAnswer(id, b"", is_last=True))]
            asked = [each for each in neighbours if each != source]
            return self._begin(id, letter.silence_s, source, asked, PAGES_AHEAD, now_s)
        gathering = self._open.get(id)
        if gathering is None:
            return []
        if source in gathering.heard_s:
            gathering.heard_s[source] = now_s
            if isinstance(letter, BrokerInformationAnswer):
                return self._on_answer(id, gathering, letter, source)
        elif source == gathering.asker:
            gathering.asker_heard_s = now_s
            if isinstance(letter, MorePages):
                gathering.room += letter.pages
                return self._go_on(id, gathering)
            if isinstance(letter, GatheringEnd):
                return self._end(id)
        return []

    def _on_answer(
        self,
        id: str,
        gathering: _Gathering,
        answer: BrokerInformationAnswer,
        source: Neighbour,
    ) -> list[Request]:
        if answer.page:
            gathering.ready.append((answer.page, source))
        if answer.is_last:
            del gathering.heard_s[source]
        return self._go_on(id, gathering)

    def _go_on(self, id: str, gathering: _Gathering) -> list[Request]:
        """Pass on what there is room for (A1); the last answer follows the last page."""
        requests: list[Request] = []
        while gathering.room > 0 and (page := self._next_page(id, gathering, requests)):
            gathering.room -= 1
            if gathering.asker is None:
                gathering.held.append(page)
            else:
                requests.append(_to(gathering.asker, BrokerInformationAnswer(id, page)))
        if not (gathering.has_own or gathering.ready or gathering.heard_s or gathering.is_over):
            gathering.is_over = True
            if gathering.asker is not None:
                last = BrokerInformationAnswer(id, b"", is_last=True)
                requests.append(_to(gathering.asker, last))
                self._forget(id)
        return requests

    def _next_page(self, id: str, gathering: _Gathering, requests: list[Request]) -> bytes | None:
        if gathering.ready:
            page, source = gathering.ready.popleft()
            if source in gathering.heard_s:
                requests.append(_to(source, MorePages(id, 1)))
            return page
        if gathering.has_own:
            own = next(gathering.own, None)
            gathering.has_own = own is not None
            return own
        return None

    # -- time ----------------------------------------------------------------------------------

    def on_timer(self, name: str, now_s: float) -> list[Request]:
        id = name.removeprefix(TIMER)
        gathering = self._open.get(id)
        if gathering is None:
            return []
        patience_s = gathering.silence_s * (IDLE_FACTOR if gathering.asker is None else 1)
        if now_s - gathering.asker_heard_s > patience_s:
            return self._end(id)
        for neighbour, heard_s in list(gathering.heard_s.items()):
            if now_s - heard_s > gathering.silence_s:
                del gathering.heard_s[neighbour]
        requests = self._go_on(id, gathering)
        if id not in self._open:
            return requests
        others = [*gathering.heard_s, *([gathering.asker] if gathering.asker else [])]
        requests += [_to(neighbour, StillThere(id)) for neighbour in others]
        return [*requests, _next_sign(id, gathering, now_s)]

    def _end(self, id: str) -> list[Request]:
        gathering = self._forget(id)
        return [_to(neighbour, GatheringEnd(id)) for neighbour in gathering.heard_s]

    def _forget(self, id: str) -> _Gathering:
        self._over.append(id)
        return self._open.pop(id)


def _to(neighbour: Neighbour, letter: CbcLetter) -> ToNeighbour:
    return ToNeighbour(neighbour, write_letter(letter))


def _next_sign(id: str, gathering: _Gathering, now_s: float) -> Timer:
    return Timer(f"{TIMER}{id}", now_s + gathering.silence_s / SIGNS_OF_LIFE)
