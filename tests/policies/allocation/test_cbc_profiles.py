"""What CBC records: deliveries for each subscription, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

import pytest
from tests.sweeps import seeds

from godwit.broker.stimuli import LocalClient, Module, Neighbour
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Publication, SubscriptionId
from godwit.errors import UsageError
from godwit.policies.allocation import cbc_profiles
from godwit.policies.allocation.cbc_profiles import (
    NOTED_MAX,
    TRIED_MAX,
    DeliveryProfiles,
)
from godwit.policies.allocation.cbc_settings import ProfilingSettings
from godwit.profile.bit_vector import LENGTH_MAX, BitVector


class Scene:
    """The subscriptions of some clients, and what is recorded for them."""

    def __init__(self, *, length: int = 10, vectors_max: int = 100) -> None:
        self.profiles = DeliveryProfiles(vector_length=length, vectors_max=vectors_max)

    def hold(self, client: str, **texts: str) -> None:
        """The client subscribes."""
        for word, text in texts.items():
            id = SubscriptionId(f"{client}/{word}")
            self.profiles.change(client, id, Filter.parse(text))

    def drop(self, client: str, *words: str) -> None:
        for word in words:
            self.profiles.change(client, SubscriptionId(f"{client}/{word}"), None)

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
    assert scene.ids == {"alice/a": {"p": [100]}}
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
    scene.hold("alice", a="size >= 0", b="size >= 0", c="size >= 0")
    scene.deliver(1)
    scene.drop("alice", "a")
    scene.hold("alice", a="size >= 0", b="size >= 0")  # Of b, another use without an end.
    assert scene.ids == {"alice/a": {}, "alice/b": {}, "alice/c": {"p": [1]}}
    scene.deliver(2)
    assert scene.ids == {"alice/a": {"p": [2]}, "alice/b": {"p": [2]}, "alice/c": {"p": [1, 2]}}
    assert scene.profiles.count == sum(map(len, scene.ids.values()))


def test_subscriptions_that_stay_keep_their_bits() -> None:
    scene = Scene()
    scene.hold("alice", a="size >= 0")
    scene.deliver(1)
    scene.hold("alice", b="size >= 0")
    scene.deliver(2)
    scene.drop("alice", "unknown")
    assert scene.ids == {"alice/a": {"p": [1, 2]}, "alice/b": {"p": [2]}}
    scene.profiles.forget("alice")
    scene.profiles.forget("alice")
    assert (scene.ids, scene.profiles.count) == ({}, 0)


def test_a_client_may_have_thousands() -> None:
    """Each change costs the same: the index is kept, not made again."""
    scene = Scene(vectors_max=10_000)
    for number in range(3_000):
        scene.hold("alice", **{f"w{number}": f"size = {number}"})
        scene.deliver(number, size=number)
    for number in range(0, 3_000, 2):
        scene.drop("alice", f"w{number}")
    scene.deliver(3_000, size=17)
    scene.deliver(3_001, size=18)
    found = {id: ids["p"] for id, ids in scene.ids.items() if ids}
    assert found["alice/w17"] == [3_000]
    assert found["alice/w2999"] == [2_999]
    assert "alice/w18" not in found


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


class Plain:
    """The thesis's way: each delivery sets its bits when it is made."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.vectors: dict[str, dict[str, BitVector]] = {}
        self.last: dict[str, int] = {}

    def deliver(self, sequence: int, ids: Iterable[str], publisher: str) -> None:
        self.last[publisher] = sequence
        for id in ids:
            new = BitVector(sequence, self.length)
            self.vectors[id].setdefault(publisher, new).record(sequence)

    def counted(
        self, vectors: Mapping[str, Mapping[str, BitVector]]
    ) -> dict[str, dict[str, list[int]]]:
        """What plans count: the ids within the window that ends with the last publication."""
        found: dict[str, dict[str, list[int]]] = {}
        for id, of_publishers in vectors.items():
            found[id] = {}
            for publisher, vector in of_publishers.items():
                last = self.last[publisher]
                window = range(last - self.length + 1, last + 1)
                if ids := list(vector.within(window)):
                    found[id][publisher] = ids
        return found


@pytest.mark.parametrize("seed", range(seeds(40, whole=1_000)))
def test_notes_give_what_recording_one_by_one_gives(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gaps, changes of subscriptions, little room for notes, and reading in between."""
    random = Random(seed)
    length = random.choice((3, 64, 300, 1_280))
    monkeypatch.setattr(cbc_profiles, "NOTED_MAX", random.choice((500, 20_000, NOTED_MAX)))
    scene, plain = Scene(length=length, vectors_max=10_000), Plain(length)
    held: dict[str, dict[str, int]] = {name: {} for name in "abc"}

    def change(client: str) -> None:
        """One subscription less, one more, another use of one, or all of them others."""
        before = held[client]
        kind = random.choice(("less", "more", "again", "all"))
        gone = list(before) if kind == "all" else random.sample(list(before), k=min(1, len(before)))
        if kind != "more":
            if kind != "again":
                scene.drop(client, *(id[2:] for id in gone))
            for id in gone:
                del before[id], plain.vectors[id]
        count = {"less": 0, "more": 1, "again": 0, "all": random.choice((1, 2, 11))}[kind]
        made = gone if kind == "again" else [f"{client}/{random.random()}" for _ in range(count)]
        for id in made:
            before[id] = random.randrange(10)
            plain.vectors[id] = {}
            scene.hold(client, **{id[2:]: f"size >= {before[id]}"})

    def check() -> None:
        assert plain.counted(scene.vectors) == plain.counted(plain.vectors), f"seed {seed}"

    sequences = {"p": 0, "q": 5_000}
    for name in "abc":
        change(name)
    for _ in range(random.choice((50, 600))):
        publisher, size = random.choice("ppq"), random.randrange(10)
        sequence = sequences[publisher]
        sequences[publisher] += random.choice((1, 1, 1, 2, 400))
        to = [name for name in "abc" if any(size >= limit for limit in held[name].values())]
        if to:
            scene.deliver(sequence, *to, size=size, publisher=publisher)
            wanting = [id for name in to for id, limit in held[name].items() if size >= limit]
            plain.deliver(sequence, wanting, publisher)
        if random.random() < 0.05:
            change(random.choice("abc"))
        if random.random() < 0.02:
            check()
    check()


def test_publications_that_overtake_each_other() -> None:
    scene = Scene(length=10)
    scene.hold("alice", a="size >= 0")
    for sequence in (4, 6, 5, 20, 3, 12, 12):
        scene.deliver(sequence)
    assert scene.ids == {"alice/a": {"p": [12, 20]}}


@pytest.mark.parametrize("clients", [1, 100], ids=["a loop", "arrays"])
def test_a_gap_in_sequences_takes_no_memory(clients: int) -> None:
    scene = Scene(length=10, vectors_max=1_000)
    names = [f"c{number}" for number in range(clients)]
    for name in names:
        scene.hold(name, a="size >= 0")
    for sequence in (0, 10**15, 10**15 + 3):
        scene.deliver(sequence, *names)
    assert scene.ids == {f"{name}/a": {"p": [10**15, 10**15 + 3]} for name in names}


def test_what_is_behind_the_window_is_not_noted() -> None:
    """bob received something long ago: a plan does not count it."""
    scene = Scene(length=10)
    scene.hold("alice", a="size >= 0")
    scene.hold("bob", b="size >= 0")
    scene.deliver(1, "bob")
    for sequence in range(2, 12):
        scene.deliver(sequence)
    assert scene.ids == {"alice/a": {"p": list(range(2, 12))}, "bob/b": {}}


def test_what_is_noted_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cbc_profiles, "NOTED_MAX", 10_000)
    scene, plain = Scene(length=100, vectors_max=10_000), Plain(100)
    scene.hold("alice", a="size >= 0", b="size > 5")
    plain.vectors["alice/a"] = {}
    for number in range(3_000):
        publisher = f"p{number % 17}"
        scene.deliver(number // 17, publisher=publisher)
        plain.deliver(number // 17, ["alice/a"], publisher)
        noted = [note for notes in scene.profiles._notes.values() for note in notes]
        weights = sum(map(cbc_profiles._weight, noted))
        weights += cbc_profiles.PUBLISHER_WEIGHT * len(scene.profiles._notes)
        assert weights == scene.profiles._noted <= 10_000
    assert plain.counted({"alice/a": scene.vectors["alice/a"]}) == plain.counted(plain.vectors)


def test_nothing_of_a_publisher_that_was_read_is_kept() -> None:
    scene = Scene()
    scene.hold("alice", a="size >= 0")
    scene.deliver(1)
    assert scene.ids
    assert (scene.profiles._noted, scene.profiles._notes) == (0, {})


@pytest.mark.parametrize(
    "wrong", [{"vector_length": 0}, {"vector_length": LENGTH_MAX + 1}, {"vectors_max": 0}]
)
def test_settings_that_cannot_be(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        ProfilingSettings(**wrong)  # type: ignore[arg-type]
