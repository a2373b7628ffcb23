"""A read is acknowledged when its copies are; peers are plain names here."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from godwit.broker.pending_acks import PendingAcks, Settled


def acks(*peers: str) -> PendingAcks[str]:
    pending: PendingAcks[str] = PendingAcks()
    for peer in peers:
        pending.open(peer)
    return pending


def test_a_read_is_acknowledged_when_all_its_copies_are() -> None:
    pending = acks("p", "a", "b")
    assert pending.handled("p", 7, 100, {"a": 3, "b": 5}) == ("p", 0, "a", 100)
    assert pending.acknowledged("b", 4) == [], "p waits for a"
    assert pending.acknowledged("a", 3) == [("p", 0, "b", 100)]
    assert pending.reads("p") == 1
    assert pending.acknowledged("b", 6) == [("p", 7, None, 0)]
    assert pending.reads("p") == 0
    assert not pending.waiters("a")
    assert not pending.waiters("b")


def test_reads_are_acknowledged_in_their_order() -> None:
    pending = acks("p", "a", "b")
    assert pending.handled("p", 1, 10, {"a": 1}) == ("p", 0, "a", 10)
    assert pending.handled("p", 2, 10, {}) == ("p", 0, None, 20), "A1: also without copies"
    assert pending.handled("p", 3, 10, {"b": 1}) == ("p", 0, None, 30)
    assert pending.acknowledged("a", 1) == [("p", 2, "b", 10)]
    assert pending.acknowledged("b", 1) == [("p", 3, None, 0)]


def test_every_peer_that_waits_is_settled() -> None:
    pending = acks("p", "q", "a")
    pending.handled("p", 1, 1, {"a": 1})
    pending.handled("q", 1, 1, {"a": 2})
    assert set(pending.waiters("a")) == {"p", "q"}
    assert pending.acknowledged("a", 1) == [("p", 1, None, 0), ("q", 0, "a", 1)]
    assert set(pending.waiters("a")) == {"q"}


def test_a_peer_that_is_excused_is_not_waited_for_until_it_is_expected() -> None:
    pending = acks("p", "a")
    pending.handled("p", 1, 1, {"a": 1})
    assert pending.excuse("a") == [("p", 1, None, 0)]
    assert pending.handled("p", 2, 1, {"a": 2}) == ("p", 2, None, 0)
    assert pending.acknowledged("a", 1) == []
    assert pending.handled("p", 3, 1, {"a": 3}) == ("p", 3, None, 0), "still excused"
    pending.expect("a")
    assert pending.handled("p", 4, 1, {"a": 4}) == ("p", 3, "a", 1)


def test_a_peer_that_is_closed_is_not_waited_for_and_gets_nothing() -> None:
    pending = acks("p", "q", "a")
    pending.handled("p", 1, 1, {"a": 1})
    pending.handled("a", 5, 1, {"q": 1})
    assert pending.close("a") == [("p", 1, None, 0)]
    assert pending.acknowledged("q", 1) == [], "what came from a is forgotten"
    assert pending.handled("a", 6, 1, {"q": 2}) == ("a", 0, None, 0), "its last read"
    assert pending.handled("p", 2, 1, {"a": 9}) == ("p", 2, None, 0)
    assert pending.close("a") == []


def test_a_peer_that_has_lost_its_state_sends_again_and_is_still_waited_for() -> None:
    pending = acks("p", "q", "a")
    pending.handled("p", 1, 1, {"a": 1})
    pending.handled("p", 2, 1, {"a": 2})
    pending.handled("q", 1, 1, {"a": 3})
    pending.handled("a", 5, 1, {"p": 1})
    assert pending.restart("a", 1) == [("p", 1, "a", 1), ("q", 0, "a", 1)]
    assert pending.reads("a") == 0
    assert pending.handled("a", 1, 1, {}) == ("a", 1, None, 0), "it counts from 1 again"
    assert pending.acknowledged("a", 2) == [("p", 2, None, 0), ("q", 0, "a", 1)]


@pytest.mark.parametrize("seed", range(20))
def test_any_history_acknowledges_exactly_what_all_have(seed: int) -> None:
    """Against a model that looks at everything each time."""
    random, peers = Random(seed), ["a", "b", "c", "d"]
    pending = acks(*peers)
    put, has = dict.fromkeys(peers, 0), dict.fromkeys(peers, 0)
    reads: dict[str, list[dict[str, int]]] = {peer: [] for peer in peers}
    found = dict.fromkeys(peers, 0)

    def take(settled: Iterable[Settled[str]]) -> None:
        for source, received, _, size_bytes in settled:
            assert received >= found[source]
            assert size_bytes == pending.reads(source)
            found[source] = received

    for _ in range(300):
        peer = random.choice(peers)
        if random.random() < 0.5:
            others = [each for each in peers if each > peer and random.random() < 0.6]  # A tree.
            for each in others:
                put[each] += random.randrange(3)
            reads[peer].append({each: put[each] for each in others})
            take([pending.handled(peer, len(reads[peer]), 1, dict(reads[peer][-1]))])
        else:
            has[peer] = random.randint(has[peer], put[peer])
            take(pending.acknowledged(peer, has[peer]))
        for source, waited in reads.items():
            settled = 0
            while settled < len(waited) and all(has[p] >= at for p, at in waited[settled].items()):
                settled += 1
            assert found[source] == settled
            assert pending.reads(source) == len(waited) - settled
            waits_for = [each for each in peers if source in pending.waiters(each)]
            assert len(waits_for) == (settled < len(waited)), "A3"
