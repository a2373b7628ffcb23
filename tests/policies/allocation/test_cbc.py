"""CBC in a broker: which publications it sees, who comes and goes, what an operator tells it."""

from __future__ import annotations

import pytest

from godwit.broker.core import Broker
from godwit.broker.modules import PolicyModule
from godwit.broker.routing import Place
from godwit.broker.stimuli import ClientLeft, LocalClient, Module, Received, Started, Stimulus
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    Publication,
    Subscription,
    SubscriptionId,
    Unsubscription,
)
from godwit.content.values import Value
from godwit.errors import UsageError
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.policies.allocation.cbc import Cbc, profiling_modules
from godwit.policies.allocation.cbc_pages import Answers
from godwit.policies.allocation.cbc_settings import ProfilingSettings
from godwit.policies.allocation.gathered import Gathered

PAUL, ALICE = LocalClient("paul"), LocalClient("alice")


class Scene:
    """One broker with CBC; paul has advertised, alice has subscribed."""

    def __init__(self, *others: PolicyModule) -> None:
        self.cbc = Cbc(ProfilingSettings(vector_length=64))
        self.broker = Broker("B1", routing=TreeRouting(Place("B1")), modules=[self.cbc, *others])
        self.now_s = 0.0
        self._gatherings = 0
        self.handle(Started())
        self.advertise("x1")
        self.subscribe("a", "size >= 0")

    def handle(self, stimulus: Stimulus) -> None:
        self.broker.handle(stimulus, now_s=self.now_s)

    def advertise(self, incarnation: str) -> None:
        id = AdvertisementId(f"paul/{incarnation}~1")
        self.handle(Received(Advertisement(id=id, filter=Filter.parse("size is a number")), PAUL))

    def subscribe(self, word: str, text: str, client: LocalClient = ALICE) -> None:
        id = SubscriptionId(f"{client.name}/{word}")
        self.handle(Received(Subscription(id=id, filter=Filter.parse(text)), client))

    def publish(self, sequence: int, incarnation: str = "x1", **content: Value) -> None:
        self.handle(
            Received(
                Publication(
                    publisher="paul",
                    sequence=sequence,
                    advertisement=AdvertisementId(f"paul/{incarnation}~1"),
                    content=content or {"size": 1},
                ),
                PAUL,
            )
        )

    def gathered(self) -> Gathered:
        self._gatherings += 1
        id = f"g{self._gatherings}"
        list(self.cbc.on_command(f"gather {id} 5", self.now_s))
        answers = Answers()
        for page in self.cbc.held(id).pages:
            answers.add(page)
        list(self.cbc.on_command(f"end {id}", self.now_s))
        return answers.gathered()

    def bits(self) -> dict[str, dict[str, str]]:
        return {each.id: each.bits for each in self.gathered().subscriptions}


def test_profiles_of_one_broker() -> None:
    scene = Scene()
    for sequence in range(5):
        scene.now_s = float(sequence)
        scene.publish(sequence)
    scene.now_s = 10.0
    found = scene.gathered()
    assert scene.bits() == {"alice/a": {"paul/x1": "11111"}}
    (paul,) = found.publishers
    assert (paul.id, paul.client, paul.broker) == ("paul/x1", "paul", "B1")
    assert (paul.first_id, paul.last_id) == (0, 4)
    assert paul.rate_per_s == pytest.approx(0.5)
    assert found.vector_length == 64


def test_what_the_broker_refused_is_not_recorded() -> None:
    scene = Scene()
    scene.publish(1)
    scene.publish(1)
    scene.publish(2, colour="red")
    assert scene.bits() == {"alice/a": {"paul/x1": "1"}}
    assert scene.gathered().publishers[0].last_id == 1


def test_a_client_subscribes_unsubscribes_and_leaves() -> None:
    scene = Scene()
    scene.publish(0)
    scene.subscribe("b", "size > 5")
    scene.publish(1)
    scene.publish(2, size=9)
    assert scene.bits() == {"alice/a": {"paul/x1": "111"}, "alice/b": {"paul/x1": "1"}}
    scene.handle(Received(Unsubscription(id=SubscriptionId("alice/a")), ALICE))
    scene.publish(3, size=9)
    assert scene.bits() == {"alice/b": {"paul/x1": "11"}}
    scene.handle(ClientLeft(ALICE))
    assert scene.bits() == {}
    assert scene.cbc.account(0.0)["vectors"] == 0


def test_a_publisher_that_starts_again_is_another() -> None:
    scene = Scene()
    scene.publish(7)
    scene.handle(ClientLeft(PAUL))
    assert scene.gathered().publishers == ()
    assert scene.bits() == {"alice/a": {}}, "it has left"
    scene.advertise("x2")
    scene.publish(0, "x2")
    assert [each.id for each in scene.gathered().publishers] == ["paul/x2"]
    assert scene.bits() == {"alice/a": {"paul/x2": "1"}}


class Speaking(PolicyModule):
    name = "speaking"


def test_control_publications_are_not_recorded() -> None:
    scene = Scene(Speaking())
    me = Module("speaking")
    ad = AdvertisementId("$B1.speaking/1")
    filter = Filter.parse("class = '$LOAD'")
    scene.handle(Received(Advertisement(id=ad, filter=filter), me))
    scene.subscribe("control", "class = '$LOAD'")
    publication = Publication(
        publisher="$B1.speaking", sequence=0, advertisement=ad, content={"class": "$LOAD"}
    )
    effects = scene.broker.handle(Received(publication, me), now_s=0.0)
    assert effects, "alice receives it"
    assert scene.bits() == {"alice/a": {}}
    assert scene.gathered().publishers == ()


def test_installed_late_it_knows_the_subscriptions() -> None:
    broker = Broker("B1", routing=TreeRouting(Place("B1")))
    wanted = Subscription(id=SubscriptionId("alice/a"), filter=Filter.parse("size > 0"))
    broker.handle(Received(wanted, ALICE), now_s=0.0)
    cbc = Cbc()
    broker.install([cbc])
    broker.handle(Started(), now_s=0.0)
    assert cbc.account(0.0)["subscriptions"] == 1


@pytest.mark.parametrize("command", ["", "gather", "gather g five", "fetch g 1.5", "go"])
def test_unknown_commands(command: str) -> None:
    with pytest.raises(UsageError, match="use gather ID SECONDS, fetch ID RECEIVED or end ID"):
        Scene().cbc.on_command(command, 0.0)


def test_switched_off() -> None:
    assert profiling_modules(ProfilingSettings(enabled=False))("B1") == []
    (module,) = profiling_modules()("B1")
    assert isinstance(module, Cbc)
