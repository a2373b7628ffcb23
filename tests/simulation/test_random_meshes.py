"""Random runs in a mesh: the same clients and actions as in random trees, the same promise.

Soft links open and close at random all the time.  A broker gets at most one copy of a publication.
"""

from __future__ import annotations

from random import Random

import pytest
from tests.sweeps import seeds

from godwit.broker.effects import LinkEffect, Send
from godwit.broker.routing import Place
from godwit.broker.stimuli import Hop, LinkKind, Neighbour
from godwit.content.messages import Publication, Subscription, Sweep
from godwit.overlay.clusters.cluster_routing import ClusterRouting
from godwit.overlay.mesh.mesh_routing import Answers, MeshRouting
from godwit.overlay.mesh.strategies import ForwardingStrategy
from godwit.overlay.tree.routing_tables import Link, SubscriptionEntry
from godwit.simulation.oracle import Oracle
from godwit.simulation.simulator import Simulator
from godwit.testing import (
    Deliveries,
    expected_deliveries,
    play_simulated,
    random_membership,
    random_moves,
    random_run,
    random_script,
)
from godwit.testing.random_soft_links import CopyCount

SEEDS = seeds(5, whole=1_000)
MOVING_SEEDS = seeds(5, whole=1_000)
MEMBERSHIP_SEEDS = seeds(4, whole=200)
SCRIPTS = seeds(4, whole=1_000)


class MixedMesh(MeshRouting):
    """Every broker has a strategy of its own."""

    def __init__(self, place: Place) -> None:
        chosen = Random(place.broker).choice(list(ForwardingStrategy))
        settings = {**place.settings, "strategy": chosen.value}
        super().__init__(Place(place.broker, place.links, place.expected, settings, place.lane))


@pytest.mark.parametrize("overlay", [MeshRouting, MixedMesh])
def test_random_meshes_deliver_exactly_what_was_asked_for(overlay: type[MeshRouting]) -> None:
    deliveries = 0
    for seed in range(SEEDS):
        run = random_run(seed, overlay)
        assert run.is_flawless, f"replay with: godwit replay {seed} --overlay mesh\n{run}"
        deliveries += run.statistics.deliveries
    assert deliveries > 0, "a run without deliveries proves nothing"


def test_a_link_that_is_opened_again_is_not_closed_as_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One end wants no link, the other opens one again: they would go on for ever."""
    perform, performed = Simulator._on_link_effect, 0

    def count(simulator: Simulator, broker: str, effect: LinkEffect) -> None:
        nonlocal performed
        performed += 1
        assert performed < 5_000, f"at {simulator.now_s} s: {broker} still asks for {effect}"
        perform(simulator, broker, effect)

    monkeypatch.setattr(Simulator, "_on_link_effect", count)
    run = random_run(9_000, MeshRouting)
    assert run.is_flawless, f"replay with: godwit replay 9000 --overlay mesh\n{run}"
    assert performed > 100


def test_clients_that_move_in_a_mesh_lose_nothing() -> None:
    moves = 0
    for seed in range(MOVING_SEEDS):
        run = random_moves(seed, MeshRouting)
        assert run.is_flawless, f"replay with: godwit replay {seed} --overlay mesh --moves\n{run}"
        moves += run.moves
    assert moves > MOVING_SEEDS


def test_brokers_join_and_leave_a_mesh_without_loss() -> None:
    for seed in range(MEMBERSHIP_SEEDS):
        run = random_membership(seed, MeshRouting)
        replay = f"godwit replay {seed} --overlay mesh --membership"
        assert run.is_flawless, f"replay with: {replay}\n{run}"


def test_trees_clusters_and_meshes_deliver_the_same_in_the_same_order() -> None:
    shorter = 0
    for seed in range(SCRIPTS):
        script, oracle = random_script(seed), Oracle(settle_s=60.0)
        seen = [Deliveries() for _ in range(3)]
        copies = CopyCount(), CopyCount()
        play_simulated(script, seen[0], copies[0])
        play_simulated(script, seen[1], overlay=ClusterRouting)
        play_simulated(script, seen[2], copies[1], oracle, overlay=MeshRouting)
        oracle.finish(0.0)

        found = [each.by_pair for each in seen]
        assert found == [expected_deliveries(script)] * 3, seed
        assert oracle.is_satisfied, f"{seed}: {oracle.violations}"
        assert not copies[1].repeated, f"{seed}: a broker got a publication twice"
        assert copies[1].copies <= copies[0].copies, "soft links save copies, and cost none"
        shorter += copies[1].copies < copies[0].copies
    assert shorter, "soft links were used"


# -- broken routers ----------------------------------------------------------------------------


class NeverWaits(MeshRouting):
    """Lets a publication overtake another one on a shorter path."""

    def has_to_wait(self, publication: Publication, last_hop: Hop, now_s: float) -> bool:
        return False

    def _fwd(self, publication: Publication, anchors: int, now_s: float) -> int | None:
        return self.forwarding.decide(anchors, self.settings.strategy)


class SendsBack(MeshRouting):
    """Passes a publication on in the direction that it came from, if by another broker."""

    def _wanting(self, publication: Publication, last_hop: Hop) -> tuple[int, dict[Hop, None]]:
        anchors, others = self._table.wanting(publication)
        others.pop(last_hop, None)
        return anchors & ~self.forwarding.anchors([last_hop]), others


class CoversAcrossAnchors(MeshRouting):
    """Holds a subscription back behind one that has another anchor."""

    def _make_link(self, neighbour: Neighbour, kind: LinkKind) -> Link:
        return Link(neighbour, kind)

    def _send(self, neighbour: Neighbour, entry: SubscriptionEntry) -> Send:
        sent = super(MeshRouting, self)._send(neighbour, entry)
        assert isinstance(sent.message, Subscription)
        anchor = self._anchor_of(entry, neighbour)
        return Send(neighbour, Subscription(
            id=entry.subscription.id, filter=entry.subscription.filter,
            edition=entry.subscription.edition, anchor=anchor,
        ))  # fmt: skip


@pytest.mark.parametrize("broken", [NeverWaits, SendsBack, CoversAcrossAnchors])
def test_random_meshes_notice_a_broken_router(broken: type[MeshRouting]) -> None:
    """The runs above prove nothing unless they can fail."""
    for seed in range(60):
        try:
            run = random_run(seed, broken)
        except AssertionError:
            return  # An invariant was quicker than the oracle.
        if not run.is_flawless:
            return
    pytest.fail(f"60 random runs did not notice that a router {broken.__doc__}")


class SweepsAtOnce(MeshRouting):
    """Sends a sweep before all that was published has arrived."""

    def _begin_sweep(self, sweep: Sweep, last_hop: Hop) -> Answers:
        return super(MeshRouting, self).handle(sweep, last_hop)


def test_clients_that_move_notice_a_broken_router() -> None:
    found = any(not random_moves(seed, SweepsAtOnce).is_flawless for seed in range(60))
    assert found, SweepsAtOnce.__doc__
