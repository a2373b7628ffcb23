"""Answers of brokers in pages, and what they are together."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from godwit.errors import UsageError
from godwit.policies.allocation.cbc_pages import (
    PAGE_BYTES,
    UNLIMITED_BYTES_S,
    Answers,
    BrokerEntry,
    PageEntry,
    PublisherEntry,
    SubscriptionEntry,
    VectorEntry,
    pages,
    subscription_entries,
)
from godwit.policies.allocation.gathered import Gathered
from godwit.profile.bit_vector import BitVector


def broker(
    name: str,
    *neighbours: str,
    missing: tuple[str, ...] = (),
    is_linked: bool = True,
    length: int = 1_280,
    dropped: int = 0,
    bandwidth: float = 1e6,
) -> BrokerEntry:
    return BrokerEntry(
        name, f"127.0.0.1:{len(name)}", neighbours, missing, is_linked, bandwidth, 1e-4, 1e-6,
        length, dropped,
    )  # fmt: skip


def publisher(id: str, *, last: int = 10, client: str = "") -> PublisherEntry:
    return PublisherEntry(id, client or id, 5.0, 500.0, 0, last)


def received(id: str, *ids: int, publisher: str = "p") -> SubscriptionEntry:
    vector = BitVector.of(ids, first=ids[0])
    entry = VectorEntry(publisher, vector.first, vector.to_bytes())
    return SubscriptionEntry(id, id.partition("/")[0], (entry,))


def answers(*each: tuple[str, Iterable[PageEntry]], expected: Iterable[str] = ()) -> Answers:
    found = Answers(expected)
    for name, entries in each:
        for page in pages(name, entries):
            found.add(page)
    return found


def test_the_form_of_the_document() -> None:
    found = answers(
        ("B2", [broker("B2", "B1"), received("alice/a", 3, 5)]),
        ("B1", [broker("B1", "B2"), publisher("paul/x1", client="paul"), publisher("p")]),
    )
    assert not found.missing
    document = msgspec.json.decode(msgspec.json.encode(found.gathered()))
    assert document["subscriptions"] == [
        {
            "id": "alice/a",
            "first_id": {"p": 3},
            "bits": {"p": "101"},
            "broker": "B2",
            "client": "alice",
        }
    ]
    assert [each["id"] for each in document["brokers"]] == ["B1", "B2"]
    assert document["brokers"][0]["neighbours"] == ["B2"]
    named, restarted = document["publishers"]
    assert (named["id"], "client" in named) == ("p", False)
    assert (restarted["id"], restarted["client"]) == ("paul/x1", "paul")
    assert named["last_id"] == 10
    assert msgspec.json.decode(msgspec.json.encode(document), type=Gathered) == found.gathered()


def test_pages_are_small_and_complete() -> None:
    """A subscription with many vectors is in several pages."""
    vectors = [(f"publisher{n}", BitVector.of(range(n, n + 1_280), first=n)) for n in range(400)]
    entries: list[PageEntry] = [
        broker("B1"),
        *(publisher(name, last=2_000) for name, _ in vectors),
        *subscription_entries("alice/a", "alice", vectors),
        *subscription_entries("bob/b", "bob", []),
    ]
    encoded = list(pages("B1", entries))
    assert len(encoded) > 4
    assert max(map(len, encoded)) < 2 * PAGE_BYTES
    found = Answers()
    for page in encoded:
        assert not found.answered
        found.add(page)
    alice, bob = found.gathered().subscriptions
    assert alice.first_id == {name: vector.first for name, vector in vectors}
    assert set(alice.bits.values()) == {"1" * 1_280}
    assert bob.bits == {}


def test_who_is_missing() -> None:
    """Asked and silent, given up before, in the network file only, not linked yet, cut short."""
    found = answers(
        ("B1", [broker("B1", "B2", "B3", missing=("B7",), is_linked=False)]),
        expected=("B1", "B9"),
    )
    first, *_ = pages("B3", [broker("B3", "B4"), received("alice/a", 3)])
    found.add(first)
    assert found.asked == ["B1", "B2", "B3", "B4", "B7", "B9"]
    assert found.begun == ["B1", "B3"]
    assert found.answered == ["B1"]
    unlinked = "a neighbour of B1 that is not linked yet"
    assert found.missing == ("B2", "B3", "B4", "B7", "B9", unlinked)
    gathered = found.gathered()
    assert gathered.missing == found.missing
    assert gathered.subscriptions == ()


def test_a_broker_that_was_given_up_and_answers_is_there() -> None:
    found = answers(
        ("B1", [broker("B1", "B2", missing=("B3",))]),
        ("B3", [broker("B3")]),
        ("B2", [broker("B2")]),
    )
    assert not found.missing


def test_a_client_that_moves_is_in_two_answers() -> None:
    found = answers(
        ("B1", [broker("B1", "B2"), publisher("p", last=4), received("alice/a", 1, 2)]),
        ("B2", [broker("B2", "B1"), publisher("p", last=9), received("alice/a", 3)]),
    ).gathered()
    (alice,) = found.subscriptions
    assert (alice.first_id, alice.bits, alice.broker) == ({"p": 1}, {"p": "111"}, "B2")
    (paul,) = found.publishers
    assert (paul.last_id, paul.broker) == (9, "B2")


def test_publishers_that_have_left_are_left_out() -> None:
    found = answers(("B1", [broker("B1"), received("alice/a", 1, publisher="gone")])).gathered()
    assert found.subscriptions[0].bits == {}


def test_infinity_is_not_in_json() -> None:
    found = answers(("B1", [broker("B1", bandwidth=float("inf"))])).gathered()
    assert found.brokers[0].output_bandwidth_bytes_s == UNLIMITED_BYTES_S


def test_lengths_must_agree() -> None:
    found = answers(("B1", [broker("B1", length=64)]), ("B2", [broker("B2", length=1_280)]))
    with pytest.raises(UsageError, match=r"B1 has 64, B2 has 1280.*vector_length"):
        found.gathered()


def test_dropped_vectors_are_reported() -> None:
    found = answers(("B1", [broker("B1", dropped=7)]), ("B2", [broker("B2")]))
    assert found.dropped == {"B1": 7}


def test_what_is_not_a_page() -> None:
    with pytest.raises(UsageError, match="same version"):
        Answers().add(b"\x01")
