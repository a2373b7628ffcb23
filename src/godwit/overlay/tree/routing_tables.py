"""The tables of a tree router: advertisements, subscriptions, and what was sent to each link.

AdvertisementTable   the thesis's SRT: advertisement -> last hop
InterestTable        the thesis's PRT, indexed to find the hops that want a publication
Link                 what was sent to one neighbour, what is held back behind it, and what
                     the neighbour has not confirmed yet
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from godwit.broker.stimuli import Hop, LinkKind, Neighbour
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
from godwit.overlay.tree.announcements import Announcements


@dataclass(slots=True, eq=False)
class AdvertisementEntry:
    advertisement: Advertisement
    last_hop: Hop
    awaited: dict[Neighbour, int] = field(default_factory=dict)
    """Neighbours that have not confirmed it yet, with the edition that was sent to them."""

    leaving: set[Hop] = field(default_factory=set)
    """Former hops of its publisher, from which publications may still come."""

    has_turned: bool = False
    """Whether its publisher has been at another hop of this broker."""

    is_in_doubt: bool = False
    """Whether the neighbour that sent it has restarted, and not repeated it yet."""


@dataclass(slots=True, eq=False)
class SubscriptionEntry:
    """A subscription and the hop that wants its publications.  Compared by identity."""

    subscription: Subscription
    last_hop: Hop
    is_control: bool
    toward: Hop
    """Where its publications go: `last_hop`, or a broker that is farther in that direction
    (overlay/mesh/)."""

    unconfirmed: set[Neighbour] = field(default_factory=set)
    """Neighbours that have it, but may not forward publications yet."""

    in_effect: bool = False
    """Whether it was confirmed to `last_hop`; that happens once."""

    is_in_doubt: bool = False
    """Whether the neighbour that sent it has restarted, and not repeated it yet, or has withdrawn
    it and not sent yet what it may cover (resync.py)."""


class AdvertisementTable:
    def __init__(self) -> None:
        self._entries: dict[AdvertisementId, AdvertisementEntry] = {}
        self._by_hop: dict[Hop, Announcements] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[AdvertisementEntry]:
        return iter(self._entries.values())

    def get(self, id: AdvertisementId) -> AdvertisementEntry | None:
        return self._entries.get(id)

    def add(self, entry: AdvertisementEntry) -> None:
        advertisement = entry.advertisement
        self._entries[advertisement.id] = entry
        announcements = self._by_hop.setdefault(entry.last_hop, Announcements())
        announcements.add(advertisement.id, advertisement.filter)

    def remove(self, entry: AdvertisementEntry) -> None:
        del self._entries[entry.advertisement.id]
        for hop in (entry.last_hop, *entry.leaving):
            self._leave(entry.advertisement.id, hop)

    def turn(self, entry: AdvertisementEntry, last_hop: Hop) -> None:
        """Change the hop of the publisher; the former hop counts until `settle`.

        A former hop that is a local client does not: nothing comes from there any more.
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
        """Nothing comes from `neighbour` any more; return whether it was a former hop."""
        if neighbour not in entry.leaving:
            return False
        entry.leaving.remove(neighbour)
        self._leave(entry.advertisement.id, neighbour)
        return True

    def _leave(self, id: AdvertisementId, hop: Hop) -> None:
        announcements = self._by_hop[hop]
        announcements.remove(id)
        if not len(announcements):
            del self._by_hop[hop]

    def check(self) -> None:
        for entry in self:
            assert entry.leaving <= set(entry.awaited), "T5: a former hop that is not awaited"
            assert entry.last_hop not in entry.leaving, "T5: a publisher at its former hop"
        for announcements in self._by_hop.values():
            announcements.check()
        counted = {(id, hop) for hop, ids in self._by_hop.items() for id in ids}
        counting = {(e.advertisement.id, hop) for e in self for hop in (e.last_hop, *e.leaving)}
        assert counted == counting, "T5: it counts at its hop and at former hops"

    def is_announced(self, interest: Filter, hop: Hop) -> bool:
        """Whether some advertisement that came from `hop` announces what `interest` matches."""
        announcements = self._by_hop.get(hop)
        return announcements is not None and announcements.announce(interest)


#: Control interests and normal ones are kept apart, and those of different anchors.
Plane: TypeAlias = tuple[bool, str]


class HopGroup:
    """The hops that subscribed to one filter.  Compared by identity: it is a key of the index."""

    __slots__ = ("hops",)

    def __init__(self) -> None:
        self.hops: dict[Hop, None] = {}


class InterestTable:
    """Subscriptions by id, and an index that finds the destinations of publications.

    The index holds only the front of the covering set of each hop: other filters cannot add a
    destination.  Equal filters of different hops are one filter of the index, with several hops.
    Control and normal interests are kept apart, see `is_control_filter`.
    """

    __slots__ = ("_by_hop", "_control_index", "_entries", "_groups", "_index")

    _group_type: ClassVar[type[HopGroup]] = HopGroup

    def __init__(self) -> None:
        self._entries: dict[SubscriptionId, SubscriptionEntry] = {}
        self._by_hop: dict[tuple[Hop, bool], CoveringSet[SubscriptionId]] = {}
        self._groups: dict[Filter, HopGroup] = {}
        self._index: MatchingIndex[HopGroup] = MatchingIndex()
        self._control_index: MatchingIndex[HopGroup] = MatchingIndex()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[SubscriptionEntry]:
        return iter(self._entries.values())

    def __getitem__(self, id: SubscriptionId) -> SubscriptionEntry:
        return self._entries[id]

    def get(self, id: SubscriptionId) -> SubscriptionEntry | None:
        return self._entries.get(id)

    def add(
        self, subscription: Subscription, last_hop: Hop, toward: Hop | None = None
    ) -> SubscriptionEntry:
        is_control = is_control_filter(subscription.filter)
        entry = SubscriptionEntry(subscription, last_hop, is_control, toward or last_hop)
        self._file(entry)
        return entry

    def turn(self, entry: SubscriptionEntry, toward: Hop) -> None:
        """Its publications go there from now on."""
        self.remove(entry)
        entry.toward = toward
        self._file(entry)

    def _file(self, entry: SubscriptionEntry) -> None:
        subscription = entry.subscription
        self._entries[subscription.id] = entry
        of_hop = self._by_hop.setdefault((entry.toward, entry.is_control), CoveringSet())
        if of_hop.add(subscription.id, subscription.filter) is None:
            self._index_front(entry)
            for stepped in of_hop.step_back(subscription.id):
                self._unindex_front(self._entries[stepped])

    def remove(self, entry: SubscriptionEntry) -> None:
        id = entry.subscription.id
        del self._entries[id]
        of_hop = self._by_hop[entry.toward, entry.is_control]
        if of_hop.front_of(id) is None:
            self._unindex_front(entry)
        for stepped in of_hop.remove(id):
            self._index_front(self._entries[stepped])
        if not len(of_hop):
            del self._by_hop[entry.toward, entry.is_control]

    def _index_front(self, entry: SubscriptionEntry) -> None:
        filter = entry.subscription.filter
        group = self._groups.get(filter)
        if group is None:
            group = self._groups[filter] = self._group_type()
            self._index_of(entry).add(group, filter)
        group.hops[entry.toward] = None

    def _unindex_front(self, entry: SubscriptionEntry) -> None:
        filter = entry.subscription.filter
        group = self._groups[filter]
        del group.hops[entry.toward]
        if not group.hops:
            del self._groups[filter]
            self._index_of(entry).remove(group)

    def _index_of(self, entry: SubscriptionEntry) -> MatchingIndex[HopGroup]:
        return self._control_index if entry.is_control else self._index

    def hops_wanting(self, publication: Publication) -> dict[Hop, None]:
        """The hops with at least one matching subscription, in a replayable order."""
        index = self._control_index if publication.is_control else self._index
        found = index.key_lists(publication.content)
        if len(found) == 1 and len(found[0]) == 1:  # As at most brokers that only pass it on.
            return found[0][0].hops.copy()
        wanting: dict[Hop, None] = {}
        for groups in found:
            for group in groups:
                wanting |= group.hops
        return wanting

    def check(self) -> None:
        fronts = 0
        for (hop, is_control), of_hop in self._by_hop.items():
            of_hop.check()
            for id in of_hop:
                entry = self._entries[id]
                assert (entry.toward, entry.is_control) == (hop, is_control), f"{id} is misfiled"
                if of_hop.front_of(id) is None:
                    fronts += 1
                    group = self._groups[entry.subscription.filter]
                    assert hop in group.hops, f"T3: {id} is in front and not indexed"
        indexed = sum(len(group.hops) for group in self._groups.values())
        assert fronts == indexed, "T3: the index holds the front of every hop, and nothing else"
        assert len(self._groups) == len(self._index) + len(self._control_index), "T3"


class Link:
    """What was sent to one neighbour of the subscriptions of the other hops."""

    def __init__(
        self,
        neighbour: Neighbour,
        kind: LinkKind,
        *,
        covering: bool = True,
        anchor_of: Callable[[SubscriptionEntry, Neighbour], str] | None = None,
    ) -> None:
        """Without `covering` nothing is held back.

        Of subscriptions with different anchors none holds back another (overlay/mesh/).
        """
        self.neighbour = neighbour
        self.kind = kind
        self._anchor_of = anchor_of
        self._told = CoveringSet[SubscriptionId] if covering else FlatSet[SubscriptionId]
        self._planes: dict[Plane, CoveringSet[SubscriptionId]] = {}
        self._plane_by_id: dict[SubscriptionId, Plane] = {}
        #: Sent and not confirmed -> the subscriptions that wait for the confirmation: itself, and
        #: those that are held back behind it.
        self.waiting: dict[SubscriptionId, dict[SubscriptionId, None]] = {}

    def __contains__(self, entry: SubscriptionEntry) -> bool:
        return entry.subscription.id in self._plane_by_id

    def __iter__(self) -> Iterator[SubscriptionId]:
        for plane in self._planes.values():
            yield from plane

    def was_sent(self, entry: SubscriptionEntry) -> bool:
        return entry in self and self._front_of(entry) is None

    def anchor(self, entry: SubscriptionEntry) -> str:
        """The anchor that it was sent with, or is held back for; empty in a tree."""
        return self._plane_by_id[entry.subscription.id][1]

    def _front_of(self, entry: SubscriptionEntry) -> SubscriptionId | None:
        id = entry.subscription.id
        return self._planes[self._plane_by_id[id]].front_of(id)

    def add(self, entry: SubscriptionEntry) -> bool:
        """Add a subscription; return whether it must be sent."""
        subscription = entry.subscription
        anchor = "" if self._anchor_of is None else self._anchor_of(entry, self.neighbour)
        key = self._plane_by_id[subscription.id] = (entry.is_control, anchor)
        plane = self._planes.get(key)
        if plane is None:
            plane = self._planes[key] = self._told()
        front = plane.add(subscription.id, subscription.filter)
        self._wait(entry, front)
        return front is None

    def remove(self, entry: SubscriptionEntry) -> list[SubscriptionId]:
        """Remove a subscription; return those that must be sent now."""
        id = entry.subscription.id
        front = self._front_of(entry)
        if front is None:
            self.waiting.pop(id, None)
        else:
            self.waiting.get(front, {}).pop(id, None)
        entry.unconfirmed.discard(self.neighbour)
        key = self._plane_by_id.pop(id)
        plane = self._planes[key]
        stepped = plane.remove(id)
        if not len(plane):
            del self._planes[key]
        return stepped

    def rewait(self, entry: SubscriptionEntry) -> None:
        """The front that `entry` waited behind is gone: wait for its new one, or for itself."""
        entry.unconfirmed.discard(self.neighbour)
        self._wait(entry, self._front_of(entry))

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
