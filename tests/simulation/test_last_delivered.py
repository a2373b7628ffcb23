"""What a client that begins to move has received, also between two groups of copies."""

from __future__ import annotations

from godwit.broker.effects import Deliver
from godwit.broker.stimuli import LocalClient
from godwit.content.messages import AdvertisementId, Publication
from godwit.simulation.agenda import Agenda
from godwit.simulation.attached_clients import AttachedClients
from godwit.simulation.observers import Observer

ALICE, BOB, CAROL = (LocalClient(name) for name in ("alice", "bob", "carol"))


def quote(sequence: int) -> Publication:
    return Publication(
        publisher="paul",
        sequence=sequence,
        advertisement=AdvertisementId("paul/1"),
        content={},
    )


def test_a_client_whose_copy_is_under_way_does_not_have_it() -> None:
    clients = AttachedClients(Agenda(), Observer())
    delivered = clients.last_delivered
    first, second = quote(0), quote(1)
    clients.deliver_group(Deliver((ALICE,), first, 1), 0.0)
    assert delivered.of(ALICE) == {"paul": 0}
    assert delivered.of(BOB) == {}

    clients.deliver(Deliver((BOB,), first, 1), 0.0)
    assert delivered.of(ALICE) == delivered.of(BOB) == {"paul": 0}

    clients.deliver_group(Deliver((ALICE,), second, 1), 0.0)
    assert delivered.of(ALICE) == {"paul": 1}
    assert delivered.of(BOB) == {"paul": 0}, "its copy of the second may still come"
    assert delivered.of(CAROL) == {"paul": 0}


def test_a_publication_without_groups_is_with_all() -> None:
    clients = AttachedClients(Agenda(), Observer())
    clients.deliver_group(Deliver((ALICE,), quote(0), 1), 0.0)
    clients.deliver(Deliver((BOB,), quote(0), 1), 0.0)
    clients.deliver(Deliver((ALICE, BOB), quote(1), 1), 0.0)
    assert clients.last_delivered.of(ALICE) == clients.last_delivered.of(BOB) == {"paul": 1}


def test_copies_that_a_crash_has_lost_are_not_waited_for() -> None:
    clients = AttachedClients(Agenda(), Observer())
    clients.deliver_group(Deliver((ALICE,), quote(3), 1), 0.0)
    clients.last_delivered.stop_waiting()
    assert clients.last_delivered.of(BOB) == {"paul": 3}


def test_nothing_was_delivered() -> None:
    assert AttachedClients(Agenda(), Observer()).last_delivered.of(ALICE) == {}
