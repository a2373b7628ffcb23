"""Nemesis: its plans, its judgement, and a few short runs."""

from __future__ import annotations

from collections import Counter

import pytest

from godwit.overlay.topology import chain
from godwit.simulation.oracle import Violation, ViolationKind
from godwit.testing.nemesis.fault_kinds import NETWORK_KINDS, FaultKind
from godwit.testing.nemesis.journal import Journal, LifeRecord, PublicationRecord, ToldGap
from godwit.testing.nemesis.judgement import SUBSCRIBER_LATE_S, judge
from godwit.testing.nemesis.nemesis_plan import draw_plan
from godwit.testing.nemesis.seeds import replay_command

# -- plans -------------------------------------------------------------------------------------


def test_a_seed_is_a_plan() -> None:
    assert draw_plan(3) == draw_plan(3)
    assert draw_plan(3) != draw_plan(5)


def test_every_kind_happens_five_hundred_times_in_two_hundred_seeds() -> None:
    kinds = Counter(fault.kind for seed in range(200) for fault in draw_plan(seed).faults)
    assert {kind: kinds[kind] for kind in NETWORK_KINDS if kinds[kind] < 500} == {}


def test_plans_have_five_to_nine_brokers_and_everything_ends_in_time() -> None:
    plans = [draw_plan(seed) for seed in range(50)]
    assert {len(plan.topology.brokers) for plan in plans} == {5, 6, 7, 8, 9}
    assert all(fault.at_s + fault.lasts_s < 30.0 for plan in plans for fault in plan.faults)


def test_outages_are_shorter_than_the_time_outs_of_a_patient_run_and_longer_elsewhere() -> None:
    patient, other = draw_plan(0), draw_plan(1)
    assert patient.is_patient
    assert all(fault.lasts_s < patient.limits.link_s / 2 for fault in patient.faults)
    stops = [f.lasts_s for f in other.faults if f.kind is FaultKind.STOP_LONG]
    limits = other.limits
    longest_s = max(limits.link_s, limits.session_s, limits.patience_s, 3 * limits.heartbeat_s)
    assert min(stops) > longest_s


def test_leaving_kinds_out_changes_nothing_else() -> None:
    every, some = draw_plan(8), draw_plan(8, kinds=[FaultKind.CUT, FaultKind.STOP])
    assert some.people == every.people
    assert some.faults == tuple(
        fault for fault in every.faults if fault.kind in (FaultKind.CUT, FaultKind.STOP)
    )


def test_the_command_that_repeats_a_run() -> None:
    assert replay_command(17, seconds=30.0) == "godwit nemesis 17 --seconds 30"
    command = replay_command(17, seconds=5.0, kinds=[FaultKind.CUT, FaultKind.KILL_TWO])
    assert command == "godwit nemesis 17 --seconds 5 --kinds cut,kill-two"


# -- judgement ---------------------------------------------------------------------------------


def journal_of(*, acknowledged_s: float | None) -> Journal:
    """paul at B1 has published once, at 10 s; alice is at B3."""
    journal = Journal()
    journal.lives = {
        "paul~1": LifeRecord("paul", [(0.0, "B1")]),
        "alice~1": LifeRecord("alice", [(0.0, "B3")]),
    }
    journal.publications["paul~1", 0] = PublicationRecord(
        "paul~1", 0, "B1", published_s=10.0, acknowledged_s=acknowledged_s
    )
    return journal


def verdict(
    journal: Journal, kind: ViolationKind = ViolationKind.LOST, *, is_patient: bool = False
) -> tuple[int, int, int]:
    """Violations, losses that were told, and losses that were not promised."""
    violation = Violation(kind, "alice~1", "paul~1", 0, 20.0)
    judged = judge([violation], journal, chain(4), is_patient=is_patient)
    return len(judged.violations), judged.told, judged.unacknowledged


def test_a_publication_that_was_not_acknowledged_may_be_lost() -> None:
    assert verdict(journal_of(acknowledged_s=None)) == (0, 0, 1)


def test_an_acknowledged_one_may_not() -> None:
    assert verdict(journal_of(acknowledged_s=10.5)) == (1, 0, 0)


@pytest.mark.parametrize(
    ("client", "gap", "is_explained"),
    [
        ("paul~1", ToldGap("B2", 1, 10.2), True),
        ("paul~1", ToldGap("B2", 1, 5.0, over_s=10.1), True),
        pytest.param("paul~1", ToldGap("B2", 1, 5.0, over_s=8.0), False, id="over before"),
        pytest.param("paul~1", ToldGap("B2", 1, 12.0), False, id="told after acknowledgement"),
        pytest.param("paul~1", ToldGap("B4", 1, 10.2), False, id="elsewhere"),
        pytest.param("alice~1", ToldGap("B1", 1, 12.0), True, id="subscribers may learn it later"),
        pytest.param("alice~1", ToldGap("B1", 1, 11.0 + SUBSCRIBER_LATE_S), False, id="too late"),
    ],
)
def test_a_loss_is_explained_by_a_gap_on_the_way_at_that_time(
    client: str, gap: ToldGap, is_explained: bool
) -> None:
    journal = journal_of(acknowledged_s=10.5)
    journal.lives[client].gaps.append(gap)
    assert verdict(journal) == ((0, 1, 0) if is_explained else (1, 0, 0))


def test_a_gap_is_no_excuse_where_everything_is_back_in_time() -> None:
    journal = journal_of(acknowledged_s=10.5)
    journal.lives["paul~1"].gaps.append(ToldGap("B2", 1, 10.2))
    assert verdict(journal, is_patient=True) == (1, 0, 0)
    assert verdict(journal_of(acknowledged_s=None), is_patient=True) == (0, 0, 1)


@pytest.mark.parametrize(
    "kind", [ViolationKind.TWICE, ViolationKind.UNASKED, ViolationKind.DISORDERED]
)
def test_nothing_explains_anything_else(kind: ViolationKind) -> None:
    journal = journal_of(acknowledged_s=None)
    journal.lives["paul~1"].gaps.append(ToldGap("B2", 1, 10.2))
    assert verdict(journal, kind) == (1, 0, 0)


def test_a_gap_that_is_over_is_the_one_that_has_begun() -> None:
    life = LifeRecord("paul")
    life.on_gap(ToldGap("B2", 1, 4.0), is_over=False)
    life.on_gap(ToldGap("B2", 2, 5.0), is_over=False)
    life.on_gap(ToldGap("B2", 1, 6.0), is_over=True)
    life.on_gap(ToldGap("B2", 3, 7.0), is_over=True)
    assert [(gap.told_s, gap.over_s) for gap in life.gaps] == [
        (4.0, 6.0),
        (5.0, float("inf")),
        (7.0, 7.0),
    ]
