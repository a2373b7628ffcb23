"""Brokers of a mesh leave a neighbour for another one under traffic, and fail meanwhile.

All seeds: `godwit replay 0 --until 1000 --overlay mesh --reshaping`, and with `--faults`.
"""

from __future__ import annotations

from tests.sweeps import seeds

from godwit.migration.reshaping import ReshapingStage
from godwit.testing.random_reshaping import random_delta_moves
from godwit.testing.storms.overlay_storm import delta_move_storm

REPLAY = "godwit replay {} --overlay mesh --reshaping"


def test_brokers_of_a_mesh_change_their_place_and_nothing_is_lost() -> None:
    moves = deliveries = 0
    for seed in range(seeds(5, whole=1_000)):
        run = random_delta_moves(seed)
        assert run.is_flawless, f"replay with: {REPLAY.format(seed)}\n{run}"
        moves += run.changes.count(ReshapingStage.DONE)
        deliveries += run.run.statistics.deliveries
    assert moves > 3
    assert deliveries > 100


def test_a_coordinator_that_fails_leaves_a_broker_at_its_old_or_new_place() -> None:
    for seed in range(0, 2 * seeds(2, whole=500), 2):
        run = random_delta_moves(seed, faults=True)
        assert run.is_flawless, f"replay with: {REPLAY.format(seed)} --faults\n{run}"


def test_live_brokers_that_crash_while_one_changes_its_place_lose_nothing() -> None:
    for seed in range(1, 2 * seeds(2, whole=500), 2):
        run = delta_move_storm(seed)
        assert run.is_flawless, f"replay with: {REPLAY.format(seed)} --faults\n{run}"
