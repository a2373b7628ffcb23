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
         decision is computed once for each set of anchors, strategy and set of unsettled links.
Tested   tests/overlay/mesh/test_forwarding.py, tests/simulation/test_random_meshes.py

F1  No linked broker with an unsettled copy of a publisher is beyond another such one.
F2  A decision depends on the anchors, the strategy and the unsettled copies only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from godwit.broker.stimuli import Neighbour
from godwit.overlay.mesh.anchor_table import AnchorPositions
from godwit.overlay.mesh.master_overlay_map import MasterOverlayMap
from godwit.overlay.mesh.strategies import ForwardingStrategy, forward
from godwit.overlay.mesh.working_overlay_map import WorkingOverlayMap, bits

#: Decisions of each kind that are kept until the links change.
DECISIONS_MAX = 65_536


class Forwarding:
    """Decisions for one master and one working overlay map.

    Anchors are a mask over the positions of brokers, what is chosen is one over those of the WOM.
    """

    def __init__(
        self,
        mom: MasterOverlayMap,
        linked: Collection[str],
        lane: int,
        positions: AnchorPositions | None = None,
    ) -> None:
        self.wom = WorkingOverlayMap(mom, linked)
        self._mom = mom
        self._positions = positions or AnchorPositions()
        self.every_link = [Neighbour(name, lane) for name in self.wom.brokers]
        self._link_bits = {link: 1 << i for i, link in enumerate(self.every_link)}
        self._others: dict[str, int] = {}
        """For each broker of the MOM: those that are not in its direction."""
        self._know_directions()
        self._decided: dict[ForwardingStrategy, dict[int, int]] = {
            strategy: {} for strategy in ForwardingStrategy
        }
        self._in_order: dict[tuple[ForwardingStrategy, int, int, int], int | None] = {}
        self._links: dict[int, dict[Neighbour, None]] = {}

    def _know_directions(self) -> None:
        directions: dict[str, int] = {}
        for broker, direction in self._mom.directions.items():
            directions[direction] = directions.get(direction, 0) | self._positions.bit(broker)
        self._others = {
            broker: ~directions[direction] for broker, direction in self._mom.directions.items()
        }

    # -- anchors -------------------------------------------------------------------------------

    def anchors(self, hops: Iterable[object]) -> int:
        """The anchors among these hops."""
        found = 0
        for hop in hops:
            if type(hop) is Neighbour:
                found |= self._positions.bit(hop.name)
        return found

    def beside(self, anchors: int, last_hop: Neighbour) -> int:
        """Those that are not in the direction of the broker that the publication came from."""
        return anchors & self._others.get(last_hop.name, anchors)

    def beyond(self, anchors: int, broker: str) -> int:
        """Those that are reached by way of a broker."""
        if broker not in self._mom:
            return 0
        found = 0
        for anchor in self._positions.names(anchors):
            if anchor in self._mom and broker in self._mom.path(anchor):
                found |= self._positions.bit(anchor)
        return found

    def _substituted(self, anchors: int) -> int:
        """The linked brokers that stand for anchors."""
        found, substitutes = 0, self.wom.substitutes
        for anchor in self._positions.names(anchors):
            found |= substitutes.get(anchor, 0)
        return found

    # -- decisions -----------------------------------------------------------------------------

    def decide(self, anchors: int, strategy: ForwardingStrategy) -> int:
        """Fwd, without regard to order."""
        decided = self._decided[strategy]
        found = decided.get(anchors)
        if found is None:
            if len(decided) >= DECISIONS_MAX:
                decided.clear()
                self._links.clear()
            found = decided[anchors] = forward(strategy, self.wom, self._substituted(anchors))
        return found

    def decide_in_order(
        self,
        anchors: int,
        strategy: ForwardingStrategy,
        unsettled: Iterable[Neighbour],
        directions: Mapping[Neighbour, str],
    ) -> int | None:
        """Fwd for the next publication of a publisher; None if it has to wait.

        `unsettled` are the links with copies of it; `directions` has those of links that are not
        used any more.
        """
        used = elsewhere = 0
        for link in unsettled:
            bit = self._link_bits.get(link)
            if bit is not None:
                used |= bit
            else:  # That link is not used any more: nothing else in its direction.
                elsewhere |= self.wom.directions.get(directions.get(link, ""), 0)
        if not used and not elsewhere:
            return self.decide(anchors, strategy)
        key = (strategy, anchors, used, elsewhere)
        if key not in self._in_order:
            if len(self._in_order) >= DECISIONS_MAX:
                self._in_order.clear()
                self._links.clear()
            self._in_order[key] = self._ordered(anchors, strategy, used, elsewhere)
        return self._in_order[key]

    def _ordered(
        self, anchors: int, strategy: ForwardingStrategy, used: int, elsewhere: int
    ) -> int | None:
        wom = self.wom
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

    # -- what is chosen ------------------------------------------------------------------------

    def links(self, fwd: int) -> dict[Neighbour, None]:
        """The links of what was chosen, in the order of the WOM; do not change it."""
        found = self._links.get(fwd)
        if found is None:
            found = self._links[fwd] = {self.every_link[i]: None for i in bits(fwd)}
        return found
