"""Which soft links a broker chooses: tables of traffic, loads and links."""

from __future__ import annotations

import pytest
from tests.overlay.mesh.maps import learnt_maps, tree_of

from godwit.overlay.mesh.master_overlay_map import MasterOverlayMap
from godwit.overlay.mesh.strategies import ForwardingStrategy
from godwit.policies.soft_links.soft_link_gains import SoftLinkChoice, gain

TREE = tree_of(["A-B", "B-C", "C-D", "B-E", "E-F"])
Traffic = list[tuple[list[str], int]]


@pytest.fixture
def mom() -> MasterOverlayMap:
    return learnt_maps(TREE, 3)["A"]


@pytest.mark.parametrize(
    ("publications", "distance", "loads", "expected"),
    [
        pytest.param(10, 3, [0.2, 0.8], 20.0, id="no boost up to the threshold"),
        pytest.param(10, 3, [0.2, 1.3], 30.0, id="a loaded broker in between boosts (E17)"),
        pytest.param(10, 1, [], 0.0, id="a primary link spares nothing"),
    ],
)
def test_gain(publications: int, distance: int, loads: list[float], expected: float) -> None:
    assert gain(publications, distance, loads, 0.8) == pytest.approx(expected)


def choose(
    choice: SoftLinkChoice,
    mom: MasterOverlayMap,
    traffic: Traffic,
    *,
    room: int = 2,
    loads: dict[str, float] | None = None,
) -> list[str]:
    choice.evaluate(
        mom, {"B"}, traffic, strategy=ForwardingStrategy.S2, loads=loads or {}, room=room
    )
    return choice.soft


def test_an_anchor_with_traffic_is_a_candidate_first_and_linked_next(mom: MasterOverlayMap) -> None:
    choice = SoftLinkChoice(0.8, candidates_max=5)
    assert choose(choice, mom, [(["D"], 10)]) == []
    assert choice.candidates == ["D"]
    assert choose(choice, mom, [(["D"], 10)]) == ["D"]


def test_the_highest_gains_are_linked_within_the_room(mom: MasterOverlayMap) -> None:
    choice = SoftLinkChoice(0.8, candidates_max=5)
    traffic: Traffic = [(["D"], 10), (["C"], 5), (["F"], 8)]
    choose(choice, mom, traffic)
    assert choose(choice, mom, traffic) == ["D", "F"]
    assert choose(choice, mom, traffic, room=0) == []


def test_a_link_is_replaced_only_by_a_clearly_better_one(mom: MasterOverlayMap) -> None:
    choice = SoftLinkChoice(0.8, candidates_max=5, soft=["D"], candidates=["F"])
    assert choose(choice, mom, [(["D"], 100), (["F"], 105)], room=1) == ["D"]
    assert choose(choice, mom, [(["D"], 100), (["F"], 115)], room=1) == ["F"]


def test_a_link_without_gain_stays_for_three_periods(mom: MasterOverlayMap) -> None:
    choice = SoftLinkChoice(0.8, candidates_max=5, soft=["D"])
    assert [choose(choice, mom, []) for _ in range(3)] == [["D"], ["D"], []]


def test_a_loaded_broker_in_between_decides(mom: MasterOverlayMap) -> None:
    choice = SoftLinkChoice(0.8, candidates_max=5, candidates=["D", "F"])
    traffic: Traffic = [(["D"], 10), (["F"], 10)]
    assert choose(choice, mom, traffic, room=1, loads={"E": 1.5}) == ["F"]


def test_what_one_link_serves_does_not_count_for_another(mom: MasterOverlayMap) -> None:
    """S2 sends to C, which passes it on to D: a link with D would carry nothing."""
    choice = SoftLinkChoice(0.8, candidates_max=5, candidates=["C", "D"])
    assert choose(choice, mom, [(["C", "D"], 10)]) == ["C"]


def test_a_broker_that_is_gone_is_not_wanted_any_more(mom: MasterOverlayMap) -> None:
    choice = SoftLinkChoice(0.8, candidates_max=5, soft=["X"], candidates=["Y"])
    assert choose(choice, mom, []) == []
