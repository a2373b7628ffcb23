"""Loads after a move: (4.9) to (4.12), and the acceptor's limit on every resource."""

from __future__ import annotations

from math import inf
from random import Random

import pytest
from tests.policies.offload.scenes import info

from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.estimates import LoadPair
from godwit.policies.offload.settings import BalancingSettings

SETTINGS = BalancingSettings()


def test_the_ratios_of_a_broker() -> None:
    broker = info(ir=50.0, n=100, m=1e-4, b=2e-3, ou=300.0, ot=1000.0)

    assert broker.matching_delay_s == pytest.approx(0.012)  # (4.9)
    assert broker.input_utilisation == pytest.approx(0.6)  # (4.1)
    assert broker.cpu_utilisation == broker.input_utilisation
    assert broker.output_utilisation == pytest.approx(0.3)  # (4.2)


def test_an_overloaded_input_is_above_one_but_its_cpu_is_not() -> None:
    broker = info(ir=200.0, n=100, m=1e-4, b=2e-3)

    assert broker.input_utilisation == pytest.approx(2.4)
    assert broker.cpu_utilisation == 1.0


@pytest.mark.parametrize(
    ("used", "total", "expected"),
    [
        pytest.param(5.0, inf, 0.0, id="an output without a limit is never used up"),
        pytest.param(0.0, 0.0, 0.0, id="nothing is used of nothing"),
        pytest.param(5.0, 0.0, inf, id="an output of nothing is overloaded by anything"),
    ],
)
def test_the_output_ratio_at_its_limits(used: float, total: float, expected: float) -> None:
    assert info(ou=used, ot=total).output_utilisation == expected


LOCAL = info("B1", ir=80.0, n=100, m=1e-4, b=0.0, ou=900.0, ot=1000.0, memory=0.5,
             per_subscription=1e-3)  # fmt: skip
REMOTE = info("B2", ir=10.0, n=20, m=2e-4, b=1e-3, ou=100.0, ot=2000.0, memory=0.2,
              per_subscription=2e-3)  # fmt: skip


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [
        pytest.param(OffloadAction.INPUT, 0.75, 0.435, id="input: rate times delay (4.10)"),
        pytest.param(OffloadAction.MATCH, 0.05, 0.02, id="match: delays in units of Nf (4.9)"),
        pytest.param(OffloadAction.OUTPUT, 0.85, 0.55, id="output: bytes (4.11, 4.12)"),
    ],
)
def test_the_difference_after_a_move(action: OffloadAction, before: float, after: float) -> None:
    pair = LoadPair(action, LOCAL, REMOTE, SETTINGS)

    assert pair.difference == pytest.approx(before)
    assert pair.difference_after(20.0, 5.0, 10, 200.0) == pytest.approx(after)
    pair.move(20.0, 5.0, 10, 200.0)
    assert pair.difference == pytest.approx(after)
    assert (pair.local.input_per_s, pair.remote.input_per_s) == (60.0, 15.0)
    assert (pair.local.subscriptions, pair.remote.subscriptions) == (90, 30)
    assert (pair.local.output_used_bytes_s, pair.remote.output_used_bytes_s) == (700.0, 300.0)
    assert pair.local.memory_utilisation == pytest.approx(0.49)
    assert pair.remote.memory_utilisation == pytest.approx(0.22)


def test_no_load_becomes_negative() -> None:
    """Samples may say that more leaves than was measured."""
    pair = LoadPair(OffloadAction.INPUT, LOCAL, REMOTE, SETTINGS)
    pair.move(1e6, 0.0, 1000, 1e6)

    local = pair.local
    assert (local.input_per_s, local.subscriptions) == (0.0, 0)
    assert (local.output_used_bytes_s, local.memory_utilisation) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("remote", "added", "moved", "bytes_s", "obstacle"),
    [
        pytest.param(info(ir=80, n=0, b=0.01), 10.0, 5, 1e9, "", id="up to the limit it fits"),
        pytest.param(info(ir=80, n=0, b=0.01), 11.0, 5, 0.0, "input 0.910 > 0.9", id="more input"),
        pytest.param(
            info(ir=80, n=0, m=1e-3, b=0.01), 0.0, 2, 0.0, "input 0.960 > 0.9",
            id="slower matching, and so more CPU",
        ),
        pytest.param(info(ou=800, ot=1000), 0.0, 1, 101.0, "output 0.901 > 0.9", id="more output"),
        pytest.param(
            info(memory=0.85, per_subscription=0.02), 0.0, 3, 0.0, "memory 0.910 > 0.9",
            id="more memory",
        ),
        pytest.param(
            info(ir=80, b=0.01, ou=800, ot=1000), 20.0, 1, 200.0,
            "input 1.000 > 0.9, output 1.000 > 0.9", id="two at once",
        ),
        pytest.param(info(memory=0.95), 0.0, 1, 0.0, "memory 0.950 > 0.9", id="above it before"),
    ],
)  # fmt: skip
def test_the_limit_of_the_acceptor(
    remote: BrokerInfo, added: float, moved: int, bytes_s: float, obstacle: str
) -> None:
    pair = LoadPair(OffloadAction.OUTPUT, LOCAL, remote, SETTINGS)

    assert pair.fits(added, moved, bytes_s) == (not obstacle)
    assert pair.obstacle(added, moved, bytes_s) == obstacle


@pytest.mark.parametrize("action", OffloadAction, ids=lambda action: action.value)
@pytest.mark.parametrize("seed", range(20))
def test_the_difference_never_rises_if_more_moves(action: OffloadAction, seed: int) -> None:
    random = Random(seed)
    pair = LoadPair(action, LOCAL, REMOTE, SETTINGS)
    move = (
        random.uniform(0, 80),
        random.uniform(0, 80),
        random.randrange(100),
        1e3 * random.random(),
    )
    more = tuple(figure * random.choice([1, 1, 2]) for figure in move)

    assert pair.difference_after(*more) <= pair.difference_after(*move)  # type: ignore[arg-type]
