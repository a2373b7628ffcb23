"""Master and working overlay maps: figures 3 and 4 of the paper, and plain versions of both."""

from __future__ import annotations

from random import Random

import pytest
from tests.overlay.mesh.maps import FIGURE_3, learnt_maps

from godwit.content.mesh_messages import NearbyBroker
from godwit.overlay.mesh.master_overlay_map import MasterOverlayMap
from godwit.overlay.mesh.working_overlay_map import WorkingOverlayMap
from godwit.overlay.topology import random_tree, topology


@pytest.fixture
def figure_4() -> WorkingOverlayMap:
    return WorkingOverlayMap(learnt_maps(FIGURE_3, 4)["A"], {"N1", "N2", "N3", "N4"})


def test_figure_4(figure_4: WorkingOverlayMap) -> None:
    """Test vector 9."""
    wom = figure_4
    assert wom.brokers == ["N1", "N2", "N3", "N4"]
    between, beyond, behind = (
        {broker: wom.names(sets[wom.index[broker]]) for broker in wom.brokers}
        for sets in (wom.between, wom.beyond, wom.behind)
    )
    assert between == {"N1": ["N1"], "N2": ["N2"], "N3": ["N1", "N3"], "N4": ["N1", "N4"]}
    assert beyond == {"N1": ["N1", "N3", "N4"], "N2": ["N2"], "N3": ["N3"], "N4": ["N4"]}
    assert behind == {"N1": ["N2"], "N2": ["N1", "N3", "N4"], "N3": ["N2"], "N4": ["N2"]}


def test_brokers_that_are_not_linked_are_substituted(figure_4: WorkingOverlayMap) -> None:
    """Test vector 9: N1 substitutes X1, X3, X4; N2 substitutes X2."""
    found = {broker: figure_4.names(bit) for broker, bit in figure_4.substitutes.items()}
    assert {each: found[each] for each in ("X1", "X3", "X4", "X2")} == {
        "X1": ["N1"], "X3": ["N1"], "X4": ["N1"], "X2": ["N2"],
    }  # fmt: skip
    assert "X5" not in found, "it is five links away"


@pytest.mark.parametrize("seed", range(20))
def test_a_map_is_the_tree_within_delta_links(seed: int) -> None:
    random = Random(seed)
    tree, delta = random_tree(random.randint(2, 30), random), random.randint(1, 5)
    for broker, mom in learnt_maps(tree, delta).items():
        near = {each: d for each, d in tree.distances(broker).items() if d <= delta}
        assert mom.distances == near
        for each in near:
            assert [broker, *mom.path(each)] == tree.path(broker, each)


def test_a_broker_beyond_delta_is_unknown_by_whatever_name() -> None:
    """Knowledge is local: renaming a broker beyond delta changes no map."""
    tree = random_tree(30, Random(7))
    far = max(tree.distances("B01"), key=tree.distances("B01").__getitem__)
    renamed = topology(
        [each.replace(far, "ZZZ") for each in tree.brokers],
        [(a.replace(far, "ZZZ"), b.replace(far, "ZZZ")) for a, b in tree.links],
    )
    before, after = learnt_maps(tree, 3), learnt_maps(renamed, 3)
    assert tree.distances("B01")[far] > 3
    for broker, distance in tree.distances(far).items():
        if distance > 3:
            assert after[broker].distances == before[broker].distances
            assert after[broker].view_for("B01") == before[broker].view_for("B01")


def test_what_fits_nowhere_is_left_out() -> None:
    mom = MasterOverlayMap("A", 3)
    told = [
        NearbyBroker("C", "B"),  # Its parent was not told.
        NearbyBroker("B"),
        NearbyBroker("A", "B"),  # This broker itself.
        NearbyBroker("D", "B"),
        NearbyBroker("D", "B"),
        NearbyBroker("E", "D"),
        NearbyBroker("F", "E"),  # Too far.
        NearbyBroker("X"),  # Not the neighbour.
    ]
    assert mom.hear("B", told)
    assert mom.distances == {"A": 0, "B": 1, "D": 2, "E": 3}
    assert mom.hear("G", [NearbyBroker("G"), NearbyBroker("D", "G")])
    assert mom.directions["D"] == "B", "no broker is in two directions"
    assert mom.forget("B")
    assert mom.distances == {"A": 0, "G": 1, "D": 2}


@pytest.mark.parametrize("seed", range(20))
def test_a_working_map_is_what_a_plain_contraction_gives(seed: int) -> None:
    random = Random(seed)
    tree = random_tree(random.randint(2, 25), random)
    broker = random.choice(tree.brokers)
    mom = learnt_maps(tree, random.randint(1, 5))[broker]
    others = [each for each in mom.distances if each != broker]
    soft = random.sample(others, random.randint(0, len(others)))
    linked = {*tree.neighbours(broker), *soft}
    wom = WorkingOverlayMap(mom, linked)

    paths = {each: tree.path(broker, each)[1:] for each in others}
    for each in others:
        nearest = [step for step in paths[each] if step in linked][-1]
        assert wom.names(wom.substitutes[each]) == [nearest]
    for i, each in enumerate(wom.brokers):
        between = {step for step in paths[each] if step in linked}
        beyond = {other for other in linked if each in paths[other]}
        behind = {other for other in linked if paths[other][0] != paths[each][0]}
        assert set(wom.names(wom.between[i])) == between
        assert set(wom.names(wom.beyond[i])) == beyond
        assert set(wom.names(wom.behind[i])) == behind
