"""The module of a broker: roles that change, publishers that are refused, operators, timers."""

from __future__ import annotations

import json
from random import Random

import pytest
from msgspec.structs import replace
from tests.policies.offload.by_hand import STAR, Scene

from godwit.broker.core import Broker
from godwit.broker.effects import Notify
from godwit.broker.routing import Place
from godwit.broker.stimuli import (
    LinkDown,
    LinkUp,
    LocalClient,
    Neighbour,
    OperatorCommand,
    Received,
    Started,
)
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    Publication,
    Refusal,
    ResyncDone,
    ResyncScope,
)
from godwit.errors import UsageError
from godwit.overlay.topology import peer
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.policies import offload
from godwit.policies.offload.settings import BalancingSettings

STEADY = BalancingSettings(
    local_detection_min_s=30.0,
    local_detection_max_s=30.0,
    global_detection_min_s=30.0,
    global_detection_max_s=30.0,
    local_pie_period_s=10.0,
    global_pie_period_s=10.0,
)
QUOTES = Filter.parse("class = 'STOCK'")


def role(scene: Scene, broker: str) -> tuple[object, object]:
    account = scene.modules[broker].account(scene.now_s)
    return account["role"], account["cluster"]


def known(scene: Scene, broker: str) -> list[str]:
    found = scene.modules[broker].account(scene.now_s)["known"]
    return [each["broker"] for each in found]  # type: ignore[attr-defined]


# -- roles ---------------------------------------------------------------------------------------


def test_roles_in_a_chain_of_clusters() -> None:
    scene = Scene(peer(clusters=2, edges=1), STEADY)
    assert role(scene, "B10") == ("head", "B10")
    assert role(scene, "B11") == ("edge", "B10")
    assert role(scene, "B20") == ("head", "B20")


def test_an_edge_that_gains_a_link_becomes_a_head_and_back() -> None:
    scene = Scene(STAR, STEADY)
    scene.load("B1", output=0.5)
    scene.wait(15.0)
    assert known(scene, "B2") == ["B1", "B3"]
    edge, new = scene.brokers["B1"], Neighbour("B9")
    edge.handle(LinkUp(new), now_s=scene.now_s)
    scene.wait(30.0)
    assert role(scene, "B1") == ("edge", "B0"), "its new neighbour has not sent its tables yet"
    done = ResyncDone(scope=ResyncScope.SUBSCRIPTIONS_TOO)
    edge.handle(Received(done, new), now_s=scene.now_s)
    scene.wait(30.0)
    assert role(scene, "B1") == ("head", "B1")
    scene.wait(100.0)
    assert known(scene, "B2") == ["B3"], "it is silent, and forgotten"
    edge.handle(LinkDown(new), now_s=scene.now_s)
    scene.wait(45.0)
    assert role(scene, "B1") == ("edge", "B0")
    assert known(scene, "B2") == ["B1", "B3"]


def test_a_broker_that_loses_its_links_has_no_role_until_it_is_linked_again() -> None:
    scene = Scene(STAR, STEADY)
    scene.wait(15.0)
    scene.unlink("B0", "B1")
    scene.wait(30.0)
    assert role(scene, "B1") == ("none", None)
    assert role(scene, "B0") == ("head", "B0")
    for name in ("B2", "B3"):
        scene.unlink("B0", name)
    scene.wait(60.0)
    assert [role(scene, name)[0] for name in ("B0", "B1", "B2", "B3")] == ["none"] * 4


def test_a_head_with_one_link_left_is_an_edge_unless_it_has_publishers() -> None:
    for has_publishers, expected in ((False, ("edge", "B3")), (True, ("head", "B0"))):
        scene = Scene(STAR, STEADY)
        if has_publishers:
            advertised = Advertisement(id=AdvertisementId("paul/a"), filter=QUOTES)
            scene.brokers["B0"].handle(Received(advertised, LocalClient("paul")), now_s=0.0)
        for name in ("B1", "B2"):
            scene.unlink("B0", name)
        scene.wait(31.0)
        assert role(scene, "B0") == expected


def test_a_session_ends_when_a_broker_changes_its_role() -> None:
    scene = Scene(STAR, replace(STEADY, press_timeout_s=100.0))
    scene.subscriber("c1", "B1")
    scene.load("B1", output=0.6)
    scene.load("B2", output=0.3)
    scene.load("B3", output=0.55)
    scene.wait(31.0)
    assert scene.status("B1") == scene.status("B2") == "BUSY"
    scene.unlink("B0", "B2")
    story = scene.wait(30.0)
    assert "B2 -> B1: SessionEnd" in story
    assert scene.status("B1") == "OK"


# -- publishers ----------------------------------------------------------------------------------


def test_an_edge_refuses_advertisements_and_names_its_head() -> None:
    (module,) = offload.modules(STEADY)("B1")
    broker = Broker("B1", routing=TreeRouting(Place.of("B1", ["B0"])), modules=[module])
    broker.handle(Started(), now_s=0.0)
    advertisement = Advertisement(id=AdvertisementId("paul/a"), filter=QUOTES)
    effects = broker.handle(Received(advertisement, LocalClient("paul")), now_s=1.0)
    assert effects == [
        Notify(
            LocalClient("paul"),
            Refusal(
                about="paul/a",
                reason="broker B1 is an edge broker of cluster B0, which serves subscribers only;"
                " publish at broker B0",
            ),
        )
    ]
    assert not list(broker.sessions.publishers())


def test_a_head_accepts_advertisements() -> None:
    (module,) = offload.modules(STEADY)("B0")
    broker = Broker("B0", routing=TreeRouting(Place.of("B0", ["B1", "B2"])), modules=[module])
    broker.handle(Started(), now_s=0.0)
    advertisement = Advertisement(id=AdvertisementId("paul/a"), filter=QUOTES)
    broker.handle(Received(advertisement, LocalClient("paul")), now_s=1.0)
    assert list(broker.sessions.publishers()) == ["paul"]


# -- cost, timers --------------------------------------------------------------------------------


def test_publications_are_watched_only_while_sampling() -> None:
    scene = Scene(STAR, STEADY)
    scene.subscriber("c1", "B1")
    scene.plans["B1"] = ("c1",)
    for name, output in (("B1", 0.6), ("B2", 0.1), ("B3", 0.55)):
        scene.load(name, output=output)
    for _ in range(20):
        scene.wait(10.0)
        account = scene.modules["B1"].account(scene.now_s)
        session = account["session"]
        is_sampling = isinstance(session, dict) and session["phase"] == "sampling"
        watching = {name: module.is_watching for name, module in scene.modules.items()}
        assert watching == {"B0": False, "B1": is_sampling, "B2": False, "B3": False}
        if is_sampling:
            break
    scene.sample("B1", 49, ["c1"])
    assert scene.modules["B1"].is_watching
    scene.sample("B1", 1, ["c1"])
    assert not scene.modules["B1"].is_watching


def test_timers_do_not_pile_up() -> None:
    """One for each purpose; those that were replaced have fired."""
    scene = Scene(peer(clusters=2, edges=2), STEADY)
    for name, output in (("B11", 0.6), ("B12", 0.1), ("B21", 0.1), ("B22", 0.1)):
        scene.load(name, output=output)
        scene.subscriber(f"c-{name}", name)
    for _ in range(200):
        scene.wait(10.0)
        scene.sample("B11", 50)
        per_broker = {
            name: sum(1 for each in scene.timers if each[2] == name) for name in scene.modules
        }
        assert max(per_broker.values()) < 12, per_broker


def test_a_session_survives_a_process_that_stood_still() -> None:
    """The clock of a broker never goes back, but timers may fire late, all of them."""
    scene = Scene(STAR, STEADY)
    scene.subscriber("c1", "B1")
    scene.plans["B1"] = ("c1",)
    for name, output in (("B1", 0.6), ("B2", 0.1), ("B3", 0.55)):
        scene.load(name, output=output)
    scene.wait(31.0)
    assert scene.status("B1") == "BUSY"
    late_s = 100_000.0
    scene.now_s += late_s
    scene.timers = [(at_s + late_s, n, b, timer) for at_s, n, b, timer in scene.timers]
    scene.sample("B1", 50, ["c1"])
    for name in scene.modules:
        scene.command(name, "pause")
    scene.wait(200.0)
    assert [scene.status(name) for name in ("B1", "B2", "B3")] == ["OK"] * 3


def test_ids_differ_after_a_restart() -> None:
    """Others may still have subscriptions of before."""
    scene = Scene(STAR, STEADY)
    ids = {str(publication.advertisement) for _, publication in scene.published}
    scene.wait(100.0)
    scene.published.clear()
    scene.crash("B1")
    scene.restart("B1")
    scene.wait(1.0)
    again = {str(p.advertisement) for name, p in scene.published if name == "B1"}
    assert again
    assert not ids & again


def test_sequence_numbers_rise_as_publications_are_submitted() -> None:
    scene = Scene(peer(clusters=2, edges=2), STEADY)
    for name, output in (("B11", 0.6), ("B12", 0.6), ("B21", 0.1), ("B22", 0.1)):
        scene.load(name, output=output)
    scene.wait(500.0)
    for requests in scene.submitted.values():
        numbers = [r.sequence for r in requests if isinstance(r, Publication)]
        assert numbers == list(range(len(numbers)))


# -- the operator --------------------------------------------------------------------------------


def test_the_account_can_be_sent_as_json() -> None:
    scene = Scene(peer(clusters=2, edges=2), STEADY)
    for name, output in (("B11", 0.6), ("B12", 0.1), ("B21", 0.1), ("B22", 0.1)):
        scene.load(name, output=output)
    scene.wait(95.0)
    for module in scene.modules.values():
        account = json.loads(json.dumps(module.account(scene.now_s)))
        assert {"broker", "role", "cluster", "status", "known", "session"} <= set(account)
        assert {"is_paused", "dry_run", "decisions"} <= set(account)


def test_an_unknown_command_is_an_error_that_lists_those_there_are() -> None:
    scene = Scene(STAR, STEADY)
    with pytest.raises(UsageError, match="pause, resume, abort"):
        scene.command("B1", "stop")


def test_commands_reach_a_module_by_its_name() -> None:
    (module,) = offload.modules(STEADY)("B1")
    broker = Broker("B1", routing=TreeRouting(Place.of("B1", ["B0"])), modules=[module])
    broker.handle(Started(), now_s=0.0)
    broker.handle(OperatorCommand("offload", "pause"), now_s=1.0)
    assert module.account(1.0)["is_paused"] is True
    with pytest.raises(UsageError, match="has no module 'placement'"):
        broker.handle(OperatorCommand("placement", "pause"), now_s=1.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"algorithm": "best"},
        {"pie": "round"},
        {"moves_per_s": 0.0},
        {"hold_s": -1.0},
        {"local_detection_min_s": 50.0},
        {"lower_overload_threshold": 0.99},
        {"global_pie_period_s": 10.0},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_settings_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        replace(BalancingSettings(), **wrong)


def test_the_same_seed_gives_the_same_module() -> None:
    draws = [offload.modules(STEADY, seed=7)("B1")[0] for _ in range(2)]
    randoms = [module._random.random() for module in draws]  # type: ignore[attr-defined]
    assert randoms[0] == randoms[1] == Random("7 B1").random()
