"""Detection as a table: own load, the loads of others, and whom to ask for what."""

from __future__ import annotations

import pytest
from tests.policies.offload.loads import info, pie

from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.detection import (
    Triggers,
    balanced_set,
    gives_way,
    imbalance_candidates,
    overload_candidates,
    overloads,
    utilisation_max,
)
from godwit.policies.offload.load_status import LoadStatus
from godwit.policies.offload.pie import Pie, PieValues
from godwit.policies.offload.settings import BalancingSettings

LOCAL = Triggers.local_of(BalancingSettings())
HIGH = BalancingSettings().higher_overload_threshold
BUSY, NA, STABILIZING = LoadStatus.BUSY, LoadStatus.NOT_AVAILABLE, LoadStatus.STABILIZING


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        pytest.param(info(input=0.949, output=0.95, memory=0.95), [], id="at the threshold"),
        pytest.param(info(output=0.96), ["output"], id="the output"),
        pytest.param(info(input=0.96), ["input", "match"], id="input and CPU are the same below 1"),
        pytest.param(info(input=1.5), ["input", "match"], id="the CPU cannot be above 1"),
        pytest.param(info(memory=0.96), ["match"], id="memory"),
        pytest.param(
            info(input=1.2, output=1.2, memory=1.0), ["output", "input", "match"], id="everything"
        ),
    ],
)
def test_what_is_overloaded(load: BrokerInfo, expected: list[str]) -> None:
    assert [action.value for action in overloads(load, HIGH)] == expected


@pytest.mark.parametrize(
    ("own", "others", "expected"),
    [
        pytest.param(
            info(output=1.0),
            [pie("B2", output=0.5), pie("B3", output=0.2)],
            [("B3", "output", 0.8), ("B2", "output", 0.5)],
            id="the lightest first",
        ),
        pytest.param(
            info(output=0.96),
            [pie("B2", output=0.955), pie("B3", output=0.97)],
            [("B2", "output", 0.005)],
            id="any lighter broker, no heavier one",
        ),
        pytest.param(
            info(input=0.96),
            [pie("B2", input=0.2)],
            [("B2", "input", 0.76), ("B2", "match", 0.76)],
            id="of equal differences input before match",
        ),
        pytest.param(
            info(input=1.4),
            [pie("B2", input=0.2)],
            [("B2", "input", 1.2), ("B2", "match", 0.8)],
            id="CPU is at most 1",
        ),
        pytest.param(
            info(input=0.96, output=0.96),
            [pie("B3"), pie("B2")],
            [
                ("B2", "output", 0.96),
                ("B3", "output", 0.96),
                ("B2", "input", 0.96),
                ("B3", "input", 0.96),
                ("B2", "match", 0.96),
                ("B3", "match", 0.96),
            ],
            id="output, input, match, then the lowest name",
        ),
        pytest.param(
            info(memory=0.99),
            [pie("B2", memory=0.9), pie("B3", memory=0.3, input=0.9)],
            [("B3", "match", 0.69), ("B2", "match", 0.09)],
            id="memory is compared with memory",
        ),
        pytest.param(
            info(output=1.0),
            [pie("B2", status=BUSY), pie("B3", status=NA), pie("B4", status=STABILIZING)],
            [],
            id="only brokers that are OK",
        ),
        pytest.param(info(output=1.0), [], [], id="no other broker is known"),
    ],
)
def test_step_1_overload(
    own: BrokerInfo, others: list[Pie], expected: list[tuple[str, str, float]]
) -> None:
    found = overload_candidates(own, overloads(own, HIGH), others, HIGH)
    assert [(c.partner, c.action.value) for c in found] == [each[:2] for each in expected]
    assert [c.difference for c in found] == pytest.approx([each[2] for each in expected])


@pytest.mark.parametrize(
    ("own", "others", "expected"),
    [
        pytest.param(info(output=0.5), [pie("B2", output=0.4)], [], id="the trigger is exclusive"),
        pytest.param(
            info(output=0.5), [pie("B2", output=0.39)], [("B2", "output", 0.11)], id="output"
        ),
        pytest.param(
            info(input=0.5), [pie("B2", input=0.3)], [("B2", "input", 0.2)], id="input"
        ),
        pytest.param(
            info(match_s=0.05),
            [pie("B2", match_s=0.03)],
            [("B2", "match", 0.2)],
            id="delays in units of Nf",
        ),
        pytest.param(
            info(input=0.5, output=0.3, match_s=0.02),
            [pie("B2", input=0.2, output=0.6, match_s=0.001), pie("B3", output=0.1)],
            [
                ("B3", "input", 0.5),
                ("B2", "input", 0.3),
                ("B3", "output", 0.2),
                ("B2", "match", 0.19),
            ],
            id="each metric for itself, by its difference",
        ),
        pytest.param(info(output=0.2), [pie("B2", output=0.9)], [], id="heavier brokers never"),
        pytest.param(
            info(output=0.5), [pie("B2", status=BUSY), pie("B3", status=STABILIZING)], [],
            id="only brokers that are OK",
        ),
    ],
)  # fmt: skip
def test_step_2_imbalance(
    own: BrokerInfo, others: list[Pie], expected: list[tuple[str, str, float]]
) -> None:
    found = imbalance_candidates(PieValues.of(own), others, LOCAL)
    assert [(c.partner, c.action.value) for c in found] == [each[:2] for each in expected]
    assert [c.difference for c in found] == pytest.approx([each[2] for each in expected])


def test_brokers_that_are_not_available_come_first() -> None:
    assert gives_way([pie("B2"), pie("B3", status=NA)])
    assert not gives_way([pie("B2"), pie("B3", status=BUSY), pie("B4", status=STABILIZING)])


def test_the_balanced_set_has_those_within_the_triggers_in_both_directions() -> None:
    own = PieValues.of(info(input=0.5, output=0.5, match_s=0.05))
    known = [
        pie("B2", input=0.45, output=0.55, match_s=0.045),
        pie("B3", input=0.5, output=0.7, match_s=0.05),
        pie("B4", input=0.5, output=0.5, match_s=0.08),
        pie("B5", input=0.3, output=0.5, match_s=0.05),
    ]
    assert balanced_set(own, known, LOCAL) == ("B2",)


def test_the_highest_ratio_counts_memory() -> None:
    assert utilisation_max(info(input=0.1, output=0.2, memory=0.3)) == 0.3


def test_with_a_trigger_above_the_overload_threshold_only_an_overload_starts_sessions() -> None:
    """L46."""
    wide = Triggers(ratio=1.0, delay=10.0, normalization_s=0.1)
    assert imbalance_candidates(PieValues.of(info(output=0.94)), [pie("B2")], wide) == []


def test_global_triggers_are_wider_by_default() -> None:
    wide = Triggers.global_of(BalancingSettings())
    assert all(wide.of(metric) > LOCAL.of(metric) for metric in OffloadAction)
