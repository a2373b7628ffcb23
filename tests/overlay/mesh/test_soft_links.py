"""How two brokers agree to use and to close a soft link: time-lines of both ends."""

from __future__ import annotations

from godwit.broker.effects import CloseLink, OpenLink, Send
from godwit.broker.stimuli import LinkKind, Neighbour
from godwit.content.mesh_messages import SoftLinkUse, SoftUse
from godwit.overlay.mesh.soft_links import SoftLinks

B = Neighbour("B")
ASKED, GRANTED, ENDED = (SoftLinkUse(use=use) for use in SoftUse)
OPEN = OpenLink("B", "", LinkKind.SOFT)


def used_link(*, is_idle: bool = True) -> SoftLinks:
    links = SoftLinks(0, lambda _link: is_idle)
    assert links.want({"B": ""}) == [OPEN]
    assert links.link_up(B) == [Send(B, ASKED)]
    assert links.used == []
    assert links.receive(GRANTED, B) == []
    assert links.used == ["B"]
    return links


def test_a_link_that_neither_end_uses_is_closed() -> None:
    links = used_link()
    assert links.want({}) == [Send(B, ENDED), CloseLink(B)]
    assert links.used == []


def test_a_link_that_the_other_end_uses_stays() -> None:
    links = used_link()
    assert links.receive(ASKED, B) == [Send(B, GRANTED)]
    assert links.want({}) == [Send(B, ENDED)]
    assert links.want({"B": ""}) == [Send(B, ASKED)], "it is there: no second one is opened"
    links.receive(GRANTED, B)
    assert links.receive(ENDED, B) == [], "this end uses it"
    assert links.want({}) == [Send(B, ENDED), CloseLink(B)]


def test_the_use_ends_when_all_is_settled() -> None:
    idle = False
    links = SoftLinks(0, lambda _link: idle)
    links.want({"B": ""})
    links.link_up(B)
    links.receive(GRANTED, B)
    assert links.want({}) == []
    assert links.used == [], "no publication takes it any more"
    idle = True
    assert links.go_on([B]) == [Send(B, ENDED), CloseLink(B)]


def test_a_request_that_meets_the_closing_is_not_granted() -> None:
    links = used_link()
    links.want({})
    assert links.receive(ASKED, B) == []
    assert links.link_down(B) == [CloseLink(B, is_down=True)], "nor is it dialled any more"


def test_a_link_that_is_closed_while_it_is_wanted_is_opened_again() -> None:
    links = used_link()
    assert links.link_down(B) == [OPEN]


def test_a_link_that_the_other_end_has_opened_waits_for_its_question() -> None:
    links = SoftLinks(0, lambda _link: True)
    assert links.link_up(B) == []
    assert links.want({}) == [], "the question is on its way"
    assert links.receive(ASKED, B) == [Send(B, GRANTED)]
    assert links.receive(ENDED, B) == [CloseLink(B)]


def test_a_link_that_is_not_wanted_any_more_when_it_is_up_is_closed() -> None:
    links = SoftLinks(0, lambda _link: True)
    links.want({"B": ""})
    links.want({})
    assert links.link_up(B) == [CloseLink(B)]
