"""How many clients of a group go, which group is the best, and when a plan is complete."""

from __future__ import annotations

from random import Random

import pytest
from tests.policies.offload.scenes import info, sampled

from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.offload_algorithms import plan_offload
from godwit.policies.offload.report_cards import (
    BALANCED,
    NO_STEP,
    PAST_BALANCE,
    Offloading,
    OffloadPlan,
    ReportCard,
    pick_best_report,
)
from godwit.policies.offload.settings import BalancingSettings


def offloading(
    action: OffloadAction,
    local: BrokerInfo,
    remote: BrokerInfo,
    *,
    clients: int,
    bits: str = "0001",
    lcss: str = "1111",
    overloaded: bool = False,
    settings: BalancingSettings | None = None,
    staying: tuple[str, ...] = (),
) -> Offloading:
    """A group "a" and another one that receives what is not its own; a sample is 1/s, 100 bytes."""
    others = "".join("1" if bit == "0" else "0" for bit in bits)
    groups = {"a": (clients, bits), "other": (1, others)}
    samples = sampled(groups, lcss=lcss, staying=staying)
    return Offloading(
        action, local, remote, (), samples, settings or BalancingSettings(), overloaded=overloaded
    )


OUTPUT = OffloadAction.OUTPUT


@pytest.mark.parametrize(
    ("clients", "local", "remote", "k", "difference"),
    [
        pytest.param(9, (800, 1000), (0, 1000), 4, 0.0, id="as many as reach balance"),
        pytest.param(3, (800, 1000), (0, 1000), 3, 0.2, id="all of them, if that is not enough"),
        pytest.param(9, (700, 1000), (0, 1000), 4, -0.1, id="the first that goes beyond"),
        pytest.param(9, (806, 1000), (0, 1000), 5, -0.194, id="0.006 is not balanced"),
        pytest.param(9, (804, 1000), (0, 1000), 4, 0.004, id="0.004 is balanced"),
        pytest.param(9, (800, 1000), (0, 4000), 7, -0.075, id="a wide acceptor takes more"),
        pytest.param(9, (2400, 1000), (300, 1000), 6, 0.9, id="the acceptor's output is the limit"),
        pytest.param(9, (950, 1000), (850, 1000), None, 0.0, id="the acceptor has no room for one"),
        pytest.param(9, (500, 1000), (498, 1000), None, 0.0, id="balanced already"),
        pytest.param(9, (100, 1000), (500, 1000), None, 0.0, id="the offloader is the lower one"),
    ],
)
def test_the_number_of_clients(
    clients: int,
    local: tuple[float, float],
    remote: tuple[float, float],
    k: int | None,
    difference: float,
) -> None:
    loads = offloading(
        OUTPUT,
        info("B1", ir=4, ou=local[0], ot=local[1]),
        info("B2", ir=4, ou=remote[0], ot=remote[1]),
        clients=clients,
    )
    report = loads.report(0)

    assert (None if report is None else report.k) == k
    if report is not None:
        assert report.difference == pytest.approx(difference)


@pytest.mark.parametrize(
    ("remote", "k", "resource"),
    [
        pytest.param(info("B2", ou=0, ot=1000), 9, "", id="no limit is reached"),
        pytest.param(info("B2", ou=600, ot=1000), 3, "output", id="output"),
        pytest.param(info("B2", ir=80, b=0.01, m=1e-4, n=0), 9, "", id="just within the CPU"),
        pytest.param(info("B2", ir=80, b=0.011, m=1e-4, n=0), 2, "input", id="CPU: matching slows"),
        pytest.param(
            info("B2", memory=0.8, per_subscription=2.0**-5),
            3,
            "memory",
            id="memory: each takes some",
        ),
        pytest.param(info("B2", ir=80, b=0.012), None, "input", id="none: its input is too high"),
        pytest.param(info("B2", memory=0.91), None, "memory", id="none: its memory is too full"),
        pytest.param(
            info("B2", ou=901, ot=1000), None, "output", id="none: its output is too full"
        ),
    ],
)
def test_the_limit_of_the_acceptor_on_each_resource(
    remote: BrokerInfo, k: int | None, resource: str
) -> None:
    """Whatever the metric of interest is."""
    cases = {
        OffloadAction.OUTPUT: info("B1", ir=4, ou=1e6, ot=1000),
        OffloadAction.MATCH: info("B1", ir=4, b=100.0, m=1.0, n=50),
        OffloadAction.INPUT: info("B1", ir=4, b=100.0, m=1.0, n=50),
    }
    for action, local in cases.items():
        loads = offloading(action, local, remote, clients=9)
        report = loads.report(0)
        assert (None if report is None else report.k) == k, action
        assert loads.obstacle.split(" ")[0] == resource, action


def test_the_input_that_is_added_counts_against_the_limit() -> None:
    """Three samples of 1/s that the acceptor lacks, at 0.02 s each: from 0.86 to 0.92."""
    local, remote = info("B1", ir=4, ou=1e6, ot=1000), info("B2", ir=43, b=0.02)
    lacking = offloading(OUTPUT, local, remote, clients=1, bits="0111", lcss="1000")
    has_two = offloading(OUTPUT, local, remote, clients=1, bits="0111", lcss="0011")

    assert lacking.report(0) is None
    assert lacking.obstacle == "input 0.920 > 0.9"
    assert has_two.report(0) is not None


@pytest.mark.parametrize(
    ("clients", "b", "staying", "k", "difference"),
    [
        pytest.param(2, 0.1, (), 2, 0.28, id="all leave: the input falls, too"),
        pytest.param(2, 0.1, ("a1",), 1, 0.38, id="one stays: only the delay falls"),
    ],
)
def test_the_input_falls_only_if_all_leave(
    clients: int, b: float, staying: tuple[str, ...], k: int, difference: float
) -> None:
    local, remote = info("B1", ir=4, n=10, b=b), info("B2", ir=1, b=0.02)
    loads = offloading(
        OffloadAction.INPUT, local, remote, clients=clients, lcss="1111", staying=staying
    )
    report = loads.report(0)

    assert report is not None
    assert report.k == k
    assert report.saved_bits == (0 if staying else 1)
    assert report.difference == pytest.approx(difference)


# -- the best report -----------------------------------------------------------------------------


def card(
    group: int, difference: float, k: int = 1, *, covered: bool = False, saved: int = 0
) -> ReportCard:
    return ReportCard(group, k, difference, covered, saved)


@pytest.mark.parametrize(
    ("reports", "best"),
    [
        pytest.param([card(0, 0.3), card(1, 0.1), card(2, 0.2)], 1, id="nearest to balance"),
        pytest.param([card(0, 0.2), card(1, -0.1)], 1, id="also from the other side"),
        pytest.param([card(0, 0.1), card(1, -0.1, covered=True)], 1, id="tie: covered first"),
        pytest.param([card(0, 0.1, saved=1), card(1, 0.1, saved=3)], 1, id="tie: more input saved"),
        pytest.param(
            [card(0, 0.1, saved=9), card(1, 0.1, covered=True)], 1, id="covered before input saved"
        ),
        pytest.param([card(0, 0.1, k=3), card(1, 0.1, k=2)], 1, id="tie: fewer clients"),
        pytest.param([card(0, 0.1, k=1), card(1, 0.1, k=2, saved=1)], 1, id="saved before fewer"),
        pytest.param([card(7, 0.1), card(1, 0.1)], 1, id="tie: the lowest id"),
        pytest.param([card(0, 0.5), card(1, -0.6)], None, id="none is nearer than now"),
        pytest.param([card(0, -0.47)], None, id="past balance, without a margin"),
        pytest.param([card(0, -0.47), card(1, 0.49)], 1, id="a small step before balance"),
        pytest.param([card(0, -0.4)], 0, id="past balance, by a margin"),
        pytest.param([], None, id="none at all"),
    ],
)
def test_pick_best_report(reports: list[ReportCard], best: int | None) -> None:
    for order in (reports, reports[::-1]):
        found = pick_best_report(order, 0.5, 0.005)
        assert (None if found is None else found.group) == best


# -- when a plan is complete ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "local", "remote", "overloaded", "done"),
    [
        pytest.param(OUTPUT, info(ou=500, ot=1000), info(ou=496, ot=1000), False, True,
                     id="within the balance threshold"),
        pytest.param(OUTPUT, info(ou=500, ot=1000), info(ou=600, ot=1000), False, True,
                     id="the offloader is the lower one"),
        pytest.param(OUTPUT, info(ou=500, ot=1000), info(ou=490, ot=1000), False, False,
                     id="above the balance threshold"),
        pytest.param(OUTPUT, info(ou=500, ot=1000), info(ou=0, ot=1000), True, True,
                     id="overload: output below the lower threshold"),
        pytest.param(OUTPUT, info(ou=900, ot=1000), info(ou=899, ot=1000), True, False,
                     id="overload: output at the lower threshold, balanced or not"),
        pytest.param(OffloadAction.INPUT, info(ir=89, b=0.01), info(), True, True,
                     id="overload: input below it"),
        pytest.param(OffloadAction.INPUT, info(ir=91, b=0.01), info(), True, False,
                     id="overload: input above it"),
        pytest.param(OffloadAction.MATCH, info(ir=91, b=0.01), info(), True, False,
                     id="overload, match: CPU and input above it"),
        pytest.param(OffloadAction.MATCH, info(ir=1, b=0.01, memory=0.91), info(), True, False,
                     id="overload, match: memory above it"),
        pytest.param(OffloadAction.MATCH, info(ir=1, b=0.01, memory=0.89), info(), True, True,
                     id="overload, match: CPU, input and memory below it"),
    ],
)  # fmt: skip
def test_done_offloading(
    action: OffloadAction, local: BrokerInfo, remote: BrokerInfo, overloaded: bool, done: bool
) -> None:
    loads = offloading(action, local, remote, clients=1, overloaded=overloaded)

    assert loads.is_done == done


# -- what a plan gains ---------------------------------------------------------------------------


def output_plan(heavy: int, used: float, *, light: int = 0) -> OffloadPlan:
    """B1 has clients of 100 bytes/s and of 1 byte/s; B2 has none; both have 300 bytes/s."""
    heavy_bits, light_bits = "0" + "1" * 100, "1" + "0" * 100
    groups = {"heavy": (heavy, heavy_bits), "light": (light, light_bits)}
    local, remote = info("B1", ir=101, ou=used, ot=300), info("B2", ir=101, ot=300)
    samples = sampled(groups, lcss="1" * 101, size_bytes=1)
    return plan_offload(
        OUTPUT, local, remote, (), samples, BalancingSettings(balance_threshold=0.02),
        overloaded=False, random=Random(1),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("clients", "used", "moved", "reason"),
    [
        pytest.param(1, 100, 0, NO_STEP, id="one subscriber: B2 would have all of it then"),
        pytest.param(1, 104, 0, NO_STEP, id="measured 4% more than was sampled"),
        pytest.param(1, 96, 0, NO_STEP, id="measured 4% less than was sampled"),
        pytest.param(2, 208, 1, NO_STEP, id="of two heavy ones, one"),
        pytest.param(2, 200, 1, BALANCED, id="as it was sampled"),
        pytest.param(1, 150, 1, PAST_BALANCE, id="past balance, and much better"),
    ],
)
def test_a_heavy_subscriber_does_not_go_to_and_fro(
    clients: int, used: float, moved: int, reason: str
) -> None:
    found = output_plan(clients, used)

    assert (len(found.clients), found.reason) == (moved, reason)
    assert (found.reason == BALANCED) == (abs(found.difference_after) <= 0.02)


def test_a_plan_that_gains_next_to_nothing_is_dropped() -> None:
    """One that is too heavy to move, and some that make no difference."""
    found = output_plan(1, 104, light=2)

    assert (found.clients, found.reason) == ((), NO_STEP)
    assert found.difference_after == found.difference_before
    assert found.remote_after == found.remote_before


def test_many_steps_that_gain_little_are_one_that_gains_much() -> None:
    found = output_plan(1, 104, light=20)

    assert len(found.clients) == 20
    assert "heavy0" not in found.clients
