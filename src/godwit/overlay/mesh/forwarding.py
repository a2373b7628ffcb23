"""The forwarding decision for one publication: strategy, and order.

Paper    Opportunistic multipath forwarding in content-based publish/subscribe overlays (Publiy),
         sections 4 and 5.
Words    WST -> the index of subscriptions by anchor, which is the MST, and the substitutes of the
         anchors, which are applied to the set of anchors that a publication matches.
Claim    Publications of one publisher reach every broker in their order, whatever paths they take.

The paper does not keep the order: a publication that goes directly may be overtaken by the next
one, which goes by a broker in between.  Here paths are sticky:

    a copy with N, or with one that N is beyond, is not settled   the next one for N takes that link
    a copy with one beyond N is not settled, and N needs it       the next one waits

So two publications of a publisher are never on two paths to the same broker at the same time.  That
costs nothing while a publisher publishes less than once in the time of an acknowledgement.

Departs  The paper rebuilds the WST whenever links change.  Here the index stays as it is, and the
         substitution is computed once for each set of anchors, with the strategy's answer.
Tested   tests/overlay/mesh/test_forwarding.py, tests/simulation/test_random_meshes.py

F1  No linked broker with an unsettled copy of a publisher is beyond another such one.
F2  A decision depends on the anchors, the strategy and the unsettled copies only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from godwit.broker.stimuli import Neighbour
from godwit.overlay.mesh.master_overlay_map import MasterOverlayMap
from godwit.overlay.mesh.strategies import ForwardingStrategy, forward
from godwit.overlay.mesh.unsettled_copies import Unsettled
from godwit.overlay.mesh.working_overlay_map import WorkingOverlayMap, bits

#: Decisions that are kept until the links change.
DECISIONS_MAX = 65_536


class Forwarding:
    """Decisions for one master and one working overlay map.

    Anchors are a mask over the brokers of the MOM, what is chosen is one over those of the WOM.
    """

    def __init__(self, mom: MasterOverlayMap, linked: Collection[str], lane: int) -> None:
        self.wom = WorkingOverlayMap(mom, linked)
        self._mom = mom
        self._brokers = [broker for broker in mom.distances if broker != mom.broker]
        self._links = [Neighbour(name, lane) for name in self.wom.brokers]
        self._bits = {Neighbour(name, lane): 1 << i for i, name in enumerate(self._brokers)}
        self._directions: dict[str, int] = {}
        """The brokers in the direction of each neighbour."""
        for i, broker in enumerate(self._brokers):
            direction = mom.directions[broker]
            self._directions[direction] = self._directions.get(direction, 0) | 1 << i
        self._decided: dict[tuple[ForwardingStrategy, int], int] = {}
        self._hops: dict[int, tuple[Neighbour, ...]] = {}

    # -- anchors -------------------------------------------------------------------------------

    def anchors(self, hops: Iterable[object]) -> int:
        """The anchors among these hops."""
        found, bit_of = 0, self._bits.get
        for hop in hops:
            if type(hop) is Neighbour:
                found |= bit_of(hop, 0)
        return found

    def beside(self, anchors: int, last_hop: Neighbour) -> int:
        """Those that are not in the direction of the broker that the publication came from."""
        direction = self._mom.directions.get(last_hop.name)
        return anchors if direction is None else anchors & ~self._directions[direction]

    def beyond(self, anchors: int, broker: str) -> int:
        """Those that are reached by way of a broker."""
        if broker not in self._mom:
            return 0
        found = 0
        for i in bits(anchors):
            found |= 1 << i if broker in self._mom.path(self._brokers[i]) else 0
        return found

    def anchor_names(self, anchors: int) -> list[str]:
        return [self._brokers[i] for i in bits(anchors)]

    def _substituted(self, anchors: int) -> int:
        """The linked brokers that stand for anchors."""
        found, substitutes = 0, self.wom.substitutes
        for i in bits(anchors):
            found |= substitutes[self._brokers[i]]
        return found

    # -- decisions -----------------------------------------------------------------------------

    def decide(self, anchors: int, strategy: ForwardingStrategy) -> int:
        """Fwd, without regard to order."""
        key = (strategy, anchors)
        found = self._decided.get(key)
        if found is None:
            if len(self._decided) >= DECISIONS_MAX:
                self._decided.clear()
                self._hops.clear()
            found = forward(strategy, self.wom, self._substituted(anchors))
            self._decided[key] = found
        return found

    def decide_in_order(
        self, anchors: int, strategy: ForwardingStrategy, unsettled: Mapping[Neighbour, Unsettled]
    ) -> int | None:
        """Fwd for the next publication of a publisher; None if it has to wait."""
        wom, used, elsewhere = self.wom, 0, 0
        for to, copy in unsettled.items():
            i = wom.index.get(to.name)
            if i is None:  # That link is not used any more: nothing else in its direction.
                elsewhere |= wom.directions.get(copy.direction, 0)
            else:
                used |= 1 << i
        if not used and not elsewhere:
            return self.decide(anchors, strategy)
        kept = rest = 0
        for n in bits(self._substituted(anchors)):
            path = wom.between[n] & used
            kept |= path
            rest |= 0 if path else 1 << n
        chosen = forward(strategy, wom, rest)
        if (kept | chosen) & elsewhere:
            return None
        for n in bits(chosen):
            if wom.beyond[n] & used:  # F1
                return None
        return kept | chosen

    def hops(self, fwd: int) -> tuple[Neighbour, ...]:
        found = self._hops.get(fwd)
        if found is None:
            found = self._hops[fwd] = tuple(self._links[i] for i in bits(fwd))
        return found
