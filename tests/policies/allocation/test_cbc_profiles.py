"""What CBC records: deliveries for each subscription, in bounded memory."""

from __future__ import annotations

from random import Random

import pytest
from tests.sweeps import seeds

from godwit.broker.stimuli import LocalClient, Module, Neighbour
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Publication, SubscriptionId
from godwit.errors import UsageError
from godwit.policies.allocation.cbc_profiles import (
    NOTED_MAX,
    PUBLICATION_WEIGHT,
    TRIED_MAX,
    DeliveryProfiles,
)
from godwit.policies.allocation.cbc_settings import LENGTH_MAX, ProfilingSettings
from godwit.profile.bit_vector import BitVector


class Scene:
    """The subscriptions of some clients, and what is recorded for them."""

    def __init__(self, *, length: int = 10, vectors_max: int = 100) -> None:
        self.held: dict[str, dict[SubscriptionId, Filter]] = {}
        self.profiles = DeliveryProfiles(
            lambda client: self.held.get(client, {}), vector_length=length, vectors_max=vectors_max
        )

    def hold(self, client: str, **texts: str) -> None:
        """The client has these subscriptions now, all of them new."""
        self.held[client] = {
            SubscriptionId(f"{client}/{word}"): Filter.parse(text) for word, text in texts.items()
        }
        self.profiles.refresh(client)

    def deliver(
        self, sequence: int, *to: str, size: int = 0, publisher: str = "p", now_s: float = 0.0
    ) -> None:
        publication = self.publication(sequence, size, publisher)
        self.profiles.record(
            publication, publisher, tuple(map(LocalClient, to or ("alice",))), now_s
        )

    def publication(self, sequence: int, size: int = 0, publisher: str = "p") -> Publication:
        return Publication(
            publisher=publisher,
            sequence=sequence,
            advertisement=AdvertisementId(f"{publisher}/a"),
            content={"size": size},
        )

    @property
    def vectors(self) -> dict[str, dict[str, BitVector]]:
        return {
            each.id: {
                name: BitVector(vector.first, vector.length, vector.bits)
                for name, vector in each.vectors.items()
            }
            for each in self.profiles.subscriptions()
        }

    @property
    def ids(self) -> dict[str, dict[str, list[int]]]:
        """What each subscription received of each publisher."""
        return {
            each.id: {name: list(vector) for name, vector in each.vectors.items()}
            for each in self.profiles.subscriptions()
        }


def test_test_vector_5() -> None:
    """Length 10, counter 100, id 119: the window shifts by 10, and the last bit is set."""
    scene = Scene(length=10)
    scene.hold("alice", a="size >= 0")
    scene.deliver(100)
    scene.deliver(119)
    (subscription,) = scene.profiles.subscriptions()
    vector = subscription.vectors["p"]
    assert (vector.first, vector.bits) == (110, 1 << 9)


def test_only_deliveries_count() -> None:
    scene = Scene()
    scene.hold("alice", a="size >= 0")
    scene.hold("bob", b="size >= 0")
    scene.deliver(2, "bob")
    scene.deliver(3, "someone")
    for many in (False, True):  # A loop, or arrays.
        for sequence in range(4, 104 if many else 5):
            publication = scene.publication(sequence)
            to = (Neighbour("alice"), Module("alice"), Neighbour("bob"))
            scene.profiles.record(publication, "p", to, 0.0)
    assert scene.ids == {"alice/a": {}, "bob/b": {"p": [2]}}


@pytest.mark.parametrize("others", [0, TRIED_MAX], ids=["tried", "in an index"])
def test_a_delivery_counts_for_each_subscription_that_matches(others: int) -> None:
    """The client receives it once."""
    scene = Scene()
    more = {f"x{number}": f"size = {1_000 + number}" for number in range(others)}
    scene.hold("alice", a="size < 10", b="size < 20", c="size > 15", **more)
    for sequence, size in enumerate((5, 12, 17)):
        scene.deliver(sequence, size=size)
    found = {id: ids for id, ids in scene.ids.items() if "/x" not in id}
    assert found == {"alice/a": {"p": [0]}, "alice/b": {"p": [0, 1, 2]}, "alice/c": {"p": [2]}}
    assert not any(ids for id, ids in scene.ids.items() if "/x" in id)


def test_a_single_subscription_needs_no_matching() -> None:
    """The broker has matched it: what it delivered is for this one."""
    scene = Scene()
    scene.hold("alice", a="size < 10")
    scene.deliver(1, size=50)
    assert scene.ids == {"alice/a": {"p": [1]}}


def test_publishers_have_a_vector_each() -> None:
    scene = Scene()
    scene.hold("alice", a="size >= 0")
    scene.deliver(7)
    scene.deliver(3, publisher="q")
    assert scene.ids == {"alice/a": {"p": [7], "q": [3]}}


def test_what_is_subscribed_again_begins_without_bits() -> None:
    scene = Scene()
    scene.hold("alice", a="size >= 0", b="size >= 0")
    scene.deliver(1)
    kept = scene.held["alice"][SubscriptionId("alice/b")]
    scene.hold("alice", a="size >= 0")  # Equal, and another use of the id.
    scene.held["alice"][SubscriptionId("alice/b")] = kept
    scene.profiles.refresh("alice")
    assert scene.ids == {"alice/a": {}, "alice/b": {}}, "b was away in between"
    scene.deliver(2)
    assert scene.ids == {"alice/a": {"p": [2]}, "alice/b": {"p": [2]}}
    assert scene.profiles.count == sum(map(len, scene.ids.values()))


def test_subscriptions_that_stay_keep_their_bits() -> None:
    scene = Scene()
    scene.hold("alice", a="size >= 0")
    scene.deliver(1)
    scene.held["alice"][SubscriptionId("alice/b")] = Filter.parse("size >= 0")
    scene.profiles.refresh("alice")
    scene.deliver(2)
    assert scene.ids == {"alice/a": {"p": [1, 2]}, "alice/b": {"p": [2]}}
    scene.held["alice"] = {}
    scene.profiles.refresh("alice")
    assert (scene.ids, scene.profiles.count) == ({}, 0)


def test_control_subscriptions_have_no_profile() -> None:
    scene = Scene()
    scene.hold("alice", a="class = '$LOAD'", b="size >= 0")
    assert list(scene.ids) == ["alice/b"]


def test_memory_is_bounded_and_the_idle_go_first() -> None:
    """A broker whose publishers come and go for ever."""
    scene = Scene(vectors_max=20)
    scene.hold("alice", a="size >= 0")
    for number in range(100):
        scene.deliver(1, publisher="busy", now_s=number)
        scene.deliver(1, publisher=f"p{number}", now_s=number)
        recorded = scene.ids["alice/a"]
        assert scene.profiles.count == len(recorded) <= 20
    kept = scene.ids["alice/a"]
    assert "busy" in kept
    assert [f"p{number}" for number in range(82, 100)] == [name for name in kept if name != "busy"]
    assert scene.profiles.dropped == 101 - scene.profiles.count


@pytest.mark.parametrize("seed", range(seeds(40, whole=1_000)))
def test_recording_in_batches_is_recording_one_by_one(seed: int) -> None:
    """Gaps, restarts from lower numbers, changes of subscriptions and reading in between."""
    random = Random(seed)
    length = random.choice((3, 64, 300, 1_280))
    scene = Scene(length=length, vectors_max=10_000)
    plain: dict[str, dict[str, BitVector]] = {}
    held: dict[str, dict[str, int]] = {}

    def change(client: str) -> None:
        limits = {f"{client}/{word}": random.randrange(10) for word in range(random.randint(0, 11))}
        held[client] = limits
        scene.hold(client, **{id[2:]: f"size >= {limit}" for id, limit in limits.items()})
        for id in [id for id in plain if id.startswith(client)]:
            del plain[id]
        plain.update({id: {} for id in limits})

    sequences = {"p": 0, "q": 5_000}
    for name in "ab":
        change(name)
    for _ in range(random.choice((50, 600))):
        publisher, size = random.choice("ppq"), random.randrange(10)
        sequence = sequences[publisher]
        sequences[publisher] += random.choice((1, 1, 1, 2, 400))
        clients = [name for name in "ab" if any(size >= limit for limit in held[name].values())]
        if clients:
            scene.deliver(sequence, *clients, size=size, publisher=publisher)
        for name in clients:
            for id, limit in held[name].items():
                if size >= limit:
                    new = BitVector(sequence, length)
                    plain[id].setdefault(publisher, new).record(sequence)
        if random.random() < 0.02:
            change(random.choice("ab"))
        if random.random() < 0.02:
            assert scene.vectors == plain, f"seed {seed}"
    assert scene.vectors == plain, f"seed {seed}"


def test_what_is_noted_is_bounded() -> None:
    scene = Scene(vectors_max=10_000)
    scene.hold("alice", a="size >= 0", b="size > 5")
    room = NOTED_MAX // PUBLICATION_WEIGHT
    for number in range(2 * room):
        scene.deliver(number // 1_000, publisher=f"p{number % 1_000}")
        assert scene.profiles._noted < NOTED_MAX + 2 * PUBLICATION_WEIGHT
    noted = [len(batch.contents) for batch in scene.profiles._batches.values()]
    assert room / 2 < sum(noted) <= room


@pytest.mark.parametrize(
    "wrong", [{"vector_length": 0}, {"vector_length": LENGTH_MAX + 1}, {"vectors_max": 0}]
)
def test_settings_that_cannot_be(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        ProfilingSettings(**wrong)  # type: ignore[arg-type]
