"""Nemesis in memory: promises are kept, and a network that breaks one is noticed.

All of it: `godwit nemesis 0 --until 200 --in-memory`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from tests.sweeps import seeds

from godwit.broker.effects import Send
from godwit.broker.stimuli import Neighbour
from godwit.overlay.clusters.subscription_lists import LocalSubscriptionList
from godwit.runtime.recovery import Recovery
from godwit.testing.nemesis.fault_kinds import FaultKind
from godwit.testing.nemesis.memory_run import MEMORY_KINDS, run_in_memory
from godwit.testing.nemesis.nemesis_plan import draw_plan

BURST_S = 10.0

pytestmark = pytest.mark.filterwarnings("default::ResourceWarning")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    log = logging.getLogger("godwit")
    level = log.level
    yield
    log.setLevel(level)


@pytest.mark.parametrize("seed", range(200, 200 + seeds(2, whole=40)))
def test_every_kind_of_fault_happens_and_every_promise_is_kept(seed: int) -> None:
    result = run_in_memory(seed, seconds=BURST_S)
    assert result.is_flawless, "\n".join([*result.violations, *result.story])
    planned = {fault.kind for fault in draw_plan(seed, seconds=BURST_S).faults}
    of_clients = {FaultKind.CLIENT, FaultKind.SECOND, FaultKind.TAKE_OVER}
    happened = {FaultKind(kind) for kind in result.faults}
    assert planned - of_clients - {FaultKind.CLOCK} <= happened <= set(MEMORY_KINDS)
    assert result.acknowledged
    assert result.deliveries


# Even seeds first: with odd ones brokers are given up, and then clusters may come to a stop, which
# is open (decision 30).  The whole sweep has them.
CLUSTER_SEEDS = [*range(0, 50, 2), *range(1, 50, 2)][: seeds(2, whole=50)]


@pytest.mark.parametrize("seed", CLUSTER_SEEDS)
def test_the_same_promises_are_kept_in_clusters(seed: int) -> None:
    result = run_in_memory(seed, seconds=BURST_S, in_clusters=True)
    replay = f"godwit nemesis {seed} --in-memory --overlay clusters --seconds {BURST_S:g}"
    assert result.is_flawless, "\n".join([replay, *result.violations, *result.story])
    assert "extra-link" not in result.faults, "a broker of no cluster is refused anyway"
    assert result.acknowledged
    assert result.deliveries


def test_a_subscription_that_a_mate_lacks_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets(_lists: LocalSubscriptionList, _mate: Neighbour) -> list[Send]:
        return []

    monkeypatch.setattr(LocalSubscriptionList, "repeat", forgets)
    kinds = [FaultKind.KILL, FaultKind.KILL_TWO]
    results = (
        run_in_memory(seed, seconds=BURST_S, kinds=kinds, in_clusters=True)
        for seed in range(6, 12, 2)
    )
    assert any("lost" in each for result in results for each in result.violations)


def test_a_broker_that_passes_on_before_its_clients_are_back_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Recovery, "is_over", lambda *_, **__: True)
    kinds = [FaultKind.KILL, FaultKind.KILL_TWO]
    results = (run_in_memory(seed, seconds=BURST_S, kinds=kinds) for seed in range(0, 8, 2))
    assert any("lost" in each for result in results for each in result.violations)
