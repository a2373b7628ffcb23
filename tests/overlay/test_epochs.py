"""One broker whose network changes its shape: requests in, the complete list of answers out."""

from __future__ import annotations

from pathlib import Path

import pytest

from godwit.broker.effects import DropLane, EpochFlipped, OpenLink, Send
from godwit.broker.routing import Answer, Confirm, Place
from godwit.broker.stimuli import (
    AbortEpoch,
    AdoptEpoch,
    BuildEpoch,
    FlipEpoch,
    LinkKind,
    LocalClient,
    Neighbour,
)
from godwit.content.filters import Filter
from godwit.content.link_messages import NetworkShape
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Last,
    Present,
    Publication,
    ResyncDone,
    ResyncScope,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Sweep,
    Swept,
)
from godwit.errors import UsageError
from godwit.overlay.epochs.epoch_phases import (
    EpochEvent,
    EpochPhase,
    IllegalPhaseChange,
    PhaseMachine,
    phase_diagram,
    phase_table,
)
from godwit.overlay.epochs.epoch_routing import EpochRouting
from godwit.overlay.tree.tree_routing import TreeRouting

A, C = Neighbour("A"), Neighbour("C")
C1 = Neighbour("C", 1)
ALICE = LocalClient("alice")
X = Filter.parse("x > 0")
#: B was between A and C, and will be behind C.
SHAPE = NetworkShape(epoch=1, links=(("A", "C"), ("B", "C")))
BUILD, FLIP = BuildEpoch("c1", SHAPE), FlipEpoch("c1", SHAPE)
DONE = ResyncDone(scope=ResyncScope.SUBSCRIPTIONS_TOO)
WANTS = Subscription(id=SubscriptionId("alice/s1"), filter=X)
WANTED = Confirm(ALICE, SubscriptionInEffect(id=WANTS.id))


def broker() -> EpochRouting:
    return EpochRouting(Place.of("B", ["A", "C"]), TreeRouting)


def built() -> EpochRouting:
    """A broker that has built the next epoch, with alice's subscription in both."""
    routing = broker()
    routing.handle(WANTS, ALICE)
    routing.change_epoch(BUILD)
    routing.link_up(C1, LinkKind.PRIMARY)
    routing.handle(DONE, C1)
    assert routing.status.phase == EpochPhase.BUILT.value
    return routing


def sends(answers: list[Answer]) -> list[Answer]:
    return [answer for answer in answers if isinstance(answer, Send)]


def test_it_opens_the_links_of_the_next_epoch() -> None:
    routing = broker()
    assert routing.change_epoch(BUILD) == [OpenLink("C", "", LinkKind.PRIMARY, 1, is_caller=False)]
    assert routing.status.phase == EpochPhase.BUILDING.value
    assert routing.change_epoch(BUILD) == [], "it may be asked again"


def test_what_is_in_effect_is_owed_until_the_next_epoch_has_it() -> None:
    routing = broker()
    assert routing.handle(WANTS, ALICE) == [WANTED]
    routing.change_epoch(BUILD)
    routing.link_up(C1, LinkKind.PRIMARY)
    assert routing.status.phase == EpochPhase.BUILDING.value
    answers = routing.handle(DONE, C1)
    assert WANTED not in answers, "alice knows it already"
    assert routing.status.phase == EpochPhase.BUILT.value


def test_a_request_is_in_effect_when_both_epochs_say_so() -> None:
    routing = broker()
    routing.change_epoch(BUILD)
    assert routing.handle(WANTS, ALICE) == []
    routing.link_up(C1, LinkKind.PRIMARY)
    assert WANTED in routing.handle(DONE, C1)


def test_a_request_that_waits_is_in_effect_when_the_change_is_given_up() -> None:
    routing = broker()
    routing.change_epoch(BUILD)
    routing.handle(WANTS, ALICE)
    assert routing.change_epoch(AbortEpoch("c1", 1)) == [DropLane(1), WANTED]
    assert (routing.status.epoch, routing.status.ended) == (0, 1), "the number is used up"
    assert routing.status.phase == EpochPhase.STEADY.value
    with pytest.raises(UsageError, match="epoch 1 is over"):
        routing.change_epoch(BUILD)


def test_last_goes_to_a_neighbour_when_all_others_have_sent_it() -> None:
    routing = built()
    assert sends(routing.change_epoch(FLIP)) == []
    assert routing.handle(Last(), A) == [Send(C, Last())]
    assert routing.handle(Last(), C) == [Send(A, Last()), DropLane(0)]
    assert routing.status.epoch == 1
    assert routing.status.phase == EpochPhase.STEADY.value


def test_a_leaf_sends_last_when_it_flips() -> None:
    routing = EpochRouting(Place.of("B", ["A"]), TreeRouting)
    routing.change_epoch(BUILD)
    routing.link_up(C1, LinkKind.PRIMARY)
    routing.handle(DONE, C1)
    assert routing.change_epoch(FLIP) == [EpochFlipped(), Send(A, Last())]
    assert routing.handle(Last(), A) == [DropLane(0)]


def test_last_tells_that_the_change_is_committed() -> None:
    routing = built()
    assert routing.handle(Last(), A) == [EpochFlipped(), Send(C, Last())]
    assert routing.status.phase == EpochPhase.HOLDING.value
    with pytest.raises(UsageError, match="committed"):
        routing.change_epoch(AbortEpoch("c1", 1))


def test_publications_of_clients_change_their_epoch_with_the_flip() -> None:
    routing = built()
    advertised = Advertisement(id=AdvertisementId("p/a1"), filter=X)
    there = Subscription(id=SubscriptionId("s/s1"), filter=X)
    paul = LocalClient("p")
    routing.handle(advertised, paul)
    routing.handle(there, A)
    routing.handle(there, C1)
    event = Publication(publisher="p", sequence=1, advertisement=advertised.id, content={"x": 1})
    assert list(routing.destinations(event, paul, 0, 0.0)) == [ALICE, A]
    routing.change_epoch(FLIP)
    assert list(routing.destinations(event, paul, 0, 0.0)) == [ALICE, C1]
    assert list(routing.destinations(event, C, 0, 0.0)) == [ALICE, A], "it stays in its epoch"
    assert routing.starts_hold(event, C1)
    assert not routing.starts_hold(event, C)


def test_a_broker_that_lost_the_next_epoch_rejoins_it() -> None:
    routing = broker()
    routing.handle(WANTS, ALICE)
    answers = routing.change_epoch(FLIP)
    assert answers == [OpenLink("C", "", LinkKind.PRIMARY, 1, is_caller=False)]
    assert routing.status.phase == EpochPhase.REJOINING.value
    routing.link_up(C1, LinkKind.PRIMARY)
    routing.handle(DONE, C1)
    assert routing.status.phase == EpochPhase.HOLDING.value


SWEEP = Sweep(client="carol", to="D", move=1)


def test_a_sweep_that_waits_goes_on_in_the_next_epoch() -> None:
    routing = built()
    assert routing.handle(SWEEP, A) == [], "the direction of D is not known"
    assert routing.handle(Present(broker="D"), C1) == []
    routing.change_epoch(FLIP)
    routing.handle(Last(), A)
    assert Send(C1, SWEEP) in routing.handle(Last(), C)


def test_a_sweep_behind_last_goes_on_in_the_next_epoch() -> None:
    routing = built()
    routing.handle(Present(broker="D"), C1)
    routing.change_epoch(FLIP)
    routing.handle(Last(), A)
    routing.handle(Last(), C)
    assert routing.handle(SWEEP, A) == [Send(C1, SWEEP)]
    here = Sweep(client="alice", to="B", move=1)
    routing.handle(Present(broker="B"), ALICE)
    assert routing.handle(here, A) == [Confirm(ALICE, Swept(move=1))]


def test_a_sweep_for_a_neighbour_that_has_dropped_the_old_epoch_goes_on_in_the_next_one() -> None:
    routing = built()
    routing.handle(Present(broker="D"), A)
    routing.handle(Present(broker="D"), C1)
    routing.handle(Last(), C)
    routing.link_restarted(C)  # The old epoch cannot be dropped until C knows it again.
    routing.handle(Last(), A)
    routing.link_down(A)
    assert routing.status.phase == EpochPhase.HOLDING.value
    assert routing.handle(SWEEP, C) == [Send(C1, SWEEP)]


def test_a_neighbour_that_restarts_is_sent_last_again() -> None:
    routing = built()
    routing.change_epoch(FLIP)
    routing.handle(Last(), A)
    assert routing.link_restarted(C)[-1] == Send(C, Last())
    routing.handle(DONE, C)
    routing.handle(Last(), C)
    assert routing.link_restarted(A) == [Send(A, DONE), Send(A, Last())], "it is over here"


def test_a_link_of_the_next_epoch_that_is_given_up_ends_the_change() -> None:
    routing = built()
    assert routing.link_down(C1) == [DropLane(1)]
    assert routing.status.phase == EpochPhase.STEADY.value
    assert routing.status.change == ""


def test_a_later_change_takes_the_place_of_one_that_was_never_committed() -> None:
    routing = built()
    later = NetworkShape(epoch=2, links=(("A", "B"), ("A", "C")))
    answers = routing.change_epoch(BuildEpoch("c2", later))
    assert answers == [DropLane(1), OpenLink("A", "", LinkKind.PRIMARY, 2)]
    with pytest.raises(UsageError, match="over"):
        routing.change_epoch(BUILD)


def test_an_advertisement_is_in_effect_once_although_two_epochs_confirm_it() -> None:
    routing = built()
    advertised = Advertisement(id=AdvertisementId("alice/a1"), filter=X)
    in_effect = AdvertisementInEffect(id=advertised.id)
    routing.handle(advertised, ALICE)
    assert routing.handle(in_effect, A) == []
    assert routing.handle(in_effect, C) == []
    assert routing.handle(in_effect, C1) == [Confirm(ALICE, in_effect)]


def test_a_broker_outside_waits_for_the_epoch_that_it_is_part_of() -> None:
    routing = EpochRouting(Place.of("N", []), TreeRouting)
    assert DropLane(0) in routing.change_epoch(AdoptEpoch("c1", SHAPE))
    assert not routing.is_complete
    assert routing.handle(WANTS, ALICE) == [], "nothing is in effect outside"
    with pytest.raises(UsageError, match="N is not part of epoch 2"):
        routing.change_epoch(BuildEpoch("c2", NetworkShape(epoch=2, links=SHAPE.links)))
    joined = NetworkShape(epoch=2, follows=1, links=(*SHAPE.links, ("C", "N")))
    routing.change_epoch(BuildEpoch("c2", joined))
    routing.link_up(Neighbour("C", 2), LinkKind.PRIMARY)
    routing.handle(DONE, Neighbour("C", 2))
    assert routing.status.phase == EpochPhase.BUILT.value
    assert WANTED in routing.change_epoch(FlipEpoch("c2", joined))
    assert routing.status.epoch == 2
    assert routing.is_complete


def test_a_broker_that_has_left_is_no_part_of_the_shape() -> None:
    routing = built()
    routing.change_epoch(FLIP)
    routing.handle(Last(), A)
    routing.handle(Last(), C)
    routing.forget("A")
    assert routing.news.now is not None
    assert routing.news.now.links == (("B", "C"),)


def test_a_phase_changes_only_by_a_row_of_the_table() -> None:
    machine = PhaseMachine()
    with pytest.raises(IllegalPhaseChange):
        machine.apply(EpochEvent.DRAINED)


def test_the_manual_has_the_table_and_the_picture() -> None:
    page = Path("docs/reshaping.md").read_text()
    assert phase_table() in page, f"docs/reshaping.md must contain:\n{phase_table()}"
    assert phase_diagram() in page, f"docs/reshaping.md must contain:\n{phase_diagram()}"


def test_one_that_rejoins_does_not_wait_for_a_broker_that_has_left_since() -> None:
    routing = broker()
    routing.change_epoch(FLIP)
    assert routing.status.phase == EpochPhase.REJOINING.value
    routing.forget("A")
    following = routing.news.following
    assert following is not None
    assert following.links == (("B", "C"),)


def test_a_shape_that_is_only_being_built_keeps_its_brokers() -> None:
    routing = built()
    routing.forget("A")
    assert routing.shape == SHAPE
