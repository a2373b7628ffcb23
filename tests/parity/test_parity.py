"""What the simulator delivers, real processes deliver, and brute force says it should be."""

from __future__ import annotations

import pytest
import uvloop
from tests.simulation.test_random_trees import ForgetsEarlierInterest, NeverTakesBack, SendsBack
from tests.sweeps import seeds

from godwit.overlay.clusters.cluster_routing import ClusterRouting
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.simulation.oracle import Oracle
from godwit.testing import (
    Deliveries,
    expected_deliveries,
    play_live,
    play_simulated,
    random_script,
)

SEEDS = seeds(5, whole=20)
HURRIED_SEEDS = seeds(2, whole=6)
CLUSTER_SEEDS = seeds(2, whole=12)


def brokers(seed: int) -> int:
    """Every size from 2 to 6, and now and then the largest there is a promise for."""
    return 12 if seed % 5 == 4 else 2 + seed % 5


@pytest.mark.parametrize("seed", range(SEEDS))
def test_processes_and_simulator_deliver_the_same(seed: int) -> None:
    script = random_script(seed, brokers=brokers(seed))
    replay = f"replay with: pytest tests/parity -k 'same and [{seed}]'"
    wanted = expected_deliveries(script)
    simulated, live = Deliveries(), Deliveries()

    play_simulated(script, simulated)
    assert simulated.by_pair == wanted, replay

    codes = uvloop.run(play_live(script, live))
    assert live.by_pair == wanted, replay
    assert set(codes.values()) == {0}, replay
    assert sum(map(len, wanted.values())) > 20, "a script without deliveries proves nothing"


@pytest.mark.parametrize("seed", range(100, 100 + HURRIED_SEEDS))
def test_what_overtakes_each_other_in_processes_is_what_the_oracle_allows(seed: int) -> None:
    script = random_script(seed, brokers=brokers(seed), is_quiet=False)
    oracle = Oracle(settle_s=60.0)

    uvloop.run(play_live(script, oracle))
    oracle.finish(0.0)

    replay = f"replay with: pytest tests/parity -k 'oracle and [{seed}]'"
    assert oracle.is_satisfied, f"{replay}\n{oracle.violations}"
    assert oracle.deliveries > 20, "a script without deliveries proves nothing"


@pytest.mark.parametrize("seed", range(200, 200 + CLUSTER_SEEDS))
def test_processes_in_clusters_deliver_what_brute_force_says(seed: int) -> None:
    """Every other script is hurried: then the oracle says what is right."""
    is_quiet = seed % 2 == 0
    script = random_script(seed, brokers=4 + seed % 3, is_quiet=is_quiet)
    oracle, live = Oracle(settle_s=60.0), Deliveries()

    codes = uvloop.run(play_live(script, oracle, live, overlay=ClusterRouting))
    oracle.finish(0.0)

    replay = f"replay with: pytest tests/parity -k 'clusters and [{seed}]'"
    assert oracle.is_satisfied, f"{replay}\n{oracle.violations}"
    if is_quiet:
        assert live.by_pair == expected_deliveries(script), replay
    assert set(codes.values()) == {0}, replay
    assert oracle.deliveries > 20, "a script without deliveries proves nothing"


def test_simulated_scripts_deliver_what_brute_force_says() -> None:
    """More of them than there is time for in processes."""
    for seed in range(60):
        script, seen = random_script(seed), Deliveries()
        play_simulated(script, seen)
        assert seen.by_pair == expected_deliveries(script), f"random_script({seed})"


@pytest.mark.parametrize("broken", [SendsBack, ForgetsEarlierInterest, NeverTakesBack])
def test_scripts_notice_a_broken_router(broken: type[TreeRouting]) -> None:
    """The equalities above prove nothing unless they can fail."""
    for seed in range(50):
        script, seen = random_script(seed), Deliveries()
        try:
            play_simulated(script, seen, overlay=broken)
        except AssertionError:
            return  # An invariant was quicker.
        if seen.by_pair != expected_deliveries(script):
            return
    pytest.fail(f"50 scripts did not notice that a router {broken.__doc__}")
