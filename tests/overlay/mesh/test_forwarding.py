"""Order: which path the next publication of a publisher takes, and when it waits."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from tests.overlay.mesh.maps import learnt_maps, tree_of

from godwit.broker.stimuli import Neighbour
from godwit.overlay.mesh.forwarding import Forwarding
from godwit.overlay.mesh.strategies import ForwardingStrategy
from godwit.overlay.mesh.unsettled_copies import PUBLISHERS_KEPT, UnsettledCopies

TREE = tree_of(["A-N1", "N1-N2", "N2-N3", "A-M1"])
N1, N2, N3, M1 = (Neighbour(name) for name in ("N1", "N2", "N3", "M1"))
#: The primary neighbour in the direction of each.
DIRECTIONS = {N1: "N1", N2: "N1", N3: "N1", M1: "M1"}


@pytest.fixture
def forwarding() -> Forwarding:
    return Forwarding(learnt_maps(TREE, 3)["A"], {"N1", "N2", "N3", "M1"}, 0)


def decided(forwarding: Forwarding, anchors: int, unsettled: Collection[Neighbour]) -> int | None:
    return forwarding.decide_in_order(anchors, ForwardingStrategy.S2, unsettled, DIRECTIONS)


@pytest.mark.parametrize(
    ("wanting", "unsettled", "expected"),
    [
        pytest.param([N3], [], [N3], id="directly, if nothing is on its way"),
        pytest.param([N3], [N3], [N3], id="the same path again"),
        pytest.param([N3], [N2], [N2], id="by the broker that has the one before it"),
        pytest.param([N2, N3], [N3], None, id="N2 needs it, and N3 has one: it waits"),
        pytest.param([N2], [N3], None, id="also if N3 does not want this one"),
        pytest.param([M1], [N3], [M1], id="another direction does not matter"),
        pytest.param([M1, N3], [N2, M1], [M1, N2], id="each by its own path"),
    ],
)
def test_sticky_paths(
    forwarding: Forwarding,
    wanting: list[Neighbour],
    unsettled: list[Neighbour],
    expected: list[Neighbour] | None,
) -> None:
    anchors = forwarding.anchors(wanting)
    for _ in range(2):  # The second time from memory.
        fwd = decided(forwarding, anchors, unsettled)
        assert (None if fwd is None else sorted(forwarding.links(fwd))) == expected


def test_a_link_that_is_not_used_any_more_stops_its_direction() -> None:
    without = Forwarding(learnt_maps(TREE, 3)["A"], {"N1", "N2", "M1"}, 0)
    anchors = without.anchors([N2])
    assert decided(without, anchors, [N3]) is None
    anchors = without.anchors([M1])
    assert decided(without, anchors, [N3]) == without.wom.mask(["M1"])


def test_copies_are_settled_in_their_order() -> None:
    copies = UnsettledCopies()
    copies.send("p", [N1])
    copies.send("q", [N1])
    copies.send("p", [N2])
    before = copies.positions()
    assert set(copies.of("p")) == {N1, N2}
    copies.acknowledge(N1, 1)
    assert set(copies.of("p")) == {N2}
    assert set(copies.of("q")) == {N1}
    assert not copies.has_settled(before)
    copies.acknowledge(N1, 2)
    copies.close(N2)
    assert copies.has_settled(before), "what a link did not deliver that is gone is not waited for"
    assert copies.is_idle(N1)


def test_what_is_acknowledged_at_last_leaves_nothing() -> None:
    copies = UnsettledCopies()
    copies.send("p", [N1, N2])
    copies.count(N1)
    copies.acknowledge(N1, 9)
    assert copies.positions() == {N2: 1}, "no more is settled than was sent"
    copies.send("q", [N1])
    assert set(copies.of("q")) == {N1}
    copies.close(N1)
    assert set(copies.of("p")) == {N2}
    copies.acknowledge(N2, 1)
    assert not copies.of("p")
    assert not copies._by_publisher


def test_publishers_without_unsettled_copies_are_forgotten() -> None:
    copies = UnsettledCopies()
    for number in range(10_000):
        copies.send(f"p{number}", [N1])
        copies.acknowledge(N1, number)  # The last one is never acknowledged.
    assert len(copies._by_publisher) < 2_000


def test_a_publisher_that_is_new_when_others_are_forgotten_is_kept() -> None:
    copies = UnsettledCopies()
    for number in range(PUBLISHERS_KEPT):
        copies.send(f"p{number}", [N1])
    copies.acknowledge(N1, PUBLISHERS_KEPT)
    copies.send("new", [N1])
    assert len(copies._by_publisher) == 1
    assert set(copies.of("new")) == {N1}
