"""What a client that begins to move has received, also between two groups of copies."""

from __future__ import annotations

from godwit.broker.effects import Deliver
from godwit.broker.stimuli import LocalClient
from godwit.content.messages import AdvertisementId, Publication
from godwit.simulation.last_delivered import LastDelivered

ALICE, BOB, CAROL = (LocalClient(name) for name in ("alice", "bob", "carol"))


def quote(sequence: int) -> Publication:
    return Publication(
        publisher="paul",
        sequence=sequence,
        advertisement=AdvertisementId("paul/1"),
        content={},
    )


def test_a_client_whose_copy_is_under_way_does_not_have_it() -> None:
    delivered = LastDelivered()
    first, second = quote(0), quote(1)
    delivered.add(Deliver((ALICE,), first, 1))
    assert delivered.of(ALICE) == {"paul": 0}
    assert delivered.of(BOB) == {}

    delivered.add(Deliver((BOB,), first, 1))
    assert delivered.of(BOB) == {"paul": 0}

    delivered.add(Deliver((ALICE,), second, 1))
    assert delivered.of(ALICE) == {"paul": 1}
    assert delivered.of(BOB) == {"paul": 0}, "its copy of the second may still come"
    assert delivered.of(CAROL) == {"paul": 0}


def test_nothing_was_delivered() -> None:
    assert LastDelivered().of(ALICE) == {}
