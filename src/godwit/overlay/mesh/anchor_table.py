"""Subscriptions by anchor (the paper's MST): which anchors want a publication, as a bit mask.

Anchors have positions that last as long as the broker knows them, so the masks of the table stay
true when links come and go.

Words    MST -> AnchorTable.
Tested   tests/overlay/mesh/test_anchor_table.py

G1  The mask of a filter has the bits of the anchors among its hops, and of no others.
G2  No two brokers have one position.
"""

from __future__ import annotations

from collections.abc import Container
from typing import ClassVar, cast

from godwit.broker.stimuli import Hop, Neighbour
from godwit.content.messages import Publication
from godwit.matching.index import MatchingIndex
from godwit.overlay.mesh.working_overlay_map import bits
from godwit.overlay.tree.routing_tables import HopGroup, InterestTable, SubscriptionEntry


class AnchorPositions:
    """The bit of each broker that may be an anchor."""

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}
        self._names: list[str] = []
        """By position; empty where no broker is."""
        self._free: list[int] = []

    def bit(self, broker: str) -> int:
        """Its bit; a broker that has none gets one."""
        found = self._bits.get(broker)
        if found is None:
            if self._free:
                position = self._free.pop()
                self._names[position] = broker
            else:
                position = len(self._names)
                self._names.append(broker)
            found = self._bits[broker] = 1 << position
        return found

    def names(self, mask: int) -> list[str]:
        return [self._names[position] for position in bits(mask)]

    def keep(self, brokers: Container[str]) -> None:
        """Only these are of interest from now on."""
        for broker in [each for each in self._bits if each not in brokers]:
            position = self._bits.pop(broker).bit_length() - 1
            self._names[position] = ""
            self._free.append(position)


class AnchorGroup(HopGroup):
    """The hops that subscribed to one filter."""

    __slots__ = ("anchors", "others")

    def __init__(self) -> None:
        super().__init__()
        self.anchors = 0
        self.others: dict[Hop, None] | None = None
        """Clients and modules; None if there are none."""


class AnchorTable(InterestTable):
    __slots__ = ("_anchor_control_index", "_anchor_index", "_positions")

    _group_type: ClassVar[type[HopGroup]] = AnchorGroup

    def __init__(self, positions: AnchorPositions) -> None:
        super().__init__()
        self._positions = positions
        self._anchor_index = cast("MatchingIndex[AnchorGroup]", self._index)
        self._anchor_control_index = cast("MatchingIndex[AnchorGroup]", self._control_index)

    def anchors(self) -> set[str]:
        """All that subscriptions are known by."""
        return {hop.name for hop, _ in self._by_hop if isinstance(hop, Neighbour)}

    def wanting(self, publication: Publication) -> tuple[int, dict[Hop, None]]:
        """The anchors with a matching subscription, and the clients and modules with one."""
        anchors, others = 0, dict[Hop, None]()
        index = self._anchor_control_index if publication.is_control else self._anchor_index
        for groups in index.key_lists(publication.content):
            for group in groups:
                anchors |= group.anchors
                if group.others is not None:
                    others |= group.others
        return anchors, others

    def _index_front(self, entry: SubscriptionEntry) -> None:
        super()._index_front(entry)
        self._regroup(entry)

    def _unindex_front(self, entry: SubscriptionEntry) -> None:
        super()._unindex_front(entry)
        self._regroup(entry)

    def _regroup(self, entry: SubscriptionEntry) -> None:
        """Compute the mask of a filter anew: its hops have changed."""
        group = self._groups.get(entry.subscription.filter)
        if not isinstance(group, AnchorGroup):
            return  # It has no hop any more.
        group.anchors, group.others = self._split(group)

    def _split(self, group: AnchorGroup) -> tuple[int, dict[Hop, None] | None]:
        anchors, others = 0, dict[Hop, None]()
        for hop in group.hops:
            if isinstance(hop, Neighbour):
                anchors |= self._positions.bit(hop.name)
            else:
                others[hop] = None
        return anchors, others or None

    def check(self) -> None:
        """Assert what an interest table asserts, and G1."""
        super().check()
        for group in self._groups.values():
            assert isinstance(group, AnchorGroup)
            assert (group.anchors, group.others) == self._split(group), "G1: a wrong mask"
