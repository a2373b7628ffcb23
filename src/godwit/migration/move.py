"""A client moves from its old broker to a new one: the client's side of it.

Paper    Cheung, thesis 4.1.4 (subscribers) and 5.1.3 (publishers).
Words    migrate -> Move; DONE -> Sweep; release -> Swept; RAM, MUM -> Advertisement of the next
         edition; MCM -> AdvertisementInEffect.
Claim    Nothing is lost, nothing comes twice, publisher order is kept; applications notice at
         most a pause in what they publish.

    old broker             client                 new broker
        |<----- Depart ------|                        |
        |                    |-- Subscription ------->|   SUBSCRIBING: the same again, new ids
        |                    |<-- in effect ----------|
        |                    |-- Sweep -------------->|   SWEEPING
        |<====== Sweep, behind all publications ======|
        |------ Swept ------>|                        |   what waited from the new one counts now
        |<----- Pause -------|                        |   PAUSING: publications wait
        |------ Paused ----->|                        |
        |                    |-- Advertisement ------>|   TURNING: the same id, next edition
        |<==== Advertisement ====================     |
        |     ==== in effect, behind publications ===>|
        |                    |<-- in effect ----------|   MOVED: what waited is published
        |<- Unsubscription --|                        |

A move that fails ends at one of the two brokers, and never in between:

    the new broker is lost, or      until TURNING: the client stays, with nothing changed
    it takes too long: `abort`      TURNING: RETURNING, with one edition more at the old broker
    the old broker is lost:         until TURNING: the client stays, and asks for everything again;
    `lose_source`                   what is on its way there waits for that.  From then on it is at
                                    the new one, and publishes when that one says that it may

Departs  1. The thesis waits for a time at the end of which the old broker's queues should be
            empty.  Ours is a barrier: a sweep follows the publications (E6).
         2. Until it arrives, what comes from the new broker waits in the client: else it could
            overtake what is still on its way to the old one.
         3. A client that publishes and subscribes moves as a whole, subscriptions first.
         4. It unsubscribes when all is done: until then it can go back and has missed nothing.
Tested   tests/migration/; random runs with moves: tests/simulation/test_random_moves.py; live,
         with failures: tests/client/, tests/live/test_moving.py.

M1  Before the sweep the old broker counts.  From then on both have everything: what comes from
    either is handed on.
M2  The other one may have copies of that: the client drops what is not new by its sequence
    number, and its own publications, also after the move.
M3  A broker that has failed since the move began discards the sweep, and the client stays: what the
    sweep has to follow may be on its way again, behind it (runtime/node_recovery.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from msgspec.structs import replace

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
    RETURNING = "returning to the old broker"
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
    """One move.  Pass it the notices of both brokers, and carry out the orders it returns."""

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
        """As the broker that was asked last has them."""
        self.unconfirmed: set[str] = set()
        """What that broker has not confirmed."""
        self._client = client
        self._source = source
        self._unconfirmed_at_source = set(unconfirmed)
        self._waiting: list[Hand] = []

    @property
    def is_over(self) -> bool:
        return self.phase in (Phase.MOVED, Phase.STAYED)

    @property
    def new_broker_counts(self) -> bool:
        """Whether publications from the new broker are handed on (M1)."""
        return self.phase not in (Phase.SUBSCRIBING, Phase.SWEEPING, Phase.STAYED)

    @property
    def holds_publications(self) -> bool:
        """Whether publications of the client have to wait."""
        return self.phase in (Phase.PAUSING, Phase.TURNING, Phase.RETURNING)

    @property
    def waiting(self) -> int:
        """Publications of the new broker that wait for the sweep."""
        return len(self._waiting)

    def start(self) -> list[Order]:
        if not self.subscriptions:
            return self._pause()
        self.unconfirmed = {new.id for new in self.subscriptions.values()}
        return [ToOld(Depart(move=self.number)), *map(ToNew, self.subscriptions.values())]

    # -- failures ------------------------------------------------------------------------------

    def on_time_out(self, *, old_is_connected: bool, new_is_connected: bool) -> list[Order]:
        """The time of the move is over.  A move that is RETURNING has as much time again."""
        is_turning = self.phase in (Phase.TURNING, Phase.RETURNING)
        if is_turning and new_is_connected and not old_is_connected:
            return self.lose_source()
        if self.phase is Phase.RETURNING and new_is_connected:
            return []
        return self.abort()

    def abort(self) -> list[Order]:
        """The new broker is lost, or it takes too long: go back."""
        assert not self.is_over, self.phase
        if self.phase is not Phase.TURNING:
            return self._stay()
        self.phase = Phase.RETURNING
        return list(map(ToOld, self._next_editions()))

    def lose_source(self) -> list[Order]:
        """The old broker has lost the session of the client."""
        assert not self.is_over, self.phase
        match self.phase:
            case Phase.TURNING:
                return self._arrive()
            case Phase.RETURNING:
                return [*map(ToNew, self._next_editions()), *self._arrive()]
            case _:
                return self._stay()

    # -- notices and publications of the brokers -----------------------------------------------

    def on_old(self, notice: Notice) -> list[Order]:
        match notice:
            case Swept(move=self.number) if self.phase is Phase.SWEEPING:
                return self._handed() + self._pause()
            case Paused(move=self.number) if self.phase is Phase.PAUSING:
                return self._turn()
            case AdvertisementInEffect() if self.phase is Phase.RETURNING:
                return [] if self._is_awaited(notice) else self._stay()
            case AdvertisementInEffect(id=id) if id in self._unconfirmed_at_source:
                self._unconfirmed_at_source.remove(id)
                if self.phase is Phase.PAUSING and not self._unconfirmed_at_source:
                    return self._pause()
        return []

    def on_new(self, notice: Notice) -> list[Order]:
        match notice:
            case SubscriptionInEffect(id=id) if self.phase is Phase.SUBSCRIBING:
                self.unconfirmed.discard(id)
                return [] if self.unconfirmed else self._sweep()
            case AdvertisementInEffect() if self.phase is Phase.TURNING:
                return [] if self._is_awaited(notice) else self._arrive()
            case Refusal() if not self.is_over:
                return self.abort()
        return []

    def publication_from_old(self, publication: Publication, hops: int) -> list[Order]:
        return [] if self.phase is Phase.MOVED else [Hand(publication, hops)]

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

    def _handed(self) -> list[Order]:
        """Hand on the publications that waited (M1)."""
        orders: list[Order] = [*self._waiting]
        self._waiting.clear()
        return orders

    def _pause(self) -> list[Order]:
        if not self.advertisements:
            return self._arrive()
        self.phase = Phase.PAUSING
        if self._unconfirmed_at_source:  # What is not in effect yet cannot be turned.
            return []
        return [ToOld(Pause(move=self.number))]

    def _turn(self) -> list[Order]:
        self.phase = Phase.TURNING
        return list(map(ToNew, self._asked_for()))

    def _asked_for(self) -> list[Advertisement]:
        self.unconfirmed = set(self.advertisements)
        return list(self.advertisements.values())

    def _next_editions(self) -> list[Advertisement]:
        for id, advertisement in self.advertisements.items():
            self.advertisements[id] = replace(advertisement, edition=advertisement.edition + 1)
        return self._asked_for()

    def _is_awaited(self, notice: AdvertisementInEffect) -> bool:
        """Record that an advertisement is in effect; return whether another one is not yet."""
        asked = self.advertisements.get(notice.id)
        if asked is not None and asked.edition == notice.edition:
            self.unconfirmed.discard(notice.id)
        return bool(self.unconfirmed)

    def _arrive(self) -> list[Order]:
        self.phase = Phase.MOVED
        return [ToOld(Unsubscription(id=id)) for id in self.subscriptions]

    def _stay(self) -> list[Order]:
        self.phase = Phase.STAYED
        self._waiting.clear()
        return [ToNew(Unsubscription(id=new.id)) for new in self.subscriptions.values()]
