"""Nemesis: its plans, its judgement, and a few short runs."""

from __future__ import annotations

import asyncio

import pytest

from godwit.client import GapReason
from godwit.overlay.topology import chain
from godwit.simulation.oracle import Violation, ViolationKind
from godwit.testing.nemesis.clocks import library
from godwit.testing.nemesis.fault_kinds import NETWORK_KINDS, FaultKind
from godwit.testing.nemesis.gap_rule import untold_gaps
from godwit.testing.nemesis.journal import (
    CONTEST_S,
    Journal,
    LifeRecord,
    OutageRecord,
    PublicationRecord,
    ToldGap,
)
from godwit.testing.nemesis.judgement import BRIDGE_S, SUBSCRIBER_LATE_S, judge
from godwit.testing.nemesis.nemesis_plan import (
    BURST_S,
    EVERY_S,
    EXTRA,
    draw_plan,
    planned_faults,
)
from godwit.testing.nemesis.seeds import replay_command, run_seed

SHORT_S = 5.0
#: These do not happen to a client that is down just then.
OF_CLIENTS = {FaultKind.CLIENT.value, FaultKind.SECOND.value, FaultKind.TAKE_OVER.value}

# -- plans -------------------------------------------------------------------------------------


def test_a_seed_is_a_plan() -> None:
    assert draw_plan(3) == draw_plan(3)
    assert draw_plan(3) != draw_plan(5)


def test_every_kind_happens_five_hundred_times_in_two_hundred_seeds() -> None:
    """Some of those that happen to clients find them down: a fifth, on a very busy machine."""
    planned = planned_faults(range(2, 4))  # A patient run and another one.
    assert planned == planned_faults(range(102, 104)), "each pair of runs has as many"
    wanted = {kind: 700 if kind.value in OF_CLIENTS else 520 for kind in NETWORK_KINDS}
    assert {
        kind: planned[kind] for kind in NETWORK_KINDS if 100 * planned[kind] < wanted[kind]
    } == {}


def test_plans_have_five_to_nine_brokers() -> None:
    plans = [draw_plan(seed, seconds=1.0) for seed in range(20)]
    assert {len(plan.topology.brokers) for plan in plans} == {5, 6, 7, 8, 9}


@pytest.mark.parametrize("seed", [2, 3])
def test_faults_come_in_bursts_with_rest_in_between(seed: int) -> None:
    faults = draw_plan(seed).faults
    assert {int(fault.at_s / EVERY_S) for fault in faults} == {0, 1, 2}
    assert all(fault.at_s % EVERY_S + fault.lasts_s <= BURST_S for fault in faults)


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


def outage(
    kind: FaultKind, *where: str, start_s: float = 10.0, lasts_s: float = 3.0
) -> OutageRecord:
    return OutageRecord(kind, where, start_s, start_s + lasts_s)


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


@pytest.mark.parametrize(
    ("ends", "told_s", "is_explained"),
    [
        (("B2", "B4"), 10.2, True),
        (("B2", "B4"), 10.4 - BRIDGE_S, True),
        pytest.param(("B2", "B4"), 9.0 - BRIDGE_S, False, id="linked again since"),
        pytest.param(("B3", "B4"), 10.2, False, id="elsewhere"),
    ],
)
def test_a_link_too_many_may_have_been_the_only_way(
    ends: tuple[str, str], told_s: float, is_explained: bool
) -> None:
    journal = journal_of(acknowledged_s=10.5)
    journal.outages = [outage(FaultKind.EXTRA_LINK, EXTRA, *ends, start_s=5.0, lasts_s=5.2)]
    journal.lives["paul~1"].gaps.append(ToldGap(EXTRA, 1, told_s))
    assert verdict(journal) == ((0, 1, 0) if is_explained else (1, 0, 0))


def test_a_gap_is_no_excuse_where_everything_is_back_in_time() -> None:
    journal = journal_of(acknowledged_s=10.5)
    journal.lives["paul~1"].gaps.append(ToldGap("B2", 1, 10.2))
    assert verdict(journal, is_patient=True) == (1, 0, 0)
    assert verdict(journal_of(acknowledged_s=None), is_patient=True) == (0, 0, 1)


@pytest.mark.parametrize(
    ("contest_s", "reason", "over_s", "is_explained"),
    [
        (10.1, GapReason.SESSION_ENDED, 12.0, True),
        pytest.param(None, GapReason.SESSION_ENDED, 12.0, False, id="nobody wanted its name"),
        pytest.param(10.1, GapReason.PART_LOST, 12.0, False, id="another reason"),
        pytest.param(10.6, GapReason.SESSION_ENDED, 12.0, False, id="acknowledged before"),
        pytest.param(9.0, GapReason.SESSION_ENDED, 9.9, False, id="over before"),
        pytest.param(9.0 - CONTEST_S, GapReason.SESSION_ENDED, 12.0, False, id="long ago"),
    ],
)
def test_a_client_whose_name_another_one_wanted_may_have_had_no_session(
    contest_s: float | None, reason: GapReason, over_s: float, is_explained: bool
) -> None:
    journal = journal_of(acknowledged_s=10.5)
    alice = journal.lives["alice~1"]
    alice.contests_s = [] if contest_s is None else [contest_s]
    told_s = min(11.0, over_s)
    alice.gaps.append(ToldGap("B3", 1, told_s, over_s, reason))
    assert verdict(journal, is_patient=True) == ((0, 1, 0) if is_explained else (1, 0, 0))


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


# -- gaps that must be told --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told_s", "other", "lasts_s", "is_noticed"),
    [
        pytest.param(None, None, 3.0, True, id="untold"),
        pytest.param(12.0, None, 3.0, False, id="told"),
        pytest.param(16.0, None, 3.0, True, id="told too late"),
        pytest.param(None, None, 1.8, False, id="back in time"),
        pytest.param(None, outage(FaultKind.KILL, "B1", start_s=7.0), 3.0, False, id="restarted"),
        pytest.param(None, outage(FaultKind.CUT, "B1", "B2"), 3.0, False, id="link cut"),
        pytest.param(None, outage(FaultKind.KILL, "B3"), 3.0, True, id="elsewhere"),
    ],
)
def test_a_client_at_the_neighbour_of_a_broker_that_was_given_up_must_be_told(
    told_s: float | None, other: OutageRecord | None, lasts_s: float, is_noticed: bool
) -> None:
    journal = journal_of(acknowledged_s=None)
    journal.outages = [outage(FaultKind.KILL_LONG, "B2", lasts_s=lasts_s)]
    journal.outages += [] if other is None else [other]
    if told_s is not None:
        journal.lives["paul~1"].gaps.append(ToldGap("B2", 1, told_s))
    found = untold_gaps(journal, chain(4), link_s=1.5)
    assert any("paul~1 at B1 was not told that B2 was lost" in text for text in found) == is_noticed


def test_a_client_that_came_later_or_has_ended_need_not_be_told() -> None:
    journal = journal_of(acknowledged_s=None)
    journal.outages = [outage(FaultKind.KILL_LONG, "B2")]
    journal.lives["paul~1"].ended_s = 12.0
    journal.lives["alice~1"].brokers = [(0.0, "B4"), (11.0, "B3")]
    assert untold_gaps(journal, chain(4), link_s=1.5) == []


# -- runs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1], ids=["patient", "impatient"])
def test_every_kind_of_fault_happens_to_a_live_network_and_every_promise_is_kept(seed: int) -> None:
    """All of it: `godwit nemesis 0 --until 200`."""
    result = asyncio.run(run_seed(seed, seconds=SHORT_S))
    assert result.is_flawless, "\n".join([*result.violations, *result.story])
    planned = {fault.kind.value for fault in draw_plan(seed, seconds=SHORT_S).faults}
    if library() is None:
        planned.discard(FaultKind.CLOCK.value)
    assert set(result.faults) >= planned - OF_CLIENTS
    assert result.acknowledged
    assert result.deliveries
