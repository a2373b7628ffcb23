"""POP, publisher optimistic placement: a publisher moves to where its deliveries are.

Paper    Cheung, thesis 5.1; POP and GRAPE paper, III.
Words    N, W -> traces_per_window, window_s; T -> tagged; P_trace = 1 - T/N;
         P_threshold -> traces_per_decision; PPTable -> Table, a row for each neighbour and one for
         the broker's own subscribers; TRM, RRM, RAM -> letters.py.
Claim    The broker that is chosen is a weighted 1-median of the tree: no other has its deliveries
         fewer links away, all together.

    1  some publications are marked; brokers answer upstream how often each was delivered at and
       below them, and keep running averages for each of their branches
    2  with enough traces the first broker asks: does a branch outweigh everything else together?
       then the publisher belongs there, and the branch's first broker is asked the same
    3  where none does, the walk ends, and the publisher is asked to move there

Departs  1. Keyed by publisher, not by advertisement: a client moves as a whole.
         2. A TRM names its publication (E9).  The rows are updated together, once all answers to a
            publication are there, so that a trace counts as a whole or not at all.
         3. A branch that a traced publication did not take counts as zero (open in the thesis; see
            `counts_zeros`).  The broker down there has not seen that publication, so its averages
            are over fewer; the RRM tells it what its branch weighs, and it scales its rows to that.
            Without `counts_zeros` neither is done, as printed.
         4. Nothing is tagged once as many are traced, or under way, as a decision needs: else with
            a busy publisher some trace would be outstanding for ever.
         5. A lost answer ends its trace after a time (open in the thesis).
         6. `hysteresis` and `hold_s` against ping-pong (future work in the thesis).
Tested   tests/placement/test_pop.py: the thesis's example, the 1-median on random trees.

P1  A table is about publications from one direction.  If they come from elsewhere, their publisher
    has moved, and the table starts anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from godwit.broker.modules import Request, ToNeighbour
from godwit.broker.stimuli import Client, Hop, Neighbour
from godwit.content.messages import Publication
from godwit.placement.letters import Closest, Delivered, OfPop, WhoIsCloser, read_pop, write
from godwit.placement.relocation import Phase, Relocation, Resident
from godwit.placement.settings import PopSettings

#: A branch: a neighbour, or the broker's own subscribers.
Branch: TypeAlias = Neighbour | None
LOCAL = None


def heaviest(weights: Mapping[Branch, float], hysteresis: float = 0.0) -> Neighbour | None:
    """The neighbour whose branch outweighs everything else together, if there is one.

    Strictly: in a tie the publisher stays, or it would come back by the same argument.
    """
    total = sum(weights.values())
    for branch, weight in weights.items():
        if branch is not LOCAL and weight > total - weight + hysteresis:
            return branch
    return None


@dataclass(slots=True)
class Publishing(Resident):
    """A publisher of this broker and its traces."""

    window_end_s: float = 0.0
    tagged: int = 0
    """In this window."""

    outstanding: int = 0
    traced: int = 0


@dataclass(slots=True)
class Trace:
    """A marked publication whose answers are not all there."""

    upstream: Hop
    deadline_s: float
    waiting: set[Neighbour]
    deliveries: dict[Branch, int]


@dataclass(slots=True)
class Table:
    """Deliveries of one publisher's publications, by branch, on a running average."""

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
                self.rows[branch] = newest * value + (1.0 - newest) * (known or 0.0)


class Pop(Relocation[Publishing]):
    name = "pop"

    def __init__(self, random: Random, settings: PopSettings | None = None) -> None:
        self._settings = settings or PopSettings()
        super().__init__(self._settings)
        self._random = random
        self._pending: dict[tuple[str, int], Trace] = {}
        self._tables: dict[str, Table] = {}

    # -- phase 1: tracing ----------------------------------------------------------------------

    def tag(self, publication: Publication, now_s: float) -> int:
        publisher, settings = self._resident(publication.publisher), self._settings
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
        if not publication.trace:
            return ()
        onward = {hop for hop in destinations if type(hop) is Neighbour}
        local = sum(type(hop) is Client for hop in destinations)
        deadline_s = now_s + self._settings.answer_timeout_s
        trace = Trace(last_hop, deadline_s, onward, {LOCAL: local})
        if not onward:
            return self._complete(publication.publisher, publication.sequence, trace, now_s)
        self._pending[publication.publisher, publication.sequence] = trace
        return self._tick(now_s)

    def _on_delivered(
        self, letter: Delivered, neighbour: Neighbour, now_s: float
    ) -> Iterable[Request]:
        key = letter.publisher, letter.sequence
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
        self, publisher: str, sequence: int, trace: Trace, now_s: float
    ) -> Iterable[Request]:
        table = self._tables.get(publisher)
        if table is None or table.upstream != trace.upstream:  # P1
            table = self._tables[publisher] = Table(trace.upstream)
        table.touched_s = now_s
        table.add(trace.deliveries, self._settings)
        requests = self._tick(now_s)
        if isinstance(trace.upstream, Neighbour):
            deliveries = sum(trace.deliveries.values())
            answer = Delivered(publisher, sequence, deliveries)
            return [*requests, ToNeighbour(trace.upstream, write(answer))]
        return [*requests, *self._traced(publisher, now_s)]

    def _traced(self, name: str, now_s: float) -> Iterable[Request]:
        """A trace is complete at its first broker."""
        publisher = self._residents.get(name)
        if publisher is None or not publisher.outstanding:
            return ()  # It has left meanwhile, and may be back.
        publisher.outstanding -= 1
        publisher.traced += 1
        if publisher.traced < self._settings.traces_per_decision:
            return ()
        return self._start_walk(name, publisher, now_s)  # None is outstanding: see `tag`.

    # -- phase 2: the walk to the closest broker -----------------------------------------------

    def _start_walk(self, name: str, publisher: Publishing, now_s: float) -> Iterable[Request]:
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
        so_far: WhoIsCloser | None,
    ) -> Request:
        there = weights[towards]
        elsewhere = sum(weights.values()) - there
        # One link nearer for those over there, one farther for all others.
        saved = there - elsewhere + (so_far.saved if so_far else 0.0)
        path = (self._here, *(so_far.path if so_far else ()))
        return ToNeighbour(towards, write(WhoIsCloser(publisher, elsewhere, there, saved, path)))

    def _on_who_is_closer(
        self, letter: WhoIsCloser, neighbour: Neighbour, now_s: float
    ) -> Iterable[Request]:
        table = self._tables.get(letter.publisher)
        if table is None or table.upstream != neighbour:
            return ()  # The publisher has moved meanwhile; who began the walk does not wait for it.
        weights = dict(table.rows)
        if self._settings.counts_zeros:
            own = sum(weights.values())
            scale = letter.here / own if own else 0.0
            weights = {branch: weight * scale for branch, weight in weights.items()}
        weights[neighbour] = letter.elsewhere
        towards = heaviest(weights, self._settings.hysteresis)
        if towards is not None and towards != neighbour:
            return [self._ask_next(letter.publisher, weights, towards, letter)]
        found = Closest(letter.publisher, letter.saved, (self._here, *letter.path))
        return [ToNeighbour(neighbour, write(found))]

    def _on_closest(self, letter: Closest, now_s: float) -> Iterable[Request]:
        names = [place.broker for place in letter.path]
        if self._here.broker not in names:
            return ()
        onward = names[names.index(self._here.broker) + 1 :]
        if onward:
            return [ToNeighbour(Neighbour(onward[0]), write(letter))]
        publisher = self._residents.get(letter.publisher)
        if publisher is None or publisher.phase is not Phase.DECIDING:
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
        letter: OfPop | None = read_pop(body)
        match letter:
            case Delivered():
                return self._on_delivered(letter, neighbour, now_s)
            case WhoIsCloser():
                return self._on_who_is_closer(letter, neighbour, now_s)
            case Closest():
                return self._on_closest(letter, now_s)
            case None:
                return ()

    # -- what both policies need of each -------------------------------------------------------

    def _new_resident(self) -> Publishing:
        return Publishing()

    def _begin_anew(self, resident: Publishing) -> None:
        resident.traced = 0

    def _forget_old(self, now_s: float) -> None:
        overdue = [key for key, trace in self._pending.items() if now_s >= trace.deadline_s]
        for key in overdue:
            publisher = self._residents.get(key[0])
            is_first = not isinstance(self._pending.pop(key).upstream, Neighbour)
            if is_first and publisher is not None and publisher.outstanding:
                publisher.outstanding -= 1
        for name, table in list(self._tables.items()):
            if self._is_forgotten(name, table.touched_s, now_s):
                del self._tables[name]

    @property
    def _has_something_to_forget(self) -> bool:
        return bool(self._pending or self._tables)
