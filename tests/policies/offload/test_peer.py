"""PEER: roles and clusters from links, and what a network file is told."""

from __future__ import annotations

import pytest

from godwit.broker.stimuli import LinkKind, Neighbour
from godwit.errors import UsageError
from godwit.overlay.topology import Topology, chain, peer, star, topology
from godwit.policies.offload.peer import PeerPlace, Role, check_peer, edges_of, place_of


def linked(*names: str) -> dict[Neighbour, LinkKind]:
    return {Neighbour(name): LinkKind.PRIMARY for name in names}


@pytest.mark.parametrize(
    ("links", "has_publishers", "expected"),
    [
        pytest.param((), False, None, id="a broker that is alone"),
        pytest.param(("B0",), False, PeerPlace(Role.EDGE, "B0"), id="one neighbour"),
        pytest.param(("B0",), True, PeerPlace(Role.HEAD, "B1"), id="one, and publishers"),
        pytest.param(("B0", "B2"), False, PeerPlace(Role.HEAD, "B1"), id="two neighbours"),
    ],
)
def test_the_role_follows_from_the_links(
    links: tuple[str, ...], has_publishers: bool, expected: PeerPlace | None
) -> None:
    assert place_of("B1", linked(*links), has_publishers=has_publishers) == expected


def test_shortcuts_do_not_count() -> None:
    links = linked("B0") | {Neighbour("B7"): LinkKind.SOFT}
    assert place_of("B1", links, has_publishers=False) == PeerPlace(Role.EDGE, "B0")


@pytest.mark.parametrize(
    ("shape", "heads"),
    [
        pytest.param(peer(clusters=1, edges=4), {"B0": 4}, id="LS1"),
        pytest.param(peer(clusters=4, edges=2), {"B10": 2, "B20": 2, "B30": 2, "B40": 2}, id="LS6"),
        pytest.param(
            peer(clusters=5, edges=1, fanout=4), {f"B{n}0": 1 for n in (1, 2, 3, 4, 5)}, id="a star"
        ),
        pytest.param(star(3), {"B1": 3}, id="any star"),
        pytest.param(peer(clusters=3, edges=0), {"B20": 2}, id="a chain without edges"),
    ],
)
def test_clusters_of_a_shape(shape: Topology, heads: dict[str, int]) -> None:
    check_peer(shape)
    found = {name: len(edges_of(shape, name)) for name in shape.brokers}
    assert {name: edges for name, edges in found.items() if edges} == heads


def test_the_names_of_ls1_and_ls6() -> None:
    assert peer(clusters=1, edges=4).brokers == ("B0", "B1", "B2", "B3", "B4")
    assert peer(clusters=2, edges=2).brokers == ("B10", "B11", "B12", "B20", "B21", "B22")
    many = peer(clusters=12, edges=11).brokers
    assert len(set(many)) == 12 * 12


@pytest.mark.parametrize(
    ("shape", "error"),
    [
        pytest.param(chain(2), "needs a cluster-head", id="two brokers"),
        pytest.param(
            topology(["B1", "B2", "B3"], [("B1", "B2")]), "linked as one tree", id="in pieces"
        ),
    ],
)
def test_what_cannot_be_balanced_is_refused(shape: Topology, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        check_peer(shape)


def test_a_head_needs_two_links() -> None:
    with pytest.raises(UsageError, match="two links"):
        peer(clusters=1, edges=1)
