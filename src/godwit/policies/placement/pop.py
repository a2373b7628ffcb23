"""POP, publisher optimistic placement: a publisher moves towards its deliveries.

Paper    Cheung, thesis 5.1; POP and GRAPE paper, III.
Words    N, W -> traces_per_window, window_s; T -> tagged; P_trace = 1 - T/N;
         P_threshold -> traces_per_decision; PPTable -> Table, a row for each neighbour and one for
         the broker's own subscribers; TRM, RRM, RAM -> letters.py.
Claim    The chosen broker is a weighted 1-median of the tree: at no other broker would deliveries
         cross fewer links in total.

    1  some publications are marked; brokers report upstream (TRM) how often each was delivered at
       and below them, and keep a running average for each of their branches
    2  after enough traces the first broker looks for a branch that outweighs everything else
       together; if there is one, its first broker continues the search (RRM)
    3  a broker without such a branch ends it (RAM), and the publisher is asked to move there

Departs  1. Keyed by publisher, not by advertisement: a client moves as a whole.
         2. A TRM names its publication (E9).  The rows are updated together, when all TRMs of a
            publication have arrived, so that a trace counts as a whole or not at all.
         3. A branch that a traced publication did not take counts as zero (open in the thesis; see
            `counts_zeros`).  The brokers of that branch have not seen the publication, so their
            averages are over fewer; the RRM contains the branch's weight, and the receiver scales
            its rows to it.  Without `counts_zeros` neither is done, as printed.
         4. No publication is tagged once enough for a decision are traced or outstanding: with a
            busy publisher some trace would always be outstanding.
         5. A lost TRM ends its trace after a timeout (open in the thesis).
         6. `hysteresis` and `hold_s` against ping-pong (future work in the thesis).
Tested   tests/policies/placement/test_pop.py: the thesis's example, the 1-median on random trees.

P1  A table counts publications from one direction.  If they arrive from another, their publisher
    has moved, and a new table begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from godwit.broker.modules import Request, ToNeighbour
from godwit.broker.stimuli import Hop, LocalClient, Neighbour
from godwit.content.messages import Publication, incarnation_of
from godwit.policies.placement.letters import (
    PopLetter,
    RelocationAnswer,
    RelocationRequest,
    TraceResult,
    read_pop,
    write,
)
from godwit.policies.placement.relocation import LocalPublisher, Relocation, RelocationPhase
from godwit.policies.placement.settings import PopSettings
from godwit.profile.running_average import weighted

#: A branch: a neighbour, or the broker's own subscribers.
Branch: TypeAlias = Neighbour | None
LOCAL = None


def heaviest(weights: Mapping[Branch, float], hysteresis: float = 0.0) -> Neighbour | None:
    """The neighbour whose branch outweighs everything else together, if any.

    Strictly: in a tie the publisher stays, or the same rule would move it back.
    """
    total = sum(weights.values())
    for branch, weight in weights.items():
        if branch is not LOCAL and weight > total - weight + hysteresis:
            return branch
    return None


@dataclass(slots=True)
class PopPublisher(LocalPublisher):
    """A publisher of this broker and its traces."""

    window_end_s: float = 0.0
    tagged: int = 0
    """Publications tagged in this window."""

    outstanding: int = 0
    traced: int = 0


@dataclass(slots=True)
class Trace:
    """A marked publication that waits for TRMs."""

    publisher: str
    upstream: Hop
    deadline_s: float
    waiting: set[Neighbour]
    deliveries: dict[Branch, int]


@dataclass(slots=True)
class Table:
    """Running averages of the deliveries of a publisher's publications, by branch."""

    upstream: Hop
    touched_s: float = 0.0
    rows: dict[Branch, float] = field(default_factory=dict)

    def add(self, deliveries: Mapping[Branch, int], settings: PopSettings) -> None:
        is_first = not self.rows
        newest = settings.newest_weight
        branches = dict.fromkeys((*self.rows, *deliveries)) if settings.counts_zeros else deliveries
        for branch in branches:
            value = deliveries.get(branch, 0)
            known = self.rows.get(branch)
            if known is None and (is_first or not settings.counts_zeros):
                self.rows[branch] = value
            else:
                self.rows[branch] = weighted(known or 0.0, value, newest)


class Pop(Relocation[PopPublisher]):
    name = "pop"

    def __init__(self, random: Random, settings: PopSettings | None = None) -> None:
        self._settings = settings or PopSettings()
        super().__init__(self._settings)
        self._random = random
        self._pending: dict[tuple[str, int], Trace] = {}
        """By incarnation of the publisher and sequence number."""
        self._tables: dict[str, Table] = {}

    # -- phase 1: tracing ----------------------------------------------------------------------

    def tag(self, publication: Publication, now_s: float) -> int:
        publisher, settings = self._local(publication.publisher), self._settings
        if not publisher.may_be_traced(now_s):
            return 0
        if publisher.traced + publisher.outstanding >= settings.traces_per_decision:
            return 0
        if now_s >= publisher.window_end_s:
            publisher.window_end_s = now_s + settings.window_s
            publisher.tagged = 0
        if self._random.random() >= 1.0 - publisher.tagged / settings.traces_per_window:
            return 0
        publisher.tagged += 1
        publisher.outstanding += 1
        return 1

    def on_publication(
        self, publication: Publication, last_hop: Hop, destinations: Sequence[Hop], now_s: float
    ) -> Iterable[Request]:
        if not publication.mark(self.name):
            return ()
        onward = {hop for hop in destinations if type(hop) is Neighbour}
        local = sum(type(hop) is LocalClient for hop in destinations)
        deadline_s = now_s + self._settings.answer_timeout_s
        trace = Trace(publication.publisher, last_hop, deadline_s, onward, {LOCAL: local})
        key = incarnation_of(publication), publication.sequence
        if not onward:
            return self._complete(*key, trace, now_s)
        self._pending[key] = trace
        return self._tick(now_s)

    def _on_trace_result(
        self, letter: TraceResult, neighbour: Neighbour, now_s: float
    ) -> Iterable[Request]:
        key = letter.incarnation, letter.sequence
        trace = self._pending.get(key)
        if trace is None or neighbour not in trace.waiting:
            return ()
        trace.waiting.remove(neighbour)
        trace.deliveries[neighbour] = letter.deliveries
        if trace.waiting:
            return ()
        del self._pending[key]
        return self._complete(*key, trace, now_s)

    def _complete(
        self, incarnation: str, sequence: int, trace: Trace, now_s: float
    ) -> Iterable[Request]:
        publisher = trace.publisher
        table = self._tables.get(publisher)
        if table is None or table.upstream != trace.upstream:  # P1
            table = self._tables[publisher] = Table(trace.upstream)
        table.touched_s = now_s
        table.add(trace.deliveries, self._settings)
        requests = self._tick(now_s)
        if isinstance(trace.upstream, Neighbour):
            deliveries = sum(trace.deliveries.values())
            answer = TraceResult(incarnation, sequence, deliveries)
            return [*requests, ToNeighbour(trace.upstream, write(answer))]
        return [*requests, *self._traced(publisher, now_s)]

    def _traced(self, name: str, now_s: float) -> Iterable[Request]:
        """A trace is complete at its first broker."""
        publisher = self._locals.get(name)
        if publisher is None or not publisher.outstanding:
            return ()  # It has left since, and may have returned.
        publisher.outstanding -= 1
        publisher.traced += 1
        if publisher.traced < self._settings.traces_per_decision:
            return ()
        return self._start_walk(name, publisher, now_s)  # No trace is outstanding: see `tag`.

    # -- phase 2: the walk to the closest broker -----------------------------------------------

    def _start_walk(self, name: str, publisher: PopPublisher, now_s: float) -> Iterable[Request]:
        weights = self._tables[name].rows
        towards = heaviest(weights, self._settings.hysteresis)
        if towards is None:
            reason = {"deliveries": sum(weights.values()), "here": weights[LOCAL]}
            return self._decide(name, self._here, reason, now_s)
        ask = self._ask_next(name, weights, towards, None)
        return [ask, *self._wait(publisher, now_s)]

    def _ask_next(
        self,
        publisher: str,
        weights: Mapping[Branch, float],
        towards: Neighbour,
        so_far: RelocationRequest | None,
    ) -> Request:
        there = weights[towards]
        elsewhere = sum(weights.values()) - there
        # One link less for deliveries in that branch, one more for all others.
        saved = there - elsewhere + (so_far.saved if so_far else 0.0)
        path = (self._here, *(so_far.path if so_far else ()))
        return ToNeighbour(
            towards, write(RelocationRequest(publisher, elsewhere, there, saved, path))
        )

    def _on_relocation_request(
        self, letter: RelocationRequest, neighbour: Neighbour, now_s: float
    ) -> Iterable[Request]:
        table = self._tables.get(letter.publisher)
        if table is None or table.upstream != neighbour:
            return ()  # The publisher has moved; its old broker no longer waits for the walk.
        weights = dict(table.rows)
        if self._settings.counts_zeros:
            own = sum(weights.values())
            scale = letter.here / own if own else 0.0
            weights = {branch: weight * scale for branch, weight in weights.items()}
        weights[neighbour] = letter.elsewhere
        towards = heaviest(weights, self._settings.hysteresis)
        if towards is not None and towards != neighbour:
            return [self._ask_next(letter.publisher, weights, towards, letter)]
        found = RelocationAnswer(letter.publisher, letter.saved, (self._here, *letter.path))
        return [ToNeighbour(neighbour, write(found))]

    def _on_relocation_answer(self, letter: RelocationAnswer, now_s: float) -> Iterable[Request]:
        names = [place.broker for place in letter.path]
        if self._here.broker not in names:
            return ()
        onward = names[names.index(self._here.broker) + 1 :]
        if onward:
            next_hops = (each for each in self._view.neighbours if each.name == onward[0])
            return [ToNeighbour(neighbour, write(letter)) for neighbour in next_hops]
        publisher = self._locals.get(letter.publisher)
        if publisher is None or publisher.phase is not RelocationPhase.DECIDING:
            return ()
        weights = self._tables[letter.publisher].rows
        reason = {
            "deliveries": sum(weights.values()),
            "here": weights[LOCAL],
            "hops": len(names) - 1,
            "links_saved": letter.saved,
        }
        return self._decide(letter.publisher, letter.path[0], reason, now_s)

    def on_letter(self, body: bytes, neighbour: Neighbour, now_s: float) -> Iterable[Request]:
        letter: PopLetter | None = read_pop(body)
        match letter:
            case TraceResult():
                return self._on_trace_result(letter, neighbour, now_s)
            case RelocationRequest():
                return self._on_relocation_request(letter, neighbour, now_s)
            case RelocationAnswer():
                return self._on_relocation_answer(letter, now_s)
            case None:
                return ()

    # -- Relocation ----------------------------------------------------------------------------

    def _new_local(self) -> PopPublisher:
        return PopPublisher()

    def _reset(self, publisher: PopPublisher) -> None:
        publisher.traced = 0

    def _drop_expired(self, now_s: float) -> None:
        overdue = [key for key, trace in self._pending.items() if now_s >= trace.deadline_s]
        for key in overdue:
            trace = self._pending.pop(key)
            publisher = self._locals.get(trace.publisher)
            is_first = not isinstance(trace.upstream, Neighbour)
            if is_first and publisher is not None and publisher.outstanding:
                publisher.outstanding -= 1
        for name, table in list(self._tables.items()):
            if self._drop_if_expired(name, table.touched_s, now_s):
                del self._tables[name]

    @property
    def _has_expiring_state(self) -> bool:
        return bool(self._pending or self._tables)
