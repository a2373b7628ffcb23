"""Local sessions as time-lines: what happens, message by message, and who is what afterwards."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.policies.offload.by_hand import STAR, Scene

from godwit.overlay.topology import peer
from godwit.policies.offload.settings import BalancingSettings

#: Detection exactly every 30 s, so that the time-lines are the same for all seeds.
STEADY = BalancingSettings(
    local_detection_min_s=30.0, local_detection_max_s=30.0, local_pie_period_s=10.0
)
SAMPLES = STEADY.press_samples
FALLEN = "the difference has fallen to the trigger or below while this broker sampled"


def unbalanced(settings: BalancingSettings = STEADY, *clients: str) -> Scene:
    """B1 has two or more clients and an output of 0.6; B2 and B3 have none."""
    scene = Scene(STAR, settings)
    for name in clients or ("c1", "c2"):
        scene.subscriber(name, "B1")
    scene.plans["B1"] = clients or ("c1", "c2")
    scene.load("B1", output=0.6)
    for light, output in (("B2", 0.1), ("B3", 0.15)):
        scene.load(light, output=output)
    scene.wait(29.0)
    return scene


def agreed() -> Scene:
    """B1 and B2 have agreed, and B1 samples."""
    scene = unbalanced()
    assert scene.wait(2.0) == [
        "B1 -> B2: LbRequest",
        "B2 -> B1: LbReply",
        "B2 is BUSY",
        "B1 reports session",
        "B1 is BUSY",
    ]
    return scene


def migrating() -> Scene:
    """B1 has asked its clients to move to B2."""
    scene = agreed()
    assert scene.sample("B1", SAMPLES, ["c1", "c2"]) == [
        "B1 -> B2: Migrate",
        "B1 reports asked",
        "B1 asks c1 to move to B2",
        "B1 reports asked",
        "B1 asks c2 to move to B2",
    ]
    return scene


def is_over(scene: Scene, *, within_s: float = 200.0) -> bool:
    """Whether no broker stays BUSY; no other session begins."""
    for name in scene.topology.brokers:
        if name not in scene.dead:
            scene.command(name, "pause")
    scene.wait(within_s)
    alive = [name for name in ("B1", "B2", "B3") if name not in scene.dead]
    return all(scene.status(name) == "OK" for name in alive)


# -- a session -----------------------------------------------------------------------------------


def test_a_session_from_detection_to_the_settled_load() -> None:
    scene = migrating()
    assert scene.arrive("c1", "B2") == []
    assert scene.arrive("c2", "B2") == [
        "B2 -> B1: LbDone",
        "B2 reports ended all clients have arrived",
        "B2 is STABILIZING",
        "B1 reports ended every client that arrived at the acceptor has left this broker",
        "B1 is STABILIZING",
    ]
    scene.load("B1", output=0.4)
    scene.load("B2", output=0.3)
    assert scene.wait(STEADY.stabilize_s + 1.0) == [
        "B2 reports achieved",
        "B2 is OK",
        "B1 reports achieved",
        "B1 is OK",
    ]
    ask = scene.moves[0][1]
    assert ask.within_s == 2 * STEADY.migration_timeout_s, "N x 5 s"
    assert ask.session.startswith("B1-")


def test_the_partner_with_the_largest_difference_is_asked_first_and_then_the_next() -> None:
    scene = unbalanced()
    scene.crash("B2")
    assert scene.wait(2.0) == ["B1 -> B2: LbRequest"]
    assert scene.wait(STEADY.reply_timeout_s) == [
        "B1 -> B2: SessionEnd",
        "B1 -> B3: LbRequest",
        "B3 -> B1: LbReply",
        "B3 is BUSY",
        "B1 reports session",
        "B1 is BUSY",
    ]


@pytest.mark.parametrize("output", [0.92, 0.99], ids=["above 0.9", "above 0.95"])
def test_a_broker_that_is_not_available_refuses(output: float) -> None:
    """B1 has not heard of it yet."""
    scene = unbalanced()
    scene.crash("B3")
    scene.loses = lambda sender, _to, kind: sender == "B2" and "PIE" in kind
    scene.load("B2", output=output)
    scene.wait_until(29.9)
    for _ in range(3):  # The windows of the last half minute.
        scene.modules["B2"]._balancer._context.averages.read(0.0)  # type: ignore[union-attr]
    assert scene.wait(0.5)[:3] == ["B1 -> B2: LbRequest", "B2 -> B1: LbReply", "B2 is N/A"]
    assert scene.status("B1") == "OK"


def test_a_session_that_finds_nothing_leads_straight_back_and_is_not_repeated_at_once() -> None:
    scene = agreed()
    scene.plans["B1"] = ()
    assert scene.sample("B1", SAMPLES) == [
        "B1 -> B2: SessionEnd",
        "B1 reports ended as the test says",
        "B1 is OK",
        "B2 is OK",
    ]
    assert "B1 -> B3: LbRequest" in scene.wait(31.0), "B2 is left out of the next detection"


def test_without_publications_there_is_nothing_to_estimate_with() -> None:
    scene = agreed()
    assert scene.wait(STEADY.press_timeout_s) == [
        "B1 -> B2: SessionEnd",
        "B1 reports ended no publication arrived while sampling",
        "B1 is OK",
        "B2 is OK",
    ]


def test_a_few_samples_at_the_time_out_are_enough() -> None:
    scene = agreed()
    scene.sample("B1", 5, ["c1"])
    assert "B1 asks c1 to move to B2" in scene.wait(STEADY.press_timeout_s)


def test_a_dry_run_proposes_and_ends() -> None:
    scene = agreed()
    scene.command("B1", "dry-run on")
    assert scene.sample("B1", SAMPLES) == [
        "B1 reports proposed",
        "B1 reports proposed",
        "B1 -> B2: SessionEnd",
        "B1 reports ended dry run",
        "B1 is OK",
        "B2 is OK",
    ]
    assert not scene.moves
    (ended,) = [d for d in scene.decisions if d.action == "ended" and d.source == "B1"]
    assert [ended.reason[key] for key in ("planned", "asked", "moved")] == [2, 0, 0]


def test_a_difference_that_has_fallen_while_the_offloader_sampled_is_left_alone() -> None:
    scene = agreed()
    scene.load("B1", output=0.15)
    for _ in range(3):  # The windows of the last half minute.
        scene.modules["B1"]._balancer._context.averages.read(0.0)  # type: ignore[union-attr]
    assert scene.sample("B1", SAMPLES, ["c1", "c2"]) == [
        "B1 -> B2: SessionEnd",
        f"B1 reports ended {FALLEN}",
        "B1 is OK",
        "B2 is OK",
    ]
    assert not scene.moves
    scene.load("B1", output=0.9)
    assert "B1 -> B2: LbRequest" in scene.wait(31.0), "B2 is not left out"


def test_an_offloader_that_stood_still_does_not_use_what_it_sampled() -> None:
    """The acceptor has given up meanwhile."""
    scene = agreed()
    scene.now_s += STEADY.press_timeout_s + STEADY.session_margin_s + 1.0
    story = scene.sample("B1", SAMPLES, ["c1"])
    assert "B1 reports ended this broker stood still while it sampled" in story
    assert not scene.moves


def test_against_an_overload_the_plan_that_ends_nearer_to_balance_is_taken() -> None:
    """One client would be enough to be just below the threshold; three to meet B2."""
    names = ("c1", "c2", "c3")
    scene = unbalanced(STEADY, *names)
    scene.planned_in_overload = 1
    scene.load("B1", output=3.0)  # The mean of the last windows is an overload.
    scene.wait(2.0)
    scene.sample("B1", SAMPLES, names)
    asked = [ask.client for _, ask in scene.moves]
    assert [d.reason["overloaded"] for d in scene.decisions if d.action == "session"] == [1.0]
    assert asked == ["c1", "c2", "c3"]


# -- requests that cross -------------------------------------------------------------------------


def test_of_two_requests_that_cross_the_one_of_the_lower_name_counts() -> None:
    """B1 wants to give output to B2, B2 wants to give input to B1."""
    scene = Scene(STAR, STEADY)
    scene.subscriber("c1", "B1")
    scene.load("B1", output=0.6)
    scene.load("B2", input=0.6)
    scene.load("B3", input=0.6, output=0.6)
    scene.wait(29.0)
    scene.is_held = True
    assert scene.wait(2.0)[:2] == ["B1 -> B2: LbRequest", "B2 -> B1: LbRequest"]
    scene.is_held = False
    before = len(scene.story)
    scene.deliver()
    assert [line for line in scene.story[before:] if "B3" not in line] == [
        "B2 -> B1: LbReply",
        "B2 is BUSY",
        "B1 -> B2: LbReply",
        "B1 reports session",
        "B1 is BUSY",
    ]
    scene.sample("B1", SAMPLES, ["c1"])
    assert is_over(scene)


def test_a_broker_that_waits_for_an_answer_is_busy_for_others() -> None:
    """B2 has asked B3, which does not answer; then B1 asks B2."""
    scene = Scene(STAR, STEADY)
    scene.load("B1", output=0.9)
    scene.load("B2", output=0.4)
    scene.load("B3", output=0.0)
    scene.loses = lambda _sender, to, _kind: to == "B3"
    scene.wait(29.0)
    scene.is_held = True
    scene.wait(2.0)
    scene.is_held = False
    scene.deliver()
    assert scene.status("B1") == scene.status("B2") == "OK"
    assert is_over(scene)


# -- the other side dies -------------------------------------------------------------------------


@pytest.mark.parametrize("dies", ["B1", "B2"], ids=["the offloader", "the acceptor"])
@pytest.mark.parametrize("phase", ["sampling", "migrating", "half of the clients have arrived"])
@pytest.mark.parametrize("comes_back", [False, True], ids=["for good", "and restarts"])
def test_no_broker_stays_busy_when_the_other_one_dies(
    dies: str, phase: str, comes_back: bool
) -> None:
    scene = agreed() if phase == "sampling" else migrating()
    if phase.startswith("half"):
        scene.arrive("c1", "B2")
    scene.crash(dies)
    if comes_back:
        scene.restart(dies)
        scene.load(dies, output=0.3)
    scene.sample("B1", SAMPLES, ["c1", "c2"])
    assert is_over(scene)


@pytest.mark.parametrize("kind", ["LbRequest", "LbReply", "Migrate", "LbDone", "SessionEnd"])
def test_no_broker_stays_busy_when_a_message_is_lost(kind: str) -> None:
    scene = unbalanced()
    scene.loses = lambda _sender, _to, sent: sent == kind
    scene.wait(2.0)
    scene.sample("B1", SAMPLES, ["c1", "c2"])
    for client in ("c1", "c2"):
        if scene.moves:
            scene.arrive(client, "B2")
    assert is_over(scene)


def test_an_acceptor_that_has_restarted_ends_the_session_of_before() -> None:
    scene = agreed()
    scene.crash("B2")
    scene.restart("B2")
    assert scene.sample("B1", SAMPLES, ["c1"])[-3:] == [
        "B2 -> B1: SessionEnd",
        "B1 reports gave up B2: this session is over, or unknown",
        "B1 is OK",
    ]


def test_an_answer_that_comes_too_late_is_taken_back() -> None:
    scene = unbalanced()
    scene.loses = lambda sender, _to, kind: sender == "B2" and kind == "LbReply"
    scene.crash("B3")
    assert scene.wait(2.0) == ["B1 -> B2: LbRequest", "B2 -> B1: LbReply (lost)", "B2 is BUSY"]
    assert scene.wait(STEADY.reply_timeout_s) == [
        "B1 -> B2: SessionEnd",
        "B1 -> B3: LbRequest",
        "B2 is OK",
    ]


# -- clients that do not move --------------------------------------------------------------------


def test_clients_that_do_not_come_are_not_waited_for_longer_than_necessary() -> None:
    scene = migrating()
    scene.arrive("c1", "B2")
    story = scene.wait(2 * STEADY.migration_timeout_s + 1.0)
    assert story == [
        "B2 -> B1: LbDone",
        "B2 reports ended no more clients came in time",
        "B2 is STABILIZING",
        "B1 reports ended every client that arrived at the acceptor has left this broker",
        "B1 is STABILIZING",
    ]
    (ended,) = [d for d in scene.decisions if d.action == "ended" and d.source == "B1"]
    assert (ended.reason["planned"], ended.reason["moved"]) == (2, 1)


def test_a_client_that_closes_its_session_has_not_moved() -> None:
    scene = migrating()
    scene.arrive("c1", "B2")
    scene.close("c2", "B1")
    assert scene.wait(STEADY.reply_timeout_s + 0.1) == [
        "B1 -> B2: SessionEnd",
        "B2 -> B1: LbDone",
        "B2 reports ended B1: all clients have left",
        "B2 is STABILIZING",
        "B1 reports ended every client that arrived at the acceptor has left this broker",
        "B1 is STABILIZING",
    ]
    (ended,) = [d for d in scene.decisions if d.action == "ended" and d.source == "B1"]
    assert [ended.reason[key] for key in ("asked", "moved", "closed")] == [2, 1, 1]


def test_a_session_ends_soon_after_all_have_left_if_the_acceptor_is_silent() -> None:
    scene = migrating()
    scene.crash("B2")
    for name in ("c1", "c2"):
        scene.close(name, "B1")  # They are at B2, which has died.
    assert scene.wait(2 * STEADY.reply_timeout_s + 0.1) == [
        "B1 -> B2: SessionEnd",
        "B1 reports ended all clients have left; the acceptor did not say that it was done",
        "B1 is STABILIZING",
    ]


def test_clients_that_were_not_asked_yet_have_not_stayed() -> None:
    names = tuple(f"c{number}" for number in range(5))
    scene = unbalanced(replace(STEADY, moves_per_s=2.0), *names)
    scene.wait(2.0)
    scene.sample("B1", SAMPLES, names)
    scene.command("B1", "abort")
    (ended,) = [d for d in scene.decisions if d.action == "gave up" and d.source == "B1"]
    assert [ended.reason[key] for key in ("planned", "asked", "moved")] == [5, 2, 0]


def test_many_clients_are_given_up_when_none_arrives_for_a_while() -> None:
    """With N x 5 s alone, one hundred clients that cannot move would take 500 s."""
    names = tuple(f"c{number}" for number in range(100))
    scene = unbalanced(STEADY, *names)
    scene.wait(2.0)
    scene.sample("B1", SAMPLES, names)
    assert len(scene.moves) == 100
    assert "B2 reports ended no more clients came in time" in scene.wait(31.0)
    assert scene.status("B1") == scene.status("B2") == "OK"


def test_clients_that_were_asked_and_stayed_are_left_alone() -> None:
    scene = migrating()
    scene.wait(60.0)
    assert scene.modules["B1"]._balancer is not None
    held = scene.modules["B1"]._balancer._context.holds  # type: ignore[union-attr]
    assert held.held(scene.now_s) == {"c1", "c2"}
    assert held.held(scene.now_s + STEADY.hold_s) == frozenset()


def test_clients_are_asked_at_a_limited_rate() -> None:
    names = tuple(f"c{number}" for number in range(5))
    slow = replace(STEADY, moves_per_s=2.0)
    scene = unbalanced(slow, *names)
    scene.wait(2.0)
    scene.sample("B1", SAMPLES, names)
    assert [ask.client for _, ask in scene.moves] == ["c0", "c1"]
    scene.wait(1.0)
    assert len(scene.moves) == 4
    scene.wait(1.0)
    assert len(scene.moves) == 5


# -- the operator --------------------------------------------------------------------------------


def test_a_broker_that_is_paused_begins_no_session_and_accepts_none() -> None:
    scene = unbalanced()
    scene.command("B2", "pause")
    story = scene.wait(2.0)
    assert "B1 -> B2: LbRequest" not in story, "its PIE says so"
    assert "B1 -> B3: LbRequest" in story
    scene = unbalanced()
    scene.command("B1", "pause")
    assert scene.wait(120.0) == []
    scene.command("B1", "resume")
    assert "B1 -> B2: LbRequest" in scene.wait(31.0)


@pytest.mark.parametrize("who", ["B1", "B2"])
def test_an_operator_aborts_a_session_on_either_side(who: str) -> None:
    scene = migrating()
    other = "B2" if who == "B1" else "B1"
    story = scene.command(who, "abort")
    assert f"{who} -> {other}: SessionEnd" in story
    assert scene.status("B1") == scene.status("B2") == "OK"


# -- disjoint pairs ------------------------------------------------------------------------------


def test_disjoint_pairs_have_sessions_at_the_same_time() -> None:
    scene = Scene(peer(clusters=1, edges=4), STEADY)
    for name, at in (("c1", "B1"), ("c2", "B2")):
        scene.subscriber(name, at)
    scene.load("B1", output=0.6)
    scene.load("B2", input=0.6)
    scene.load("B3", output=0.1, input=0.55)
    scene.load("B4", output=0.55, input=0.1)
    scene.wait(32.0)
    assert [scene.status(f"B{n}") for n in (1, 2, 3, 4)] == ["BUSY"] * 4


# -- what cannot be balanced ---------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["dry-run off", "dry-run on"])
def test_a_broker_says_once_why_it_cannot_be_balanced_and_how_good_any_assignment_is(
    mode: str,
) -> None:
    scene = unbalanced()
    scene.crash("B3")
    scene.command("B1", mode)
    scene.plans["B1"] = ()
    story: list[str] = []
    for _ in range(8):
        story += scene.wait(30.0)
        story += scene.sample("B1", SAMPLES, ["c1"])
    assert [line for line in story if "cannot" in line] == [
        "B1 reports cannot balance as the test says"
    ]
    (decision,) = [each for each in scene.decisions if each.action == "cannot balance"]
    assert (decision.source, decision.target) == ("B1", "B2")
    assert decision.reason["output"] == pytest.approx(0.6)
    assert decision.reason["output_bound"] == pytest.approx((0.6 + 0.1) / 2), "B3 is forgotten"
    account = scene.modules["B1"].account(scene.now_s)
    assert "because: as the test says; no assignment" in str(account["cannot_be_balanced"])
    scene.load("B1", output=0.1)
    scene.wait(200.0)
    assert scene.modules["B1"].account(scene.now_s)["cannot_be_balanced"] is None


def obstructed() -> Scene:
    """B1 cannot be balanced with B2, and says so."""
    scene = unbalanced()
    scene.crash("B3")
    scene.plans["B1"] = ()
    for _ in range(4):
        scene.wait(30.0)
        scene.sample("B1", SAMPLES, ["c1"])
    assert scene.modules["B1"].account(scene.now_s)["cannot_be_balanced"]
    return scene


def test_what_cannot_be_balanced_stays_so_while_the_partner_is_busy() -> None:
    scene = obstructed()
    scene.command("B2", "pause")  # It publishes that it is BUSY.
    scene.wait(120.0)
    assert scene.modules["B1"].account(scene.now_s)["cannot_be_balanced"]
    scene.command("B2", "resume")
    for _ in range(4):
        scene.wait(30.0)
        scene.sample("B1", SAMPLES, ["c1"])
    assert [d.action for d in scene.decisions].count("cannot balance") == 1


def test_a_dry_run_that_finds_clients_is_no_obstacle() -> None:
    scene = unbalanced()
    scene.crash("B3")
    scene.command("B1", "dry-run on")
    for _ in range(8):
        scene.wait(30.0)
        scene.sample("B1", SAMPLES, ["c1"])
    actions = [d.action for d in scene.decisions]
    assert "proposed" in actions
    assert "cannot balance" not in actions
