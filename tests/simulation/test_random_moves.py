"""Random overlays in which clients move while they publish and subscribe: nothing goes wrong.

All 2,000 seeds: `godwit replay 0 --until 2000 --moves`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from godwit.broker.stimuli import Hop, Neighbour
from godwit.client.deliveries import DeliveryMarks
from godwit.content.messages import AdvertisementInEffect, Notice, Publication, Sweep
from godwit.migration.move import Hand, Move, Order, Phase
from godwit.overlay.tree.routing_tables import AdvertisementEntry
from godwit.overlay.tree.tree_routing import Answers, TreeRouting
from godwit.simulation import simulated_broker
from godwit.simulation.homes import Home
from godwit.simulation.servers import goes_first
from godwit.testing.random_moves import random_moves

SEEDS = 100
SEEDS_PER_TEST = 5
#: A broken protocol must be noticed within so many runs.
SEEDS_UNTIL_NOTICED = 100


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_clients_move_and_nothing_is_lost_doubled_or_disordered(first: int) -> None:
    moves = deliveries = 0
    for seed in range(first, first + SEEDS_PER_TEST):
        run = random_moves(seed)
        assert run.is_flawless, f"replay with: godwit replay {seed} --moves\n{run}"
        moves += run.moves
        deliveries += run.statistics.deliveries
    assert moves > 0
    assert deliveries > 0


class TakesBackAtOnce(TreeRouting):
    """E10 undone: subscriptions are taken back when the turn passes, not behind publications."""

    def _turn(self, entry: AdvertisementEntry, new: Hop) -> Answers:
        old = entry.last_hop
        answers = super()._turn(entry, new)
        if isinstance(old, Neighbour) and self._advertisements.settle(entry, old):
            answers += self._take_back(old)
        return answers


class NeverTakesBack(TreeRouting):
    """Leaves subscriptions where no publisher is any more."""

    def _take_back(self, neighbour: Neighbour) -> Answers:
        return []


@pytest.mark.parametrize("broken", [TakesBackAtOnce, NeverTakesBack])
def test_random_moves_notice_a_broken_router(broken: type[TreeRouting]) -> None:
    _must_be_noticed(str(broken.__doc__), broken)


def goes_without_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """E6 undone: the old broker is left as soon as the new one is in effect."""

    def sweep(self: Move) -> list[Order]:
        self.phase = Phase.SWEEPING
        return self._handed() + self._pause()

    monkeypatch.setattr(Move, "_sweep", sweep)


def sweeps_before_publications(monkeypatch: pytest.MonkeyPatch) -> None:
    """E6 undone: the sweep overtakes publications."""
    _overtakes(monkeypatch, Sweep)


def turned_before_publications(monkeypatch: pytest.MonkeyPatch) -> None:
    """E10 undone: the word that all have turned overtakes publications."""
    _overtakes(monkeypatch, AdvertisementInEffect)


def _overtakes(monkeypatch: pytest.MonkeyPatch, kind: type) -> None:
    monkeypatch.setattr(
        simulated_broker, "goes_first", lambda m: goes_first(m) or isinstance(m, kind)
    )


def mixes_both_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes from the new broker does not wait for what the old one still has."""

    def at_once(_self: Move, publication: Publication, hops: int) -> list[Order]:
        return [Hand(publication, hops)]

    monkeypatch.setattr(Move, "publication_from_new", at_once)


def believes_everything_to_be_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client hands on what it had before."""

    def is_new(self: DeliveryMarks, publication: Publication) -> bool:
        return publication.publisher != self._client

    monkeypatch.setattr(DeliveryMarks, "is_new", is_new)


def forgets_at_its_new_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client, once it has moved, hands on what it had before."""
    listen = Home.listen

    def listen_without_marks(
        self: Home,
        on_notice: Callable[[Notice], None],
        on_publication: Callable[[Publication, int], None] | None = None,
        **_marks: object,
    ) -> None:
        listen(self, on_notice, on_publication)

    monkeypatch.setattr(Home, "listen", listen_without_marks)


def does_not_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """The publisher does not wait until its old broker has handled what it sent."""

    def pause(self: Move) -> list[Order]:
        return self._turn() if self.advertisements else self._arrive()

    monkeypatch.setattr(Move, "_pause", pause)


@pytest.mark.parametrize(
    "break_it",
    [
        goes_without_a_sweep,
        sweeps_before_publications,
        turned_before_publications,
        mixes_both_brokers,
        believes_everything_to_be_new,
        forgets_at_its_new_broker,
        does_not_pause,
    ],
)
def test_random_moves_notice_a_broken_protocol(
    break_it: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    _must_be_noticed(str(break_it.__doc__), TreeRouting)


def _must_be_noticed(what: str, overlay: type[TreeRouting]) -> None:
    for seed in range(SEEDS_UNTIL_NOTICED):
        try:
            run = random_moves(seed, overlay)
        except AssertionError:
            return  # An invariant was quicker than the oracle.
        if not run.is_flawless:
            return
    pytest.fail(f"{SEEDS_UNTIL_NOTICED} random runs did not notice: {what}")
