"""Gatherings among modules whose letters are handed on by hand: any overlay, any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from random import Random

import pytest
from tests.sweeps import seeds

from godwit.broker.modules import Request, Timer, ToNeighbour
from godwit.broker.stimuli import Neighbour
from godwit.errors import UsageError
from godwit.policies.allocation.cbc_gathering import (
    GATHERINGS_MAX,
    IDLE_FACTOR,
    PAGES_AHEAD,
    PAGES_HELD,
    Gatherings,
    OwnPages,
)
from godwit.policies.allocation.cbc_letters import (
    BrokerInformationAnswer,
    StillThere,
    read_letter,
    write_letter,
)

SILENCE_S = 8.0


class Network:
    """Brokers with pages of their own; letters wait on links, each link in its order."""

    def __init__(
        self, links: Iterable[tuple[str, str]], *, pages: int = 3, random: Random | None = None
    ) -> None:
        self.links = {frozenset(link) for link in links}
        self.random = random or Random(0)
        self.now_s = 0.0
        self.dead: set[str] = set()
        self.waiting: dict[tuple[str, str], list[bytes]] = {}
        self.timers: list[tuple[float, str, str]] = []
        self.pages = pages
        self.most_waiting = 0
        names = sorted({name for link in self.links for name in link})
        self.brokers = {name: Gatherings(self._pages_of(name)) for name in names}

    def _pages_of(self, name: str) -> OwnPages:
        def own(_asked: list[Neighbour], _now_s: float) -> Iterator[bytes]:
            return iter([f"{name}:{number}".encode() for number in range(self.pages)])

        return own

    def neighbours(self, name: str) -> list[Neighbour]:
        return [
            Neighbour(other)
            for other in sorted(self.brokers)
            if frozenset((name, other)) in self.links
        ]

    def take(self, name: str, requests: Iterable[Request]) -> None:
        for request in requests:
            if isinstance(request, ToNeighbour):
                queue = self.waiting.setdefault((name, request.neighbour.name), [])
                queue.append(request.body)
                answers = [read_letter(body) for body in queue]
                count = sum(isinstance(each, BrokerInformationAnswer) for each in answers)
                self.most_waiting = max(self.most_waiting, count)
            else:
                assert isinstance(request, Timer)
                self.timers.append((request.at_s, name, request.name))

    def begin(self, at: str, id: str = "g") -> None:
        self.take(at, self.brokers[at].begin(id, SILENCE_S, self.neighbours(at), self.now_s))

    def post(self) -> None:
        """Deliver all letters, links in random order."""
        while links := [link for link, queue in self.waiting.items() if queue]:
            source, target = self.random.choice(links)
            body = self.waiting[source, target].pop(0)
            if not {source, target} & self.dead:
                letter = read_letter(body)
                assert letter is not None
                neighbours = self.neighbours(target)
                module = self.brokers[target]
                self.take(
                    target, module.on_letter(letter, Neighbour(source), neighbours, self.now_s)
                )

    def wait(self, seconds: float) -> None:
        until_s = self.now_s + seconds
        while due := [each for each in self.timers if each[0] <= until_s]:
            timer = min(due)
            self.timers.remove(timer)
            self.now_s, name, word = timer
            if name not in self.dead:
                self.take(name, self.brokers[name].on_timer(word, self.now_s))
            self.post()
        self.now_s = until_s

    def fetch_all(self, at: str, id: str = "g") -> list[str]:
        """All pages, fetched as they come, and the gathering ended."""
        received: list[str] = []
        for _ in range(1_000):
            self.post()
            held = self.brokers[at].held(id)
            fresh = held.pages[len(received) - held.first :]
            received += [page.decode() for page in fresh]
            if held.is_complete and not fresh:
                self.take(at, self.brokers[at].end(id))
                return received
            self.take(at, self.brokers[at].fetch(id, len(received), self.now_s))
            if not fresh:
                self.wait(SILENCE_S / 4)
        raise AssertionError("it does not end")

    def all_pages(self, *without: str) -> Counter[str]:
        names = set(self.brokers) - set(without)
        return Counter(f"{name}:{number}" for name in names for number in range(self.pages))


def random_network(seed: int) -> Network:
    """A random connected graph, in half of the cases a tree."""
    random = Random(seed)
    names = [f"B{number}" for number in range(random.randint(2, 12))]
    links = [(names[n], random.choice(names[:n])) for n in range(1, len(names))]
    if random.random() < 0.5:
        links += [(a, b) for a, b in (random.sample(names, 2) for _ in names)]
    return Network(links, pages=random.choice((1, 3, 20)), random=random)


@pytest.mark.parametrize("seed", range(seeds(50, whole=1_000)))
def test_each_page_arrives_once_whatever_the_links_are(seed: int) -> None:
    network = random_network(seed)
    at = network.random.choice(sorted(network.brokers))
    network.begin(at)
    assert Counter(network.fetch_all(at)) == network.all_pages(), f"seed {seed}"
    assert network.now_s == 0.0, "nothing had to time out"
    network.post()
    assert {name: each.count for name, each in network.brokers.items() if each.count} == {}
    assert network.most_waiting <= PAGES_AHEAD + 1, "A1, and the last answer"


@pytest.mark.parametrize("seed", range(seeds(50, whole=1_000)))
def test_the_others_answer_if_some_are_dead(seed: int) -> None:
    """Trees only: what is behind a dead broker is cut off."""
    network = random_network(seed)
    names = sorted(network.brokers)
    at, *others = network.random.sample(names, k=len(names))
    network.dead = set(others[: network.random.randint(1, 2)])
    network.begin(at)
    found = Counter(network.fetch_all(at))
    reached = {page.partition(":")[0] for page in found}
    assert found == network.all_pages(*(set(names) - reached)), f"seed {seed}: whole answers"
    assert at in reached
    assert reached == _reachable(network, at), f"seed {seed}"
    assert network.now_s <= 2 * SILENCE_S, "however deep it is"


def _reachable(network: Network, at: str) -> set[str]:
    reached, waiting = {at}, [at]
    while waiting:
        for neighbour in network.neighbours(waiting.pop()):
            if neighbour.name not in reached | network.dead:
                reached.add(neighbour.name)
                waiting.append(neighbour.name)
    return reached


def test_a_slow_fetch_holds_the_pages_back_and_no_one_is_missing() -> None:
    """Nobody fetches for a while: pages stay where they are, and signs of life go on."""
    network = Network([("A", "B"), ("B", "C")], pages=200)
    network.begin("A")
    network.post()
    assert len(network.brokers["A"].held("g").pages) == PAGES_HELD
    network.wait(2 * SILENCE_S)
    assert [network.brokers[name].count for name in "ABC"] == [1, 1, 1]
    assert Counter(network.fetch_all("A")) == network.all_pages()


def test_a_gathering_that_is_not_fetched_ends_everywhere() -> None:
    network = Network([("A", "B"), ("B", "C")], pages=200)
    network.begin("A")
    network.post()
    network.wait((IDLE_FACTOR + 1) * SILENCE_S)
    assert [network.brokers[name].count for name in "ABC"] == [0, 0, 0]
    with pytest.raises(UsageError, match=r"no gathering 'g' .* begin another"):
        network.brokers["A"].fetch("g", 0, network.now_s)


def test_those_behind_a_dead_asker_stop() -> None:
    network = Network([("A", "B"), ("B", "C")], pages=200)
    network.begin("A")
    network.post()
    network.dead = {"A", "B"}
    network.wait(2 * SILENCE_S)
    assert network.brokers["C"].count == 0


def test_an_end_reaches_all() -> None:
    network = Network([("A", "B"), ("B", "C")], pages=200)
    network.begin("A")
    network.post()
    network.take("A", network.brokers["A"].end("g"))
    network.post()
    assert [network.brokers[name].count for name in "ABC"] == [0, 0, 0]


def test_several_at_the_same_time() -> None:
    network = Network([("A", "B"), ("B", "C")])
    for number, at in enumerate("ABCA"):
        network.begin(at, f"g{number}")
    for number, at in enumerate("ABCA"):
        assert Counter(network.fetch_all(at, f"g{number}")) == network.all_pages()


def test_a_fetch_may_be_repeated() -> None:
    network = Network([("A", "B")])
    network.begin("A")
    network.post()
    gatherings = network.brokers["A"]
    first = gatherings.held("g")
    gatherings.fetch("g", 0, 0.0)
    assert gatherings.held("g") == first
    gatherings.fetch("g", 2, 0.0)
    again = gatherings.held("g")
    assert (again.first, again.pages) == (2, first.pages[2:])


def test_what_is_refused() -> None:
    network = Network([("A", "B")])
    gatherings = network.brokers["A"]
    network.begin("A", "g")
    with pytest.raises(UsageError, match="has begun already"):
        network.begin("A", "g")
    for number in range(GATHERINGS_MAX - 1):
        network.begin("A", f"g{number}")
    with pytest.raises(UsageError, match=f"{GATHERINGS_MAX} gatherings are going on"):
        network.begin("A", "one more")
    with pytest.raises(UsageError, match=r"after 0.0 s of silence"):
        gatherings.begin("x", 0.0, [], 0.0)
    network.post()
    with pytest.raises(UsageError, match="no gathering 'g' at this broker"):
        network.brokers["B"].fetch("g", 0, 0.0)


def test_letters_of_strangers_are_ignored() -> None:
    network = Network([("A", "B")])
    gatherings = network.brokers["A"]
    answer = BrokerInformationAnswer("unknown", b"page")
    assert gatherings.on_letter(answer, Neighbour("B"), [], 0.0) == []
    network.begin("A", "g")
    assert gatherings.on_letter(StillThere("g"), Neighbour("Z"), [], 0.0) == []
    late = BrokerInformationAnswer("g", b"forged")
    assert gatherings.on_letter(late, Neighbour("Z"), [], 0.0) == []
    assert b"forged" not in gatherings.held("g").pages
    assert read_letter(b"\xff\x00") is None
    assert read_letter(write_letter(late)) == late
