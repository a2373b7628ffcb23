"""Links that come and go: by hand at one broker, and at random on whole trees.

The random runs model what a driver does with a link: each end notices its loss by itself, what is
under way is lost, and each end has forgotten the old link before it hears anything over the new.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from random import Random
from typing import TypeAlias

import pytest
from tests.overlay.test_tree import adv, adv_in_effect, sub, sub_in_effect, unadv, unsub

from godwit.broker.core import Broker
from godwit.broker.effects import Deliver, Effect, Notify, Send
from godwit.broker.routing import Confirm, Place
from godwit.broker.stimuli import (
    ClientLeft,
    LinkDown,
    LinkKind,
    LinkUp,
    LocalClient,
    Neighbour,
    Received,
    Stimulus,
)
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Message,
    Publication,
    ResyncDone,
    ResyncScope,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
)
from godwit.content.values import Value
from godwit.overlay.topology import Topology, random_tree
from godwit.overlay.tree.tree_routing import Answers, TreeRouting

B1, B3 = Neighbour("B1"), Neighbour("B3")
ALICE, BOB, PAUL = LocalClient("alice"), LocalClient("bob"), LocalClient("paul")
ABOVE_1 = adv("paul/a1", "a > 1")
ADVERTISEMENTS_TOLD = ResyncDone(scope=ResyncScope.ADVERTISEMENTS)
ABOVE_5, ABOVE_9 = sub("alice/s1", "a > 5"), sub("bob/s1", "a > 9")


# -- by hand, seen from B2 between B1 and B3 -------------------------------------------------------


def test_a_new_neighbour_is_told_every_advertisement_and_no_subscription() -> None:
    b2 = TreeRouting(Place.of("B2", []))
    assert b2.handle(ABOVE_1, PAUL) == [Confirm(PAUL, adv_in_effect(ABOVE_1))]
    b2.handle(ABOVE_5, ALICE)

    assert b2.link_up(B1) == [Send(B1, ABOVE_1), Send(B1, ADVERTISEMENTS_TOLD)]
    # What was in effect stays so, whatever the new neighbour says.
    assert b2.handle(adv_in_effect(ABOVE_1), B1) == []
    other = adv("mary/a1", "a > 0")
    assert b2.handle(other, B1) == [Send(B1, ABOVE_5), Send(B1, adv_in_effect(other))]
    b2.check()


def test_an_advertisement_under_way_waits_for_a_new_neighbour_too() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1"]))
    b2.handle(ABOVE_1, PAUL)

    assert b2.link_up(B3) == [Send(B3, ABOVE_1), Send(B3, ADVERTISEMENTS_TOLD)]
    assert b2.handle(adv_in_effect(ABOVE_1), B1) == []
    assert b2.handle(adv_in_effect(ABOVE_1), B3) == [Confirm(PAUL, adv_in_effect(ABOVE_1))]


def test_what_a_lost_neighbour_told_is_withdrawn_from_the_others() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1", "B3"]))
    b2.handle(ABOVE_1, B1)
    b2.handle(adv_in_effect(ABOVE_1), B3)
    b2.handle(ABOVE_5, B3)
    other = adv("mary/a1", "b > 0")
    b2.handle(other, B3)

    assert b2.link_down(B3) == [Send(B1, unsub(ABOVE_5)), Send(B1, unadv(other))]
    assert b2.tables().advertisements == {"paul/a1": B1}
    assert b2.tables().subscriptions == {}
    assert b2.tables().told == {"B1": []}
    b2.check()


def test_nobody_waits_for_what_a_lost_neighbour_did_not_confirm() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1", "B3"]))
    b2.handle(ABOVE_1, B1)
    assert b2.handle(ABOVE_5, ALICE) == [Send(B1, ABOVE_5)]
    other = adv("mary/a1", "b > 0")
    assert b2.handle(other, PAUL) == [Send(B1, other), Send(B3, other)]
    b2.handle(adv_in_effect(other), B3)

    assert b2.link_down(B1) == [
        Send(B3, unadv(ABOVE_1)),
        Confirm(PAUL, adv_in_effect(other)),
        Confirm(ALICE, sub_in_effect(ABOVE_5)),
    ]
    b2.check()


def test_a_subscription_waits_on_for_the_neighbours_that_are_left() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1", "B3"]))
    b2.handle(ABOVE_1, B1)
    other = adv("mary/a1", "a > 0")
    b2.handle(other, B3)
    assert b2.handle(ABOVE_5, ALICE) == [Send(B1, ABOVE_5), Send(B3, ABOVE_5)]

    assert b2.link_down(B1) == [Send(B3, unadv(ABOVE_1)), Send(B3, adv_in_effect(other))]
    assert b2.handle(sub_in_effect(ABOVE_5), B3) == [Confirm(ALICE, sub_in_effect(ABOVE_5))]


def test_a_lost_neighbour_is_answered_nothing_about_what_it_had_asked() -> None:
    """Bob's s9 waited behind s5 of B3; with s5 gone a confirmed s3 covers it."""
    b2 = TreeRouting(Place.of("B2", ["B1", "B3"]))
    b2.handle(ABOVE_1, B1)
    b2.handle(adv_in_effect(ABOVE_1), B3)
    wide = sub("carl/s1", "a > 3")
    assert b2.handle(ABOVE_5, B3) == [Send(B1, ABOVE_5)]
    assert b2.handle(ABOVE_9, B3) == []
    assert b2.handle(wide, ALICE) == [Send(B1, wide)]
    assert b2.handle(sub_in_effect(wide), B1) == [Confirm(ALICE, sub_in_effect(wide))]

    assert b2.link_down(B3) == [Send(B1, unsub(ABOVE_5))]
    b2.check()


def test_a_neighbour_that_comes_back_hears_everything_anew() -> None:
    b2 = TreeRouting(Place.of("B2", ["B1", "B3"]))
    b2.handle(ABOVE_1, B1)
    b2.handle(ABOVE_5, ALICE)
    b2.handle(sub_in_effect(ABOVE_5), B1)

    b2.link_down(B1)
    assert b2.link_up(B1) == [Send(B1, ADVERTISEMENTS_TOLD)]
    assert b2.handle(ABOVE_1, B1) == [Send(B3, ABOVE_1), Send(B1, ABOVE_5)]
    assert b2.handle(sub_in_effect(ABOVE_5), B1) == [], "Alice knows already"
    assert b2.tables().told == {"B1": ["alice/s1"], "B3": []}
    b2.check()


# -- at random, on whole trees ---------------------------------------------------------------------


class Harness:
    """Brokers on a tree whose links break; FIFO in between, nothing lost but with its link."""

    def __init__(self, topology: Topology, random: Random, routing: type[TreeRouting]) -> None:
        self.topology = topology
        self.random = random
        self.brokers = {
            name: Broker(name, routing=routing(Place(name))) for name in topology.brokers
        }
        self.wires: dict[tuple[str, str], deque[Effect]] = {}
        """Under way from one broker to another, while the link from there is up."""
        self.up: set[tuple[str, str]] = set()
        """(broker, neighbour): the broker has a link to that neighbour."""
        self.unnoticed: set[tuple[str, str]] = set()
        """Those of them that lead nowhere: the neighbour has lost the link already."""
        self.notices: list[tuple[str, LocalClient, object]] = []
        self.delivered: list[tuple[str, str]] = []

    def stimulate(self, name: str, stimulus: Stimulus) -> None:
        broker = self.brokers[name]
        for effect in broker.handle(stimulus, now_s=0.0):
            if isinstance(effect, Send):
                link = (name, effect.to.name)
                assert link in self.up, f"{name} sends to {effect.to}, not linked"
                if link not in self.unnoticed:
                    self.wires[link].append(effect)
            elif isinstance(effect, Notify):
                self.notices.append((name, effect.to, effect.notice))
            elif isinstance(effect, Deliver):
                self.delivered += [(client.name, name) for client in effect.to]
        broker.routing.check()

    def ask(self, name: str, message: Message, client: str) -> None:
        self.stimulate(name, Received(message, LocalClient(client)))

    def connect(self, name: str, neighbour: str) -> None:
        """One end of a link is ready; what it sends waits until the other is, too."""
        self.up.add((name, neighbour))
        self.wires[name, neighbour] = deque()
        self.stimulate(name, LinkUp(Neighbour(neighbour)))

    def disconnect(self, name: str, neighbour: str) -> None:
        """One end notices that the link is lost, and with it what was under way."""
        self.up.discard((name, neighbour))
        self.unnoticed.discard((name, neighbour))
        if (neighbour, name) in self.up:
            self.unnoticed.add((neighbour, name))
        self.wires.pop((name, neighbour), None)
        self.wires.pop((neighbour, name), None)
        self.stimulate(name, LinkDown(Neighbour(neighbour)))

    def readable(self) -> Iterator[tuple[str, str]]:
        for (source, target), wire in sorted(self.wires.items()):
            if wire and (target, source) in self.up - self.unnoticed:
                yield source, target

    def transport(self, source: str, target: str) -> None:
        effect = self.wires[source, target].popleft()
        assert isinstance(effect, Send)
        self.stimulate(target, Received(effect.message, Neighbour(source), effect.hops))

    def settle(self) -> None:
        while readable := list(self.readable()):
            self.transport(*self.random.choice(readable))


ALL_KINDS = (
    "x > {low}",
    "x < {high}",
    "x >= {low} and x <= {high}",
    "x = {low} and y > {high}",
)


Request: TypeAlias = Advertisement | Subscription


def owner(request: Request) -> LocalClient:
    return LocalClient(request.id.partition("/")[0])


class Breaking(Harness):
    """A harness in which random things happen, and which knows what should come of them."""

    def __init__(self, seed: int, routing: type[TreeRouting] = TreeRouting) -> None:
        random = Random(seed)
        super().__init__(random_tree(random.randint(2, 7), random), random, routing)
        self.advertisements: dict[Request, str] = {}
        self.subscriptions: dict[Request, str] = {}
        """What is held, and at which broker."""
        self._serial = 0
        #: In half of the runs nearly every filter covers another.
        self._kinds = random.choice((ALL_KINDS, ALL_KINDS[:1]))

    def _filter(self) -> Filter:
        low, high = sorted(self.random.sample(range(10), 2))
        return Filter.parse(self.random.choice(self._kinds).format(low=low, high=high))

    def _advertise(self) -> None:
        self._serial += 1
        client, broker = f"p{self._serial}", self.random.choice(self.topology.brokers)
        filter = self.random.choice(
            (Filter.parse("x is a number and y is present"), self._filter())
        )
        message = Advertisement(id=AdvertisementId(f"{client}/a"), filter=filter)
        self.advertisements[message] = broker
        self.ask(broker, message, client)

    def _subscribe(self) -> None:
        self._serial += 1
        client, broker = f"c{self._serial}", self.random.choice(self.topology.brokers)
        message = Subscription(id=SubscriptionId(f"{client}/s"), filter=self._filter())
        self.subscriptions[message] = broker
        self.ask(broker, message, client)

    def _leave(self) -> None:
        """Somebody goes away with what it held."""
        for held in self.random.sample((self.advertisements, self.subscriptions), 2):
            if held:
                message = self.random.choice(list(held))
                self.stimulate(held.pop(message), ClientLeft(owner(message)))
                return

    def _break(self) -> None:
        """One end loses a link, or notices that it has; the other does so in its own time."""
        if self.up:
            self.disconnect(*self.random.choice(sorted(self.up)))

    def _mend(self) -> None:
        """One end gets a new link; if it had not noticed the loss of the old one, now it does."""
        ends = {end for a, b in self.topology.links for end in ((a, b), (b, a))}
        missing = sorted((ends - self.up) | self.unnoticed)
        if missing:
            end = self.random.choice(missing)
            if (end[1], end[0]) in self.unnoticed:
                return  # Nobody answers there yet.
            if end in self.unnoticed:
                self.disconnect(*end)
            self.connect(*end)

    def step(self) -> None:
        readable = list(self.readable())
        if readable and self.random.random() < 0.6:
            self.transport(*self.random.choice(readable))
            return
        actions = (self._advertise, self._subscribe, self._leave, self._break, self._mend)
        self.random.choices(actions, (2, 3, 2, 2, 4))[0]()

    def finish(self) -> None:
        for end in sorted(self.unnoticed):
            self.disconnect(*end)
        while len(self.up) < 2 * len(self.topology.links):
            self._mend()
        self.settle()

    # -- what should be ------------------------------------------------------------------------

    def check_tables(self) -> None:
        for name, broker in self.brokers.items():
            tables = broker.routing.tables()
            assert tables.advertisements == {
                message.id: self._toward(name, home, message)
                for message, home in self.advertisements.items()
            }, name
            for neighbour, told in tables.told.items():
                theirs = self.brokers[neighbour].routing.tables().subscriptions
                assert told == sorted(id for id, hop in theirs.items() if hop == Neighbour(name)), (
                    f"{name} told {neighbour}"
                )

    def _toward(self, name: str, home: str, message: Request) -> LocalClient | Neighbour:
        if name == home:
            return owner(message)
        distances = self.topology.distances(home)
        return Neighbour(min(self.topology.neighbours(name), key=distances.__getitem__))

    def check_confirmed(self) -> None:
        """Whoever still holds something was told once that it is in effect."""
        for message, home in (self.advertisements | self.subscriptions).items():
            told = (home, owner(message))
            notices = [notice for name, to, notice in self.notices if (name, to) == told]
            if isinstance(message, Advertisement):
                assert notices == [AdvertisementInEffect(id=message.id)]
            else:
                assert notices == [SubscriptionInEffect(id=message.id)]

    def check_deliveries(self) -> int:
        """Publish what each advertisement permits; everybody who wants it gets one copy."""
        count = 0
        for advertisement, home in self.advertisements.items():
            publisher = owner(advertisement).name
            for sequence, x in enumerate(range(-1, 12, self.random.randint(1, 4))):
                content: dict[str, Value] = {"x": x, "y": 20}
                if "y" not in advertisement.filter.constraints:
                    del content["y"]
                if not advertisement.filter.permits(content):
                    continue
                publication = Publication(
                    publisher=publisher,
                    sequence=sequence,
                    advertisement=AdvertisementId(advertisement.id),
                    content=content,
                )
                self.delivered.clear()
                self.ask(home, publication, publisher)
                self.settle()
                assert sorted(self.delivered) == sorted(
                    (owner(subscription).name, at)
                    for subscription, at in self.subscriptions.items()
                    if subscription.filter.matches(content)
                )
                count += len(self.delivered)
        return count


def random_run(seed: int, routing: type[TreeRouting] = TreeRouting) -> int:
    """What came of one seed: the number of deliveries, all of them right."""
    run = Breaking(seed, routing)
    for _ in range(150):
        run.step()
    run.finish()
    run.check_tables()
    run.check_confirmed()
    return run.check_deliveries()


SEEDS = 80
SEEDS_PER_TEST = 10


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_links_that_break_leave_no_trace_once_they_are_back(first: int) -> None:
    deliveries = 0
    for seed in range(first, first + SEEDS_PER_TEST):
        try:
            deliveries += random_run(seed)
        except (AssertionError, KeyError) as error:
            error.add_note(f"the seed is {seed}")
            raise
    assert deliveries > 0, "runs without deliveries prove nothing"


class KeepsInterests(TreeRouting):
    """Keeps the subscriptions of a lost neighbour."""

    def link_down(self, neighbour: Neighbour) -> Answers:
        answers = super().link_down(neighbour)
        self._interests.add(ABOVE_5, neighbour)
        return answers


class TellsNothing(TreeRouting):
    """Does not tell a new neighbour what is advertised."""

    def link_up(self, neighbour: Neighbour, kind: LinkKind = LinkKind.PRIMARY) -> Answers:
        super().link_up(neighbour, kind)
        return []


class WaitsForTheLost(TreeRouting):
    """Waits for confirmations of a neighbour that is gone."""

    def link_down(self, neighbour: Neighbour) -> Answers:
        answers = super().link_down(neighbour)
        return [a for a in answers if not isinstance(a, Confirm)]


@pytest.mark.parametrize("broken", [KeepsInterests, TellsNothing, WaitsForTheLost])
def test_random_links_notice_a_broken_router(broken: type[TreeRouting]) -> None:
    for seed in range(50):
        try:
            random_run(seed, broken)
        except AssertionError:
            return
    pytest.fail(f"50 random runs did not notice that a router {broken.__doc__}")
