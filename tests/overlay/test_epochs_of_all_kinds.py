"""Epochs of different kinds at one broker: what it sends, and what it waits for."""

from __future__ import annotations

import pytest

from godwit.broker.effects import DropLane, OpenLink, Send
from godwit.broker.routing import Answer, Confirm, Multipath, Place, Structured
from godwit.broker.stimuli import (
    AdoptEpoch,
    BuildEpoch,
    FlipEpoch,
    LinkKind,
    LocalClient,
    Neighbour,
)
from godwit.content.filters import Filter
from godwit.content.link_messages import NetworkShape
from godwit.content.mesh_messages import NearbyBroker, Neighbourhood, SoftLinkUse, SoftUse
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Last,
    Paused,
    Publication,
    ResyncDone,
    ResyncScope,
    Subscription,
    SubscriptionId,
    Sweep,
    Swept,
)
from godwit.errors import UsageError
from godwit.migration.reshaping import shape_of
from godwit.overlay import OVERLAYS, overlay
from godwit.overlay.clusters.cluster_structure import arrange, cluster_settings
from godwit.overlay.epochs.epoch_routing import EpochRouting
from godwit.overlay.topology import chain, topology

NAMES = ("B1", "B2", "B3", "B4")
STRUCTURE = arrange(NAMES, 2)  # B1 B2 / B3 B4: rings B1 B3 and B2 B4.
IN_CLUSTERS = shape_of(
    STRUCTURE.topology, 1, overlay="clusters", settings=cluster_settings(NAMES, 2)
)
IN_A_CHAIN = shape_of(chain(4), 1, overlay="tree")
DONE = ResyncDone(scope=ResyncScope.SUBSCRIPTIONS_TOO)
ALICE = LocalClient("alice")
ANNOUNCED = AdvertisementId("alice/1")


def router(kind: str, broker: str, links: list[str], **settings: object) -> EpochRouting:
    """A broker of epoch 0 whose links are up."""
    return EpochRouting(Place.of(broker, links, 0, settings), OVERLAYS[kind], overlay)


def clusters(broker: str) -> EpochRouting:
    return router("clusters", broker, list(STRUCTURE.links(broker)), **IN_CLUSTERS.settings)


def built(routing: EpochRouting, shape: NetworkShape, broker: str) -> list[Answer]:
    """Build the shape, with neighbours that have nothing to tell."""
    answers = list(routing.change_epoch(BuildEpoch("c", shape)))
    for name in shape.neighbours(broker):
        neighbour = Neighbour(name, shape.epoch)
        answers += routing.link_up(neighbour, LinkKind.PRIMARY)
        answers += routing.handle(DONE, neighbour)
    assert routing.status.phase == "built"
    return answers


def lasts(answers: list[Answer]) -> set[str]:
    return {each.to.name for each in answers if isinstance(each, Send) and each.message == Last()}


def test_a_tree_becomes_clusters() -> None:
    routing = router("tree", "B2", ["B1", "B3"])
    answers = built(routing, IN_CLUSTERS, "B2")
    opened = [each.broker for each in answers if isinstance(each, OpenLink)]
    assert opened == ["B1", "B4"], "the links of the clusters, not those of the chain"
    assert lasts(list(routing.change_epoch(FlipEpoch("c", IN_CLUSTERS)))) == set()
    assert isinstance(routing.in_use, Structured)
    assert lasts(routing.handle(Last(), Neighbour("B1"))) == {"B3"}
    answers = routing.handle(Last(), Neighbour("B3"))
    assert lasts(answers) == {"B1"}
    assert DropLane(0) in answers
    assert routing.status.epoch == 1
    assert routing.kind_of(Neighbour("B1", 1)) is LinkKind.PRIMARY
    assert routing.kind_of(Neighbour("B4", 1)) is LinkKind.CROSS


def test_in_clusters_last_goes_from_rings_to_mates() -> None:
    routing = clusters("B2")
    built(routing, IN_A_CHAIN, "B2")
    answers = list(routing.change_epoch(FlipEpoch("c", IN_A_CHAIN)))
    assert lasts(answers) == {"B4"}, "at once over the ring, which carries own publications only"
    assert lasts(routing.handle(Last(), Neighbour("B1"))) == set()
    assert routing.status.epoch == 0, "the ring has not ended"
    answers = routing.handle(Last(), Neighbour("B4"))
    assert lasts(answers) == {"B1"}, "to the mate when nothing comes over the ring any more"
    assert routing.status.epoch == 1


def mesh_with_soft_link() -> EpochRouting:
    """B1 at the end of the chain B1 B2 B3 B4, with a soft link to B3, which wants everything."""
    routing = router("mesh", "B1", ["B2"], strategy="S2")
    paths = routing.paths
    assert paths is not None
    behind = NearbyBroker("B2"), NearbyBroker("B3", "B2"), NearbyBroker("B4", "B3")
    paths.receive(Neighbourhood(brokers=behind), Neighbour("B2"))
    paths.want_soft_links(["B3"])
    routing.link_up(Neighbour("B3"), LinkKind.SOFT)
    paths.receive(SoftLinkUse(use=SoftUse.GRANTED), Neighbour("B3"))
    routing.handle(Advertisement(id=ANNOUNCED, filter=Filter.parse("a > 0")), ALICE)
    wanted = Subscription(id=SubscriptionId("s/1"), filter=Filter.parse("a > 0"), anchor="B3")
    routing.handle(wanted, Neighbour("B2"))
    return routing


def test_a_mesh_ends_when_what_is_on_soft_links_is_acknowledged() -> None:
    routing = mesh_with_soft_link()
    published = Publication(
        publisher="alice", sequence=1, advertisement=ANNOUNCED, content={"a": 1}
    )
    assert set(routing.destinations(published, ALICE, 0, 0.0)) == {Neighbour("B3")}
    shape = shape_of(chain(4), 1, overlay="tree")
    built(routing, shape, "B1")
    routing.handle(AdvertisementInEffect(id=ANNOUNCED), Neighbour("B2", 1))
    assert lasts(list(routing.change_epoch(FlipEpoch("c", shape)))) == set(), "B3 may lack it"
    assert lasts(routing.handle(Last(), Neighbour("B2"))) == set()
    assert routing.paths is not None
    answers = list(routing.paths.acknowledged(Neighbour("B3"), 1))
    assert Send(Neighbour("B3"), SoftLinkUse(use=SoftUse.ENDED)) in answers
    assert lasts(answers) == {"B2"}
    assert routing.status.epoch == 1
    assert routing.paths is None, "a tree has one path"


def test_a_soft_link_of_the_next_epoch_does_not_end_the_change() -> None:
    """Brokers that have flipped may open and close them before this one has."""
    routing = router("tree", "B1", ["B2"])
    shape = shape_of(chain(4), 1, overlay="mesh", settings={"delta": 3})
    built(routing, shape, "B1")
    routing.link_up(Neighbour("B3", 1), LinkKind.SOFT)
    routing.link_down(Neighbour("B3", 1))
    assert routing.status.phase == "built"
    routing.link_down(Neighbour("B2", 1))
    assert routing.status.phase == "steady", "a primary one does"


def test_a_publisher_is_paused_in_clusters_when_they_have_drained() -> None:
    """E7: its new broker could still use the clusters, and would not refuse it."""
    routing = clusters("B2")
    built(routing, IN_A_CHAIN, "B2")
    routing.change_epoch(FlipEpoch("c", IN_A_CHAIN))
    assert routing.pause(ALICE, 7) == []
    answers = [
        answer for name in ("B1", "B4") for answer in routing.handle(Last(), Neighbour(name))
    ]
    assert Confirm(ALICE, Paused(move=7)) in answers


def test_a_sweep_that_comes_too_late_asks_all_brokers_of_the_clusters() -> None:
    routing = router("tree", "B1", ["B2"])
    built(routing, IN_CLUSTERS, "B1")
    routing.change_epoch(FlipEpoch("c", IN_CLUSTERS))
    routing.handle(Last(), Neighbour("B2"))
    assert routing.status.epoch == 1
    sweep = Sweep(client="alice", to="B4", move=1)
    sent = routing.handle(sweep, Neighbour("B2"))
    questions = [each.to.name for each in sent if isinstance(each, Send)]
    assert questions == ["B3", "B2", "B3"], "the question to ring and mate, and the own answer"
    arrived = routing.handle(Sweep(client="alice", to="B1", move=1), Neighbour("B2"))
    assert arrived == [Confirm(ALICE, Swept(move=1))], "all of the old epoch is here"


def test_the_answers_of_clusters_do_not_go_on_in_a_tree() -> None:
    routing = clusters("B2")
    built(routing, IN_A_CHAIN, "B2")
    routing.change_epoch(FlipEpoch("c", IN_A_CHAIN))
    for name in ("B4", "B1"):
        routing.handle(Last(), Neighbour(name))
    answer = Sweep(client="alice", to="B2", move=1, by="B1", origin="B4")
    assert routing.handle(answer, Neighbour("B4")) == []


def test_a_shape_that_does_not_fit_is_refused_and_changes_nothing() -> None:
    routing = router("tree", "B1", ["B2"])
    settings = cluster_settings(NAMES, 2)
    wrong = NetworkShape(epoch=1, links=(("B1", "B2"),), overlay="clusters", settings=settings)
    for shape, reason in (
        (wrong, "are not those of its clusters"),
        (NetworkShape(epoch=1, links=(("B1", "B2"),), overlay="star"), "no overlay 'star'"),
        (
            NetworkShape(epoch=1, links=(("B1", "B2"),), overlay="mesh", settings={"delta": 0}),
            "delta",
        ),
    ):
        with pytest.raises(UsageError, match=reason):
            routing.change_epoch(BuildEpoch("c", shape))
        assert routing.status.phase == "steady"
        assert routing.status.next_epoch is None
    with pytest.raises(UsageError, match="not those of its clusters"):
        shape_of(chain(4), 1, overlay="clusters", settings=settings)


def test_the_next_shape_without_an_overlay_is_of_the_same_kind() -> None:
    routing = router("tree", "B1", ["B2"])
    built(routing, shape_of(chain(4), 1, overlay="mesh", settings={"delta": 3}), "B1")
    routing.change_epoch(FlipEpoch("c", shape_of(chain(4), 1)))
    routing.handle(Last(), Neighbour("B2"))
    routing.link_down(Neighbour("B2"))
    star = topology(NAMES, (("B1", "B2"), ("B1", "B3"), ("B1", "B4")))
    routing.change_epoch(BuildEpoch("d", shape_of(star, 2, follows=1)))
    assert routing.shape is not None
    assert (routing.shape.overlay, routing.shape.settings) == ("mesh", {"delta": 3})
    assert all(isinstance(each, Multipath) for each in routing.routings())


def test_a_broker_outside_clusters_waits_for_the_next_epoch() -> None:
    routing = router("tree", "B9", ["B1"])
    routing.change_epoch(AdoptEpoch("c", IN_CLUSTERS))
    assert routing.status.epoch == 1
    assert not routing.is_complete
    assert not isinstance(routing.in_use, Structured)
