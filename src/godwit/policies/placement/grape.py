"""GRAPE: a publisher moves to where it causes the least load, or the least delay.

Paper    Cheung, thesis 5.2; POP and GRAPE paper, IV.
Words    G_threshold -> publications_per_session; traceID -> TraceSession.trace;
         primary metric and weight P -> primary, weight_percent ("load 75%");
         TIR, TIA -> letters.py.
Claim    The chosen broker is the best one under the metric and weight, by the deliveries of the
         session (selection.py).

    1  the publications of a session are marked; each broker records in a bit vector which of them
       it delivered, counts the deliveries, and stores the neighbours that it forwarded any to
    2  when the session is over, the first broker sends a TIR along the paths of the publications;
       the TIAs are aggregated on the way back, with the delays within each broker
    3  the first broker selects the best broker, if necessary after the publisher has measured the
       round trip to each, and asks the publisher to move there

Departs  1. A session is keyed by publisher and marked with the number of its first publication,
            plus one: the publications of a client are numbered, so no other counter is needed, and
            a gap in the numbers costs only bits.
         2. The next session begins after the decision, or after the hold time (open).
         3. The publisher's current broker is a candidate (else it would always move).
         4. A missing TIA ends the session after a timeout (open): a choice without a part of the
            tree would be wrong.
         5. Link latency is measured with TIR and TIA, and counted: half of the time beyond the
            delays that both brokers report.
Tested   tests/policies/placement/test_grape.py: the thesis's bits, sessions by hand;
         tests/policies/placement/test_selection.py.

G1  A broker has at most one session of a publisher, the latest.
G2  A TIR arrives after the publications of its session: letters keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from godwit.broker.modules import AskForPings, Request, ToNeighbour
from godwit.broker.stimuli import Hop, LocalClient, Neighbour
from godwit.content.messages import Publication, incarnation_of
from godwit.policies.placement.letters import (
    BrokerAddress,
    GrapeLetter,
    TraceInformationAnswer,
    TraceInformationRequest,
    read_grape,
    write,
)
from godwit.policies.placement.relocation import LocalPublisher, Relocation, RelocationPhase
from godwit.policies.placement.selection import Entry, candidates, choose
from godwit.policies.placement.settings import SESSION_MAX, GrapeSettings
from godwit.profile.bit_vector import BitVector


@dataclass(slots=True)
class GrapePublisher(LocalPublisher):
    """A publisher of this broker and its session."""

    trace: int = 0
    """The current session; 0 for none."""

    is_complete: bool = False


@dataclass(slots=True)
class TraceSession:
    """The local results of a session, and the answers from downstream."""

    trace: int
    upstream: Hop
    delivered: BitVector
    """Publications delivered to subscribers of this broker."""

    touched_s: float = 0.0
    incarnation: str = ""
    """Of the publisher; the next one may begin a session with the same number."""

    deliveries: int = 0
    downstream: dict[Neighbour, None] = field(default_factory=dict)
    asked_s: float = 0.0
    waiting: set[Neighbour] = field(default_factory=set)
    answers: list[Entry] = field(default_factory=list)
    links_s: dict[str, float] = field(default_factory=dict)


class Grape(Relocation[GrapePublisher]):
    name = "grape"

    def __init__(self, settings: GrapeSettings | None = None) -> None:
        self._settings = settings or GrapeSettings()
        super().__init__(self._settings)
        self._sessions: dict[str, TraceSession] = {}

    # -- phase 1: a session --------------------------------------------------------------------

    def tag(self, publication: Publication, now_s: float) -> int:
        publisher = self._local(publication.publisher)
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
        trace = publication.mark(self.name) if publication.marks else 0
        if trace:
            self._record(publication, trace, last_hop, destinations, now_s)
            requests += self._tick(now_s)
        if type(last_hop) is LocalClient:
            requests += self._ask_if_complete(publication.publisher, now_s)
        return requests

    def _record(
        self,
        publication: Publication,
        trace: int,
        last_hop: Hop,
        destinations: Sequence[Hop],
        now_s: float,
    ) -> None:
        session = self._sessions.get(publication.publisher)
        incarnation = incarnation_of(publication)
        if session is None or (session.trace, session.incarnation) != (trace, incarnation):  # G1
            delivered = BitVector(trace - 1, SESSION_MAX)
            session = TraceSession(trace, last_hop, delivered, incarnation=incarnation)
            self._sessions[publication.publisher] = session
        session.touched_s = now_s
        local = 0
        for hop in destinations:
            if type(hop) is Neighbour:
                session.downstream[hop] = None
            elif type(hop) is LocalClient:
                local += 1
        if local and publication.sequence in session.delivered.window:
            session.delivered.record(publication.sequence)
            session.deliveries += local

    # -- phase 2: TIR and TIA ------------------------------------------------------------------

    def _ask_if_complete(self, name: str, now_s: float) -> Iterable[Request]:
        publisher, session = self._locals.get(name), self._sessions.get(name)
        if (
            publisher is None
            or publisher.phase is not RelocationPhase.TRACING
            or not publisher.is_complete
        ):
            return ()
        if session is None or session.trace != publisher.trace:
            self._reset(publisher)
            return ()
        return [*self._wait(publisher, now_s), *self._ask(name, session, now_s)]

    def _on_request(
        self, letter: TraceInformationRequest, neighbour: Neighbour, now_s: float
    ) -> Iterable[Request]:
        session = self._sessions.get(letter.publisher)
        if session is None or session.trace != letter.trace or session.upstream != neighbour:
            empty = TraceInformationAnswer(letter.publisher, letter.trace, 0.0, ())
            return [ToNeighbour(neighbour, write(empty))]
        return self._ask(letter.publisher, session, now_s)

    def _ask(self, publisher: str, session: TraceSession, now_s: float) -> list[Request]:
        session.asked_s = session.touched_s = now_s
        session.waiting = set(session.downstream)
        session.answers, session.links_s = [], {}
        if not session.waiting:
            return list(self._complete(publisher, session, now_s))
        request = write(TraceInformationRequest(publisher, session.trace))
        return [ToNeighbour(neighbour, request) for neighbour in session.downstream]

    def _on_answer(
        self, letter: TraceInformationAnswer, neighbour: Neighbour, now_s: float
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

    def _complete(self, name: str, session: TraceSession, now_s: float) -> Iterable[Request]:
        """All answers from downstream have arrived."""
        entries = (self._entry(session), *session.answers)
        if isinstance(session.upstream, Neighbour):
            del self._sessions[name]
            held_s = now_s - session.asked_s
            answer = TraceInformationAnswer(name, session.trace, held_s, entries)
            return [ToNeighbour(session.upstream, write(answer))]
        publisher = self._locals.get(name)
        if publisher is None or publisher.phase is not RelocationPhase.DECIDING:
            return ()
        session.answers = list(entries)
        if self._settings.needs_pings:
            places = tuple((entry.broker, entry.address) for entry in entries)
            return [AskForPings(name, places)]
        return self._choose(name, session, {}, now_s)

    def _entry(self, session: TraceSession) -> Entry:
        delays = self._view.delays
        hops = [*session.downstream, session.upstream]
        to_neighbours_s = delays.to_neighbours_s.value
        return Entry(
            broker=self._here.broker,
            address=self._here.address,
            bits=session.delivered.to_bytes(),
            deliveries=session.deliveries,
            input_queue_s=delays.input_queue_s.value,
            matching_s=delays.matching_s.value,
            to_clients_s=delays.to_clients_s.value,
            to_neighbours_s={
                hop.name: to_neighbours_s for hop in hops if isinstance(hop, Neighbour)
            },
            links_s=session.links_s,
        )

    # -- phase 3: the choice -------------------------------------------------------------------

    def on_pinged(
        self, client: str, round_trips_s: dict[str, float], now_s: float
    ) -> Iterable[Request]:
        publisher, session = self._locals.get(client), self._sessions.get(client)
        if publisher is None or session is None or publisher.phase is not RelocationPhase.DECIDING:
            return ()
        if session.waiting:
            return ()  # The pings belong to an earlier session.
        return self._choose(client, session, round_trips_s, now_s)

    def _choose(
        self, name: str, session: TraceSession, round_trips_s: dict[str, float], now_s: float
    ) -> Iterable[Request]:
        settings = self._settings
        here = self._here.broker
        found = candidates(session.answers, here, round_trips_s)
        if round_trips_s:  # The publisher cannot move to a broker that did not answer its ping.
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
        return self._decide(name, BrokerAddress(best.broker, best.address), reason, now_s)

    def on_letter(self, body: bytes, neighbour: Neighbour, now_s: float) -> Iterable[Request]:
        letter: GrapeLetter | None = read_grape(body)
        match letter:
            case TraceInformationRequest():
                return self._on_request(letter, neighbour, now_s)
            case TraceInformationAnswer():
                return self._on_answer(letter, neighbour, now_s)
            case None:
                return ()

    # -- Relocation ----------------------------------------------------------------------------

    def _new_local(self) -> GrapePublisher:
        return GrapePublisher()

    def _reset(self, publisher: GrapePublisher) -> None:
        publisher.trace = 0
        publisher.is_complete = False

    def _drop_expired(self, now_s: float) -> None:
        for publisher, session in list(self._sessions.items()):
            if self._drop_if_expired(publisher, session.touched_s, now_s):
                del self._sessions[publisher]

    @property
    def _has_expiring_state(self) -> bool:
        return bool(self._sessions)
