"""A client moves from its old broker to a new one: the client's side of it.

Paper    Cheung, thesis 4.1.4 (subscribers) and 5.1.3 (publishers).
Words    migrate -> Move; DONE -> Sweep; release -> Swept; RAM, MUM -> Turn; MCM -> Turned.
Claim    Nothing is lost, nothing comes twice, publisher order is kept; applications notice at
         most a pause in what they publish.

    old broker             client                 new broker
        |<----- Depart ------|                        |
        |                    |-- Subscription ------->|   SUBSCRIBING: the same again, new ids
        |                    |<-- in effect ----------|
        |                    |-- Sweep -------------->|   SWEEPING
        |<====== Sweep, behind all publications ======|
        |------ Swept ------>|                        |   what waited from the new one counts now
        |<- Unsubscription --|                        |
        |<----- Pause -------|                        |   PAUSING: publications wait
        |------ Paused ----->|                        |
        |                    |-- Advertisement ------>|   TURNING: the same id, next edition
        |<==== Turn =============================     |
        |     ==== Turned, behind all publications ==>|
        |                    |<-- in effect ----------|   MOVED: what waited is published

Departs  1. The thesis waits for a time at the end of which the old broker's queues should be
            empty.  Ours is a barrier: a sweep follows the publications (E6).
         2. Until it arrives, what comes from the new broker waits in the client: else it could
            overtake what is still on its way to the old one.
         3. A client that publishes and subscribes moves as a whole, subscriptions first.
Tested   tests/migration/; random runs with moves: tests/simulation/test_random_moves.py.

M1  At any time one broker counts: only what comes from it is handed on.
M2  What the old broker delivered before the sweep is, for each publisher, what comes first; what
    waited is handed on after it.  The new broker may have copies of the former: the client drops
    what is not new by its sequence number, and its own publications, also after the move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Depart,
    Message,
    Notice,
    Pause,
    Paused,
    Publication,
    Refusal,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Sweep,
    Swept,
    Unsubscription,
)


class Phase(Enum):
    SUBSCRIBING = "subscribing at the new broker"
    SWEEPING = "waiting for the sweep"
    PAUSING = "pausing"
    TURNING = "turning the advertisements"
    MOVED = "moved"
    STAYED = "stayed"


@dataclass(frozen=True, slots=True)
class ToOld:
    message: Message


@dataclass(frozen=True, slots=True)
class ToNew:
    message: Message


@dataclass(frozen=True, slots=True)
class Hand:
    """A publication for the application."""

    publication: Publication
    hops: int


Order: TypeAlias = ToOld | ToNew | Hand


class Move:
    """One move.  Feed it what both brokers say; do what it answers; look at `phase`."""

    def __init__(
        self,
        number: int,
        *,
        client: str,
        source: str,
        subscriptions: Mapping[SubscriptionId, Subscription],
        advertisements: Mapping[AdvertisementId, Advertisement],
        unconfirmed: set[AdvertisementId],
    ) -> None:
        """`subscriptions`: for each of the old ids what to ask the new broker for.

        `advertisements`: each with its next edition; `unconfirmed` are not in effect yet.
        """
        self.number = number
        self.phase = Phase.SUBSCRIBING
        self.subscriptions = dict(subscriptions)
        self.advertisements = dict(advertisements)
        self._client = client
        self._source = source
        self._unconfirmed_at_source = set(unconfirmed)
        self._unconfirmed: set[str] = set()
        self._waiting: list[Hand] = []

    @property
    def is_over(self) -> bool:
        return self.phase in (Phase.MOVED, Phase.STAYED)

    @property
    def new_broker_counts(self) -> bool:
        """Do publications come from the new broker now (M1)?"""
        return self.phase not in (Phase.SUBSCRIBING, Phase.SWEEPING, Phase.STAYED)

    @property
    def holds_publications(self) -> bool:
        """Must the client keep what it publishes to itself for now?"""
        return self.phase in (Phase.PAUSING, Phase.TURNING)

    def start(self) -> list[Order]:
        if not self.subscriptions:
            return self._pause()
        self._unconfirmed = {new.id for new in self.subscriptions.values()}
        return [ToOld(Depart(move=self.number)), *map(ToNew, self.subscriptions.values())]

    def abort(self) -> list[Order]:
        """Stay with the old broker; possible until the sweep has come."""
        assert self.phase in (Phase.SUBSCRIBING, Phase.SWEEPING), self.phase
        self.phase = Phase.STAYED
        self._waiting.clear()
        return [ToNew(Unsubscription(id=new.id)) for new in self.subscriptions.values()]

    # -- what the brokers say ------------------------------------------------------------------

    def on_old(self, notice: Notice) -> list[Order]:
        match notice:
            case Swept(move=self.number) if self.phase is Phase.SWEEPING:
                return self._on_swept()
            case Paused(move=self.number) if self.phase is Phase.PAUSING:
                return self._turn()
            case AdvertisementInEffect(id=id):
                self._unconfirmed_at_source.discard(id)
                if self.phase is Phase.PAUSING and not self._unconfirmed_at_source:
                    return self._pause()
        return []

    def on_new(self, notice: Notice) -> list[Order]:
        match notice:
            case SubscriptionInEffect(id=id) if self.phase is Phase.SUBSCRIBING:
                self._unconfirmed.discard(id)
                return [] if self._unconfirmed else self._sweep()
            case AdvertisementInEffect(id=id, edition=edition) if self.phase is Phase.TURNING:
                if self.advertisements[id].edition == edition:
                    self._unconfirmed.discard(id)
                if not self._unconfirmed:
                    self.phase = Phase.MOVED
            case Refusal() if self.phase in (Phase.SUBSCRIBING, Phase.SWEEPING):
                return self.abort()
        return []

    def publication_from_old(self, publication: Publication, hops: int) -> list[Order]:
        return [] if self.new_broker_counts else [Hand(publication, hops)]

    def publication_from_new(self, publication: Publication, hops: int) -> list[Order]:
        hand = Hand(publication, hops)
        if self.new_broker_counts:
            return [hand]
        if self.phase is not Phase.STAYED:
            self._waiting.append(hand)
        return []

    # -- from phase to phase -------------------------------------------------------------------

    def _sweep(self) -> list[Order]:
        self.phase = Phase.SWEEPING
        return [ToNew(Sweep(client=self._client, to=self._source, move=self.number))]

    def _on_swept(self) -> list[Order]:
        orders: list[Order] = [*self._waiting]  # M2
        self._waiting.clear()
        orders += [ToOld(Unsubscription(id=id)) for id in self.subscriptions]
        return orders + self._pause()

    def _pause(self) -> list[Order]:
        if not self.advertisements:
            self.phase = Phase.MOVED
            return []
        self.phase = Phase.PAUSING
        if self._unconfirmed_at_source:  # What is not in effect yet cannot be turned.
            return []
        return [ToOld(Pause(move=self.number))]

    def _turn(self) -> list[Order]:
        self.phase = Phase.TURNING
        self._unconfirmed = set(self.advertisements)
        return list(map(ToNew, self.advertisements.values()))
