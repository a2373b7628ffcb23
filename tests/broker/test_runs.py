"""A run of publications is handled as its publications are, one after the other."""

from __future__ import annotations

from random import Random

import pytest

from godwit.broker.core import Broker
from godwit.broker.effects import Deliver, Effect, Notify, Send
from godwit.broker.routing import Place
from godwit.broker.stimuli import Hop, LocalClient, Neighbour, Received
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Message,
    Publication,
    Subscription,
    SubscriptionId,
)
from godwit.content.values import Value
from godwit.overlay.tree.tree_routing import TreeRouting

ANN, BOB, PAUL = map(LocalClient, ("ann", "bob", "paul"))
B2, B3 = Neighbour("B2"), Neighbour("B3")
ANYTHING = Filter.parse("x is a number and class is present")


def _subscription(id: str, filter: str) -> Subscription:
    return Subscription(id=SubscriptionId(id), filter=Filter.parse(filter))


#: Paul may publish under `old`; nobody has confirmed `new`.
SAID_BEFORE: list[tuple[Message, Hop]] = [
    (Advertisement(id=AdvertisementId("paul/old"), filter=ANYTHING), PAUL),
    (AdvertisementInEffect(id=AdvertisementId("paul/old")), B2),
    (AdvertisementInEffect(id=AdvertisementId("paul/old")), B3),
    (Advertisement(id=AdvertisementId("paul/new"), filter=ANYTHING), PAUL),
    (_subscription("ann/1", "x < 50"), ANN),
    (_subscription("bob/1", "x > 20"), BOB),
    (_subscription("paul/1", "x > 90"), PAUL),
    (_subscription("carl/1", "class = 'a'"), B2),
    (_subscription("dora/1", "x < 10"), B3),
]


def _broker() -> Broker:
    broker = Broker(
        "B1", routing=TreeRouting(Place.of("B1", ["B2", "B3"])), codec_checks_values=True
    )
    for message, hop in SAID_BEFORE:
        broker.handle(Received(message, hop), now_s=0.0)
    return broker


def _publication(random: Random, sequence: int) -> Publication:
    """Mostly one that Paul may publish."""
    content: dict[str, Value] = {"class": random.choice("ab"), "x": random.randrange(100)}
    if random.random() < 0.1:
        content["y"] = 1
    if random.random() < 0.1:
        content["class"] = "$control"
    if random.random() < 0.1:
        content.clear()
    return Publication(
        publisher="paul" if random.random() < 0.9 else "ann",
        sequence=max(0, sequence - random.choice([0, 0, 0, 0, 3])),
        advertisement=AdvertisementId(random.choice(["paul/old"] * 6 + ["paul/new", "paul/none"])),
        content=content,
        ttl_hops=random.choice([None] * 9 + [1]),
    )


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("last_hop", [PAUL, B2])
def test_a_run_gets_what_its_publications_would_get(
    last_hop: LocalClient | Neighbour, seed: int
) -> None:
    random = Random(seed)
    together, apart = _broker(), _broker()
    found: set[type[Effect]] = set()
    for now_s in range(5):
        publications = [
            _publication(random, 100 * now_s + n) for n in range(random.randrange(1, 40))
        ]
        run = [(each, random.randrange(3), each.sequence) for each in publications]
        answers = list(together.handle_run(run, last_hop, now_s=now_s))
        assert answers == [
            (apart.handle(Received(publication, last_hop, hops), now_s=now_s), beside)
            for publication, hops, beside in run
        ], f"seed {seed}"
        found.update(type(effect) for effects, _ in answers for effect in effects)
    assert found == ({Deliver, Send, Notify} if last_hop == PAUL else {Deliver, Send})
