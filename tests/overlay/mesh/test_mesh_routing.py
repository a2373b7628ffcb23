"""The router of a mesh: anchors, covering, waiting and detours, by hand."""

from __future__ import annotations

from godwit.broker.effects import OpenLink, Send
from godwit.broker.routing import Confirm, Place
from godwit.broker.stimuli import LinkKind, LocalClient, Neighbour
from godwit.content.filters import Filter
from godwit.content.mesh_messages import (
    NearbyBroker,
    Neighbourhood,
    QuiescenceWave,
    SoftLinkUse,
    SoftUse,
)
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    Mark,
    Paused,
    Present,
    Publication,
    Subscription,
    SubscriptionId,
    Sweep,
)
from godwit.overlay.mesh.mesh_routing import MeshRouting

B, C, D, P = (Neighbour(name) for name in "BCDP")
ALICE = LocalClient("alice")
ADVERTISEMENT = AdvertisementId("alice/1")


def router_with_soft_link(strategy: str = "S2") -> MeshRouting:
    """Broker A in A - B - C - D and A - P, with a soft link to D; all want what alice publishes."""
    place = Place.of("A", ["B", "P"], settings={"delta": 3, "strategy": strategy})
    router = MeshRouting(place)
    router.start("")
    behind = NearbyBroker("B"), NearbyBroker("C", "B"), NearbyBroker("D", "C")
    router.receive(Neighbourhood(brokers=behind), B)
    assert router.want_soft_links(["D", "B", "Z"]) == [OpenLink("D", "", LinkKind.SOFT)]
    router.link_up(D, LinkKind.SOFT)
    router.receive(SoftLinkUse(use=SoftUse.GRANTED), D)
    every = Filter.parse("x is present")
    router.handle(Advertisement(id=ADVERTISEMENT, filter=every), ALICE)
    for name in "CD":
        wanted = Filter.parse(f"x = '{name}'")
        router.handle(subscription(name, wanted, anchor=name), B)
    return router


def subscription(id: str, filter: Filter, anchor: str = "") -> Subscription:
    return Subscription(id=SubscriptionId(f"s/{id}"), filter=filter, anchor=anchor)


def publication(to: str, sequence: int = 1, marks: tuple[Mark, ...] = ()) -> Publication:
    return Publication(
        publisher="alice", sequence=sequence, advertisement=ADVERTISEMENT, content={"x": to},
        marks=marks,
    )  # fmt: skip


def copies(router: MeshRouting, published: Publication) -> list[str]:
    assert not router.has_to_wait(published, ALICE, 0.0)
    return [hop.name for hop in router.destinations(published, ALICE, 0, 0.0)]


def test_a_publication_goes_directly_and_the_next_one_waits_for_it() -> None:
    router = router_with_soft_link()
    assert copies(router, publication("D")) == ["D"]
    assert router.has_to_wait(publication("C", 2), ALICE, 0.0), "by B and C, which D is beyond"
    assert copies(router, publication("D", 2)) == ["D"]
    router.acknowledged(D, 1)
    assert router.has_to_wait(publication("C", 3), ALICE, 0.0)
    router.acknowledged(D, 2)
    assert copies(router, publication("C", 3)) == ["B"]
    assert copies(router, publication("D", 4)) == ["B"], "the path of the one before it"


def test_a_publication_that_came_from_a_direction_does_not_go_back_there() -> None:
    router = router_with_soft_link()
    assert list(router.destinations(publication("D"), C, 1, 0.0)) == []
    assert list(router.destinations(publication("D"), P, 1, 0.0)) == [D]


def test_what_a_policy_has_marked_takes_the_primary_links() -> None:
    router = router_with_soft_link()
    assert copies(router, publication("D", marks=(Mark("grape", 7),))) == ["B"]


def test_what_a_soft_link_did_not_deliver_takes_another_way() -> None:
    router = router_with_soft_link()
    copies(router, publication("D"))
    assert router.link_down(D) == [OpenLink("D", "", LinkKind.SOFT)]
    assert router.detour(publication("D"), D) == [B]
    assert copies(router, publication("C", 2)) == ["B"], "behind the one on its detour"


def test_a_soft_link_without_a_connection_is_not_used() -> None:
    router = router_with_soft_link()
    router.link_away(D, is_away=True)
    assert copies(router, publication("D")) == ["B"]
    router.acknowledged(B, 1)
    router.link_away(D, is_away=False)
    assert copies(router, publication("D", 2)) == ["D"]


def test_a_publisher_that_moves_waits_until_all_is_acknowledged() -> None:
    router = router_with_soft_link()
    copies(router, publication("D"))
    assert router.pause(ALICE, 5) == []
    assert router.acknowledged(D, 1) == [Confirm(ALICE, Paused(move=5))]


def test_a_sweep_goes_when_all_brokers_have_answered_and_all_is_acknowledged() -> None:
    router = router_with_soft_link()
    router.handle(Present(broker="C"), B)
    copies(router, publication("D"))
    sweep = Sweep(client="carol", to="C", move=1)
    asked = router.handle(sweep, LocalClient("carol"))
    wave = QuiescenceWave(id="A#1#carol#1")
    assert asked == [Send(B, wave), Send(P, wave)]
    echo = QuiescenceWave(id=wave.id, is_echo=True)
    assert router.receive(echo, B) == router.receive(echo, P) == []
    assert router.acknowledged(D, 1) == [Send(B, sweep)]


def test_a_wave_of_another_broker_is_answered_when_all_is_acknowledged() -> None:
    router = router_with_soft_link()
    copies(router, publication("D"))
    wave = QuiescenceWave(id="P#1#carol#1")
    assert router.receive(wave, P) == [Send(B, wave)]
    assert router.acknowledged(D, 1) == []
    echo = QuiescenceWave(id=wave.id, is_echo=True)
    assert router.receive(echo, B) == [Send(P, echo)]


def test_covering_is_per_anchor() -> None:
    """Test vector 11: s1 covers s2 covers s3; s1 has another anchor than s2 and s3."""
    router = router_with_soft_link()
    router.handle(Advertisement(id=AdvertisementId("p/1"), filter=Filter.parse("y > 0")), P)
    sent: list[str] = []
    for id, filter, anchor in (("s1", "y > 0", "B"), ("s2", "y > 1", "C"), ("s3", "y > 2", "D")):
        for answer in router.handle(subscription(id, Filter.parse(filter), anchor), B):
            if isinstance(answer, Send) and isinstance(answer.message, Subscription):
                assert answer.to == P
                sent.append(f"{answer.message.id} at {answer.message.anchor}")
    assert sent == ["s/s1 at B", "s/s2 at C"], "s3 has the anchor C at P, too (E18)"
