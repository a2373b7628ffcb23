"""Output offload: phase I with its types, phase II, and the rule against oscillation."""

from __future__ import annotations

import pytest
from tests.policies.offload.scenes import info, plan, sampled

from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.report_cards import INPUTS_BALANCED, OffloadPlan

OUTPUT = OffloadAction.OUTPUT


def local(or_: float, *, ir: float = 8, b: float = 0.0) -> BrokerInfo:
    """Eight samples of 1/s; a client that receives one of them takes 100 bytes/s, or 0.01."""
    return info("B1", ir=ir, n=50, b=b, ou=10_000 * or_, ot=10_000)


def remote(or_: float = 0.0, *, ir: float = 0, b: float = 0.0) -> BrokerInfo:
    return info("B2", ir=ir, n=0, b=b, ou=10_000 * or_, ot=10_000)


def offloaded(
    groups: dict[str, tuple[int, str]], lcss: str, here: BrokerInfo, there: BrokerInfo,
    *, overloaded: bool = False,
) -> OffloadPlan:  # fmt: skip
    return plan(OUTPUT, here, there, sampled(groups, lcss=lcss), overloaded=overloaded)


ALL = "11111111"


@pytest.mark.parametrize(
    ("groups", "or_", "chosen"),
    [
        pytest.param(
            {"III": (8, "00000001"), "twin": (1, "00000001"), "I": (2, "00000010")}, 0.2,
            ["I0", "I1", *(f"III{n}" for n in range(8))],
            id="type I before type III, although III comes nearer to balance",
        ),
        pytest.param(
            {"II": (9, "00000100"), "I": (2, "00000010")}, 0.16,
            ["I0", "I1", *(f"II{n}" for n in range(6))],
            id="type I before type II: with six of nine there is balance",
        ),
        pytest.param(
            {"III": (8, "00000001"), "twin": (1, "00000001"), "II": (9, "00000100")}, 0.16,
            [f"II{n}" for n in range(8)],
            id="type II before type III",
        ),
        pytest.param(
            {"I": (1, "11110000"), "III": (3, "00000001"), "twin": (1, "00000001")}, 0.02,
            ["III0"], id="a type I that is too heavy does not keep type III back",
        ),
        pytest.param(
            {"a": (1, "00000001"), "b": (1, "00001110"), "c": (1, "00110000")}, 0.1,
            ["b0", "c0"], id="within a type, what comes nearest to balance first",
        ),
        pytest.param(
            {"a": (3, "00000001"), "b": (1, "00001110")}, 0.06,
            ["b0"], id="of two that are equal, more input saved",
        ),
        pytest.param(
            {"idle": (9, "00000000"), "a": (1, "00000001")}, 0.06,
            ["a0"], id="those without traffic do not help",
        ),
    ],
)  # fmt: skip
def test_phase_1(groups: dict[str, tuple[int, str]], or_: float, chosen: list[str]) -> None:
    """The acceptor receives all samples already."""
    found = offloaded(groups, ALL, local(or_), remote(ir=8))

    assert list(found.clients) == chosen


def test_a_group_of_which_one_stays_is_type_3() -> None:
    groups = {"partly": (3, "00000001"), "I": (1, "00000010")}
    samples = sampled(groups, lcss=ALL, staying=["partly0"])

    found = plan(OUTPUT, local(0.04), remote(ir=8), samples)

    assert found.clients == ("I0", "partly1")


@pytest.mark.parametrize(
    ("groups", "lcss", "or_", "chosen"),
    [
        pytest.param(
            {"new": (1, "00001111"), "known": (1, "11000000")}, "11110000", 0.12,
            ["known0", "new0"], id="phase I before phase II",
        ),
        pytest.param(
            {"new": (1, "00001111"), "known": (2, "11000000")}, "11110000", 0.08,
            ["known0", "known1"], id="no phase II if phase I was enough",
        ),
        pytest.param(
            {"wide": (1, "00011111"), "narrow": (1, "00000011"), "other": (1, "11100000")},
            "00000000", 0.2,
            ["wide0", "narrow0", "other0"],
            id="back to phase I after a choice that covers others",
        ),
        pytest.param(
            {"wide": (1, "00011111"), "apart": (1, "01100000"), "other": (1, "11100000")},
            "00000000", 0.2,
            ["wide0", "other0", "apart0"],
            id="on in phase II after a choice that covers none",
        ),
        pytest.param(
            {"a": (1, "00001111"), "b": (1, "11100000"), "both": (1, "00101100")},
            "00000000", 0.2,
            ["a0", "b0", "both0"],
            id="back to phase I for one that two choices cover together",
        ),
        pytest.param(
            {"heavy": (1, "11111111"), "light": (1, "00000001")}, "00000001", 0.03,
            ["light0"], id="nothing in phase II that would go too far",
        ),
    ],
)  # fmt: skip
def test_phase_2(
    groups: dict[str, tuple[int, str]], lcss: str, or_: float, chosen: list[str]
) -> None:
    found = offloaded(groups, lcss, local(or_), remote())

    assert list(found.clients) == chosen


EACH = {chr(97 + place): (3, format(1 << place, "08b")) for place in range(8)}
"""Eight groups of three; all the acceptor lacks.  Or is 0.03 each, Ir is b each."""


def test_phase_2_ends_when_the_inputs_are_balanced() -> None:
    """Ir is 0.4; four groups bring 0.2 to each.  Or is then 0.6 and 0.12."""
    found = offloaded(EACH, "0", local(0.72, b=0.05), remote(b=0.05))

    assert found.clients == tuple(f"{name}{n}" for name in "abcd" for n in range(3))
    assert found.difference_after == pytest.approx(0.48)
    assert found.reason == INPUTS_BALANCED


def test_phase_2_does_not_begin_if_the_acceptor_has_the_higher_input() -> None:
    found = offloaded(EACH, "0", local(0.72, b=0.05), remote(ir=9, b=0.05))

    assert found.clients == ()
    assert found.reason == INPUTS_BALANCED


def test_phase_1_goes_on_when_the_inputs_are_balanced() -> None:
    found = offloaded(EACH, ALL, local(0.72, b=0.05), remote(ir=8, b=0.05))

    assert len(found.clients) == 24


def test_an_overloaded_offloader_goes_on_until_it_is_below_the_lower_threshold() -> None:
    """The inputs are balanced after four groups; Or falls below 0.9 after six."""
    found = offloaded(EACH, "0", local(1.06, b=0.05), remote(b=0.05), overloaded=True)

    assert len(found.clients) == 18
    assert found.local_after.output_utilisation == pytest.approx(0.88)
    assert found.reason == "no longer overloaded"


def test_light_inputs_cannot_oscillate() -> None:
    """Ir is 0.04 in all, below the local ratio trigger: no input session follows."""
    found = offloaded(EACH, "0", local(0.72, b=0.005), remote(b=0.005))

    assert len(found.clients) == 24


# -- the end -------------------------------------------------------------------------------------


def test_groups_that_the_acceptor_cannot_take_end_the_plan() -> None:
    """E7: as printed, a best report with k = 0 would be picked for ever."""
    groups = {"a": (1, "00000011"), "b": (1, "00000001")}
    found = offloaded(groups, ALL, local(2.0), remote(0.895))

    assert found.clients == ()
    assert found.reason == "the acceptor would exceed its limit: output 0.905 > 0.9"


def test_what_still_fits_is_taken() -> None:
    groups = {"a": (1, "00000111"), "b": (1, "00000001")}
    found = offloaded(groups, ALL, local(2.0), remote(0.88))

    assert found.clients == ("b0",)
    assert found.remote_after.output_utilisation == pytest.approx(0.89)


def test_the_acceptor_takes_as_many_clients_of_a_group_as_it_has_room_for() -> None:
    found = offloaded({"a": (9, "00000011")}, ALL, local(2.0), remote(0.855))

    assert found.clients == ("a0", "a1")
    assert found.remote_after.output_utilisation == pytest.approx(0.895)


def test_phases_that_find_nothing_end_the_plan() -> None:
    """E8: as printed, the phases would alternate for ever."""
    groups = {"known": (1, "11111000"), "new": (1, "00000111")}
    found = offloaded(groups, "11111000", local(0.01), remote())

    assert found.clients == ()
    assert found.reason == "no step improves the balance"


def test_the_phases_alternate_as_long_as_something_moves() -> None:
    """Each wide choice covers a narrow one."""
    groups = {
        "w1": (1, "00001111"), "n1": (1, "00000011"), "w2": (1, "11110000"), "n2": (1, "00110000"),
    }  # fmt: skip
    found = offloaded(groups, "0", local(0.5), remote())

    assert found.clients == ("w10", "n10", "w20", "n20")
    assert found.difference_after == pytest.approx(0.5 - 2 * 0.12)
