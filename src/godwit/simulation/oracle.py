"""Checks every delivery against brute force: nothing lost, twice, unasked or out of order.

When a publication is sent, the oracle evaluates every filter there is and notes who must receive
it (a subscription of the client is in effect) and who may (it is still on its way in or out).
Deliveries are then compared with these notes, client by client and publisher by publisher, in the
order of publishing.  It shares `Filter.matches` with the brokers and nothing else: no index, no
covering, no routing.  Notes are dropped once settled, so a long run needs little memory.

A client's own publications are not delivered to it (invariant R1 of the broker).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import NamedTuple

from godwit.content.filters import Filter
from godwit.content.messages import (
    Message,
    Notice,
    Publication,
    Subscription,
    SubscriptionId,
    is_control_content,
    is_control_filter,
)
from godwit.content.values import Record
from godwit.simulation.observers import DropReason, Observer

VIOLATIONS_KEPT_MAX = 100


class Verdict(Enum):
    LOST = "lost"
    TWICE = "delivered twice"
    UNASKED = "delivered unasked"
    DISORDERED = "delivered out of publisher order"


@dataclass(frozen=True, slots=True)
class Violation:
    verdict: Verdict
    client: str
    publisher: str
    sequence: int
    at_s: float

    def __str__(self) -> str:
        return (
            f"{self.publisher}#{self.sequence} was {self.verdict.value}"
            f" for {self.client} (t={self.at_s:.6f} s)"
        )


@dataclass(slots=True)
class _Interest:
    """One subscription as the oracle sees it."""

    client: str
    id: SubscriptionId
    in_effect: bool = False
    leaving_since_s: float | None = None


class _Note(NamedTuple):
    """A client may receive this publication, and must if `owed_to` names a subscription."""

    sequence: int
    published_s: float
    owed_to: tuple[SubscriptionId, ...]


class _Ledger:
    """What one client is to receive from one publisher."""

    __slots__ = ("last_sequence", "notes")

    def __init__(self) -> None:
        self.notes: deque[_Note] = deque()
        self.last_sequence = -1


class Oracle(Observer):
    def __init__(self, *, settle_s: float = inf) -> None:
        """No message takes longer than `settle_s`, so what is older is lost, or a ghost."""
        self.publications = 0
        self.deliveries = 0
        self.violations: list[Violation] = []
        self.violation_count = 0
        self.deliveries_missed_by_drops = 0
        self._settle_s = settle_s
        self._interests: dict[SubscriptionId, tuple[Filter, _Interest]] = {}
        # Equal filters are evaluated once; that is all the cleverness there is.
        self._by_filter: dict[bool, dict[Filter, dict[SubscriptionId, _Interest]]] = {
            False: {},
            True: {},
        }
        self._by_client: dict[str, dict[SubscriptionId, Filter]] = {}
        self._ledgers: dict[str, dict[str, _Ledger]] = {}
        self._dropped: set[tuple[str, int]] = set()

    def on_subscribing(self, client: str, subscription: Subscription, now_s: float) -> None:
        interest = _Interest(client, subscription.id)
        self._interests[subscription.id] = (subscription.filter, interest)
        self._by_client.setdefault(client, {})[subscription.id] = subscription.filter
        by_filter = self._by_filter[is_control_filter(subscription.filter)]
        by_filter.setdefault(subscription.filter, {})[subscription.id] = interest

    def on_in_effect(self, client: str, id: SubscriptionId, now_s: float) -> None:
        if id in self._interests:
            self._interests[id][1].in_effect = True

    def on_unsubscribing(self, client: str, id: SubscriptionId, now_s: float) -> None:
        self._interests[id][1].leaving_since_s = now_s
        for publisher, ledgers in self._ledgers.items():
            ledger = ledgers.get(client)
            if ledger is not None:
                for note in ledger.notes:
                    if id in note.owed_to and now_s - note.published_s > self._settle_s:
                        self._report(Verdict.LOST, client, publisher, note.sequence, now_s)
                ledger.notes = deque(_without(note, id) for note in ledger.notes)

    def on_published(self, publication: Publication, now_s: float) -> None:
        self.publications += 1
        content, sequence = publication.content, publication.sequence
        ledgers = self._ledgers.setdefault(publication.publisher, {})
        for client, owed_to in self._wanted(content, now_s).items():
            if client == publication.publisher:
                continue
            ledger = ledgers.get(client)
            if ledger is None:
                ledger = ledgers[client] = _Ledger()
            ledger.notes.append(_Note(sequence, now_s, owed_to))

    def _wanted(self, content: Record, now_s: float) -> dict[str, tuple[SubscriptionId, ...]]:
        """Who may receive such a publication, and to which of their subscriptions it is owed."""
        wanted: dict[str, tuple[SubscriptionId, ...]] = {}
        gone: list[_Interest] = []
        for filter, interests in self._by_filter[is_control_content(content)].items():
            if not filter.matches(content):
                continue
            for interest in interests.values():
                leaving_s = interest.leaving_since_s
                if leaving_s is not None and now_s - leaving_s > self._settle_s:
                    gone.append(interest)
                elif interest.in_effect and leaving_s is None:
                    wanted[interest.client] = (*wanted.get(interest.client, ()), interest.id)
                else:
                    wanted.setdefault(interest.client, ())
        for interest in gone:
            self._forget(interest)
        return wanted

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        self.deliveries += len(clients)
        sequence = publication.sequence
        ledgers = self._ledgers.setdefault(publication.publisher, {})
        for client in clients:
            ledger = ledgers.get(client)
            if ledger is not None and ledger.notes and ledger.notes[0].sequence == sequence:
                ledger.notes.popleft()
                ledger.last_sequence = sequence
            else:
                self._on_unexpected(client, publication, now_s)

    def _on_unexpected(self, client: str, publication: Publication, now_s: float) -> None:
        """A delivery that is not the next one noted: some may be skipped, the rest is wrong."""
        publisher, sequence = publication.publisher, publication.sequence
        ledger = self._ledgers[publisher].setdefault(client, _Ledger())
        notes = ledger.notes
        while notes and notes[0].sequence < sequence:
            note = notes.popleft()
            if note.owed_to:  # A later one came first: if this one still comes, it is disordered.
                self._report(Verdict.LOST, client, publisher, note.sequence, now_s)
        if notes and notes[0].sequence == sequence:
            notes.popleft()
        elif sequence == ledger.last_sequence:
            self._report(Verdict.TWICE, client, publisher, sequence, now_s)
        elif sequence < ledger.last_sequence:
            self._report(Verdict.DISORDERED, client, publisher, sequence, now_s)
        elif not self._was_under_way(client, publication):
            self._report(Verdict.UNASKED, client, publisher, sequence, now_s)
        ledger.last_sequence = max(ledger.last_sequence, sequence)

    def _was_under_way(self, client: str, publication: Publication) -> bool:
        """Was it published before the client asked for it, and found the subscription in place?

        There is no note of it, so what it matches now was not there when it was published.
        """
        plane = is_control_content(publication.content)
        return any(
            is_control_filter(filter) == plane and filter.matches(publication.content)
            for filter in self._by_client.get(client, {}).values()
        )

    def on_dropped(self, broker: str, message: Message | Notice, reason: DropReason) -> None:
        if reason is DropReason.MEMORY_FULL and isinstance(message, Publication):
            self._dropped.add((message.publisher, message.sequence))

    def finish(self, now_s: float) -> None:
        """The run is over and the network quiet: what is still owed is lost."""
        for publisher, ledgers in self._ledgers.items():
            for client, ledger in ledgers.items():
                for note in ledger.notes:
                    if note.owed_to:
                        self._report(Verdict.LOST, client, publisher, note.sequence, now_s)
                ledger.notes.clear()

    @property
    def is_satisfied(self) -> bool:
        return self.violation_count == 0

    def _forget(self, interest: _Interest) -> None:
        filter, _ = self._interests.pop(interest.id)
        del self._by_client[interest.client][interest.id]
        by_filter = self._by_filter[is_control_filter(filter)]
        del by_filter[filter][interest.id]
        if not by_filter[filter]:
            del by_filter[filter]

    def _report(
        self, verdict: Verdict, client: str, publisher: str, sequence: int, now_s: float
    ) -> None:
        if verdict is Verdict.LOST and (publisher, sequence) in self._dropped:
            self.deliveries_missed_by_drops += 1  # Announced by a broker with full queues.
            return
        self.violation_count += 1
        if len(self.violations) < VIOLATIONS_KEPT_MAX:
            self.violations.append(Violation(verdict, client, publisher, sequence, now_s))


def _without(note: _Note, id: SubscriptionId) -> _Note:
    return note._replace(owed_to=tuple(owed for owed in note.owed_to if owed != id))
