"""Global sessions as time-lines: heads agree, edge brokers see both clusters, and no longer."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.policies.offload.by_hand import Scene
from tests.policies.offload.loads import pie

from godwit.content.messages import Publication
from godwit.overlay.topology import Topology, peer, topology
from godwit.policies.offload.broker_load import OffloadAction
from godwit.policies.offload.detection import Candidate
from godwit.policies.offload.global_mediation import are_all_balanced
from godwit.policies.offload.head_balancer import HeadBalancer
from godwit.policies.offload.settings import BalancingSettings

TWO = peer(clusters=2, edges=2)
#: Heads every 60 s, edge brokers every 30 s; loads are known after 10 s.
STEADY = BalancingSettings(
    local_detection_min_s=30.0,
    local_detection_max_s=30.0,
    global_detection_min_s=60.0,
    global_detection_max_s=60.0,
    local_pie_period_s=10.0,
    global_pie_period_s=20.0,
)
EDGES = ("B11", "B12", "B21", "B22")


def clusters(*outputs: float, shape: Topology = TWO, settings: BalancingSettings = STEADY) -> Scene:
    """The first cluster is heavier by default; the edge brokers of each are balanced."""
    scene = Scene(shape, settings, quiet=("PIE",))
    for name, output in zip(EDGES, outputs or (0.5, 0.5, 0.1, 0.1), strict=True):
        scene.load(name, output=output)
    return scene


def heads(story: list[str]) -> list[str]:
    """The lines in which heads say or do something."""
    return [line for line in story if line.startswith(("B10", "B20"))]


def foreign(scene: Scene, broker: str) -> object:
    return scene.modules[broker].account(scene.now_s)["other_cluster"]


def begun() -> Scene:
    scene = clusters()
    scene.wait(59.0)
    assert heads(scene.wait(1.5)) == [
        "B10 -> B20: GlobalRequest",
        "B20 -> B10: GlobalReply",
        "B20 reports global session",
        "B20 -> B21: PieLease",
        "B20 -> B22: PieLease",
        "B20 is BUSY",
        "B10 reports global session",
        "B10 -> B11: PieLease",
        "B10 -> B12: PieLease",
        "B10 is BUSY",
    ]
    return scene


def test_two_heads_agree_and_their_edges_see_both_clusters() -> None:
    scene = begun()
    assert [foreign(scene, name) for name in EDGES] == ["B20", "B20", "B10", "B10"]
    scene.subscriber("c1", "B11")
    scene.plans["B11"] = ("c1",)
    story = scene.wait(30.0)
    assert any(line.startswith(("B11 -> B21: Lb", "B12 -> B22: Lb")) for line in story), story


def test_it_ends_when_every_edge_lists_every_other_as_balanced() -> None:
    scene = begun()
    for name in EDGES:
        scene.load(name, output=0.3)
    story = [line for line in scene.wait(200.0) if "Lease" in line or "lobal" in line]
    assert story[-7:] == [
        "B10 -> B20: GlobalEnd",
        "B10 -> B11: PieLease",
        "B10 -> B12: PieLease",
        "B10 reports global ended all edge brokers of both clusters are balanced",
        "B20 -> B21: PieLease",
        "B20 -> B22: PieLease",
        "B20 reports global ended B10: all edge brokers of both clusters are balanced",
    ]
    assert [foreign(scene, name) for name in EDGES] == [None] * 4
    assert scene.status("B10") == scene.status("B20") == "OK"


def test_it_ends_after_three_rounds_without_a_session() -> None:
    scene = begun()
    for name in EDGES:
        scene.command(name, "pause")
    story = heads(scene.wait(245.0))
    ended = [line for line in story if "reports" in line]
    assert ended[0] == "B10 reports global ended no client has moved in 3 rounds"
    assert [foreign(scene, name) for name in EDGES] == [None] * 4


def test_sessions_that_find_nothing_to_move_do_not_keep_it_open() -> None:
    """Other clusters would wait for its 20 rounds, though nothing can be moved in this one."""
    scene = begun()
    story: list[str] = []
    for _ in range(80):  # Publications come all the time, and no plan has a client.
        for name in EDGES:
            scene.sample(name, STEADY.press_samples)
        story += scene.wait(10.0)
    assert sum("reports session" in line for line in story) >= 5, "loads differ: they try again"
    ended = [line for line in story if line.startswith("B10 reports global ended")]
    assert ended[0] == "B10 reports global ended no client has moved in 3 rounds"
    rounds = [d.reason["rounds"] for d in scene.decisions if d.action == "global ended"]
    assert float(rounds[0]) < STEADY.global_rounds_max / 2


def test_the_sessions_of_its_first_round_count() -> None:
    """Else a pair of clusters that was useful at once would be left out of the next detections."""
    scene = begun()
    for name in ("c1", "c2"):
        scene.subscriber(name, "B11")
    scene.plans["B11"] = ("c1", "c2")
    scene.wait(30.0)
    scene.sample("B11", STEADY.press_samples, ["c1"])
    source, ask = scene.moves[0]
    assert source == "B11"
    for name in ("c1", "c2"):
        scene.arrive(name, ask.target)
    for name in EDGES:
        scene.command(name, "pause")
    scene.wait(400.0)
    (ended,) = [d for d in scene.decisions if d.action == "global ended" and d.source == "B10"][:1]
    assert float(ended.reason["sessions"]) >= 2, "B11 and its acceptor count one each"
    head = scene.modules["B10"]._balancer
    assert isinstance(head, HeadBalancer)
    candidate = Candidate("B20", OffloadAction.OUTPUT, 0.4)
    assert head._pairs.next_detection([candidate]) == [candidate], "not blocked"


@pytest.mark.parametrize("silent", [False, True], ids=["refuses", "does not answer"])
def test_if_a_head_does_not_agree_the_next_one_is_asked(silent: bool) -> None:
    scene = Scene(peer(clusters=3, edges=2, fanout=2), STEADY, quiet=("PIE", "Lease"))
    for name in scene.topology.brokers:
        is_edge = not name.endswith("0")
        scene.load(name, output=0.0 if not is_edge else 0.5 if name[1] == "1" else 0.1)
        if is_edge:
            scene.command(name, "pause")
    scene.load("B21", output=0.05)
    scene.wait(59.0)
    if silent:
        scene.crash("B20")
    else:
        scene.loses = lambda sender, _to, kind: sender == "B20" and "PIE" in kind
        scene.command("B20", "pause")
    story = [line for line in scene.wait(8.0) if line.startswith("B10")]
    assert [line for line in story if "GlobalRequest" in line] == [
        "B10 -> B20: GlobalRequest",
        "B10 -> B30: GlobalRequest",
    ]
    account = scene.modules["B10"].account(scene.now_s)
    assert account["session"]["partner"] == "B30"  # type: ignore[index]
    assert account["sessions"] == 1


def test_it_ends_after_its_time() -> None:
    scene = clusters(settings=replace(STEADY, global_rounds_max=2))
    story = heads(scene.wait(300.0))
    assert "B10 reports global ended it has taken its time; others get their turn" in story


def test_disjoint_pairs_of_clusters_have_global_sessions_at_the_same_time() -> None:
    scene = Scene(peer(clusters=4, edges=2), STEADY, quiet=("PIE",))
    for head, output in (("B1", 0.5), ("B2", 0.1), ("B3", 0.5), ("B4", 0.05)):
        scene.load(f"{head}1", output=output)
        scene.load(f"{head}2", output=output)
    scene.wait(61.0)
    assert [foreign(scene, f"B{n}1") for n in (1, 2, 3, 4)] == ["B20", "B10", "B40", "B30"]


# -- why it begins -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outputs", "begins"),
    [
        pytest.param((0.4, 0.4, 0.3, 0.3), False, id="a difference below the global trigger"),
        pytest.param((0.5, 0.5, 0.3, 0.3), True, id="a difference above it"),
        pytest.param((0.9, 0.1, 0.4, 0.4), False, id="means are compared"),
        pytest.param((0.99, 0.99, 0.92, 0.3), False, id="the other cluster is N/A"),
    ],
)
def test_when_a_global_session_begins(
    outputs: tuple[float, float, float, float], begins: bool
) -> None:
    scene = clusters(*outputs)
    for name in EDGES:  # No local sessions.
        scene.command(name, "pause")
    story = scene.wait(65.0)
    assert any("GlobalRequest" in line for line in story) is begins


def test_requests_of_overloaded_edges_start_it_and_are_counted_again() -> None:
    """Both edges of the first cluster are N/A, at 0.93, and there is no other in sight."""
    scene = clusters(0.93, 0.93, 0.85, 0.85)
    story = [line for line in scene.wait(59.0) if "EdgeRequest" in line or "lobal" in line]
    assert story == ["B12 -> B10: EdgeRequest"], "B11 did not know yet that B12 is N/A"
    story = [line for line in scene.wait(2.0) if "EdgeRequest" in line or "lobal" in line]
    assert story[:3] == [
        "B11 -> B10: EdgeRequest",
        "B12 -> B10: EdgeRequest",
        "B10 -> B20: GlobalRequest",
    ]
    assert scene.modules["B10"].account(0.0)["requests"] == 0


def test_a_cluster_that_is_not_available_waits_for_its_local_sessions() -> None:
    """N/A because of one edge; another edge of the cluster can help."""
    scene = clusters(0.92, 0.5, 0.1, 0.1)
    for name in EDGES:
        scene.command(name, "pause")
    assert not any("GlobalRequest" in line for line in scene.wait(200.0))
    assert scene.status("B10") == "N/A"


def test_requests_are_forgotten_when_the_overload_is_over() -> None:
    scene = clusters(0.93, 0.93, 0.85, 0.85)
    scene.wait(31.0)
    assert scene.modules["B10"].account(0.0)["requests"] == 1
    for name in EDGES:
        scene.load(name, output=0.8)
    scene.wait(65.0)
    assert scene.modules["B10"].account(0.0)["requests"] == 0


# -- failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dies", ["B10", "B20"], ids=["the requester", "the other head"])
def test_a_head_that_dies_ends_it_for_all(dies: str) -> None:
    scene = begun()
    scene.crash(dies)
    for name in EDGES:
        scene.command(name, "pause")
    scene.wait(600.0)
    survivor = "B20" if dies == "B10" else "B10"
    assert scene.status(survivor) == "OK"
    assert [foreign(scene, name) for name in EDGES] == [None] * 4


@pytest.mark.parametrize(
    "kind", ["GlobalRequest", "GlobalReply", "GlobalKeep", "GlobalEnd", "PieLease"]
)
def test_a_head_is_not_busy_for_ever_when_a_message_is_lost(kind: str) -> None:
    scene = clusters()
    scene.loses = lambda _sender, _to, sent: sent == kind
    for name in EDGES:
        scene.command(name, "pause")
    scene.wait(70.0)
    for name in ("B10", "B20"):
        scene.command(name, "pause")
    scene.wait(700.0)
    assert [foreign(scene, name) for name in EDGES] == [None] * 4
    assert scene.status("B10") == scene.status("B20") == "OK"


def test_an_edge_that_comes_late_takes_part() -> None:
    scene = begun()
    scene.crash("B21")
    scene.restart("B21")
    scene.load("B21", output=0.1)
    scene.wait(65.0)
    assert foreign(scene, "B21") == "B10"


def test_crossing_requests_of_heads() -> None:
    """B10 is heavier by output, B20 by input."""
    scene = Scene(TWO, STEADY)
    for name, output, input in (("B11", 0.5, 0.1), ("B12", 0.5, 0.1), ("B21", 0.1, 0.5)):
        scene.load(name, output=output, input=input)
    scene.load("B22", output=0.1, input=0.5)
    for name in EDGES:
        scene.command(name, "pause")
    scene.wait(59.5)
    scene.is_held = True
    scene.wait(1.0)
    scene.is_held = False
    scene.deliver()
    scene.wait(1.0)
    assert scene.status("B10") == scene.status("B20") == "BUSY"
    sessions = {scene.modules[n].account(0.0)["session"]["session"] for n in ("B10", "B20")}  # type: ignore[index]
    assert len(sessions) == 1
    assert sessions.pop().startswith("B10-")


# -- global PIE ----------------------------------------------------------------------------------


def pies(scene: Scene) -> list[tuple[str, Publication]]:
    return [each for each in scene.published if each[1].content["class"] == "$GLOBAL_PIE"]


def test_a_global_pie_has_the_means_and_goes_one_hop() -> None:
    """L42."""
    scene = Scene(peer(clusters=3, edges=2), STEADY)
    scene.load("B11", output=0.4, input=0.2)
    scene.load("B12", output=0.2)
    scene.wait(50.0)
    _, last = [each for each in pies(scene) if each[0] == "B10"][-1]
    assert last.content["output"] == pytest.approx(0.3)
    assert last.content["input"] == pytest.approx(0.1)
    assert last.ttl_hops == 1
    known = scene.modules["B20"].account(0.0)["known"]
    assert [each["broker"] for each in known] == ["B10", "B30"]  # type: ignore[attr-defined]
    known = scene.modules["B30"].account(0.0)["known"]
    assert [each["broker"] for each in known] == ["B20"]  # type: ignore[attr-defined]


def test_a_head_without_edges_hands_it_on_one_hop_more() -> None:
    """B20 is between two clusters and has no edge brokers; so is B50, two hops from B10."""
    shape = topology(
        ["B10", "B11", "B12", "B20", "B30", "B31", "B32", "B40", "B50", "B51"],
        [
            ("B10", "B11"), ("B10", "B12"), ("B10", "B20"), ("B20", "B30"), ("B30", "B31"),
            ("B30", "B32"), ("B20", "B40"), ("B40", "B50"), ("B50", "B51"),
        ],
    )  # fmt: skip
    scene = Scene(shape, STEADY)
    for name in ("B11", "B12", "B31", "B32", "B51"):
        scene.load(name, output=0.2)
    scene.wait(50.0)
    found = scene.modules["B30"].account(0.0)["known"]
    assert [each["broker"] for each in found] == ["B10"]  # type: ignore[attr-defined]
    assert all(publication.content["via"] in ("", "B20", "B40") for _, publication in pies(scene))
    found = scene.modules["B50"].account(0.0)["known"]
    assert found == [], "three hops are too far: it is handed on once"


@pytest.mark.parametrize(
    ("balanced", "expected"),
    [
        pytest.param({"B11": "B21", "B21": "B11"}, True, id="each lists the other"),
        pytest.param({"B11": "B21", "B21": ""}, False, id="only one does"),
        pytest.param({"B11": ""}, False, id="the other cluster is not heard"),
    ],
)
def test_all_are_balanced(balanced: dict[str, str], expected: bool) -> None:
    found = [
        pie(name, cluster=f"{name[:2]}0", balanced=tuple(filter(None, [other])))
        for name, other in balanced.items()
    ]
    assert are_all_balanced(found, "B20") is expected


def test_adaptive_heads_bound_what_they_hear() -> None:
    scene = clusters(settings=replace(STEADY, pie="adaptive"))
    for name in scene.topology.brokers:
        scene.command(name, "pause")
    scene.wait(2500.0)
    known = {
        name: [each["broker"] for each in scene.modules[name].account(0.0)["known"]]  # type: ignore[attr-defined]
        for name in ("B10", "B20")
    }
    assert known == {"B10": ["B20"], "B20": []}
