"""Match offload: the least traffic first, until the matching delays meet."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.policies.offload.scenes import info, plan, sampled

from godwit.content.filters import Filter
from godwit.policies.offload.broker_load import OffloadAction

MATCH = OffloadAction.MATCH

#: Four samples of 1/s, 100 bytes each.  A subscription takes 1 ms, which is 0.01 of Nf.
LOCAL = info("B1", ir=4, n=20, m=1e-3, ou=2000, ot=1e6)
IDLE = info("B2", ir=0, n=14, m=1e-3, ou=0, ot=1e6)


@pytest.mark.parametrize(
    ("groups", "lcss", "chosen"),
    [
        pytest.param(
            {"much": (9, "1111"), "some": (2, "0011"), "none": (1, "0000")}, "0000",
            ["none0", "some0", "some1"], id="by ascending bandwidth",
        ),
        pytest.param(
            {"new": (2, "0011"), "half": (2, "0110"), "known": (1, "1100")}, "1100",
            ["known0", "half0", "half1"], id="then by ascending input added at the acceptor",
        ),
        pytest.param(
            {"a": (1, "0011"), "b": (1, "1100"), "c": (1, "0110"), "d": (1, "0010")}, "0000",
            ["d0", "a0", "c0"], id="what a choice brings is known to the next",
        ),
        pytest.param(
            {"a": (9, "0001"), "b": (9, "0010")}, "0011",
            ["a0", "a1", "a2"], id="no more than balance needs",
        ),
    ],
)  # fmt: skip
def test_match_offload(groups: dict[str, tuple[int, str]], lcss: str, chosen: list[str]) -> None:
    found = plan(MATCH, LOCAL, IDLE, sampled(groups, lcss=lcss))

    assert list(found.clients) == chosen
    assert found.difference_before == pytest.approx(0.06)
    assert found.difference_after == pytest.approx(0.0)
    assert found.reason == "balanced"


def test_of_those_without_traffic_the_ones_that_the_acceptor_covers_go_first() -> None:
    filters = {"a": "x > 1", "b": "x > 5", "c": "y > 5"}
    samples = sampled({"a": (1, "0000"), "b": (3, "0000"), "c": (1, "0000")}, filters=filters)

    found = plan(MATCH, LOCAL, IDLE, samples, css=[Filter.parse("x > 3")])

    assert found.clients == ("b0", "b1", "b2")


def test_clients_with_many_filters_are_passed_over_if_they_would_go_too_far() -> None:
    samples = sampled({"many": (1, "0000"), "one": (4, "0001")})
    many, one = samples.groups
    filters = tuple(Filter.parse(f"x > {number}") for number in range(9))
    many = replace(many, group=replace(many.group, filters=filters))
    samples = replace(samples, groups=(many, one))

    found = plan(MATCH, LOCAL, IDLE, samples)

    assert found.clients == ("one0", "one1", "one2")


def test_a_client_with_several_filters_counts_as_several_subscriptions() -> None:
    samples = sampled({"three": (1, "0000"), "one": (4, "0001")})
    three, one = samples.groups
    filters = tuple(Filter.parse(f"x > {number}") for number in range(3))
    samples = replace(
        samples, groups=(replace(three, group=replace(three.group, filters=filters)), one)
    )

    found = plan(MATCH, LOCAL, IDLE, samples)

    assert found.clients == ("three0",)
    assert (found.local_after.subscriptions, found.remote_after.subscriptions) == (17, 17)


def test_nothing_moves_if_matching_does_not_depend_on_subscriptions() -> None:
    local, remote = info("B1", ir=4, n=20, b=0.05), info("B2", n=0, b=0.01)

    found = plan(MATCH, local, remote, sampled({"a": (9, "0001")}))

    assert found.clients == ()
    assert found.reason == "no step improves the balance"


@pytest.mark.parametrize(
    ("memory", "moved", "reason"),
    [
        pytest.param(0.93, 4, "no longer overloaded", id="until memory is below the threshold"),
        pytest.param(0.90, 1, "no longer overloaded", id="at the threshold it is too full"),
        pytest.param(0.89, 0, "no longer overloaded", id="below it there is nothing to do"),
    ],
)
def test_memory_overload(memory: float, moved: int, reason: str) -> None:
    local = info("B1", ir=4, n=20, m=1e-3, memory=memory, per_subscription=0.01)
    remote = info("B2", ir=0, n=0, m=1e-3)
    groups = {chr(97 + place): (1, "0000") for place in range(20)}

    found = plan(MATCH, local, remote, sampled(groups), overloaded=True)

    assert len(found.clients) == moved
    assert found.reason == reason


def test_overload_is_no_reason_to_make_the_acceptor_the_slower_one() -> None:
    local = info("B1", ir=200, n=20, m=1e-3)  # Ir is 4.
    remote = info("B2", ir=0, n=14, m=1e-3)
    groups = {chr(97 + place): (1, "0000") for place in range(20)}

    found = plan(MATCH, local, remote, sampled(groups), overloaded=True)

    assert len(found.clients) == 3
    assert found.reason == "balanced, but the offloader is still overloaded"
