"""Checks every delivery against brute force: nothing lost, twice, unasked or out of order.

When a publication is sent, the oracle evaluates every filter there is and notes who must receive
it (a subscription of the client is in effect) and who may (it is still on its way in or out).
Deliveries are then compared with these notes and with the order of publishing.  The oracle shares
`Filter.matches` with the brokers and nothing else: no index, no covering, no routing.  Notes are
dropped once settled, so a long run needs little memory.

A client's own publications are not delivered to it (invariant R1 of the broker).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import NamedTuple, TypeAlias

from godwit.content.filters import Filter
from godwit.content.messages import (
    Message,
    Notice,
    Publication,
    Subscription,
    SubscriptionId,
    incarnation_of,
    is_control_content,
    is_control_filter,
)
from godwit.content.values import Record
from godwit.simulation.observers import DropReason, Observer

VIOLATIONS_KEPT_MAX = 100

#: The attributes that a filter wants to equal one string, with that string.
Texts: TypeAlias = tuple[tuple[str, str], ...]
#: Clients, with the subscriptions that a publication is owed to.
Owed: TypeAlias = dict[str, tuple[SubscriptionId, ...]]


class ViolationKind(Enum):
    LOST = "lost"
    TWICE = "delivered twice"
    UNASKED = "delivered unasked"
    DISORDERED = "delivered out of publisher order"


@dataclass(frozen=True, slots=True)
class Violation:
    verdict: ViolationKind
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
    filter: Filter
    in_effect: bool = False
    is_leaving: bool = False


class _Asked:
    """The subscriptions that ask for one filter."""

    __slots__ = ("_owed", "interests")

    def __init__(self) -> None:
        self.interests: dict[SubscriptionId, _Interest] = {}
        self._owed: Owed | None = None

    def changed(self) -> None:
        self._owed = None

    def owed(self) -> Owed:
        """Clients that may receive what it matches, with the subscriptions it is owed to."""
        if self._owed is None:
            self._owed = {}
            for id, interest in self.interests.items():
                ids = self._owed.get(interest.client, ())
                is_owed = interest.in_effect and not interest.is_leaving
                self._owed[interest.client] = (*ids, id) if is_owed else ids
        return self._owed


class _Note(NamedTuple):
    """Clients that may still receive a publication, with the subscriptions it is owed to."""

    published_s: float
    owed: Owed


@dataclass(slots=True)
class _Publisher:
    """Publications of one publisher in flight, in order, and the last that each client received."""

    notes: dict[int, _Note] = field(default_factory=dict)
    last_sequence: dict[str, int] = field(default_factory=dict)


def texts_of(filter: Filter) -> Texts:
    return tuple(filter.fixed_texts)


def _add(owed: Owed, wanted: Owed) -> None:
    if wanted.keys().isdisjoint(owed):
        wanted.update(owed)
    else:
        for client, ids in owed.items():
            wanted[client] = wanted.get(client, ()) + ids


class Oracle(Observer):
    def __init__(
        self, *, settle_s: float = inf, violations_kept_max: int = VIOLATIONS_KEPT_MAX
    ) -> None:
        """No message takes longer than `settle_s`: what is older is lost."""
        self.publications = 0
        self.deliveries = 0
        self.violations: list[Violation] = []
        self.violation_count = 0
        self.deliveries_missed_by_drops = 0
        self._settle_s = settle_s
        self._violations_kept_max = violations_kept_max
        self._interests: dict[SubscriptionId, _Interest] = {}
        self._leaving: deque[tuple[float, SubscriptionId]] = deque()
        # Equal filters are evaluated once, and filters that fix the same strings only if the
        # publication has these; there is no other optimisation.
        self._asked: dict[bool, dict[Texts, dict[Filter, _Asked]]] = {False: {}, True: {}}
        self._subscriptions_of: dict[str, set[SubscriptionId]] = {}
        self._publishers: dict[str, _Publisher] = {}
        """By incarnation."""
        self._dropped: set[tuple[str, int]] = set()

    def on_subscribing(self, client: str, subscription: Subscription, now_s: float) -> None:
        interest = _Interest(client, subscription.filter)
        self._interests[subscription.id] = interest
        self._subscriptions_of.setdefault(client, set()).add(subscription.id)
        asked = self._asked_for(interest.filter)
        asked.interests[subscription.id] = interest
        asked.changed()

    def _asked_for(self, filter: Filter) -> _Asked:
        same_texts = self._asked[is_control_filter(filter)].setdefault(texts_of(filter), {})
        return same_texts.setdefault(filter, _Asked())

    def on_in_effect(self, client: str, id: SubscriptionId, now_s: float) -> None:
        interest = self._interests.get(id)
        if interest is not None:
            interest.in_effect = True
            self._asked_for(interest.filter).changed()

    def on_unsubscribing(self, client: str, id: SubscriptionId, now_s: float) -> None:
        """Publications in flight are no longer owed, unless they are overdue."""
        interest = self._interests[id]
        interest.is_leaving = True
        self._asked_for(interest.filter).changed()
        self._leaving.append((now_s, id))
        for name, publisher in self._publishers.items():
            overtaken = publisher.last_sequence.get(client, -1)
            for sequence, note in publisher.notes.items():
                ids = note.owed.get(client, ())
                if id not in ids:
                    continue
                if sequence < overtaken or now_s - note.published_s > self._settle_s:
                    self._report(ViolationKind.LOST, client, name, sequence, now_s)
                note.owed[client] = tuple(owed for owed in ids if owed != id)

    def on_published(self, publication: Publication, now_s: float) -> None:
        self.publications += 1
        name = incarnation_of(publication)
        publisher = self._publishers.get(name)
        if publisher is None:
            publisher = self._publishers[name] = _Publisher()
        self._settle(name, publisher, now_s)
        self._forget_those_gone(now_s)
        wanted = self._wanted(publication.content)
        wanted.pop(publication.publisher, None)
        if wanted:
            publisher.notes[publication.sequence] = _Note(now_s, wanted)

    def _settle(self, name: str, publisher: _Publisher, now_s: float) -> None:
        """Close the notes that are older than `settle_s`."""
        while publisher.notes:
            sequence, note = next(iter(publisher.notes.items()))
            if now_s - note.published_s <= self._settle_s:
                return
            self._close(name, sequence, note, now_s)
            del publisher.notes[sequence]

    def _close(self, name: str, sequence: int, note: _Note, now_s: float) -> None:
        for client, ids in note.owed.items():
            if ids:
                self._report(ViolationKind.LOST, client, name, sequence, now_s)

    def _forget_those_gone(self, now_s: float) -> None:
        """Forget subscriptions that ended longer than `settle_s` ago."""
        while self._leaving and now_s - self._leaving[0][0] > self._settle_s:
            _, id = self._leaving.popleft()
            interest = self._interests.pop(id)
            self._subscriptions_of[interest.client].discard(id)
            asked = self._asked_for(interest.filter)
            del asked.interests[id]
            asked.changed()
            if not asked.interests:
                plane = self._asked[is_control_filter(interest.filter)]
                texts = texts_of(interest.filter)
                del plane[texts][interest.filter]
                if not plane[texts]:
                    del plane[texts]

    def _wanted(self, content: Record) -> Owed:
        """Clients that may receive such a publication, with the subscriptions it is owed to."""
        wanted: Owed = {}
        for texts, filters in self._asked[is_control_content(content)].items():
            for attribute, text in texts:
                if content.get(attribute) != text:
                    break
            else:
                for filter, asked in filters.items():
                    if filter.matches_checked(content):
                        _add(asked.owed(), wanted)
        return wanted

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        self.deliveries += len(clients)
        sequence = publication.sequence
        publisher = self._publishers[incarnation_of(publication)]
        last_sequence = publisher.last_sequence
        note = publisher.notes.get(sequence)
        for client in clients:
            last = last_sequence.get(client, -1)
            if last < sequence:
                last_sequence[client] = sequence
            if note is None or note.owed.pop(client, None) is None:
                self._on_unnoted(client, publication, last, now_s)
            elif last > sequence:
                self._report(
                    ViolationKind.DISORDERED, client, incarnation_of(publication), sequence, now_s
                )
        if note is not None and not note.owed:
            del publisher.notes[sequence]

    def _on_unnoted(
        self, client: str, publication: Publication, last_sequence: int, now_s: float
    ) -> None:
        """A delivery that is not noted, or no longer."""
        publisher, sequence = incarnation_of(publication), publication.sequence
        if sequence <= last_sequence:
            self._report(ViolationKind.TWICE, client, publisher, sequence, now_s)
        elif not self._was_under_way(client, publication):
            self._report(ViolationKind.UNASKED, client, publisher, sequence, now_s)

    def _was_under_way(self, client: str, publication: Publication) -> bool:
        """Whether it was published before the client subscribed, and met the new subscription.

        It is not noted, so the subscription that it matches did not exist when it was published.
        """
        plane = is_control_content(publication.content)
        filters = (self._interests[id].filter for id in self._subscriptions_of.get(client, ()))
        return any(
            is_control_filter(filter) == plane and filter.matches_checked(publication.content)
            for filter in filters
        )

    def on_dropped(self, broker: str, message: Message | Notice, reason: DropReason) -> None:
        if reason is DropReason.MEMORY_FULL and isinstance(message, Publication):
            self._dropped.add((incarnation_of(message), message.sequence))

    def finish(self, now_s: float) -> None:
        """The run is over and the network quiet: what is still owed is lost."""
        for name, publisher in self._publishers.items():
            for sequence, note in publisher.notes.items():
                self._close(name, sequence, note, now_s)
            publisher.notes.clear()

    @property
    def is_owed(self) -> bool:
        """Whether a delivery is outstanding."""
        return any(
            any(note.owed.values())
            for publisher in self._publishers.values()
            for note in publisher.notes.values()
        )

    @property
    def is_satisfied(self) -> bool:
        return self.violation_count == 0

    def _report(
        self, verdict: ViolationKind, client: str, publisher: str, sequence: int, now_s: float
    ) -> None:
        if verdict is ViolationKind.LOST and (publisher, sequence) in self._dropped:
            self.deliveries_missed_by_drops += 1  # A broker with full queues has reported it.
            return
        self.violation_count += 1
        if len(self.violations) < self._violations_kept_max:
            self.violations.append(Violation(verdict, client, publisher, sequence, now_s))
