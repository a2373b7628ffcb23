"""S0, S1, S2: figure 2 of the paper, and random trees in which every broker decides by itself."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from tests.overlay.mesh.maps import FIGURE_3, learnt_maps, tree_of
from tests.sweeps import seeds

from godwit.broker.stimuli import Neighbour
from godwit.overlay.mesh.anchors import anchor_for_neighbour
from godwit.overlay.mesh.forwarding import Forwarding
from godwit.overlay.mesh.master_overlay_map import MasterOverlayMap
from godwit.overlay.mesh.strategies import ForwardingStrategy, forward
from godwit.overlay.mesh.working_overlay_map import WorkingOverlayMap
from godwit.overlay.topology import Topology, random_tree

FIGURE_2 = tree_of(["A-N1", "N1-N2", "N2-N3", "N2-N4", "N4-N5", "N4-N6"])
TREES = seeds(20, whole=1_000)
PLAIN = (ForwardingStrategy.S0, ForwardingStrategy.S1, ForwardingStrategy.S2)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        pytest.param(ForwardingStrategy.S0, ["N1"], id="S0 goes to the primary neighbour"),
        pytest.param(ForwardingStrategy.S1, ["N2"], id="S1 goes to where the paths part"),
        pytest.param(ForwardingStrategy.S2, ["N3", "N5", "N6"], id="S2 goes to all directly"),
    ],
)
def test_figure_2(strategy: ForwardingStrategy, expected: list[str]) -> None:
    """Test vector 10: soft links to all, p matches N3, N5 and N6."""
    mom = learnt_maps(FIGURE_2, 4)["A"]
    wom = WorkingOverlayMap(mom, set(FIGURE_2.brokers) - {"A"})
    assert wom.names(forward(strategy, wom, wom.mask(["N3", "N5", "N6"]))) == expected


def test_an_anchor_moves_towards_the_receiver() -> None:
    """E18: the subscription of X5 has the anchor N4 at A, with delta 4."""
    maps, anchor = learnt_maps(FIGURE_3, 4), "X5"
    for broker in ("X5", "N4", "X3", "X1", "N1"):
        anchor = anchor_for_neighbour(maps[broker], anchor)
    assert anchor == "N4"


def anchor_at(mom: MasterOverlayMap, tree: Topology, issuer: str) -> str:
    """As in section 4: the issuer, or the broker at distance delta on the way to it."""
    path = tree.path(mom.broker, issuer)
    return path[min(mom.delta, len(path) - 1)]


@pytest.mark.parametrize("seed", range(10))
def test_anchors_that_travel_are_those_of_the_paper(seed: int) -> None:
    random = Random(seed)
    tree, delta = random_tree(25, random), random.randint(1, 5)
    maps = learnt_maps(tree, delta)
    for issuer in tree.brokers:
        for broker in tree.brokers:
            anchor = issuer
            for sender in tree.path(issuer, broker)[:-1]:
                anchor = anchor_for_neighbour(maps[sender], anchor)
            assert anchor == anchor_at(maps[broker], tree, issuer)


class Mesh:
    """Every broker with random soft links and a strategy; copies are counted, not delayed."""

    def __init__(self, random: Random, strategy: ForwardingStrategy | None) -> None:
        self.tree = random_tree(40, random)
        self.maps = learnt_maps(self.tree, random.randint(2, 5))
        self.forwarding: dict[str, Forwarding] = {}
        self.strategies = {}
        for broker in self.tree.brokers:
            near = [each for each in self.maps[broker].distances if each != broker]
            soft = random.sample(near, min(len(near), random.randint(0, 6)))
            linked = {*self.tree.neighbours(broker), *soft}
            self.forwarding[broker] = Forwarding(self.maps[broker], linked, 0)
            self.strategies[broker] = strategy or random.choice(PLAIN)

    def publish(self, source: str, wanting: set[str]) -> Counter[str]:
        copies: Counter[str] = Counter()
        frontier: list[tuple[str, str | None]] = [(source, None)]
        while frontier:
            broker, sender = frontier.pop()
            forwarding, mom = self.forwarding[broker], self.maps[broker]
            hops = [Neighbour(anchor_at(mom, self.tree, each)) for each in wanting - {broker}]
            anchors = forwarding.anchors(hops)
            if sender is not None:
                anchors = forwarding.beside(anchors, Neighbour(sender))
            fwd = forwarding.decide(anchors, self.strategies[broker])
            for hop in forwarding.links(fwd):
                copies[hop.name] += 1
                frontier.append((hop.name, broker))
        return copies


def test_every_broker_that_wants_a_publication_gets_one_copy_and_none_gets_two() -> None:
    messages: Counter[ForwardingStrategy | None] = Counter()
    for seed in range(TREES):
        for strategy in (*PLAIN, None):
            random = Random(seed)
            mesh = Mesh(random, strategy)
            for _ in range(20):
                source = random.choice(mesh.tree.brokers)
                wanting = set(random.sample(mesh.tree.brokers, random.randint(1, 20)))
                copies = mesh.publish(source, wanting)
                assert wanting - {source} <= set(copies), f"{seed} {strategy}: one is missing"
                assert max(copies.values(), default=1) == 1, f"{seed} {strategy}: {copies}"
                messages[strategy] += copies.total()
    assert (
        messages[ForwardingStrategy.S2]
        < messages[ForwardingStrategy.S1]
        < messages[ForwardingStrategy.S0]
    ), messages


def test_candidates_that_are_used_as_links_give_two_copies() -> None:
    """E19: what a candidate would get is sent to a nearer broker, which serves others as well."""
    tree = tree_of(["A-B", "B-C", "B-D"])
    mom = learnt_maps(tree, 2)["A"]
    counting = WorkingOverlayMap(mom, {"B", "C", "D"})
    chosen = counting.names(forward(ForwardingStrategy.S2, counting, counting.mask(["C", "D"])))
    assert chosen == ["C", "D"], "D is a candidate: A would send to C, and to B for D"
    working = WorkingOverlayMap(mom, {"B", "C"})
    anchors = working.substitutes["C"] | working.substitutes["D"]
    assert working.names(forward(ForwardingStrategy.S2, working, anchors)) == ["B"]
