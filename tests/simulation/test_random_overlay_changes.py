"""Random overlays that change into overlays of any kind under traffic: nothing goes wrong.

Trees, clusters and meshes change into each other while clients subscribe, publish, move and leave.
All seeds: `godwit replay 0 --until 500 --reshaping --overlay any`, and with `--faults`.
"""

from __future__ import annotations

from collections import Counter

import pytest
from tests.sweeps import seeds

from godwit.broker.stimuli import Hop, Neighbour
from godwit.content.filters import Filter
from godwit.content.messages import Message, Publication
from godwit.migration.reshaping import ReshapingStage
from godwit.overlay import OVERLAYS
from godwit.overlay.clusters.cluster_routing import ClusterRouting
from godwit.overlay.clusters.cluster_structure import arrange, cluster_settings
from godwit.overlay.epochs.epoch_drain import EpochDrain
from godwit.overlay.epochs.epoch_paths import EpochPaths
from godwit.overlay.epochs.epoch_routing import EpochRouting
from godwit.overlay.topology import balanced_tree
from godwit.simulation.oracle import Oracle
from godwit.simulation.simulated_reshaping import reshape
from godwit.simulation.simulator import Simulator
from godwit.testing.random_reshaping import random_overlay_changes

SEEDS_PER_TEST = 10
#: A broken protocol must be noticed within so many runs.
SEEDS_UNTIL_NOTICED = 50


@pytest.mark.parametrize("first", range(0, seeds(20, whole=500), SEEDS_PER_TEST))
def test_overlays_of_any_kind_change_and_nothing_is_lost(first: int) -> None:
    changes = deliveries = 0
    for seed in range(first, first + SEEDS_PER_TEST):
        run = random_overlay_changes(seed)
        replay = f"godwit replay {seed} --reshaping --overlay any"
        assert run.is_flawless, f"replay with: {replay}\n{run}"
        changes += run.changes.count(ReshapingStage.DONE)
        deliveries += run.run.statistics.deliveries
    assert changes > 0
    assert deliveries > 0


@pytest.mark.parametrize("first", range(0, seeds(10, whole=500), SEEDS_PER_TEST))
def test_a_coordinator_that_fails_leaves_one_overlay_or_the_other(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        run = random_overlay_changes(seed, faults=True)
        replay = f"godwit replay {seed} --reshaping --overlay any --faults"
        assert run.is_flawless, f"replay with: {replay}\n{run}"


def test_the_runs_change_every_kind_into_every_kind() -> None:
    kinds = Counter(pair for seed in range(40) for pair in random_overlay_changes(seed).kinds)
    assert kinds.keys() == {(a, b) for a in OVERLAYS for b in OVERLAYS}


def never_holds(_self: EpochRouting, _message: Message, _last_hop: Hop) -> bool:
    return False


def no_sources(_self: ClusterRouting, _neighbour: Neighbour) -> list[Neighbour]:
    return []


def never_waits(_self: EpochPaths, _publication: Publication, _hop: Hop, _now_s: float) -> bool:
    return False


def is_noticed() -> bool:
    for seed in range(SEEDS_UNTIL_NOTICED):
        try:
            if not random_overlay_changes(seed).is_flawless:
                return True
        except AssertionError:
            return True
    return False


def test_it_is_noticed_if_nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EpochRouting, "starts_hold", never_holds)
    assert is_noticed()


def test_it_is_noticed_if_last_is_sent_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EpochDrain, "has_ended", lambda *_: True)
    assert is_noticed()


def test_it_is_noticed_if_last_does_not_follow_rings_to_clusters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ClusterRouting, "sources", no_sources)
    assert is_noticed()


def test_it_is_noticed_if_paths_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EpochPaths, "has_to_wait", never_waits)
    assert is_noticed()


def test_clusters_get_another_number_and_become_a_tree_again() -> None:
    tree = balanced_tree(9, fanout=2)
    names, oracle = tree.brokers, Oracle()
    simulator = Simulator(tree, seed=1, observers=[oracle])
    alice, paul = simulator.client("alice", at="B9"), simulator.client("paul", at="B4")
    alice.subscribe(Filter.parse("price > 0"))
    advertised = paul.advertise(Filter.parse("class = 'STOCK' and price >= 0"))
    simulator.run()
    shapes = [(arrange(names, m).topology, "clusters", cluster_settings(names, m)) for m in (3, 2)]
    for topology, kind, settings in [*shapes, (tree, "mesh", {"delta": 3}), (tree, "tree", {})]:
        change = reshape(simulator, topology, change=kind, seed=1, overlay=kind, settings=settings)
        paul.publish(advertised, {"class": "STOCK", "price": 1})
        simulator.run()
        assert change.stage is ReshapingStage.DONE
        paul.publish(advertised, {"class": "STOCK", "price": 2})
        simulator.run()
        links = {
            tuple(sorted((name, link.name)))
            for name, node in simulator.brokers.items()
            for link in node.broker.routing.neighbours
        }
        assert links == topology.links
    oracle.finish(simulator.now_s)
    assert oracle.is_satisfied
    assert oracle.deliveries == 8
