"""The tables of a tree router: who advertised, who subscribed, what each link was told.

AdvertisementTable   the thesis's SRT: advertisement -> last hop
InterestTable        the thesis's PRT, arranged for the one question a publication asks:
                     which hops want it?
Link                 what was sent to one neighbour, what is held back behind it, and what
                     the neighbour has not confirmed yet
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from godwit.broker.stimuli import Hop, Neighbour
from godwit.content.covering import CoveringSet, FlatSet
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    Publication,
    Subscription,
    SubscriptionId,
    is_control_filter,
)
from godwit.matching.index import MatchingIndex


@dataclass(slots=True, eq=False)
class AdvertisementEntry:
    advertisement: Advertisement
    last_hop: Hop
    awaited: dict[Neighbour, int] = field(default_factory=dict)
    """Neighbours that were told of it, and the edition that they have not confirmed yet."""

    leaving: set[Hop] = field(default_factory=set)
    """Those of them where its publisher was before, and publications may still come from."""

    has_turned: bool = False
    """Has its publisher been elsewhere, as far as this broker knows?"""

    is_in_doubt: bool = False
    """Did the neighbour that told us of it fail, and not repeat it yet?"""


@dataclass(slots=True, eq=False)
class SubscriptionEntry:
    """A subscription and the hop that wants its publications.  Compared by identity."""

    subscription: Subscription
    last_hop: Hop
    is_control: bool
    unconfirmed: set[Neighbour] = field(default_factory=set)
    """Neighbours that were told, but may not be passing publications on yet."""

    in_effect: bool = False
    """Whether `last_hop` has been told that it is in effect; it is told once."""

    is_in_doubt: bool = False
    """Did the neighbour that told us of it fail, and not repeat it yet?"""


class AdvertisementTable:
    def __init__(self) -> None:
        self._entries: dict[AdvertisementId, AdvertisementEntry] = {}
        self._filters_by_hop: dict[Hop, dict[AdvertisementId, Filter]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[AdvertisementEntry]:
        return iter(self._entries.values())

    def get(self, id: AdvertisementId) -> AdvertisementEntry | None:
        return self._entries.get(id)

    def add(self, entry: AdvertisementEntry) -> None:
        advertisement = entry.advertisement
        self._entries[advertisement.id] = entry
        by_hop = self._filters_by_hop.setdefault(entry.last_hop, {})
        by_hop[advertisement.id] = advertisement.filter

    def remove(self, entry: AdvertisementEntry) -> None:
        del self._entries[entry.advertisement.id]
        for hop in (entry.last_hop, *entry.leaving):
            self._leave(entry.advertisement.id, hop)

    def turn(self, entry: AdvertisementEntry, last_hop: Hop) -> None:
        """The publisher is elsewhere; until `settle` its former place counts too.

        Unless that was a client of ours: from there nothing comes unnoticed.
        """
        if isinstance(entry.last_hop, Neighbour):
            entry.leaving.add(entry.last_hop)
        else:
            self._leave(entry.advertisement.id, entry.last_hop)
        entry.leaving.discard(last_hop)
        entry.last_hop = last_hop
        entry.has_turned = True
        self.add(entry)

    def settle(self, entry: AdvertisementEntry, neighbour: Neighbour) -> bool:
        """Nothing comes from there any more; was it a former place of the publisher?"""
        if neighbour not in entry.leaving:
            return False
        entry.leaving.remove(neighbour)
        self._leave(entry.advertisement.id, neighbour)
        return True

    def _leave(self, id: AdvertisementId, hop: Hop) -> None:
        by_hop = self._filters_by_hop[hop]
        del by_hop[id]
        if not by_hop:
            del self._filters_by_hop[hop]

    def check(self) -> None:
        for entry in self:
            assert entry.leaving <= set(entry.awaited), "T5: nobody says when it has been left"
            assert entry.last_hop not in entry.leaving, "T5: the publisher is where it is not"
        counted = {(id, hop) for hop, ids in self._filters_by_hop.items() for id in ids}
        counting = {(e.advertisement.id, hop) for e in self for hop in (e.last_hop, *e.leaving)}
        assert counted == counting, "T5: it counts where its publisher is and was"

    def is_announced(self, interest: Filter, hop: Hop) -> bool:
        """Does some advertisement that came from `hop` announce what `interest` wants?"""
        announced = self._filters_by_hop.get(hop, {})
        return any(filter.announces(interest) for filter in announced.values())


class HopGroup:
    """The hops that asked for one filter.  Compared by identity: it is a key of the index."""

    __slots__ = ("hops",)

    def __init__(self) -> None:
        self.hops: dict[Hop, None] = {}


class InterestTable:
    """Subscriptions by id, and an index of what decides where publications go.

    Of the filters of one hop only those in front of its covering set count: the others cannot
    add a destination.  Equal filters of different hops are one filter of the index, with several
    hops.  Control and normal interests are kept apart, see `is_control_filter`.
    """

    def __init__(self) -> None:
        self._entries: dict[SubscriptionId, SubscriptionEntry] = {}
        self._by_hop: dict[tuple[Hop, bool], CoveringSet[SubscriptionId]] = {}
        self._groups: dict[Filter, HopGroup] = {}
        self._index: dict[bool, MatchingIndex[HopGroup]] = {
            False: MatchingIndex(),
            True: MatchingIndex(),
        }

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[SubscriptionEntry]:
        return iter(self._entries.values())

    def __getitem__(self, id: SubscriptionId) -> SubscriptionEntry:
        return self._entries[id]

    def get(self, id: SubscriptionId) -> SubscriptionEntry | None:
        return self._entries.get(id)

    def add(self, subscription: Subscription, last_hop: Hop) -> SubscriptionEntry:
        entry = SubscriptionEntry(subscription, last_hop, is_control_filter(subscription.filter))
        self._entries[subscription.id] = entry
        of_hop = self._by_hop.setdefault((last_hop, entry.is_control), CoveringSet())
        if of_hop.add(subscription.id, subscription.filter) is None:
            self._index_front(entry)
            for stepped in of_hop.step_back(subscription.id):
                self._unindex_front(self._entries[stepped])
        return entry

    def remove(self, entry: SubscriptionEntry) -> None:
        id = entry.subscription.id
        del self._entries[id]
        of_hop = self._by_hop[entry.last_hop, entry.is_control]
        if of_hop.front_of(id) is None:
            self._unindex_front(entry)
        for stepped in of_hop.remove(id):
            self._index_front(self._entries[stepped])
        if not len(of_hop):
            del self._by_hop[entry.last_hop, entry.is_control]

    def _index_front(self, entry: SubscriptionEntry) -> None:
        filter = entry.subscription.filter
        group = self._groups.get(filter)
        if group is None:
            group = self._groups[filter] = HopGroup()
            self._index[entry.is_control].add(group, filter)
        group.hops[entry.last_hop] = None

    def _unindex_front(self, entry: SubscriptionEntry) -> None:
        filter = entry.subscription.filter
        group = self._groups[filter]
        del group.hops[entry.last_hop]
        if not group.hops:
            del self._groups[filter]
            self._index[entry.is_control].remove(group)

    def hops_wanting(self, publication: Publication) -> dict[Hop, None]:
        """The hops with at least one matching subscription, in a replayable order."""
        wanting: dict[Hop, None] = {}
        for groups in self._index[publication.is_control].key_lists(publication.content):
            for group in groups:
                wanting |= group.hops
        return wanting

    def check(self) -> None:
        fronts = 0
        for (hop, is_control), of_hop in self._by_hop.items():
            of_hop.check()
            for id in of_hop:
                entry = self._entries[id]
                assert (entry.last_hop, entry.is_control) == (hop, is_control), f"{id} is misfiled"
                if of_hop.front_of(id) is None:
                    fronts += 1
                    group = self._groups[entry.subscription.filter]
                    assert hop in group.hops, f"T3: {id} is in front and not indexed"
        indexed = sum(len(group.hops) for group in self._groups.values())
        assert fronts == indexed, "T3: the index holds the front of every hop, and nothing else"
        assert len(self._groups) == sum(len(index) for index in self._index.values()), "T3"


class Link:
    """What one neighbour was told about the subscriptions of this broker's other hops."""

    def __init__(self, neighbour: Neighbour, *, covering: bool = True) -> None:
        """Without `covering` nothing is held back."""
        self.neighbour = neighbour
        told = CoveringSet[SubscriptionId] if covering else FlatSet[SubscriptionId]
        self._planes: dict[bool, CoveringSet[SubscriptionId]] = {False: told(), True: told()}
        #: Sent and not confirmed -> the subscriptions that wait for that: itself, and those that
        #: were held back behind it.
        self.waiting: dict[SubscriptionId, dict[SubscriptionId, None]] = {}

    def __contains__(self, entry: SubscriptionEntry) -> bool:
        return entry.subscription.id in self._planes[entry.is_control]

    def __iter__(self) -> Iterator[SubscriptionId]:
        for plane in self._planes.values():
            yield from plane

    def was_sent(self, entry: SubscriptionEntry) -> bool:
        plane = self._planes[entry.is_control]
        return entry in self and plane.front_of(entry.subscription.id) is None

    def add(self, entry: SubscriptionEntry) -> bool:
        """Note a subscription that the neighbour should know of; True if it must be sent."""
        subscription = entry.subscription
        front = self._planes[entry.is_control].add(subscription.id, subscription.filter)
        self._wait(entry, front)
        return front is None

    def remove(self, entry: SubscriptionEntry) -> list[SubscriptionId]:
        """Forget a subscription; the answer is who must be sent now that it is gone."""
        plane = self._planes[entry.is_control]
        id = entry.subscription.id
        front = plane.front_of(id)
        if front is None:
            self.waiting.pop(id, None)
        else:
            self.waiting.get(front, {}).pop(id, None)
        entry.unconfirmed.discard(self.neighbour)
        return plane.remove(id)

    def rewait(self, entry: SubscriptionEntry) -> None:
        """The front that `entry` waited behind has gone: wait for its new one, or for itself."""
        front = self._planes[entry.is_control].front_of(entry.subscription.id)
        entry.unconfirmed.discard(self.neighbour)
        self._wait(entry, front)

    def _wait(self, entry: SubscriptionEntry, front: SubscriptionId | None) -> None:
        id = entry.subscription.id
        if front is None:
            self.waiting[id] = {id: None}
            entry.unconfirmed.add(self.neighbour)
        elif front in self.waiting:
            self.waiting[front][id] = None
            entry.unconfirmed.add(self.neighbour)

    def check(self) -> None:
        for plane in self._planes.values():
            plane.check()
        for sent in self.waiting:
            assert any(sent in p and p.front_of(sent) is None for p in self._planes.values()), (
                f"T4: {sent} awaits a confirmation of {self.neighbour.name} but was not sent to it"
            )
