"""GRAPE: the thesis's bits, sessions by hand, and what may go wrong on the way."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.policies.placement.by_hand import PUBLISHER, Tree

from godwit.broker.stimuli import LocalClient, Neighbour
from godwit.content.messages import AdvertisementId
from godwit.overlay.topology import Topology, chain, star, topology
from godwit.policies.placement.grape import Grape
from godwit.policies.placement.letters import (
    TraceInformationAnswer,
    TraceInformationRequest,
    read_grape,
    write,
)
from godwit.policies.placement.settings import GrapeSettings, Metric

QUICK = GrapeSettings(publications_per_session=4)
BY_DELAY = GrapeSettings(publications_per_session=4, primary=Metric.DELAY)
B2 = Neighbour("B2")


def tree(shape: Topology, at: str, settings: GrapeSettings = QUICK) -> Tree:
    return Tree(shape, {name: Grape(settings) for name in shape.brokers}, at)


def grape(of: Tree, broker: str) -> Grape:
    module = of.modules[broker]
    assert isinstance(module, Grape)
    return module


# -- phase 1 -------------------------------------------------------------------------------------


def test_the_bits_of_the_thesis() -> None:
    """Session 212; 213, 215, 216, 217, 220, 222, 225 and 226 are delivered (11.4)."""
    scene = tree(chain(2), "B1", GrapeSettings(publications_per_session=100))
    scene.skip(212)
    delivered = {213, 215, 216, 217, 220, 222, 225, 226}
    for number in range(212, 227):
        publication = scene.publish({"B2": 3 if number in delivered else 0})
        assert publication.mark("grape") == 213, "the number of the first, plus one"

    session = grape(scene, "B2")._sessions[PUBLISHER]
    assert session.delivered.first == 212
    assert set(session.delivered) == delivered
    assert format(session.delivered.bits, "015b")[::-1] == "010111001010011"
    assert session.deliveries == 3 * len(delivered)
    assert not grape(scene, "B1")._sessions[PUBLISHER].delivered


def test_a_session_traces_consecutive_publications_and_ends_with_questions() -> None:
    scene = tree(chain(3), "B1")
    traces = [scene.trace({"B3": 1}) for _ in range(4)]
    assert traces == [1, 1, 1, 1]
    assert [move.target for move in scene.moves] == ["B3"]
    assert len(scene.letters) == 4, "a question and an answer for each link, whatever was traced"
    assert not any(grape(scene, name)._sessions for name in scene.modules), "all is answered"
    assert scene.trace({"B3": 1}) == 0, "it is moving"


def test_only_those_are_asked_that_any_of_it_was_sent_to() -> None:
    scene = tree(star(3), "B1")
    for _ in range(4):
        scene.publish({"B2": 1})

    assert len(scene.letters) == 2
    assert scene.decisions[0].reason["candidates"] == 2


def test_the_next_start_of_a_publisher_begins_a_session_of_its_own() -> None:
    """Its numbers start anew, so the session may have the number of an earlier one."""
    scene = tree(chain(2), "B1", GrapeSettings(publications_per_session=100))
    first = scene.publish({"B2": 3})
    sessions = grape(scene, "B2")._sessions
    assert sessions[PUBLISHER].deliveries == 3
    again = replace(first, advertisement=AdvertisementId(f"{PUBLISHER}/i2~a1"))
    grape(scene, "B2").on_publication(again, Neighbour("B9"), [LocalClient("alice")], 0.0)
    assert sessions[PUBLISHER].deliveries == 1
    assert sessions[PUBLISHER].upstream == Neighbour("B9")


def test_the_next_session_begins_when_it_was_decided_to_stay() -> None:
    scene = tree(chain(2), "B1")
    traces = [scene.trace({"B1": 1, "B2": 1}) for _ in range(10)]

    assert traces == [1, 1, 1, 1, 5, 5, 5, 5, 9, 9]
    assert scene.actions == ["stayed", "stayed"]


def test_a_gap_in_the_numbers_costs_only_bits() -> None:
    scene = tree(chain(2), "B1")
    scene.publish({"B2": 1})
    scene.skip(1)
    scene.publish({"B2": 1})
    scene.skip(2**40)
    assert scene.trace({"B2": 1}) == 0, "beyond the session"

    assert [move.target for move in scene.moves] == ["B2"]
    assert scene.decisions[0].reason["messages_here"] == 4, "two publications, two brokers"


def test_nobody_wants_anything() -> None:
    scene = tree(chain(2), "B1")
    for _ in range(8):
        scene.publish({})
    assert scene.actions == ["stayed", "stayed"]


# -- phase 2 -------------------------------------------------------------------------------------

#: B1 has the publisher; four at B4 want everything, six at each of B5, B6 and B7 want a little.
ENTERPRISE = topology(
    ["B1", "B2", "B3", "B4", "B5", "B6", "B7"],
    [("B1", "B2"), ("B2", "B3"), ("B3", "B4"), ("B1", "B5"), ("B1", "B6"), ("B1", "B7")],
)


def publish_enterprise(scene: Tree, publications: int) -> None:
    for number in range(publications):
        wants_little = {"B5": 6, "B6": 6, "B7": 6} if number % 4 == 0 else {}
        scene.publish({"B4": 1, **wants_little})


def test_load_100_goes_to_those_who_want_everything() -> None:
    scene = tree(ENTERPRISE, "B1")
    publish_enterprise(scene, 4)

    (decision,) = scene.decisions
    assert decision.target == "B4"
    # B1 to B4 handle 4 each and three brokers one; from B4: B4 4, six others 1.
    assert decision.reason["messages_here"] == 4 * 4 + 3
    assert decision.reason["messages_there"] == 4 + 6


def test_delay_100_stays_with_most_deliveries() -> None:
    """Of 22 deliveries 18 are one link away, as long as all brokers take equally long."""
    scene = tree(ENTERPRISE, "B1", BY_DELAY)
    for view in scene.views.values():
        view.delays.on_matched(0.0, 0.001)
    publish_enterprise(scene, 4)
    assert not scene.decisions
    scene.answer_pings({})

    (decision,) = scene.decisions
    assert decision.action == "stayed"
    assert decision.reason["delay_here_s"] == pytest.approx((18 * 2 + 4 * 4) * 0.001 / 22)


def test_delay_avoids_a_broker_that_takes_long() -> None:
    """Most deliveries are at B3; if B3 is slow, all others would have to pass it from there."""
    for slow_s, target in ((0.001, "B3"), (0.010, "B2")):
        scene = tree(chain(3), "B1", BY_DELAY)
        for name, view in scene.views.items():
            view.delays.on_matched(0.0, slow_s if name == "B3" else 0.001)
        for _ in range(4):
            scene.publish({"B1": 2, "B3": 3})
        scene.answer_pings({})
        assert scene.decisions[0].target == target


def test_pings_count_by_half_and_only_where_they_are_needed() -> None:
    scene = tree(chain(2), "B1", BY_DELAY)
    for _ in range(4):
        scene.publish({"B1": 1, "B2": 1})
    assert dict(scene.pings[0].brokers) == {"B1": "", "B2": ""}
    scene.answer_pings({"B1": 0.5, "B2": 0.1})

    (decision,) = scene.decisions
    assert decision.target == "B2"
    assert decision.reason["delay_here_s"] == pytest.approx(0.25)
    assert decision.reason["delay_there_s"] == pytest.approx(0.05)

    scene = tree(chain(2), "B1")
    for _ in range(4):
        scene.publish({"B1": 1, "B2": 1})
    assert not scene.pings


def test_a_broker_that_the_publisher_does_not_reach_is_not_chosen() -> None:
    scene = tree(chain(3), "B1", BY_DELAY)
    for _ in range(4):
        scene.publish({"B3": 5})
    scene.answer_pings({"B1": 0.1, "B2": 0.1})
    assert (scene.decisions[0].target, scene.decisions[0].reason["candidates"]) == ("B2", 2)

    scene = tree(chain(2), "B1", BY_DELAY)
    for _ in range(4):
        scene.publish({"B2": 5})
    scene.answer_pings({"B3": 0.1})
    assert scene.actions == ["stayed"], "where it is, it is"


# -- what may go wrong ---------------------------------------------------------------------------


def test_a_broker_that_does_not_answer_ends_the_session_and_not_more() -> None:
    scene = tree(chain(3), "B1")
    for _ in range(3):
        scene.publish({"B2": 1, "B3": 2})
    scene.dead = {"B3"}
    scene.publish({"B2": 1, "B3": 2})
    assert not scene.decisions
    scene.wait(45.0)
    assert scene.actions == ["gave up"]

    scene.dead = set()
    for _ in range(4):
        scene.publish({"B2": 1, "B3": 2})
    assert [move.target for move in scene.moves] == ["B2"]


def test_an_answer_that_comes_too_late_does_nothing() -> None:
    scene = tree(chain(2), "B1")
    scene.loses = lambda body: isinstance(read_grape(body), TraceInformationAnswer)
    for _ in range(4):
        scene.publish({"B2": 1})
    scene.wait(45.0)
    assert scene.actions == ["gave up"]

    _, lost = scene.letters[-1]
    assert list(scene.modules["B1"].on_letter(lost, B2, scene.now_s)) == []
    assert not scene.moves


def test_pings_that_come_too_late_do_nothing() -> None:
    scene = tree(chain(2), "B1", BY_DELAY)
    for _ in range(4):
        scene.publish({"B2": 1})
    scene.wait(45.0)
    assert scene.actions == ["gave up"]
    scene.answer_pings({"B1": 1.0})
    assert scene.actions == ["gave up"]

    for _ in range(4):
        scene.publish({"B2": 1})
    scene.answer_pings({})
    assert scene.actions == ["gave up", "asked"]


def test_pings_of_an_earlier_session_do_not_end_the_questions_of_this_one() -> None:
    scene = tree(chain(2), "B1", BY_DELAY)
    for _ in range(4):
        scene.publish({"B2": 1})
    scene.wait(45.0)
    scene.loses = lambda body: isinstance(read_grape(body), TraceInformationAnswer)
    for _ in range(4):
        scene.publish({"B2": 1})
    scene.answer_pings({})
    assert scene.actions == ["gave up"], "B2 has not answered"


def test_an_answer_names_the_neighbours_on_both_sides() -> None:
    """A publisher at B3 would send through B2 to B1."""
    scene = tree(chain(3), "B1")
    for _ in range(4):
        scene.publish({"B1": 1, "B3": 1})
    answer = read_grape(scene.letters[-1][1])
    assert isinstance(answer, TraceInformationAnswer)
    neighbours = {entry.broker: set(entry.to_neighbours_s) for entry in answer.entries}
    assert neighbours == {"B2": {"B1", "B3"}, "B3": {"B2"}}


def test_a_broker_that_has_seen_nothing_says_so() -> None:
    """It was restarted, or was so full that it dropped what it was sent."""
    answers = grape(tree(chain(2), "B1"), "B2").on_letter(
        write(TraceInformationRequest(PUBLISHER, 1)), Neighbour("B1"), 0.0
    )
    (answer,) = answers
    assert read_grape(answer.body) == TraceInformationAnswer(PUBLISHER, 1, 0.0, ())  # type: ignore[union-attr]


def test_letters_that_nobody_expects_do_nothing() -> None:
    module = grape(tree(chain(2), "B1"), "B1")
    for body in (b"", b"\xff", write(TraceInformationAnswer("nobody", 1, 0.0, ()))):
        assert list(module.on_letter(body, B2, 0.0)) == []


def test_a_publisher_that_leaves_in_between_is_left_alone() -> None:
    scene = tree(chain(2), "B1", BY_DELAY)
    for _ in range(4):
        scene.publish({"B2": 1})
    scene.modules["B1"].on_departed(PUBLISHER, 0.0)
    scene.answer_pings({})
    assert not scene.decisions


def test_everything_is_forgotten_in_the_end() -> None:
    """And no timer is left, or a simulation would never be over."""
    scene = tree(chain(3), "B1", GrapeSettings(publications_per_session=4, forget_s=300.0))
    for _ in range(3):
        scene.publish({"B3": 1})
    scene.dead = {"B3"}
    scene.publish({"B3": 1})
    scene.wait(1000.0)

    assert not scene.timers
    assert not any(grape(scene, name)._sessions for name in scene.modules)


def test_the_answer_of_a_broker_takes_about_a_hundred_bytes() -> None:
    """With three neighbours and names of ten characters (G27)."""
    names = [f"broker-{number:03d}" for number in range(5)]
    shape = topology(names, [(names[0], names[1]), *((names[1], name) for name in names[2:])])
    scene = tree(shape, names[0], GrapeSettings(publications_per_session=100))
    for _ in range(100):
        scene.publish(dict.fromkeys(names[2:], 5))

    answers = [body for to, body in scene.letters if to == names[1]][-3:]
    assert all(70 <= len(body) <= 140 for body in answers), [len(body) for body in answers]
