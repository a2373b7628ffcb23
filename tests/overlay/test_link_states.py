"""What brokers tell each other about their links."""

from __future__ import annotations

from random import Random

import pytest

from godwit.content.link_messages import LinkState, LinkStatus, MissingBroker
from godwit.overlay.link_states import Letters, LinkStates
from godwit.overlay.topology import random_tree


class Network:
    """Link states of several brokers, whose messages arrive in any order of the links."""

    def __init__(self, expected: dict[str, tuple[str, ...]], random: Random) -> None:
        self.random = random
        self.states = {name: LinkStates(name, names) for name, names in expected.items()}
        self.wires: dict[tuple[str, str], Letters] = {}

    def send(self, source: str, letters: Letters) -> None:
        for letter in letters:
            self.wires.setdefault((source, letter[0]), []).append(letter)

    def link(self, a: str, b: str) -> None:
        self.send(a, self.states[a].link(b))
        self.send(b, self.states[b].link(a))

    def deliver(self) -> None:
        """Deliver everything; each link is FIFO."""
        while any(self.wires.values()):
            source, target = self.random.choice([wire for wire, sent in self.wires.items() if sent])
            _, message = self.wires[source, target].pop(0)
            assert isinstance(message, LinkState)
            self.send(target, self.states[target].receive(message, source))

    def missing(self, broker: str) -> list[MissingBroker]:
        return self.states[broker].missing()


CHAIN = {"B1": ("B2",), "B2": ("B1", "B3"), "B3": ("B2",)}


def test_a_broker_that_is_not_there_is_missing_at_its_neighbours() -> None:
    network = Network(CHAIN, Random(0))
    assert network.missing("B1") == [MissingBroker("B2", "B1")]
    assert network.missing("B3") == [MissingBroker("B2", "B3")]


def test_a_broker_knows_what_is_missing_behind_its_neighbour() -> None:
    network = Network(CHAIN, Random(0))
    network.link("B1", "B2")
    network.deliver()
    assert network.missing("B1") == [MissingBroker("B3", "B2")]
    network.link("B2", "B3")
    network.deliver()
    assert network.missing("B1") == []
    network.send("B2", network.states["B2"].set("B3", LinkStatus.AWAY))
    network.deliver()
    assert network.missing("B1") == [MissingBroker("B3", "B2")]


def test_a_broker_that_left_for_good_is_not_missing() -> None:
    network = Network(CHAIN, Random(0))
    network.link("B1", "B2")
    network.link("B2", "B3")
    network.deliver()
    network.send("B2", network.states["B2"].forget("B3"))
    network.deliver()
    assert network.missing("B1") == []


def test_a_broker_that_restarts_counts_again_and_is_believed() -> None:
    network = Network(CHAIN, Random(0))
    network.link("B1", "B2")
    for _ in range(5):
        network.link("B2", "B3")
    network.deliver()
    assert network.missing("B1") == []
    network.states["B2"] = LinkStates("B2", CHAIN["B2"])
    network.link("B1", "B2")
    network.deliver()
    assert network.missing("B1") == [MissingBroker("B3", "B2")]


@pytest.mark.parametrize("seed", range(50))
def test_everyone_knows_everything_in_the_end(seed: int) -> None:
    random = Random(seed)
    topology = random_tree(random.randint(2, 9), random)
    names = topology.brokers
    network = Network({name: topology.neighbours(name) for name in names}, random)
    links = sorted(topology.links)
    random.shuffle(links)
    down = links.pop()
    for a, b in links:
        network.link(a, b)
        if random.random() < 0.5:
            network.deliver()
    network.deliver()
    side = set(_side(names, links, down[0]))
    for name in names:
        here, there = down if name in side else reversed(down)
        assert network.missing(name) == [MissingBroker(there, here)], name
    network.link(*down)
    network.deliver()
    assert not any(network.missing(name) for name in names)


def _side(names: tuple[str, ...], links: list[tuple[str, str]], start: str) -> list[str]:
    reached = [start]
    for broker in reached:
        for a, b in links:
            for near, far in ((a, b), (b, a)):
                if near == broker and far not in reached:
                    reached.append(far)
    assert set(reached) <= set(names)
    return reached
