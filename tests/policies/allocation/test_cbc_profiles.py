"""What CBC records: deliveries for each subscription, in bounded memory."""

from __future__ import annotations

import pytest

from godwit.broker.stimuli import Hop, LocalClient, Module, Neighbour
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Publication, SubscriptionId
from godwit.errors import UsageError
from godwit.policies.allocation.cbc_profiles import TRIED_MAX, DeliveryProfiles
from godwit.policies.allocation.cbc_settings import LENGTH_MAX, ProfilingSettings

HERE = LocalClient("alice")


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
        self, sequence: int, *to: Hop, size: int = 0, publisher: str = "p", now_s: float = 0.0
    ) -> None:
        publication = Publication(
            publisher=publisher,
            sequence=sequence,
            advertisement=AdvertisementId(f"{publisher}/a"),
            content={"size": size},
        )
        self.profiles.record(publication, publisher, to or (HERE,), now_s)

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
    scene.deliver(1, Neighbour("B2"), Module("cbc"))
    scene.deliver(2, Neighbour("B2"), LocalClient("bob"))
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
        assert scene.profiles.count == len(scene.ids["alice/a"]) <= 20
    kept = scene.ids["alice/a"]
    assert "busy" in kept
    assert [f"p{number}" for number in range(82, 100)] == [name for name in kept if name != "busy"]
    assert scene.profiles.dropped == 101 - scene.profiles.count


@pytest.mark.parametrize(
    "wrong", [{"vector_length": 0}, {"vector_length": LENGTH_MAX + 1}, {"vectors_max": 0}]
)
def test_settings_that_cannot_be(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        ProfilingSettings(**wrong)  # type: ignore[arg-type]
