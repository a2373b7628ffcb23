"""A neighbour withdraws a subscription before it has sent all: it does not know what that covers.

paul --- B2 --- B1 --- B3 --- bob      B1 has failed: of bob it knows only when B3 is linked
                |
                B4 --- alice           her wide subscription was all that B2 had
"""

from __future__ import annotations

from msgspec.structs import replace
from tests.overlay.test_joining import ABOVE_1, ADVERTISEMENTS, ALL, NOT_ALL
from tests.overlay.test_tree import sub

from godwit.broker.routing import Place
from godwit.broker.stimuli import Hop, LocalClient, Neighbour
from godwit.content.messages import Publication, Unsubscription
from godwit.overlay.tree.tree_routing import TreeRouting

B1, PAUL = Neighbour("B1"), LocalClient("paul")
WIDE, NARROW = sub("alice/s1", "a > 2"), sub("bob/s1", "a > 5")
WITHDRAWN = Unsubscription(id=WIDE.id)
SEVEN = Publication(publisher="paul", sequence=1, advertisement=ABOVE_1.id, content={"a": 7})


def wanted(b2: TreeRouting) -> set[Hop]:
    return set(b2.destinations(SEVEN, PAUL, 0, 0.0))


def with_a_neighbour_that_has_failed() -> TreeRouting:
    b2 = TreeRouting(Place.of("B2", ["B1"]))
    b2.handle(ABOVE_1, PAUL)
    b2.handle(WIDE, B1)
    b2.link_restarted(B1)
    b2.handle(NOT_ALL, B1)
    b2.handle(WIDE, B1)
    return b2


def test_what_is_withdrawn_counts_until_the_neighbour_has_sent_all() -> None:
    b2 = with_a_neighbour_that_has_failed()
    b2.handle(WITHDRAWN, B1)
    assert wanted(b2) == {B1}, "bob wants it, and B1 does not know yet"
    b2.handle(ADVERTISEMENTS, B1)
    assert wanted(b2) == {B1}
    b2.handle(NARROW, B1)
    b2.handle(ALL, B1)
    assert wanted(b2) == {B1}
    assert b2.tables().subscriptions == {NARROW.id: B1}, "and now it is gone"


def test_what_is_withdrawn_later_is_gone_at_once() -> None:
    b2 = with_a_neighbour_that_has_failed()
    b2.handle(ALL, B1)
    b2.handle(WITHDRAWN, B1)
    assert b2.tables().subscriptions == {}


def test_what_is_withdrawn_and_sent_again_stays() -> None:
    b2 = with_a_neighbour_that_has_failed()
    b2.handle(WITHDRAWN, B1)
    b2.handle(WIDE, B1)
    b2.handle(ALL, B1)
    assert b2.tables().subscriptions == {WIDE.id: B1}


def test_an_id_that_is_used_again_has_its_new_filter() -> None:
    b2 = with_a_neighbour_that_has_failed()
    b2.handle(WITHDRAWN, B1)
    other = replace(sub(WIDE.id, "a > 8"), edition=1)
    b2.handle(other, B1)
    assert wanted(b2) == set()
    assert b2.tables().wanted == {WIDE.id: other.filter}


def test_a_neighbour_that_is_given_up_wants_nothing() -> None:
    b2 = with_a_neighbour_that_has_failed()
    b2.handle(WITHDRAWN, B1)
    b2.link_down(B1)
    assert b2.tables().subscriptions == {}
