"""GRAPE: a publisher moves to where it causes the least load, or the least delay.

Paper    Cheung, thesis 5.2; POP and GRAPE paper, IV.
Words    G_threshold -> publications_per_session; traceID -> Session.trace; TIR, TIA -> letters.py;
         primary metric and weight P -> primary, weight_percent ("load 75%").
Claim    The broker that is chosen is the best one under the metric and weight, by what was
         delivered in the session (selection.py).

    1  the publications of a session are marked; each broker notes which of them it delivered, in a
       bit vector, how often, and to which neighbours any of them went
    2  when the session is over, the first broker asks along the way they went; the answers come
       back together, with how long messages take through each broker
    3  the first broker looks for the best place, if need be after the publisher has measured how
       far it is from each, and the publisher is asked to move there

Departs  1. A session is keyed by publisher and marked with the number of its first publication,
            plus one: publications of a client are numbered, so bits need no counter of their own,
            and a gap in the numbers costs only bits.
         2. The next session begins when the decision is made, or the hold time is over (open).
         3. The broker where the publisher is, is a candidate (else it would always move).
         4. A missing answer ends the session after a time (open): a choice without a part of the
            tree would be wrong.
         5. The latency of links is measured by question and answer, and counted: half of what they
            took beyond what both brokers say they take.
Tested   tests/placement/test_grape.py: the thesis's bits, sessions by hand; test_selection.py.

G1  A broker has at most one session of a publisher, the last one it heard of.
G2  A question comes behind the publications of its session: letters keep their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from godwit.broker.modules import AskForPings, Request, ToNeighbour
from godwit.broker.stimuli import Client, Hop, Neighbour
from godwit.content.messages import Publication
from godwit.placement.letters import (
    AllDelivered,
    OfGrape,
    Place,
    WhatDelivered,
    read_grape,
    write,
)
from godwit.placement.relocation import Phase, Relocation, Resident
from godwit.placement.selection import Entry, candidates, choose
from godwit.placement.settings import SESSION_MAX, GrapeSettings


@dataclass(slots=True)
class Publishing(Resident):
    """A publisher of this broker and its session."""

    trace: int = 0
    """0 if there is none."""

    is_complete: bool = False


@dataclass(slots=True)
class Session:
    """What this broker has seen of a session, and what it was answered."""

    trace: int
    upstream: Hop
    touched_s: float = 0.0
    bits: int = 0
    deliveries: int = 0
    downstream: dict[Neighbour, None] = field(default_factory=dict)
    asked_s: float = 0.0
    waiting: set[Neighbour] = field(default_factory=set)
    answers: list[Entry] = field(default_factory=list)
    links_s: dict[str, float] = field(default_factory=dict)


class Grape(Relocation[Publishing]):
    name = "grape"

    def __init__(self, settings: GrapeSettings | None = None) -> None:
        self._settings = settings or GrapeSettings()
        super().__init__(self._settings)
        self._sessions: dict[str, Session] = {}

    # -- phase 1: a session --------------------------------------------------------------------

    def tag(self, publication: Publication, now_s: float) -> int:
        publisher = self._resident(publication.publisher)
        if publisher.is_complete or not publisher.may_be_traced(now_s):
            return 0
        if not publisher.trace:
            publisher.trace = publication.sequence + 1
        last = publisher.trace - 1 + self._settings.publications_per_session - 1
        publisher.is_complete = publication.sequence >= last
        return publisher.trace if publication.sequence <= last else 0

    def on_publication(
        self, publication: Publication, last_hop: Hop, destinations: Sequence[Hop], now_s: float
    ) -> Iterable[Request]:
        requests: list[Request] = []
        if publication.trace:
            self._note(publication, last_hop, destinations, now_s)
            requests += self._tick(now_s)
        if type(last_hop) is Client:
            requests += self._ask_if_complete(publication.publisher, now_s)
        return requests

    def _note(
        self, publication: Publication, last_hop: Hop, destinations: Sequence[Hop], now_s: float
    ) -> None:
        session = self._sessions.get(publication.publisher)
        if session is None or session.trace != publication.trace:  # G1
            session = Session(publication.trace, last_hop)
            self._sessions[publication.publisher] = session
        session.touched_s = now_s
        local = 0
        for hop in destinations:
            if type(hop) is Neighbour:
                session.downstream[hop] = None
            elif type(hop) is Client:
                local += 1
        position = publication.sequence + 1 - publication.trace
        if local and 0 <= position < SESSION_MAX:
            session.bits |= 1 << position
            session.deliveries += local

    # -- phase 2: questions and answers --------------------------------------------------------

    def _ask_if_complete(self, name: str, now_s: float) -> Iterable[Request]:
        publisher, session = self._residents.get(name), self._sessions.get(name)
        if publisher is None or publisher.phase is not Phase.TRACING or not publisher.is_complete:
            return ()
        if session is None or session.trace != publisher.trace:
            self._begin_anew(publisher)
            return ()
        return [*self._wait(publisher, now_s), *self._ask(name, session, now_s)]

    def _on_what_delivered(
        self, letter: WhatDelivered, neighbour: Neighbour, now_s: float
    ) -> Iterable[Request]:
        session = self._sessions.get(letter.publisher)
        if session is None or session.trace != letter.trace or session.upstream != neighbour:
            nothing = AllDelivered(letter.publisher, letter.trace, 0.0, ())
            return [ToNeighbour(neighbour, write(nothing))]
        return self._ask(letter.publisher, session, now_s)

    def _ask(self, publisher: str, session: Session, now_s: float) -> list[Request]:
        session.asked_s = session.touched_s = now_s
        session.waiting = set(session.downstream)
        session.answers, session.links_s = [], {}
        if not session.waiting:
            return list(self._complete(publisher, session, now_s))
        question = write(WhatDelivered(publisher, session.trace))
        return [ToNeighbour(neighbour, question) for neighbour in session.downstream]

    def _on_all_delivered(
        self, letter: AllDelivered, neighbour: Neighbour, now_s: float
    ) -> Iterable[Request]:
        session = self._sessions.get(letter.publisher)
        if session is None or session.trace != letter.trace or neighbour not in session.waiting:
            return ()
        session.waiting.remove(neighbour)
        session.answers += letter.entries
        if letter.entries:
            took_s = now_s - session.asked_s - letter.held_s
            both_s = self._entry(session).passing_s(neighbour.name)
            both_s += letter.entries[0].passing_s(self._here.broker)
            session.links_s[neighbour.name] = max(0.0, (took_s - both_s) / 2)
        return () if session.waiting else self._complete(letter.publisher, session, now_s)

    def _complete(self, name: str, session: Session, now_s: float) -> Iterable[Request]:
        """All that is downstream has answered."""
        entries = (self._entry(session), *session.answers)
        if isinstance(session.upstream, Neighbour):
            del self._sessions[name]
            held_s = now_s - session.asked_s
            answer = AllDelivered(name, session.trace, held_s, entries)
            return [ToNeighbour(session.upstream, write(answer))]
        publisher = self._residents.get(name)
        if publisher is None or publisher.phase is not Phase.DECIDING:
            return ()
        session.answers = list(entries)
        if self._settings.needs_pings:
            places = tuple((entry.broker, entry.address) for entry in entries)
            return [AskForPings(name, places)]
        return self._choose(name, session, {}, now_s)

    def _entry(self, session: Session) -> Entry:
        delays = self._view.delays
        hops = [*session.downstream, session.upstream]
        to_neighbours_s = delays.to_neighbours_s.value
        return Entry(
            broker=self._here.broker,
            address=self._here.address,
            bits=session.bits.to_bytes((session.bits.bit_length() + 7) // 8, "little"),
            deliveries=session.deliveries,
            input_queue_s=delays.input_queue_s.value,
            matching_s=delays.matching_s.value,
            to_clients_s=delays.to_clients_s.value,
            to_neighbours_s={
                hop.name: to_neighbours_s for hop in hops if isinstance(hop, Neighbour)
            },
            links_s=session.links_s,
        )

    # -- the choice ----------------------------------------------------------------------------

    def on_pinged(
        self, client: str, round_trips_s: dict[str, float], now_s: float
    ) -> Iterable[Request]:
        publisher, session = self._residents.get(client), self._sessions.get(client)
        if publisher is None or session is None or publisher.phase is not Phase.DECIDING:
            return ()
        if session.waiting:
            return ()  # These are pings of an earlier session.
        return self._choose(client, session, round_trips_s, now_s)

    def _choose(
        self, name: str, session: Session, round_trips_s: dict[str, float], now_s: float
    ) -> Iterable[Request]:
        settings = self._settings
        here = self._here.broker
        found = candidates(session.answers, here, round_trips_s)
        if round_trips_s:  # Where the publisher gets no answer, it cannot go.
            found = [c for c in found if c.broker == here or c.broker in round_trips_s]
        best = choose(found, settings.primary, settings.weight_percent)
        del self._sessions[name]
        reason = {
            "primary": settings.primary.value,
            "weight_percent": settings.weight_percent,
            "candidates": len(found),
            "hops": best.hops,
            "messages_here": found[0].messages,
            "messages_there": best.messages,
            "delay_here_s": found[0].delay_s,
            "delay_there_s": best.delay_s,
        }
        return self._decide(name, Place(best.broker, best.address), reason, now_s)

    def on_letter(self, body: bytes, neighbour: Neighbour, now_s: float) -> Iterable[Request]:
        letter: OfGrape | None = read_grape(body)
        match letter:
            case WhatDelivered():
                return self._on_what_delivered(letter, neighbour, now_s)
            case AllDelivered():
                return self._on_all_delivered(letter, neighbour, now_s)
            case None:
                return ()

    # -- what both policies need of each -------------------------------------------------------

    def _new_resident(self) -> Publishing:
        return Publishing()

    def _begin_anew(self, resident: Publishing) -> None:
        resident.trace = 0
        resident.is_complete = False

    def _forget_old(self, now_s: float) -> None:
        for publisher, session in list(self._sessions.items()):
            if self._is_forgotten(publisher, session.touched_s, now_s):
                del self._sessions[publisher]

    @property
    def _has_something_to_forget(self) -> bool:
        return bool(self._sessions)
