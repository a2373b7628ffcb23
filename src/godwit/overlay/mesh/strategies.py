"""Forwarding strategies: which linked brokers get a publication, from those that want it.

Paper    Opportunistic multipath forwarding in content-based publish/subscribe overlays (Publiy),
         section 5, figures 5 and 6.
Words    Anchors, Fwd, Between, Beyond, Behind as in the paper, as masks over N_1 to N_k.
Claim    Whatever each broker uses: every broker that wants a publication gets one copy, no broker
         two.  No chosen broker is beyond another chosen one, and each passes it on away from the
         sender only.
Departs  S0 chooses the primary neighbours also where there are soft links, so that it can be used
         for single publications; the paper's S0 has no soft links.
Tested   tests/overlay/mesh/test_strategies.py: figure 2 (test vector 10), random trees.
"""

from __future__ import annotations

from enum import Enum

from godwit.overlay.mesh.working_overlay_map import WorkingOverlayMap, bits


class ForwardingStrategy(Enum):
    S0 = "S0"
    """Along the primary links, as in a tree."""

    S1 = "S1"
    """The farthest broker that is common to the paths: few copies."""

    S2 = "S2"
    """The nearest brokers that want it, each directly: few hops."""

    SH = "SH"
    """S2, but S1 while the output of the broker is used to more than a threshold."""

    # By identity, as they are compared: Enum's own is slow, and every decision is looked up by it.
    __hash__ = object.__hash__


def forward(strategy: ForwardingStrategy, wom: WorkingOverlayMap, anchors: int) -> int:
    """Fwd; SH is decided by the caller."""
    if strategy is ForwardingStrategy.S0:
        return _s0(wom, anchors)
    return _s1(wom, anchors) if strategy is ForwardingStrategy.S1 else _s2(wom, anchors)


def _s0(wom: WorkingOverlayMap, anchors: int) -> int:
    fwd = 0
    for n in bits(anchors):
        between = wom.between[n]
        fwd |= between & -between  # The nearest one: a primary neighbour.
    return fwd


def _s1(wom: WorkingOverlayMap, anchors: int) -> int:
    common = 0
    for n in bits(anchors):
        between = wom.between[n]
        if common & between:
            common &= between | wom.behind[n]
        else:
            common |= between
    fwd = 0
    for j in range(len(wom.brokers) - 1, -1, -1):  # Every j, erratum E20.
        if not anchors:
            break
        if common >> j & 1 and anchors & wom.beyond[j]:
            fwd |= 1 << j
            anchors &= ~wom.beyond[j]
    return fwd


def _s2(wom: WorkingOverlayMap, anchors: int) -> int:
    fwd = 0
    while anchors:
        low = anchors & -anchors
        fwd |= low
        anchors &= ~wom.beyond[low.bit_length() - 1]
    return fwd
