"""Sweeps find their way, also when they are earlier than the news of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from godwit.broker.effects import Send
from godwit.broker.routing import Confirm, Place
from godwit.broker.stimuli import LocalClient, Neighbour
from godwit.content.messages import Absent, Present, Sweep, Swept
from godwit.overlay.tree import presence
from godwit.overlay.tree.tree_routing import TreeRouting

A, B, C = Neighbour("A"), Neighbour("B"), Neighbour("C")
SWEEP = Sweep(client="c", to="S", move=1)


def test_a_broker_becomes_known_once_and_sweeps_go_its_way() -> None:
    routing = TreeRouting(Place.of("S", ["A", "B", "C"]))
    present = Present(broker="S")
    assert routing.handle(present, A) == [Send(B, present), Send(C, present)]
    assert routing.handle(present, A) == []
    assert routing.handle(SWEEP, B) == [Send(A, SWEEP)]


def test_a_sweep_that_is_early_waits() -> None:
    routing = TreeRouting(Place.of("S", ["A", "B"]))
    assert routing.handle(SWEEP, LocalClient("c")) == []
    assert routing.handle(Present(broker="S"), A) == [
        Send(B, Present(broker="S")),
        Send(A, SWEEP),
    ]


def test_a_sweep_ends_at_the_client_that_asked_for_it() -> None:
    routing = TreeRouting(Place.of("S", ["A"]))
    routing.handle(Present(broker="S"), LocalClient("other"))
    assert routing.handle(SWEEP, A) == [Confirm(LocalClient("c"), Swept(move=1))]


def test_directions_follow_links_that_come_and_go() -> None:
    routing = TreeRouting(Place.of("S", ["A", "B"]))
    routing.handle(Present(broker="S"), A)
    assert Send(C, Present(broker="S")) in routing.link_up(C)
    assert routing.handle(Absent(broker="S"), B) == [], "it is not in that direction"
    absent = Absent(broker="S")
    assert routing.link_down(A) == [Send(B, absent), Send(C, absent)]
    assert routing.handle(SWEEP, B) == []


def test_of_one_client_one_sweep_waits_the_latest() -> None:
    routing = TreeRouting(Place.of("S", ["A", "B"]))
    routing.handle(SWEEP, B)
    later = replace(SWEEP, move=2)
    routing.handle(later, B)
    assert routing.handle(Present(broker="S"), A)[1:] == [Send(A, later)]


def test_sweeps_to_nowhere_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "WAITING_MAX", 2)
    routing = TreeRouting(Place.of("S", ["A", "B"]))
    sweeps = [replace(SWEEP, client=f"c{number}") for number in range(4)]
    for sweep in sweeps:
        routing.handle(sweep, B)
    assert routing.handle(Present(broker="S"), A)[1:] == [Send(A, sweep) for sweep in sweeps[2:]]
