"""Parts that are missing: what one broker says, to whom, and when it is over."""

from __future__ import annotations

from godwit.broker.effects import NotifyAll, Send
from godwit.broker.parts import Answers, Parts
from godwit.broker.stimuli import Loss, Neighbour
from godwit.content.messages import PartCheck, PartChecked, PartLost, PartReturned

B1, B3, B4 = Neighbour("B1"), Neighbour("B3"), Neighbour("B4")
LOSS = Loss(17.0, "did not come back", {"paul": 3, "petra": 1})
LOST = PartLost(
    broker="B3",
    by="B2",
    since_s=17.0,
    reason="did not come back",
    lost=4,
    lost_by={"paul": 3, "petra": 1},
)
RETURNED = PartReturned(broker="B3", by="B2", since_s=17.0)


def sent(answers: Answers) -> list[tuple[str, object]]:
    return [(each.to.name, each.message) for each in answers if isinstance(each, Send)]


def told(answers: Answers, client: str = "paul") -> list[tuple[str, int, bool]]:
    notices = [each.notice_for(client) for each in answers if isinstance(each, NotifyAll)]
    return [(each.broker, each.own_lost, each.is_over) for each in notices]


def test_a_neighbour_that_is_given_up_is_missing_until_all_behind_it_have_answered() -> None:
    b2 = Parts("B2", [B1, B3])
    answers = b2.link_down(B3, LOSS)
    assert sent(answers) == [("B1", LOST)]
    assert told(answers) == [("B3", 3, False)]
    assert told(answers, "alice") == [("B3", 0, False)]
    assert b2.gaps == {"B3": 1}

    answers = b2.link_up(B3)
    (given_up, check) = sent(answers)
    assert isinstance(given_up[1], PartLost)
    assert (given_up[1].broker, given_up[1].by, given_up[1].lost) == ("B2", "B2", 4)
    assert check == ("B3", PartCheck(origin="B2", number=1))
    assert not told(answers), "a link that is up is not the end of the gap"

    answers = b2.handle(PartChecked(origin="B2", number=1), B3)
    assert sent(answers) == [("B1", RETURNED), ("B3", RETURNED)]
    assert told(answers) == [("B3", 3, True)]
    assert not b2.missing


def test_a_broker_that_leaves_and_lacks_nothing_is_not_missing() -> None:
    assert Parts("B2", [B1, B3]).link_down(B3, None) == []


def test_what_is_missing_floods_once_and_is_told_to_newcomers() -> None:
    b1 = Parts("B1", [Neighbour("B2"), B4])
    answers = b1.handle(LOST, Neighbour("B2"))
    assert sent(answers) == [("B4", LOST)]
    assert b1.handle(LOST, Neighbour("B2")) == []
    assert [notice.own_lost for notice in b1.notices("petra")] == [1]
    assert ("B5", LOST) in sent(b1.link_up(Neighbour("B5")))
    answers = b1.handle(RETURNED, Neighbour("B2"))
    assert sent(answers) == [("B4", RETURNED), ("B5", RETURNED)]
    assert b1.handle(RETURNED, Neighbour("B2")) == []
    assert b1.notices("petra") == []


def test_a_check_is_answered_by_all_brokers_behind_and_by_complete_tables() -> None:
    complete = [False]
    b3 = Parts("B3", [Neighbour("B2"), B4], tables_are_complete=lambda: complete[0])
    check, answer = PartCheck(origin="B2", number=7), PartChecked(origin="B2", number=7)
    assert b3.handle(check, Neighbour("B2")) == [], "its tables are not complete"
    complete[0] = True
    assert sent(b3.go_on()) == [("B4", check)]
    assert sent(b3.handle(answer, B4)) == [("B2", answer)]

    assert sent(b3.handle(check, Neighbour("B2"))) == [("B4", check)]
    assert sent(b3.link_down(B4, None)) == [("B2", answer)], "B4 is not waited for"
    assert sent(b3.handle(check, Neighbour("B2"))) == [("B2", answer)], "there is no other"


def test_a_broker_that_is_told_that_it_was_given_up_tells_its_side_and_checks() -> None:
    b3 = Parts("B3", [Neighbour("B2"), B4])
    given_up = PartLost(broker="B2", by="B2", since_s=17.0)
    answers = b3.handle(given_up, Neighbour("B2"))
    assert sent(answers) == [("B4", given_up), ("B2", PartCheck(origin="B3", number=1))]
    assert told(answers) == [("B2", 0, False)]
    answers = b3.handle(PartChecked(origin="B3", number=1), Neighbour("B2"))
    assert told(answers) == [("B2", 0, True)]


def test_a_neighbour_that_restarts_repeats_what_is_still_missing() -> None:
    b1 = Parts("B1", [Neighbour("B2")])
    other = PartLost(broker="B9", by="B2", since_s=18.0)
    b1.handle(LOST, Neighbour("B2"))
    b1.handle(other, Neighbour("B2"))
    (check,) = sent(b1.link_restarted(Neighbour("B2")))
    assert check == ("B2", PartCheck(origin="B1", number=1))
    b1.handle(LOST, Neighbour("B2"))
    answers = b1.handle(PartChecked(origin="B1", number=1), Neighbour("B2"))
    assert told(answers) == [("B9", 0, True)], "only what it did not repeat"


def test_a_gap_is_not_over_while_the_broker_recovers() -> None:
    b2 = Parts("B2", [B1, B3])
    b2.link_down(B3, LOSS)
    b2.link_up(B3)
    b2.recovering()
    assert b2.handle(PartChecked(origin="B2", number=1), B3) == []
    assert told(b2.recovered({})) == [("B3", 3, True)]


def test_a_broker_that_was_lost_elsewhere_and_is_linked_here_is_back() -> None:
    b1 = Parts("B1", [Neighbour("B2")])
    b1.handle(LOST, Neighbour("B2"))
    assert sent(b1.link_up(B3))[-1] == ("B3", PartCheck(origin="B1", number=1))
    answers = b1.handle(PartChecked(origin="B1", number=1), B3)
    assert sent(answers) == [("B2", RETURNED), ("B3", RETURNED)]


def test_a_neighbour_that_was_known_by_its_address_is_back_under_its_name() -> None:
    b2 = Parts("B2", [B1])
    b2.give_up(Neighbour("godwit://somewhere"), LOSS, None)
    b2.link_up(B3)
    (check,) = sent(b2.give_up(Neighbour("godwit://somewhere"), None, B3))
    assert check == ("B3", PartCheck(origin="B2", number=1))
    answers = b2.handle(PartChecked(origin="B2", number=1), B3)
    assert told(answers) == [("godwit://somewhere", 3, True)]


# -- cross links -------------------------------------------------------------------------------


def test_a_gap_behind_a_cross_link_floods_the_tree_and_ends_with_that_link() -> None:
    b2 = Parts("B2", [B1], cross_links=[B3])
    answers = b2.link_down(B3, LOSS)
    assert sent(answers) == [("B1", LOST)]
    assert told(answers) == [("B3", 3, False)]

    answers = b2.link_up(B3, is_cross=True)
    assert [to for to, _ in sent(answers)] == ["B3", "B3"]
    check = PartCheck(origin="B2", number=1)
    assert sent(answers)[1] == ("B3", check)

    answers = b2.handle(PartChecked(origin="B2", number=1), B3)
    assert sent(answers) == [("B1", RETURNED)]
    assert told(answers) == [("B3", 3, True)]


def test_a_check_over_a_cross_link_goes_no_further() -> None:
    b3 = Parts("B3", [B1, B4], cross_links=[Neighbour("B2")])
    check = PartCheck(origin="B2", number=1)
    assert sent(b3.handle(check, Neighbour("B2"))) == [("B2", PartChecked(origin="B2", number=1))]
    assert [to for to, _ in sent(b3.handle(check, B4))] == ["B1"], "on the tree it does"


def test_a_broker_that_is_lost_over_one_link_does_not_end_the_gap_over_another() -> None:
    """B2 has given up B3: what B2 sends it is missing, though others are linked with it."""
    b3 = Parts("B3", [B1], cross_links=[])
    assert sent(b3.handle(LOST, B1)) == [], "no check: G4 holds in trees only"
    b4 = Parts("B4", [B1], cross_links=[])
    b4.handle(LOST, B1)
    assert sent(b4.link_up(B3, is_cross=True)) == []
    assert told(b4.handle(RETURNED, B1)) == [("B3", 3, True)]


def test_what_is_missing_is_not_told_over_a_cross_link() -> None:
    b2 = Parts("B2", [B1], cross_links=[])
    b2.handle(LOST, B1)
    assert sent(b2.link_up(B4, is_cross=True)) == []
    assert sent(b2.link_restarted(B4)) == []
