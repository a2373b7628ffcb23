"""Stories of publications: they say what the brokers then do, and why, on random networks.

Each question is asked first; then the publication is really published, and the brokers that handled
it and the clients that got it are compared with the story.  The reason is compared with one that is
computed from what clients hold, with the reference semantics of filters, and from the way that the
publication then took.  Clients move between questions, brokers fall silent, links of trees go.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random

import pytest
from tests.content import reference
from tests.sweeps import seeds

from godwit.api.dashboard_api import EndReason, PublicationStory
from godwit.api.routing_api import HopAccount, HopQuestion
from godwit.broker.explaining import explain_hop, in_one_go
from godwit.broker.stimuli import LocalClient, Neighbour, Received
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Publication
from godwit.content.values import Value
from godwit.errors import UnreachableError
from godwit.overlay import OVERLAYS
from godwit.overlay.topology import chain, random_tree
from godwit.simulation.observers import Observer
from godwit.simulation.simulated_client import SimulatedClient
from godwit.simulation.simulator import Simulator
from godwit.testing.overlay_shapes import shape_for
from godwit.testing.random_content import RandomContent
from godwit.web.stories import StoryQuestion, path, tell_story

PAIRS_PER_SEED = 25
#: In `make sweep` more than 1,000 pairs of each overlay.
SEEDS = seeds(4, whole=44)


class Witness(Observer):
    """Where publications went."""

    def __init__(self) -> None:
        self.brokers: set[str] = set()
        self.came_from: dict[str, str] = {}
        self.clients: Counter[str] = Counter()

    def begin(self) -> None:
        self.brokers.clear()
        self.came_from.clear()
        self.clients.clear()

    def on_handled(self, broker: str, received: Received, done_s: float) -> None:
        if isinstance(received.message, Publication):
            self.brokers.add(broker)
            if isinstance(received.last_hop, Neighbour):
                self.came_from[broker] = received.last_hop.name

    def way_to(self, broker: str) -> list[str]:
        """The brokers that the publication passed, from the publisher's to this one."""
        way = [broker]
        while way[-1] in self.came_from:
            way.append(self.came_from[way[-1]])
        return way[::-1]

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        self.clients.update(clients)


class Scene:
    """A simulated network that can be asked as a live one."""

    def __init__(self, seed: int, overlay: str) -> None:
        random = self.random = Random(seed)
        tree = random_tree(random.randint(2, 10), random)
        topology, settings, modules = shape_for(OVERLAYS[overlay], tree, seed=seed)
        self.witness = Witness()
        self.simulator = Simulator(
            topology,
            seed=seed,
            observers=(self.witness,),
            overlay=OVERLAYS[overlay],
            settings=settings,
            modules=modules,
        )
        self.content = RandomContent(random.choice((("class", "name", "size"), ("size",))), random)
        self.clients = [
            self.simulator.client(f"c{number}", at=random.choice(topology.brokers))
            for number in range(random.randint(3, 7))
        ]
        self.silent: set[str] = set()
        self.broken: tuple[str, str] | None = None
        self.is_tree = overlay == "tree"
        self.links = sorted(topology.links)

    async def ask(self, broker: str, question: HopQuestion) -> HopAccount:
        if broker in self.silent:
            raise UnreachableError(f"{broker} is silent")
        routing = self.simulator.node(broker).broker.routing
        steps = explain_hop(
            routing,
            question.record,
            publisher=question.publisher,
            came_from=question.came_from,
            subscriber=question.subscriber,
            hops=question.hops,
        )
        neighbours = {each.name for each in routing.neighbours if isinstance(each, Neighbour)}
        return HopAccount(
            broker=broker,
            explanation=in_one_go(steps),
            links=dict.fromkeys(neighbours, "up"),
        )

    def story(
        self, publisher: SimulatedClient, to: SimulatedClient, record: Mapping[str, Value]
    ) -> PublicationStory:
        question = StoryQuestion(
            record=record,
            publisher=publisher.name,
            publisher_broker=publisher.home.broker,
            to=to.name,
            to_broker=to.home.broker,
            links=self.links,
        )
        return asyncio.run(tell_story(question, self.ask))

    def change(self) -> None:
        """Some clients advertise, subscribe, withdraw and move; then the network is quiet."""
        random = self.random
        for client in self.clients:
            held = client.holdings
            for _ in range(random.randint(0, 2)):
                wanted = self.content.filter(every_attribute=False)
                if wanted.is_satisfiable:
                    client.subscribe(wanted)
            announced = self.content.filter(every_attribute=True)
            if announced.is_satisfiable and random.random() < 0.6:
                client.advertise(announced)
            if held.subscriptions and random.random() < 0.2:
                client.unsubscribe(random.choice(list(held.subscriptions.values())).id)
        self.simulator.run()
        for client in self.clients:
            if random.random() < 0.4:
                client.move(random.choice(self.simulator.topology.brokers))
        self.simulator.run()

    def mend(self) -> None:
        self.silent = set()
        if self.broken is not None:
            self.simulator.add_link(*self.broken)
            self.broken = None
            self.simulator.run()

    def fail(self) -> None:
        """Some broker does not answer, or a link of a tree is gone."""
        random, kind = self.random, self.random.random()
        if kind < 0.3:
            self.silent = {random.choice(self.simulator.topology.brokers)}
        elif kind < 0.6 and self.is_tree:
            self.broken = random.choice(self.links)
            self.simulator.remove_link(*self.broken)
            self.simulator.run()

    def record(self, publisher: SimulatedClient) -> dict[str, Value]:
        """One that is permitted, usually."""
        own = list(publisher.holdings.advertisements.values())
        if own and self.random.random() < 0.85:
            return self.content.content(self.random.choice(own).filter)
        return self.content.content(self.content.filter(every_attribute=True))

    def permitting(
        self, publisher: SimulatedClient, record: Mapping[str, Value]
    ) -> AdvertisementId | None:
        for id, held in publisher.holdings.advertisements.items():
            names = {predicate.attribute for predicate in held.filter.predicates}
            if record.keys() <= names and reference.matches(held.filter.predicates, record):
                return id
        return None


def expected_end(
    scene: Scene, publisher: SimulatedClient, to: SimulatedClient, record: Mapping[str, Value]
) -> tuple[EndReason, str | None]:
    """The reason and, where faults end the way, the place: from what clients hold, from where the
    publication then went, and from the brokers that do not answer."""
    silent, start, home = scene.silent, publisher.home.broker, to.home.broker
    if start in silent:
        return EndReason.BROKER_SILENT, start
    if scene.permitting(publisher, record) is None:
        return EndReason.NOT_ADVERTISED, start
    if to is publisher:
        return EndReason.OWN_PUBLICATION, start
    if home in silent:
        return EndReason.BROKER_SILENT, home
    wanted = [each.filter for each in to.holdings.subscriptions.values()]
    if not wanted:
        return EndReason.NOT_SUBSCRIBED, None
    if not any(reference.matches(each.predicates, record) for each in wanted):
        return EndReason.FILTER_FAILS, None
    way = scene.witness.way_to(home)
    if way[0] != start:  # It has not arrived: there is no way of links.
        return EndReason.LINK_DOWN, None
    for broker, following in pairwise(way):
        if following in silent:
            return EndReason.BROKER_SILENT, broker
    return EndReason.DELIVERED, home


def reached(scene: Scene) -> set[str]:
    """Clients that got it over brokers that answer, as far as a story can follow it."""
    homes = {client.name: client.home.broker for client in scene.clients}
    return {
        name
        for name in scene.witness.clients
        if not scene.silent.intersection(scene.witness.way_to(homes[name]))
    }


@pytest.mark.parametrize("overlay", OVERLAYS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_story_says_what_then_happens_and_why(overlay: str, seed: int) -> None:
    scene, reasons = Scene(seed, overlay), Counter[EndReason | None]()
    for number in range(PAIRS_PER_SEED):
        if number % 5 == 0:
            scene.mend()
            scene.change()
            scene.fail()
        publisher, to = scene.random.choice(scene.clients), scene.random.choice(scene.clients)
        record = scene.record(publisher)
        story = scene.story(publisher, to, record)
        where = f"replay with seed {seed} of {overlay}, pair {number}: {story.says}"
        permitted, witness = scene.permitting(publisher, record), scene.witness
        witness.begin()
        if permitted is not None:
            publisher.publish(permitted, record)
            scene.simulator.run()
        reason, ends_at = expected_end(scene, publisher, to, record)
        reasons[story.reason] += 1
        assert story.reason == reason, where
        assert ends_at in (None, story.ends_at), where
        assert set(story.delivered_to) == reached(scene), where
        assert scene.silent or (reason is EndReason.DELIVERED) == (to.name in witness.clients), (
            where
        )
        if permitted is not None and not scene.silent:
            assert {hop.account.broker for hop in story.hops} == witness.brokers, where
            assert story.ends_at in witness.brokers, where
        assert {hop.account.broker for hop in story.hops} <= witness.brokers | {
            story.publisher_broker
        }
    assert len(reasons) >= 2, f"seed {seed} asks only one kind of question: {reasons}"


def test_failing_predicates_are_named() -> None:
    scene = quiet_chain()
    publisher, to = scene.clients
    to.subscribe(Filter.parse("class = 'A' and size > 10"))
    scene.simulator.run()
    story = scene.story(publisher, to, {"class": "A", "size": 3})
    assert story.reason is EndReason.FILTER_FAILS
    assert any("size > 10 fails: size is 3" in line for line in story.says)
    assert story.ends_at == "B1"


def test_a_subscription_under_way_is_not_in_effect() -> None:
    scene = quiet_chain()
    publisher, to = scene.clients
    to.subscribe(Filter.parse("class = 'A' and size > 10"))
    scene.simulator.run(until_s=scene.simulator.now_s + 1e-3)
    assert to.unconfirmed
    story = scene.story(publisher, to, {"class": "A", "size": 30})
    assert (story.reason, story.ends_at) == (EndReason.NOT_IN_EFFECT, "B1")
    scene.simulator.run()
    assert scene.story(publisher, to, {"class": "A", "size": 30}).reason is EndReason.DELIVERED


def test_a_broker_that_is_silent_and_a_link_that_is_gone_end_the_way() -> None:
    scene = quiet_chain()
    publisher, to = scene.clients
    to.subscribe(Filter.parse("class = 'A'"))
    scene.simulator.run()
    links = scene.links
    scene.silent = {"B2"}
    story = scene.story(publisher, to, {"class": "A", "size": 1})
    assert (story.reason, story.ends_at) == (EndReason.BROKER_SILENT, "B1")
    assert story.silent == ["B2"]
    scene.silent = set()
    scene.simulator.remove_link("B2", "B3")
    scene.simulator.run()
    question = StoryQuestion(
        record={"class": "A", "size": 1},
        publisher=publisher.name,
        publisher_broker="B1",
        to=to.name,
        to_broker="B4",
        links=links,
    )
    story = asyncio.run(tell_story(question, scene.ask))
    assert (story.reason, story.ends_at) == (EndReason.LINK_DOWN, "B1")


def test_unknown_subscribers_are_said_to_be() -> None:
    scene = quiet_chain()
    question = StoryQuestion(
        record={"class": "A", "size": 1}, publisher="p", publisher_broker="B1", to="nobody"
    )
    story = asyncio.run(tell_story(question, scene.ask))
    assert story.reason is EndReason.UNKNOWN_SUBSCRIBER


def quiet_chain() -> Scene:
    """p at B1 advertises class A; s is at B4."""
    scene = Scene(1, "tree")
    scene.simulator = Simulator(chain(4), seed=1, observers=(scene.witness,))
    scene.links = list(chain(4).links)
    scene.clients = [scene.simulator.client("p", at="B1"), scene.simulator.client("s", at="B4")]
    scene.clients[0].advertise(Filter.parse("class = 'A' and size is a number"))
    scene.simulator.run()
    return scene


def test_the_way_between_brokers() -> None:
    links = [("A", "B"), ("B", "C"), ("D", "E")]
    assert path(links, "C", "A") == ["C", "B", "A"]
    assert path(links, "A", "A") == ["A"]
    assert path(links, "A", "E") == []


def test_a_probe_changes_nothing() -> None:
    scene = quiet_chain()
    publisher, to = scene.clients
    to.subscribe(Filter.parse("class = 'A'"))
    scene.simulator.run()
    before = [scene.simulator.node(f"B{n}").broker.routing.tables() for n in (1, 2, 3, 4)]
    scene.witness.brokers.clear()
    scene.story(publisher, to, {"class": "A", "size": 1})
    scene.simulator.run()
    assert not scene.witness.brokers
    assert not scene.witness.clients
    after = [scene.simulator.node(f"B{n}").broker.routing.tables() for n in (1, 2, 3, 4)]
    assert before == after
    assert LocalClient("s") in after[3].subscriptions.values()
