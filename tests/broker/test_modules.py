"""A policy module in every broker of a small overlay: the seam that policies will use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

import pytest

from godwit.broker.core import Broker
from godwit.broker.modules import BrokerView, PolicyModule, Request, Timer
from godwit.broker.routing import Place
from godwit.broker.stimuli import Hop, Module, Received
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Publication,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
)
from godwit.overlay.topology import chain
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.simulation.observers import Observer
from godwit.simulation.resources import BrokerResources
from godwit.simulation.simulator import Simulator

LOADS = Filter.parse("class = '$LOAD' and broker is a string and rate is a number")
PERIOD_S = 5.0


class Gossip(PolicyModule):
    """Tells every other broker how many publications it has seen, every five seconds."""

    name = "gossip"

    def __init__(self, *, ttl_hops: int | None = None) -> None:
        self.heard: dict[str, float] = {}
        self.seen = 0
        self.in_effect: set[str] = set()
        self._ttl_hops = ttl_hops
        self._sequence = count()

    def start(self, view: BrokerView, now_s: float) -> Iterable[Request]:
        self._me = view.owner
        self._broker = view.broker
        self._advertisement = AdvertisementId(f"{self._me}/loads")
        yield Advertisement(id=self._advertisement, filter=LOADS)
        yield Subscription(id=SubscriptionId(f"{self._me}/others"), filter=LOADS)
        yield Timer("tell", now_s + PERIOD_S)

    def on_in_effect(
        self, notice: AdvertisementInEffect | SubscriptionInEffect, now_s: float
    ) -> Iterable[Request]:
        self.in_effect.add(notice.id)
        return ()

    def on_delivery(self, publication: Publication, now_s: float) -> Iterable[Request]:
        self.heard[str(publication.content["broker"])] = now_s
        return ()

    def on_publication(
        self, publication: Publication, last_hop: Hop, destinations: Sequence[Hop], now_s: float
    ) -> Iterable[Request]:
        self.seen += not publication.is_control
        return ()

    def on_timer(self, name: str, now_s: float) -> Iterable[Request]:
        assert name == "tell"
        yield Publication(
            publisher=self._me,
            sequence=next(self._sequence),
            advertisement=self._advertisement,
            content={"class": "$LOAD", "broker": self._broker, "rate": self.seen},
            ttl_hops=self._ttl_hops,
        )
        yield Timer("tell", now_s + PERIOD_S)


def gossiping(brokers: int, *, ttl_hops: int | None = None) -> tuple[Simulator, dict[str, Gossip]]:
    modules = {name: Gossip(ttl_hops=ttl_hops) for name in chain(brokers).brokers}
    return Simulator(chain(brokers), seed=1, modules=lambda name: [modules[name]]), modules


def test_modules_talk_through_the_overlay_like_clients() -> None:
    simulator, modules = gossiping(4)
    simulator.run(until_s=6.0)

    assert len(modules["B1"].in_effect) == 2
    for name, module in modules.items():
        assert module.heard.keys() == modules.keys() - {name}, "all others, never itself"


def test_a_ttl_of_one_reaches_the_neighbours_only() -> None:
    simulator, modules = gossiping(4, ttl_hops=1)
    simulator.run(until_s=6.0)

    assert modules["B1"].heard.keys() == {"B2"}
    assert modules["B2"].heard.keys() == {"B1", "B3"}


def test_timers_come_again_and_again() -> None:
    simulator, modules = gossiping(2)
    simulator.run(until_s=21.0)

    assert 20.0 < modules["B1"].heard["B2"] < 21.0


def test_a_module_sees_every_publication_its_broker_handles() -> None:
    simulator, modules = gossiping(3)
    paul, alice = simulator.client("paul", at="B1"), simulator.client("alice", at="B2")
    alice.subscribe(Filter.parse("x > 0"))
    advertisement = paul.advertise(Filter.parse("x is present"))
    paul.publish(advertisement, {"x": 1})
    paul.publish(advertisement, {"x": -1})
    simulator.run(until_s=4.0)

    assert [modules[name].seen for name in ("B1", "B2", "B3")] == [2, 1, 0]


class OrderHandled(Observer):
    def __init__(self, broker: str) -> None:
        self.classes: list[object] = []
        self._broker = broker

    def on_handled(self, broker: str, received: Received, done_s: float) -> None:
        if broker == self._broker and isinstance(received.message, Publication):
            self.classes.append(received.message.content["class"])


def test_control_publications_are_served_before_normal_ones() -> None:
    """B2 is slow and a hundred quotes wait there when B1's load report arrives at t=5."""
    order = OrderHandled("B2")
    modules = {name: Gossip() for name in ("B1", "B2")}
    simulator = Simulator(
        chain(2),
        seed=1,
        modules=lambda name: [modules[name]],
        resources={
            "B1": BrokerResources(),
            "B2": BrokerResources(cpu_speed=1.0, matching_work_base=0.2),
        },
        observers=[order],
    )
    paul, alice = simulator.client("paul", at="B1"), simulator.client("alice", at="B2")
    alice.subscribe(Filter.parse("class = 'STOCK'"))
    advertisement = paul.advertise(Filter.parse("class = 'STOCK'"))
    for _ in range(100):
        simulator.at(4.5, paul.publish, advertisement, {"class": "STOCK"})
    simulator.run(until_s=9.0)

    arrived = order.classes.index("$LOAD")
    assert arrived < 10
    assert order.classes[arrived : arrived + 2] == ["$LOAD", "$LOAD"], "B1's report and B2's own"
    assert order.classes[arrived + 2] == "STOCK", "quotes were waiting when they overtook them"


def test_a_modules_own_publication_overtakes_what_waits_at_its_broker() -> None:
    order = OrderHandled("B1")
    gossip = Gossip()
    slow = BrokerResources(cpu_speed=1.0, matching_work_base=0.2)
    simulator = Simulator(
        chain(1), seed=1, modules=lambda _: [gossip], resources=slow, observers=[order]
    )
    paul = simulator.client("paul", at="B1")
    advertisement = paul.advertise(Filter.parse("class = 'STOCK'"))
    for _ in range(100):
        simulator.at(4.5, paul.publish, advertisement, {"class": "STOCK"})
    simulator.run(until_s=9.0)

    assert order.classes.index("$LOAD") < 10


def test_a_module_that_submits_nonsense_is_a_bug_of_ours_and_says_so() -> None:
    broker = Broker("B1", routing=TreeRouting(Place.of("B1", ["B2"])), modules=[Gossip()])
    nonsense = Subscription(id=SubscriptionId("somebody/else"), filter=LOADS)

    with pytest.raises(AssertionError, match=r"an id of \$B1\.gossip is"):
        broker.handle(Received(nonsense, Module("gossip")), now_s=0.0)
