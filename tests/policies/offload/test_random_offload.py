"""The baseline: a count from the loads, clients by chance."""

from __future__ import annotations

import pytest
from tests.policies.offload.scenes import info, plan, sampled, subscriptions

from godwit.policies.offload.broker_load import OffloadAction
from godwit.policies.offload.press import Press
from godwit.policies.offload.random_offload import subscriptions_to_move
from godwit.policies.offload.settings import BalancingSettings

RANDOM = BalancingSettings(algorithm="random")


@pytest.mark.parametrize(
    ("local", "remote", "local_n", "remote_n", "count"),
    [
        pytest.param(0.8, 0.4, 100, 40, 22.5, id="the mean of (4.13) and (4.14)"),
        pytest.param(0.8, 0.1, 100, 90, 43.75, id="(4.13) if (4.14) exceeds what there is"),
        pytest.param(0.8, 0.0, 100, 40, 50.0, id="(4.13) if the acceptor is idle"),
        pytest.param(0.8, 0.4, 100, 0, 25.0, id="(4.13) if the acceptor has no subscriptions"),
        pytest.param(0.0, 0.0, 100, 40, 0.0, id="nothing if the offloader is idle"),
        pytest.param(0.4, 0.4, 100, 40, 0.0, id="nothing if they are balanced"),
    ],
)
def test_the_count(local: float, remote: float, local_n: int, remote_n: int, count: float) -> None:
    assert subscriptions_to_move(local, remote, local_n, remote_n) == pytest.approx(count)


def test_as_many_clients_as_the_count_says() -> None:
    """Test vector 8: 22.5, rounded up."""
    local = info("B1", ir=8, n=100, ou=800, ot=1000)
    remote = info("B2", n=40, ou=400, ot=1000)
    samples = sampled({"a": (60, "0001"), "b": (40, "0010")})

    found = plan(OffloadAction.OUTPUT, local, remote, samples, settings=RANDOM, seed=3)
    again = plan(OffloadAction.OUTPUT, local, remote, samples, settings=RANDOM, seed=3)
    other = plan(OffloadAction.OUTPUT, local, remote, samples, settings=RANDOM, seed=4)

    assert len(found.clients) == len(set(found.clients)) == 23
    assert found.clients == again.clients != other.clients
    assert {client[0] for client in found.clients} == {"a", "b"}
    assert found.local_after.subscriptions == 77


def test_a_client_of_several_filters_counts_as_several() -> None:
    held = subscriptions({f"c{n}": ["x > 1", "y > 1"] for n in range(10)})
    samples = Press(held, (), samples_max=1, now_s=0.0).result(1.0)
    local, remote = info("B1", n=20, ou=500, ot=1000), info("B2", n=0, ou=0, ot=1000)

    found = plan(OffloadAction.OUTPUT, local, remote, samples, settings=RANDOM)

    assert len(found.clients) == 5  # Ten subscriptions.


@pytest.mark.parametrize("action", OffloadAction, ids=lambda action: action.value)
def test_it_knows_no_limit_of_the_acceptor(action: OffloadAction) -> None:
    local = info("B1", ir=80, n=100, m=1e-3, ou=8e3, ot=1e3)
    remote = info("B2", ir=10, n=10, m=1e-3, ou=800, ot=1e3)
    samples = sampled({"a": (100, "0001")})

    assert len(plan(action, local, remote, samples, settings=RANDOM).clients) > 20


def test_the_lower_broker_gives_nothing_away() -> None:
    local, remote = info("B1", n=9, ou=100, ot=1e3), info("B2", n=9, ou=500, ot=1e3)

    found = plan(OffloadAction.OUTPUT, local, remote, sampled({"a": (9, "1")}), settings=RANDOM)

    assert found.clients == ()
    assert found.reason == "the offloader's load is not the higher one"
