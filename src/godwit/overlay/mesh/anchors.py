"""Anchors: which broker a subscription is known by, at most delta links in its direction.

Paper    Opportunistic multipath forwarding in content-based publish/subscribe overlays (Publiy),
         section 4.
Words    anchor as in the paper; "one hop closer" -> to the receiver (erratum E18).
Claim    The anchor at a broker is on the primary path to the subscriber, within delta links: the
         subscriber's own broker if that is near enough.
Departs  The paper keeps the whole path of a subscription.  The map of the sender has the part of
         it that is needed.  Where the sender does not know the anchor (it has just restarted), the
         sender is the anchor: every broker on the path is a valid one.
Tested   tests/overlay/mesh/test_strategies.py
"""

from __future__ import annotations

from godwit.overlay.mesh.master_overlay_map import MasterOverlayMap


def anchor_for_neighbour(mom: MasterOverlayMap, anchor: str) -> str:
    """The anchor that a neighbour is told; `anchor` is the one here, the own name if local."""
    distance = mom.distances.get(anchor)
    if distance is None:
        return mom.broker
    # A neighbour is one link farther away.
    return anchor if distance < mom.delta else mom.parents[anchor]
