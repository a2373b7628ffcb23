"""Random overlays that change their shape under traffic: nothing goes wrong.

All seeds: `godwit replay 0 --until 2000 --reshaping`, and with `--faults`, where every other run
has live brokers that crash (tests/testing/storms/test_reshaping_storm.py).
"""

from __future__ import annotations

from random import Random

import pytest
from tests.sweeps import seeds

from godwit.broker.stimuli import Hop
from godwit.content.filters import Filter
from godwit.content.messages import Message
from godwit.migration.reshaping import ReshapingStage
from godwit.overlay.epochs.epoch_drain import EpochDrain
from godwit.overlay.epochs.epoch_routing import EpochRouting
from godwit.overlay.topology import balanced_tree, chain
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.simulation.oracle import Oracle
from godwit.simulation.simulated_reshaping import reshape
from godwit.simulation.simulator import Simulator
from godwit.testing.random_reshaping import random_reshaping, shuffled_tree

SEEDS_PER_TEST = 10
#: A broken protocol must be noticed within so many runs.
SEEDS_UNTIL_NOTICED = 50


@pytest.mark.parametrize("first", range(0, seeds(60, whole=2_000), SEEDS_PER_TEST))
def test_the_shape_changes_and_nothing_is_lost_doubled_or_disordered(first: int) -> None:
    changes = deliveries = 0
    for seed in range(first, first + SEEDS_PER_TEST):
        run = random_reshaping(seed)
        assert run.is_flawless, f"replay with: godwit replay {seed} --reshaping\n{run}"
        changes += run.changes.count(ReshapingStage.DONE)
        deliveries += run.run.statistics.deliveries
    assert changes > 0
    assert deliveries > 0


@pytest.mark.parametrize("first", range(0, seeds(30, whole=2_000), SEEDS_PER_TEST))
def test_a_coordinator_that_fails_leaves_one_shape_or_the_other(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        run = random_reshaping(seed, faults=True)
        assert run.is_flawless, f"random_reshaping({seed}, faults=True)\n{run}"


@pytest.mark.parametrize("seed", [495, 797])
def test_a_move_ends_although_its_sweep_came_behind_the_end_of_an_epoch(seed: int) -> None:
    run = random_reshaping(seed, faults=True)
    assert run.is_flawless, f"random_reshaping({seed}, faults=True)\n{run}"


def test_some_changes_with_faults_are_aborted_and_some_are_done() -> None:
    stages = {stage for seed in range(20) for stage in random_reshaping(seed, faults=True).changes}
    assert stages == {ReshapingStage.DONE, ReshapingStage.ABORTED}


def never_holds(_self: EpochRouting, _message: Message, _last_hop: Hop) -> bool:
    return False


def first_noticed() -> int | None:
    for seed in range(SEEDS_UNTIL_NOTICED):
        try:
            if not random_reshaping(seed).is_flawless:
                return seed
        except AssertionError:
            return seed
    return None


def test_it_is_noticed_if_nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EpochRouting, "starts_hold", never_holds)
    assert first_noticed() is not None


def test_it_is_noticed_if_last_is_sent_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EpochDrain, "has_ended", lambda *_: True)
    assert first_noticed() is not None


def test_a_change_without_traffic_needs_few_messages() -> None:
    simulator = Simulator(balanced_tree(7, fanout=2), seed=1, observers=[oracle := Oracle()])
    alice, paul = simulator.client("alice", at="B7"), simulator.client("paul", at="B4")
    alice.subscribe(Filter.parse("price > 0"))
    advertised = paul.advertise(Filter.parse("class = 'STOCK' and price >= 0"))
    simulator.run()
    change = reshape(simulator, shuffled_tree(simulator.topology, Random(1)), change="c", seed=1)
    simulator.run()
    assert change.stage is ReshapingStage.DONE
    assert simulator.lane == 1
    paul.publish(advertised, {"class": "STOCK", "price": 1})
    simulator.run()
    oracle.finish(simulator.now_s)
    assert oracle.is_satisfied
    assert {node.broker.epochs.status.epoch for node in simulator.brokers.values()} == {1}  # type: ignore[union-attr]


def test_a_single_broker_has_nothing_to_wait_for() -> None:
    simulator = Simulator(chain(1), seed=1)
    change = reshape(simulator, chain(1), change="c", seed=1)
    simulator.run()
    assert change.stage is ReshapingStage.DONE


def test_after_a_change_the_router_is_asked_directly() -> None:
    simulator = Simulator(chain(3), seed=1)
    reshape(simulator, shuffled_tree(chain(3), Random(2)), change="c", seed=1)
    simulator.run()
    for node in simulator.brokers.values():
        routing = node.broker.routing
        assert isinstance(routing, EpochRouting)
        assert routing.destinations.__func__ is TreeRouting.destinations  # type: ignore[attr-defined]
