"""The Master Overlay Map (MOM): the primary network within delta links of one broker.

Paper    Opportunistic multipath forwarding in content-based publish/subscribe overlays (Publiy),
         section 3.
Words    MOM -> MasterOverlayMap; Delta -> delta; Delta-neighbourhood -> the brokers of the map.
Claim    A broker knows the brokers within delta links and the paths to them, and no others.
Departs  The paper does not say how the map is learnt.  Here each broker tells each neighbour what
         it knows of its other directions, one link less far: what a neighbour knows, it has from
         its own neighbours.  A map changes when brokers come and go, within delta links of them.
Tested   tests/overlay/mesh/test_maps.py

O1  Each broker of the map except the own one has a parent in it, one link nearer.
O2  What comes from a neighbour is behind that neighbour: no broker is in two directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from godwit.content.mesh_messages import NearbyBroker

DELTA_MAX = 16


class MasterOverlayMap:
    def __init__(self, broker: str, delta: int, address: str = "") -> None:
        self.broker = broker
        self.delta = delta
        self.address = address
        """Where this broker listens; empty in a simulation."""
        self._told: dict[str, tuple[NearbyBroker, ...]] = {}
        """What each neighbour has told of itself and the brokers behind it."""
        self._rebuild()

    def _rebuild(self) -> None:
        self.distances = {self.broker: 0}
        """Links between the own broker and every broker of the map, the nearest first."""
        self.parents: dict[str, str] = {}
        """The next broker on the way to the own one."""
        self.directions: dict[str, str] = {}
        """The neighbour on the way to each of them."""
        self.addresses: dict[str, str] = {}
        for neighbour, told in sorted(self._told.items()):
            for each in told:
                self._place(neighbour, each)
        self.distances = dict(sorted(self.distances.items(), key=lambda item: (item[1], item[0])))

    def _place(self, neighbour: str, each: NearbyBroker) -> None:
        """Enter a broker behind its parent; one that fits nowhere is left out (O1, O2)."""
        parent = each.parent or self.broker
        is_behind = self.directions.get(parent) == neighbour
        is_first = not each.parent and each.name == neighbour
        if each.name in self.distances or not (is_behind or is_first):
            return
        distance = self.distances[parent] + 1
        if distance > self.delta:
            return
        self.distances[each.name] = distance
        self.parents[each.name] = parent
        self.directions[each.name] = neighbour
        self.addresses[each.name] = each.address

    def hear(self, neighbour: str, told: Iterable[NearbyBroker]) -> bool:
        """A neighbour tells what is behind it; return whether the map has changed."""
        return self._set(neighbour, tuple(told))

    def add(self, neighbour: str) -> bool:
        """A neighbour that has told nothing yet."""
        return neighbour not in self._told and self._set(neighbour, (NearbyBroker(neighbour),))

    def _set(self, neighbour: str, told: tuple[NearbyBroker, ...]) -> bool:
        if self._told.get(neighbour) == told:
            return False
        self._told[neighbour] = told
        self._rebuild()
        return True

    def forget(self, neighbour: str) -> bool:
        """The link with a neighbour is gone, and with it all that is behind."""
        if self._told.pop(neighbour, None) is None:
            return False
        self._rebuild()
        return True

    def __contains__(self, broker: str) -> bool:
        return broker in self.distances

    @property
    def neighbours(self) -> Iterable[str]:
        return self._told

    def path(self, broker: str) -> Sequence[str]:
        """The brokers on the way to a broker of the map, which is the last; not the own one."""
        way = []
        while broker != self.broker:
            way.append(broker)
            broker = self.parents[broker]
        return way[::-1]

    def view_for(self, neighbour: str) -> tuple[NearbyBroker, ...]:
        """What a neighbour is told: this broker, and what is behind it as seen from there."""
        told = [NearbyBroker(self.broker, "", self.address)]
        for broker, distance in self.distances.items():
            if 0 < distance < self.delta and self.directions[broker] != neighbour:
                told.append(NearbyBroker(broker, self.parents[broker], self.addresses[broker]))
        return tuple(told)
