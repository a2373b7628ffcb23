"""Subscriptions by anchor: masks, and positions that other brokers get later."""

from __future__ import annotations

from godwit.broker.stimuli import LocalClient, Neighbour
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Publication, Subscription, SubscriptionId
from godwit.overlay.mesh.anchor_table import AnchorPositions, AnchorTable

B, C = Neighbour("B"), Neighbour("C")
ALICE = LocalClient("alice")


def subscription(id: str, text: str) -> Subscription:
    return Subscription(id=SubscriptionId(f"s/{id}"), filter=Filter.parse(text))


def publication(x: float) -> Publication:
    return Publication(
        publisher="p", sequence=1, advertisement=AdvertisementId("p/1"), content={"x": x}
    )


def test_anchors_and_clients_that_want_a_publication() -> None:
    positions = AnchorPositions()
    table = AnchorTable(positions)
    for id, text, last_hop, toward in (
        ("1", "x > 1", B, C),
        ("2", "x > 1", B, B),  # The same filter, another anchor.
        ("3", "x > 2", ALICE, ALICE),
        ("4", "x > 5", B, C),  # Covered at C.
    ):
        table.add(subscription(id, text), last_hop, toward)
        table.check()
    anchors, others = table.wanting(publication(3))
    assert (positions.names(anchors), others) == (["C", "B"], {ALICE: None})
    assert table.wanting(publication(0)) == (0, {})

    table.turn(table[SubscriptionId("s/1")], B)
    table.remove(table[SubscriptionId("s/3")])
    table.check()
    anchors, others = table.wanting(publication(3))
    assert (positions.names(anchors), others) == (["B"], {}), "s/4 is in front at C again"
    assert table.anchors() == {"B", "C"}


def test_a_position_is_used_again_when_its_broker_is_forgotten() -> None:
    positions = AnchorPositions()
    first, second = positions.bit("B"), positions.bit("C")
    positions.keep({"C", "D"})
    assert positions.bit("C") == second
    assert positions.bit("D") == first
    assert positions.names(first | second) == ["D", "C"]
    assert positions.bit("E") not in {first, second}
