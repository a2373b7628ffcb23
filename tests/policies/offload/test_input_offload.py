"""Input offload: members of the CSS, those that bring the inputs closest together first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.policies.offload.scenes import info, plan, sampled

from godwit.policies.offload.broker_load import OffloadAction
from godwit.policies.offload.settings import BalancingSettings

INPUT = OffloadAction.INPUT

#: Eight samples; each stands for 1 publication/s, and takes 0.05 s to match: Ir is 0.4.
LOCAL = info("B1", ir=8, n=10, b=0.05, ou=1000, ot=1e6)
IDLE = info("B2", ir=0, n=0, b=0.05, ou=0, ot=1e6)


@pytest.mark.parametrize(
    ("groups", "chosen", "after"),
    [
        pytest.param(
            {"a": (1, "00000001"), "b": (1, "00011110"), "c": (1, "11100000")},
            ["b0"], 0.0, id="the one that balances at once",
        ),
        pytest.param(
            {"a": (1, "00000001"), "b": (1, "00000110"), "c": (1, "11111000")},
            ["c0"], -0.1, id="the heaviest, also if it goes beyond",
        ),
        pytest.param(
            {"a": (1, "11111111")},
            [], 0.4, id="not one that would only swap the loads",
        ),
        pytest.param(
            {"b": (1, "00000001"), "a": (1, "11111111")},
            ["a0"], -0.35, id="of two that are equal, the one that saves more input",
        ),
        pytest.param(
            {"a": (3, "00001111"), "b": (1, "11110000")},
            ["b0"], 0.0, id="of two that are equal, the one with fewer clients",
        ),
        pytest.param(
            {"a": (2, "00001111"), "b": (2, "11110000")},
            ["a0", "a1"], 0.0, id="all clients of a group, else the input does not fall",
        ),
    ],
)  # fmt: skip
def test_input_offload(groups: dict[str, tuple[int, str]], chosen: list[str], after: float) -> None:
    found = plan(INPUT, LOCAL, IDLE, sampled(groups))

    assert list(found.clients) == chosen
    assert found.difference_before == pytest.approx(0.4)
    assert found.difference_after == pytest.approx(after)


def test_only_members_of_the_css_are_candidates() -> None:
    """The narrow ones would balance by their number, but draw no traffic of their own."""
    filters = {"wide": "class = 'S'", "narrow": "class = 'S' and x > 1", "other": "class = 'T'"}
    samples = sampled(
        {"wide": (1, "01111111"), "narrow": (9, "00000000"), "other": (1, "10000000")},
        filters=filters,
    )
    local = info("B1", ir=8, n=11, m=0.01, ou=1000, ot=1e6)
    remote = info("B2", ir=3, n=5, m=0.01, ou=0, ot=1e6)

    found = plan(INPUT, local, remote, samples)

    assert not any(client.startswith("narrow") for client in found.clients)
    assert found.clients


def test_what_the_chosen_one_covered_is_a_candidate_next() -> None:
    filters = {"wide": "class = 'S'", "narrow": "class = 'S' and x > 1", "other": "class = 'T'"}
    samples = sampled(
        {"wide": (1, "00001111"), "narrow": (1, "00001110"), "other": (1, "11110000")},
        filters=filters,
        staying=["other0"],
    )

    found = plan(INPUT, LOCAL, IDLE, samples)

    # Without "wide", Ir is 0.35 and 0.2: "narrow" still draws three of its four samples.
    assert found.clients == ("wide0", "narrow0")
    assert found.difference_after == pytest.approx(0.0)


def test_a_client_of_several_filters_is_a_candidate_if_one_is_in_the_css() -> None:
    filters = {"wide": "class = 'S'", "both": "class = 'S' and x > 1"}
    samples = sampled({"wide": (1, "00001111"), "both": (1, "11110011")}, filters=filters)
    first, second = samples.groups
    more = (*second.group.filters, *sampled({"t": (1, "1")}).groups[0].group.filters)
    second = replace(second, group=replace(second.group, filters=more))
    samples = replace(samples, groups=(first, second))

    found = plan(INPUT, LOCAL, IDLE, samples)

    assert found.clients == ("both0",)


def test_clients_that_stay_keep_the_traffic_of_their_group() -> None:
    samples = sampled({"a": (2, "00001111"), "b": (1, "11110000")}, staying=["a0"])

    assert plan(INPUT, LOCAL, IDLE, samples).clients == ("b0",)


def test_overload_ends_below_the_lower_threshold() -> None:
    """Ir is 1.2; each group has 0.1 of it.  At 0.9 it goes on, at 0.8 it stops."""
    local = info("B1", ir=12, n=12, b=0.1)
    groups = {chr(97 + place): (1, format(1 << place, "012b")) for place in range(12)}

    found = plan(INPUT, local, info("B2", b=0.01), sampled(groups), overloaded=True)

    assert len(found.clients) == 4
    assert found.local_after.input_utilisation == pytest.approx(0.8)
    assert found.reason == "no longer overloaded"


def test_the_acceptor_is_not_overloaded_in_turn() -> None:
    """It needs ten times as long for a publication."""
    local = info("B1", ir=12, n=12, b=0.1)
    groups = {chr(97 + place): (1, format(1 << place, "012b")) for place in range(12)}
    settings = BalancingSettings(lower_overload_threshold=0.5)

    found = plan(
        INPUT, local, info("B2", b=0.2), sampled(groups), settings=settings, overloaded=True
    )

    assert found.remote_after.input_utilisation == pytest.approx(0.4)
    assert len(found.clients) == 2
    assert found.reason == "the acceptor would exceed its limit: input 0.600 > 0.5"
