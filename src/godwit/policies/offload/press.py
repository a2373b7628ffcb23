"""PRESS: which publications each subscriber draws, and which of them the acceptor has anyway.

Paper    Cheung, thesis 4.2.1, equations (4.6) to (4.8), table 4.1.
Words    Np -> samples_max; N -> samples; T is the caller's; nBS -> a count of bits;
         sPR -> Offloading.rate times that; sBV -> GroupProfile.received; lcssBV -> Sampled.lcss;
         ir -> input_per_s; CSS -> acceptor_css.
Claim    A publication that is sampled sets the same bit in the vector of every group that received
         it and, if the acceptor's subscriptions match it, in lcss.  Rates follow by counting
         (remaining_traffic.py, report_cards.py).

Nothing is derived from the filters of local clients: bits are what the broker delivered while it
sampled.  The acceptor's filters are matched against the same publications in an index of their own,
which stands for the thesis's local subscriptions with ttl 0.

Departs  1. The publications that the acceptor lacks are sBV AND NOT lcssBV (E1).
         2. The unit is a group: clients with equal filters.  A client may hold several filters; it
            moves as a whole, and receives a publication once.  With one filter each this is the
            thesis's distinct subscription with its subscribers.
         3. Clients that must not move (`staying`) are in their group, because they keep drawing its
            traffic, but cannot be chosen.
         4. Control publications are not sampled: clients do not receive them, and the session of
            the sampling broker itself causes some.
         5. Bytes are the sizes of the samples that were received, not rate times mean size: large
            publications often go to other subscribers than small ones.
Tested   tests/policies/offload/test_press.py: test vector 1 (table 4.1).

P1  A vector has at most `samples_max` bits, and none beyond the number of samples.
P2  A client is in one group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass

from godwit.broker.sessions import ClientSubscription
from godwit.broker.stimuli import Hop, LocalClient
from godwit.content.filters import Filter
from godwit.content.messages import Publication, size_bytes
from godwit.errors import UsageError
from godwit.matching.index import MatchingIndex
from godwit.profile.bit_vector import BitVector


@dataclass(frozen=True, slots=True)
class SubscriberGroup:
    """Clients of one broker with equal filters."""

    filters: tuple[Filter, ...]
    """What each of them holds, in a fixed order; a filter held twice is here twice."""

    clients: tuple[str, ...]
    """Those that may be moved, in the order of their subscriptions."""

    staying: tuple[str, ...] = ()
    """Those that must not be moved."""

    @property
    def subscriptions_per_client(self) -> int:
        return len(self.filters)


@dataclass(frozen=True, slots=True)
class GroupProfile:
    """What each client of a group received while the broker sampled."""

    group: SubscriberGroup
    received: BitVector
    size_bytes: int = 0
    """Of all samples received together."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """The result of a sampling run."""

    samples: int
    seconds: float
    groups: tuple[GroupProfile, ...]
    lcss: BitVector
    """The samples that match a subscription of the acceptor."""

    @property
    def input_per_s(self) -> float:
        """Publications per second during the sampling."""
        return self.samples / self.seconds if self.seconds > 0 else 0.0


class Press:
    """One sampling run at the offloader."""

    def __init__(
        self,
        subscriptions: Iterable[ClientSubscription],
        acceptor_css: Sequence[Filter],
        *,
        samples_max: int,
        now_s: float,
        staying: Collection[str] = (),
    ) -> None:
        if samples_max < 1:
            raise UsageError(f"samples_max is {samples_max}; PRESS needs at least 1 sample")
        self._groups = grouped(subscriptions, staying)
        self._group_of = {
            client: number
            for number, group in enumerate(self._groups)
            for client in (*group.clients, *group.staying)
        }
        self._received = [0] * len(self._groups)
        self._bytes = [0] * len(self._groups)
        self._css: MatchingIndex[int] = MatchingIndex()
        for number, filter in enumerate(acceptor_css):
            self._css.add(number, filter)
        self._lcss = 0
        self._samples = 0
        self._samples_max = samples_max
        self._started_s = now_s
        self._full_s: float | None = None

    def on_publication(
        self, publication: Publication, destinations: Sequence[Hop], now_s: float
    ) -> bool:
        """The broker delivered a publication; True when enough were sampled."""
        if self._full_s is not None or publication.is_control:
            return self._full_s is not None
        bit = 1 << self._samples
        group_of = self._group_of
        reached = {
            group_of[hop.name]
            for hop in destinations
            if type(hop) is LocalClient and hop.name in group_of
        }
        publication_bytes = size_bytes(publication)  # A live broker does not set it.
        for number in reached:
            self._received[number] |= bit
            self._bytes[number] += publication_bytes
        if self._css.match(publication.content):
            self._lcss |= bit
        self._samples += 1
        if self._samples == self._samples_max:
            self._full_s = now_s
        return self._full_s is not None

    def on_departed(self, client: str) -> None:
        """The client has left the broker: it can no longer be chosen."""
        number = self._group_of.pop(client, None)
        if number is None:
            return
        group = self._groups[number]
        self._groups[number] = SubscriberGroup(
            group.filters,
            tuple(name for name in group.clients if name != client),
            tuple(name for name in group.staying if name != client),
        )

    def result(self, now_s: float) -> Sampled:
        end_s = now_s if self._full_s is None else self._full_s
        length = self._samples_max
        groups = tuple(
            GroupProfile(group, BitVector(0, length, received), size_bytes)
            for group, received, size_bytes in zip(
                self._groups, self._received, self._bytes, strict=True
            )
            if group.clients or group.staying
        )
        return Sampled(
            samples=self._samples,
            seconds=end_s - self._started_s,
            groups=groups,
            lcss=BitVector(0, length, self._lcss),
        )


def grouped(
    subscriptions: Iterable[ClientSubscription], staying: Collection[str] = ()
) -> list[SubscriberGroup]:
    """Clients with equal filters together, in the order of their first subscriptions (P2)."""
    held: dict[str, list[Filter]] = {}
    for client, _, filter in subscriptions:
        held.setdefault(client, []).append(filter)
    members: dict[Hashable, list[str]] = {}
    for client, filters in held.items():
        key = filters[0] if len(filters) == 1 else frozenset(Counter(filters).items())
        members.setdefault(key, []).append(client)
    stays = frozenset(staying)
    return [
        SubscriberGroup(
            tuple(sorted(held[clients[0]], key=str))
            if len(held[clients[0]]) > 1
            else (held[clients[0]][0],),
            tuple(client for client in clients if client not in stays),
            tuple(client for client in clients if client in stays),
        )
        for clients in members.values()
    ]
