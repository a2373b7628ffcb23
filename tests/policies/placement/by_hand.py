"""Modules of a whole tree, without brokers: publications and letters are handed on by hand.

Each publication goes where its subscribers are, every module sees it, and all letters are answered
before the next: what a policy decides here follows from what was delivered, and nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from random import Random

import msgspec

from godwit.broker.core import Broker
from godwit.broker.effects import Decision
from godwit.broker.modules import (
    AskForPings,
    AskToMove,
    BrokerView,
    PolicyModule,
    Request,
    Timer,
    ToNeighbour,
)
from godwit.broker.routing import Place
from godwit.broker.stimuli import Hop, LocalClient, Neighbour
from godwit.content.messages import NO_MARKS, AdvertisementId, Mark, Publication
from godwit.overlay.topology import Topology
from godwit.overlay.tree.tree_routing import TreeRouting

PUBLISHER = "publisher"


class Tree:
    def __init__(self, topology: Topology, modules: Mapping[str, PolicyModule], at: str) -> None:
        self.modules = modules
        self.at = at
        self.now_s = 0.0
        self.decisions: list[Decision] = []
        self.moves: list[AskToMove] = []
        self.pings: list[AskForPings] = []
        self.timers: list[tuple[str, Timer]] = []
        self.letters: list[tuple[str, bytes]] = []
        """All that were written, and to whom."""
        self.dead: set[str] = set()
        """Brokers that take nothing any more."""
        self.loses: Callable[[bytes], bool] = lambda _body: False
        """Which letters get lost."""
        self._topology = topology
        self._sequence = 0
        self._post: deque[tuple[str, str, bytes]] = deque()
        self.views = {name: _view(topology, name) for name in topology.brokers}
        for name, module in modules.items():
            self._take(name, module.start(self.views[name], 0.0))

    def publish(self, wanted: Mapping[str, int]) -> Publication:
        """Deliver one publication to so many subscribers at each broker, and all letters."""
        publication = Publication(
            publisher=PUBLISHER,
            sequence=self._sequence,
            advertisement=AdvertisementId(f"{PUBLISHER}/a"),
            content={},
        )
        self._sequence += 1
        module = self.modules[self.at]
        value = module.tag(publication, self.now_s)
        marks = (Mark(module.name, value),) if value else NO_MARKS
        traced = msgspec.structs.replace(publication, marks=marks)
        self._pass_on(traced, self.at, LocalClient(PUBLISHER), wanted)
        self.deliver_letters()
        return traced

    def trace(self, wanted: Mapping[str, int]) -> int:
        """As `publish`; the answer is the mark of the module."""
        return self.publish(wanted).mark(self.modules[self.at].name)

    def skip(self, publications: int) -> None:
        """The client uses some numbers for nothing."""
        self._sequence += publications

    def _pass_on(
        self, publication: Publication, at: str, last_hop: Hop, wanted: Mapping[str, int]
    ) -> None:
        if at in self.dead:
            return
        onward = [
            name
            for name in self._topology.neighbours(at)
            if name != last_hop.name and self._wants(name, at, wanted)
        ]
        local = [LocalClient(f"{at}-{number}") for number in range(wanted.get(at, 0))]
        destinations: list[Hop] = [*map(Neighbour, onward), *local]
        # First on to the neighbours: the modules' letters must come behind the publication.
        requests = self.modules[at].on_publication(publication, last_hop, destinations, self.now_s)
        self._take(at, requests)
        for name in onward:
            self._pass_on(publication, name, Neighbour(at), wanted)

    def _wants(self, name: str, source: str, wanted: Mapping[str, int]) -> bool:
        return bool(wanted.get(name)) or any(
            self._wants(beyond, name, wanted)
            for beyond in self._topology.neighbours(name)
            if beyond != source
        )

    def deliver_letters(self) -> None:
        while self._post:
            sender, to, body = self._post.popleft()
            self.letters.append((to, body))
            if to not in self.dead and not self.loses(body):
                answer = self.modules[to].on_letter(body, Neighbour(sender), self.now_s)
                self._take(to, answer)

    def move(self, to: str) -> None:
        """The publisher has moved."""
        self._take(to, self.modules[to].on_publisher_arrived(PUBLISHER, self.now_s))
        self._take(self.at, self.modules[self.at].on_departed(PUBLISHER, self.now_s))
        self.at = to

    def wait(self, seconds: float) -> None:
        """Let time pass; timers fire in order."""
        until_s = self.now_s + seconds
        while due := [each for each in self.timers if each[1].at_s <= until_s]:
            broker, timer = min(due, key=lambda each: each[1].at_s)
            self.timers.remove((broker, timer))
            self.now_s = timer.at_s
            self._take(broker, self.modules[broker].on_timer(timer.name, self.now_s))
            self.deliver_letters()
        self.now_s = until_s

    def answer_pings(self, round_trips_s: dict[str, float]) -> None:
        ask = self.pings.pop()
        found = self.modules[self.at].on_pinged(ask.client, round_trips_s, self.now_s)
        self._take(self.at, found)
        self.deliver_letters()

    def _take(self, broker: str, requests: Iterable[Request]) -> None:
        for request in requests:
            match request:
                case ToNeighbour(neighbour=neighbour, body=body):
                    self._post.append((broker, neighbour.name, body))
                case AskToMove():
                    self.moves.append(request)
                case AskForPings():
                    self.pings.append(request)
                case Decision():
                    self.decisions.append(request)
                case Timer():
                    self.timers.append((broker, request))
                case _:
                    raise AssertionError(f"no placement policy submits {request}")

    @property
    def actions(self) -> list[str]:
        return [decision.action for decision in self.decisions]


def random_wants(topology: Topology, random: Random, *, at_most: int = 8) -> dict[str, int]:
    """Some brokers have subscribers, and most have none."""
    return {name: random.randint(1, at_most) for name in topology.brokers if random.random() < 0.4}


def link_sum(topology: Topology, wanted: Mapping[str, float], at: str) -> float:
    """Links that all deliveries of a publication cross, from a publisher at a broker."""
    distances = topology.distances(at)
    return sum(count * distances[name] for name, count in wanted.items())


def _view(topology: Topology, name: str) -> BrokerView:
    place = Place.of(name, topology.neighbours(name))
    return BrokerView(Broker(name, routing=TreeRouting(place)), f"${name}")
