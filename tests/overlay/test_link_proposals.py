"""Links that are made at the same time: the result is a forest, whatever the order of messages.

The graph of the links that brokers ask for is random.  Messages of each link arrive in order, and
links in any order.  Brokers fail, and links that are refused are tried again.
"""

from __future__ import annotations

from collections import deque
from random import Random

import pytest
from tests.sweeps import seeds

from godwit.content.link_messages import LinkStatus
from godwit.overlay.link_proposals import LinkProposals, LinkStep
from godwit.overlay.link_states import LinkStates

Link = tuple[str, str]


class End:
    """One broker, as far as its links are concerned."""

    def __init__(self, name: str, run: int) -> None:
        self.states = LinkStates(name)
        self.proposals = LinkProposals(self.states, run=str(run))
        self.up: set[str] = set()


class Network:
    def __init__(self, names: list[str], wanted: list[Link], random: Random) -> None:
        self.random = random
        self.ends = {name: End(name, 0) for name in names}
        self.dialling = list(wanted)
        self.wires: dict[Link, deque[object]] = {}
        self.reasons: dict[Link, str] = {}
        self.runs = 0
        self.steps = 0

    # -- links ---------------------------------------------------------------------------------

    def call(self, link: Link) -> None:
        """The call arrives, and its answer is on the way back."""
        caller, answering = link
        if link in self.wires or link[::-1] in self.wires:
            return  # As with brokers that are linked already.
        end = self.ends[answering]
        refusal = end.proposals.refusal(caller)
        if refusal is not None:
            self.refuse(link, refusal)
            return
        turn = end.proposals.next_turn()
        self.wires[link], self.wires[link[::-1]] = deque(), deque([turn])
        self.perform(answering, end.proposals.answered(caller, turn))

    def refuse(self, link: Link, reason: str) -> None:
        self.reasons[link] = reason
        self.dialling.append(link)

    def perform(self, name: str, step: LinkStep) -> None:
        for to, message in step.letters:
            if (name, to) in self.wires:
                self.wires[name, to].append(message)
        for neighbour in step.up:
            self.ends[name].up.add(neighbour)
            self.check()
        for neighbour, reason in step.refused:
            while self.wires.get((name, neighbour)):  # What was sent before the goodbye.
                self.deliver((name, neighbour))
            self.drop((name, neighbour), reason)

    def drop(self, link: Link, reason: str = "") -> None:
        """End a connection for good, at both ends."""
        for pair in (link, link[::-1]):
            self.wires.pop(pair, None)
        for name, other in (link, link[::-1]):
            end = self.ends[name]
            end.up.discard(other)
            if end.states.status(other) is not None:
                self.perform(name, LinkStep(end.states.forget(other)))
                self.perform(name, end.proposals.gone(other))
        for pair in (link, link[::-1]):
            if pair in self.wanted and pair not in self.dialling:
                self.dialling.append(pair)
                if reason:
                    self.reasons[pair] = reason

    wanted: frozenset[Link] = frozenset()

    # -- time passes ---------------------------------------------------------------------------

    def step(self) -> bool:
        busy = [wire for wire, sent in self.wires.items() if sent]
        choices = len(busy) + len(self.dialling)
        if not choices:
            return False
        self.steps += 1
        number = self.random.randrange(choices)
        if number < len(self.dialling):
            self.call(self.dialling.pop(number))
            return True
        self.deliver(busy[number - len(self.dialling)])
        return True

    def deliver(self, wire: Link) -> None:
        source, target = wire
        message = self.wires[wire].popleft()
        end = self.ends[target]
        if isinstance(message, int):  # The answer to a call.
            step = end.proposals.dialled(source, message)
        else:
            step = end.proposals.receive(message, source)  # type: ignore[arg-type]
        self.perform(target, step)

    def crash(self, name: str) -> None:
        for link in [link for link in self.wires if link[0] == name]:
            self.drop(link)
        self.runs += 1
        self.ends[name] = End(name, self.runs)

    # -- what must hold ------------------------------------------------------------------------

    @property
    def links(self) -> set[Link]:
        """Links that are in use at one end at least."""
        return {
            (min(name, other), max(name, other))
            for name, end in self.ends.items()
            for other in end.up
        }

    def check(self) -> None:
        assert len(components(self.ends, self.links)) == len(self.ends) - len(self.links), (
            f"a cycle: {sorted(self.links)}"
        )


def components(names: object, links: set[Link]) -> set[frozenset[str]]:
    groups = {name: frozenset([name]) for name in names}  # type: ignore[attr-defined]
    for a, b in links:
        if groups[a] is not groups[b]:
            together = groups[a] | groups[b]
            for name in together:
                groups[name] = together
    return set(groups.values())


def settle(network: Network) -> None:
    """Until nothing happens except that links are tried and refused again."""
    last_news = network.steps
    links = network.links
    while network.step():
        if network.links != links:
            links, last_news = network.links, network.steps
        is_quiet = not any(network.wires.values())
        if is_quiet and network.steps - last_news > 300:
            return
        assert network.steps < 200_000, "it does not settle"


def random_network(seed: int) -> tuple[Network, list[Link]]:
    random = Random(seed)
    names = [f"B{number}" for number in range(random.randint(2, 8))]
    pairs = [(a, b) for a in names for b in names if a < b]
    chosen = random.sample(pairs, random.randint(1, len(pairs)))
    wanted = [pair if random.random() < 0.5 else pair[::-1] for pair in chosen]
    Network.wanted = frozenset(wanted)
    return Network(names, wanted, random), wanted


def check_settled(network: Network, wanted: list[Link]) -> None:
    network.check()
    asked = {(min(link), max(link)) for link in wanted}
    assert network.links <= asked
    assert components(network.ends, network.links) == components(network.ends, asked)
    for name, end in network.ends.items():
        for other in end.up:
            assert name in network.ends[other].up, "a link is in use at both ends"
            assert end.states.status(other) is LinkStatus.UP
    for link in wanted:
        if (min(link), max(link)) not in network.links:
            assert "would close a cycle" in network.reasons[link]
            assert all(end in network.reasons[link] for end in link)


@pytest.mark.parametrize("first", range(0, seeds(100, whole=600), 100))
def test_links_that_race_become_a_spanning_forest(first: int) -> None:
    for seed in range(first, first + 100):
        network, wanted = random_network(seed)
        settle(network)
        check_settled(network, wanted)


@pytest.mark.parametrize("first", range(0, seeds(100, whole=300), 100))
def test_also_if_brokers_fail_and_connections_are_lost_meanwhile(first: int) -> None:
    for seed in range(first, first + 100):
        network, wanted = random_network(seed)
        random = network.random
        for _ in range(random.randint(1, 3)):
            for _ in range(random.randint(0, 150)):
                network.step()
            if random.random() < 0.5 and network.wires:
                network.drop(random.choice(sorted(network.wires)))
            else:
                network.crash(random.choice(sorted(network.ends)))
        settle(network)
        check_settled(network, wanted)
