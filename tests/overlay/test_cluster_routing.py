"""Routing in clusters at one broker: message in, the whole list of answers out.

The clusters are B1 B2 B3, B4 B5 B6 and B7 B8 B9; B2 publishes in the ring B2, B5, B8.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.overlay.test_tree import adv, adv_in_effect, sub, sub_in_effect, unadv, unsub

from godwit.broker.core import Broker
from godwit.broker.effects import Notify, OpenLink, Send
from godwit.broker.routing import Confirm, Place
from godwit.broker.stimuli import Hop, LinkKind, LocalClient, Neighbour, Received
from godwit.content.messages import (
    AdvertisementId,
    Pause,
    Paused,
    Publication,
    ResyncDone,
    ResyncScope,
    Sweep,
    Swept,
    is_control_content,
)
from godwit.content.values import Value
from godwit.overlay.clusters.cluster_routing import ClusterRouting
from godwit.overlay.clusters.cluster_structure import arrange, cluster_settings
from godwit.overlay.clusters.cluster_traffic import ClusterCounts

NAMES = [f"B{number}" for number in range(1, 10)]
NINE = arrange(NAMES, 3)
B1, B3, B4, B5, B6, B8 = (Neighbour(name) for name in ("B1", "B3", "B4", "B5", "B6", "B8"))
ALICE, BOB, PAUL = LocalClient("alice"), LocalClient("bob"), LocalClient("paul")

ABOVE_1, ABOVE_5, ABOVE_9 = (sub(f"alice/s{n}", f"a > {n}") for n in (1, 5, 9))
PAULS = adv("paul/a1", "a > 0")
DONE = ResyncDone(scope=ResyncScope.SUBSCRIPTIONS_TOO)
HALF_DONE = ResyncDone(scope=ResyncScope.ADVERTISEMENTS)


def b2(*, expected: bool = False) -> ClusterRouting:
    settings = cluster_settings(NAMES, 3)
    if expected:
        links = [Neighbour(name) for name in NINE.links("B2")]
        return ClusterRouting(Place("B2", expected=links, settings=settings))
    return ClusterRouting(Place.of("B2", NINE.links("B2"), settings=settings))


def destinations(
    routing: ClusterRouting,
    content: dict[str, Value],
    last_hop: Hop,
    *,
    hops: int = 0,
    ttl_hops: int | None = None,
) -> list[Hop]:
    publication = Publication(
        publisher="paul",
        sequence=1,
        advertisement=AdvertisementId("paul/a1"),
        content=content,
        ttl_hops=ttl_hops,
        is_control=is_control_content(content),
    )
    return list(routing.destinations(publication, last_hop, hops, 0.0))


# -- subscriptions -----------------------------------------------------------------------------


def test_a_subscription_goes_to_the_mates_and_is_in_effect_when_all_have_it() -> None:
    routing = b2()

    assert routing.handle(ABOVE_5, ALICE) == [Send(B1, ABOVE_5), Send(B3, ABOVE_5)]
    assert routing.handle(sub_in_effect(ABOVE_5), B3) == []
    assert routing.handle(sub_in_effect(ABOVE_5), B1) == [Confirm(ALICE, sub_in_effect(ABOVE_5))]
    routing.check()


def test_a_covered_subscription_stays_here_and_waits_for_its_cover() -> None:
    routing = b2()
    routing.handle(ABOVE_5, ALICE)

    assert routing.handle(ABOVE_9, BOB) == []
    assert routing.handle(sub_in_effect(ABOVE_5), B1) == []
    assert routing.handle(sub_in_effect(ABOVE_5), B3) == [
        Confirm(ALICE, sub_in_effect(ABOVE_5)),
        Confirm(BOB, sub_in_effect(ABOVE_9)),
    ]
    later = sub("bob/s2", "a > 20")
    assert routing.handle(later, BOB) == [Confirm(BOB, sub_in_effect(later))]
    routing.check()


def test_what_a_subscription_covered_is_sent_before_its_removal() -> None:
    routing = b2()
    for step in (ABOVE_5, ABOVE_9):
        routing.handle(step, ALICE)

    assert routing.handle(unsub(ABOVE_5), ALICE) == [
        Send(B1, ABOVE_9),
        Send(B3, ABOVE_9),
        Send(B1, unsub(ABOVE_5)),
        Send(B3, unsub(ABOVE_5)),
    ]
    # The confirmation of what was withdrawn says nothing about what waits.
    assert routing.handle(sub_in_effect(ABOVE_5), B1) == []
    assert routing.handle(sub_in_effect(ABOVE_5), B3) == []
    assert routing.handle(sub_in_effect(ABOVE_9), B1) == []
    assert routing.handle(sub_in_effect(ABOVE_9), B3) == [Confirm(ALICE, sub_in_effect(ABOVE_9))]
    routing.check()


def test_a_covered_one_goes_without_a_message() -> None:
    routing = b2()
    for step in (ABOVE_5, ABOVE_9):
        routing.handle(step, ALICE)

    assert routing.handle(unsub(ABOVE_9), ALICE) == []
    assert routing.subscription_count == 1
    routing.check()


def test_a_mate_confirms_at_once_and_matches_for_the_whole_cluster() -> None:
    routing = b2()

    assert routing.handle(ABOVE_5, B1) == [Send(B1, sub_in_effect(ABOVE_5))]
    assert destinations(routing, {"a": 7}, B5, hops=1) == [B1]
    routing.handle(unsub(ABOVE_5), B1)
    assert destinations(routing, {"a": 7}, B5, hops=1) == []
    assert routing.subscription_count == 0


def test_a_subscription_of_another_cluster_is_not_kept() -> None:
    routing = b2()

    assert routing.handle(ABOVE_5, B5) == []
    assert routing.subscription_count == 0


def test_two_mates_may_have_the_same_id_for_a_while() -> None:
    routing = b2()
    for mate in (B1, B3):
        routing.handle(ABOVE_5, mate)

    assert destinations(routing, {"a": 7}, B5, hops=1) == [B1, B3]
    routing.handle(unsub(ABOVE_5), B1)
    assert destinations(routing, {"a": 7}, B5, hops=1) == [B3]
    routing.check()


def test_a_local_subscription_does_not_travel() -> None:
    routing = b2()
    own = sub("alice/s1", "a > 1", local_only=True)

    assert routing.handle(own, ALICE) == [Confirm(ALICE, sub_in_effect(own))]
    assert routing.handle(unsub(own), ALICE) == []
    routing.check()


# -- publications ------------------------------------------------------------------------------


def test_a_publication_goes_around_the_ring_and_to_the_mates_that_want_it() -> None:
    routing = b2()
    routing.handle(ABOVE_5, B1)
    routing.handle(ABOVE_9, B3)
    routing.handle(ABOVE_1, ALICE)

    assert destinations(routing, {"a": 7}, PAUL) == [ALICE, B1, B5, B8]
    assert destinations(routing, {"a": 0}, PAUL) == [B5, B8]
    assert destinations(routing, {"a": 7}, ALICE) == [B1, B5, B8], "not to its publisher"


def test_what_comes_over_the_ring_goes_to_mates_and_clients_and_not_around_again() -> None:
    routing = b2()
    routing.handle(ABOVE_5, B1)
    routing.handle(ABOVE_1, ALICE)

    assert destinations(routing, {"a": 7}, B8, hops=1) == [ALICE, B1]


def test_what_comes_from_a_mate_goes_to_clients_only() -> None:
    routing = b2()
    routing.handle(ABOVE_5, B3)
    routing.handle(ABOVE_1, ALICE)

    assert destinations(routing, {"a": 7}, B1, hops=2) == [ALICE]


def test_a_control_publication_crosses_as_many_links_as_it_may() -> None:
    routing = b2()
    wanted = sub("b1/s1", "class = '$load'")
    routing.handle(wanted, B1)

    content: dict[str, Value] = {"class": "$load"}
    assert destinations(routing, content, PAUL, ttl_hops=1) == [B1, B5, B8]
    assert destinations(routing, content, PAUL, ttl_hops=0) == []
    assert destinations(routing, content, B8, hops=1, ttl_hops=1) == []


# -- links -------------------------------------------------------------------------------------


def test_nothing_is_in_effect_before_every_link_has_been_up() -> None:
    routing = b2(expected=True)

    assert routing.handle(ABOVE_5, ALICE) == []
    assert routing.handle(PAULS, PAUL) == []
    assert routing.link_up(B1) == [Send(B1, ABOVE_5), Send(B1, HALF_DONE)]
    assert routing.link_up(B3) == [Send(B3, ABOVE_5), Send(B3, HALF_DONE)]
    assert routing.handle(sub_in_effect(ABOVE_5), B1) == []
    assert routing.handle(sub_in_effect(ABOVE_5), B3) == [Confirm(ALICE, sub_in_effect(ABOVE_5))]
    for link in (B5, B8):
        assert routing.link_up(link) == [Send(link, HALF_DONE)]
    for link in (B1, B3, B5):
        assert routing.handle(HALF_DONE, link) == [Send(link, DONE)]
    assert routing.handle(HALF_DONE, B8) == [Confirm(PAUL, adv_in_effect(PAULS)), Send(B8, DONE)]
    assert not routing.is_complete
    for link in (B1, B3, B5, B8):
        routing.handle(DONE, link)
    assert routing.is_complete


def test_a_link_that_is_given_up_is_not_waited_for() -> None:
    routing = b2(expected=True)
    for link in (B1, B5, B8):
        routing.link_up(link)
        routing.handle(HALF_DONE, link)
    routing.handle(ABOVE_5, ALICE)
    routing.handle(PAULS, PAUL)
    assert routing.handle(sub_in_effect(ABOVE_5), B1) == []

    assert routing.link_down(B3) == [
        Confirm(ALICE, sub_in_effect(ABOVE_5)),
        Confirm(PAUL, adv_in_effect(PAULS)),
    ]
    routing.check()


def test_what_a_lost_mate_wanted_is_forgotten() -> None:
    routing = b2()
    routing.handle(ABOVE_5, B1)

    assert routing.link_down(B1) == []
    assert destinations(routing, {"a": 7}, PAUL) == [B5, B8]
    assert routing.subscription_count == 0


def test_another_broker_of_its_cluster_takes_the_place_of_a_lost_one_in_the_ring() -> None:
    routing = b2()

    asked = [OpenLink(name, "", LinkKind.PRIMARY) for name in ("B4", "B6")]
    assert routing.link_down(B5) == asked
    assert destinations(routing, {"a": 7}, PAUL) == [B8]
    routing.link_up(B6)
    routing.link_up(B4)
    assert destinations(routing, {"a": 7}, PAUL) == [B8, B6], "one of each cluster"
    routing.link_up(B5)
    assert destinations(routing, {"a": 7}, PAUL) == [B8, B6], "it keeps the place"
    routing.link_down(B6)
    assert destinations(routing, {"a": 7}, PAUL) == [B8, B5]
    routing.link_down(B5)
    assert destinations(routing, {"a": 7}, PAUL) == [B8, B4]
    routing.check()


def test_a_broker_of_two_rings_uses_a_link_that_it_has() -> None:
    """B7 is in the rings of B1 and B3."""
    eight = NAMES[:8]
    links, settings = arrange(eight, 3).links("B7"), cluster_settings(eight, 3)
    routing = ClusterRouting(Place.of("B7", links, settings=settings))

    assert destinations(routing, {"a": 7}, PAUL) == [B1, B4]
    assert routing.link_down(B1) == []
    assert destinations(routing, {"a": 7}, PAUL) == [B4, B3]


def test_a_ring_begins_with_its_own_brokers_whichever_is_linked_first() -> None:
    eight = NAMES[:8]
    links, settings = arrange(eight, 3).links("B7"), cluster_settings(eight, 3)
    expected = [Neighbour(name) for name in links]
    routing = ClusterRouting(Place("B7", expected=expected, settings=settings))
    for link in reversed(expected):
        routing.link_up(link)

    assert set(destinations(routing, {"a": 7}, PAUL)) == {B1, B4}


def test_a_mate_that_restarts_keeps_what_it_repeats() -> None:
    routing = b2()
    routing.handle(ABOVE_5, B3)
    routing.handle(ABOVE_9, B3)
    routing.handle(ABOVE_1, ALICE)

    assert routing.link_restarted(B3) == [Send(B3, ABOVE_1), Send(B3, HALF_DONE)]
    assert destinations(routing, {"a": 7}, B5, hops=1) == [ALICE, B3], "what it had is kept"
    routing.handle(ABOVE_9, B3)
    routing.handle(HALF_DONE, B3)
    assert destinations(routing, {"a": 7}, B5, hops=1) == [ALICE]
    assert destinations(routing, {"a": 10}, B5, hops=1) == [ALICE, B3]


def test_an_id_that_is_used_again_after_a_restart_has_its_new_filter() -> None:
    routing = b2()
    routing.handle(ABOVE_9, B3)
    routing.link_restarted(B3)
    again = sub("alice/s9", "a < 0")

    routing.handle(type(again)(id=again.id, filter=again.filter, edition=1), B3)
    routing.handle(DONE, B3)
    assert destinations(routing, {"a": -1}, B5, hops=1) == [B3]
    assert destinations(routing, {"a": 10}, B5, hops=1) == []
    routing.check()


def test_a_broker_that_recovers_confirms_when_its_lists_are_complete() -> None:
    routing = b2(expected=True)
    routing.recovering()
    routing.handle(ABOVE_5, ALICE)
    routing.handle(PAULS, PAUL)
    for link in (B1, B3, B5, B8):
        routing.link_up(link)
        assert routing.handle(HALF_DONE, link) == [], "its own clients are not back"
    for mate in (B1, B3):
        assert routing.handle(sub_in_effect(ABOVE_5), mate) == []

    told = routing.clients_returned()
    assert told == [Send(link, DONE) for link in (B1, B3, B5, B8)]
    assert routing.recovered() == [
        Confirm(ALICE, sub_in_effect(ABOVE_5)),
        Confirm(PAUL, adv_in_effect(PAULS)),
    ]
    routing.check()


def test_only_links_of_the_backbone_are_primary() -> None:
    assert b2().neighbours == {
        B1: LinkKind.PRIMARY,
        B3: LinkKind.CROSS,
        B5: LinkKind.CROSS,
        B8: LinkKind.CROSS,
    }


def test_a_broker_that_is_in_no_cluster_is_not_linked() -> None:
    assert b2().why_not_linked("B5") is None
    reason = b2().why_not_linked("B10")
    assert reason is not None
    assert "B10 is in no cluster" in reason
    with pytest.raises(AssertionError, match="K1"):
        b2().link_up(Neighbour("B10"))


# -- advertisements and tables -----------------------------------------------------------------


def test_an_advertisement_stays_at_its_broker() -> None:
    routing = b2()

    assert routing.handle(PAULS, PAUL) == [Confirm(PAUL, adv_in_effect(PAULS))]
    assert routing.publisher(PAULS.id) == PAUL
    assert routing.handle(PAULS, PAUL) == [Confirm(PAUL, adv_in_effect(PAULS))], "repeated"
    assert routing.handle(unadv(PAULS), PAUL) == []
    assert routing.advertisement_count == 0


def test_tables_and_holdings_show_what_is_there() -> None:
    routing = b2()
    routing.handle(PAULS, PAUL)
    routing.handle(ABOVE_5, ALICE)
    routing.handle(sub("b1/s1", "a < 0"), B1)

    tables = routing.tables()
    assert tables.advertisements == {"paul/a1": PAUL}
    assert tables.subscriptions == {"alice/s5": ALICE, "b1/s1": B1}
    assert tables.told == {"B1": ["alice/s5"], "B3": ["alice/s5"], "B5": [], "B8": []}
    held = [(holding.message, holding.notice) for holding in routing.holdings()]
    assert held == [(PAULS, adv_in_effect(PAULS)), (ABOVE_5, None)]


# -- clients that move: settling ---------------------------------------------------------------


def settle(to: str, *, by: str, origin: str = "") -> Sweep:
    return Sweep(client="alice", to=to, move=1, by=by, origin=origin)


def test_the_new_broker_of_a_subscriber_asks_all_and_answers_itself() -> None:
    """To the ring, which passes it on, and to the mates; the answer goes as a publication would."""
    asked = b2().handle(Sweep(client="alice", to="B4", move=1), ALICE)
    question, answer = settle("B4", by="B2"), settle("B4", by="B2", origin="B2")
    assert asked == [*(Send(to, question) for to in (B5, B8, B1, B3)), Send(B5, answer)]


def test_a_broker_of_the_ring_passes_a_question_on_to_its_mates() -> None:
    question, answer = settle("B7", by="B5"), settle("B7", by="B5", origin="B2")
    assert b2().handle(question, B5) == [Send(B1, question), Send(B3, question), Send(B8, answer)]


def test_a_mate_answers_a_question_and_a_mate_of_the_old_broker_passes_answers_on() -> None:
    assert b2().handle(settle("B3", by="B1"), B1) == [Send(B3, settle("B3", by="B1", origin="B2"))]
    answer = settle("B3", by="B1", origin="B8")
    assert b2().handle(answer, B8) == [Send(B3, answer)]


def test_the_old_broker_tells_its_client_when_every_broker_has_answered() -> None:
    routing = b2()
    assert routing.handle(settle("B2", by="B9"), B8) == [
        Send(mate, settle("B2", by="B9")) for mate in (B1, B3)
    ]
    others = [name for name in NAMES if name not in ("B2", "B7")]
    for name in (*others, *others):
        assert routing.handle(settle("B2", by="B9", origin=name), B1) == [], "each counts once"
    told = routing.handle(settle("B2", by="B9", origin="B7"), B1)
    assert told == [Confirm(ALICE, Swept(move=1))]


def test_a_publisher_pauses_when_every_broker_has_what_it_published() -> None:
    routing = b2()
    asked = routing.pause(ALICE, 1)
    assert asked == [Send(to, settle("B2", by="B2")) for to in (B5, B8, B1, B3)]
    for name in NAMES[2:]:
        assert routing.handle(settle("B2", by="B2", origin=name), B5) == []
    told = routing.handle(settle("B2", by="B2", origin="B1"), B1)
    assert told == [Confirm(ALICE, Paused(move=1))]


def test_answers_to_an_earlier_move_do_not_count() -> None:
    routing = b2()
    for name in NAMES[1:]:
        routing.handle(replace(settle("B2", by="B9", origin=name), move=2), B1)
    routing.handle(settle("B2", by="B9", origin="B1"), B1)
    told = routing.handle(replace(settle("B2", by="B9", origin="B1"), move=2), B1)
    assert told == [Confirm(ALICE, Swept(move=2))]


def test_a_question_about_an_unknown_broker_is_not_answered() -> None:
    assert b2().handle(settle("B77", by="B1"), B1) == []


def test_a_pause_of_a_client_is_answered_when_all_have_settled() -> None:
    alone = ClusterRouting(Place.of("B1", [], settings=cluster_settings(["B1"], 1)))
    broker = Broker("B1", routing=alone)
    effects = broker.handle(Received(Pause(move=3), ALICE), now_s=0.0)
    assert effects == [Notify(ALICE, Paused(move=3))]


def test_a_broker_counts_what_shows_how_many_clusters_are_best() -> None:
    """Not what its mates send it for others, not the publisher itself, not covered interests."""
    routing = b2()
    assert routing.cluster_counts == ClusterCounts()
    for wanted in (ABOVE_1, ABOVE_5):
        routing.handle(wanted, ALICE)
    routing.handle(sub("paul/s1", "a > 0"), PAUL)
    assert routing.cluster_counts == ClusterCounts(sent=2, standing=2)
    for value, last_hop in ((9, PAUL), (0.5, PAUL), (9, B1), (9, B5), (0, B5)):
        destinations(routing, {"a": value}, last_hop)
    assert routing.cluster_counts == ClusterCounts(published=2, reached=3, sent=2, standing=2)


def test_a_broker_that_has_left_for_good_is_not_waited_for() -> None:
    settings = cluster_settings(["B1", "B2", "B3"], 1, leaving="B3")
    routing = ClusterRouting(Place.of("B1", ["B2", "B3"], settings=settings))
    assert routing.is_leaving("B3")
    assert not routing.is_leaving("B2")
    routing.pause(ALICE, move=1)
    routing.forget("B3")
    routing.link_down(B3)
    answered = routing.handle(
        Sweep(client="alice", to="B1", move=1, by="B1", origin="B2"), Neighbour("B2")
    )
    assert answered == [Confirm(ALICE, Paused(move=1))]
    routing.check()
