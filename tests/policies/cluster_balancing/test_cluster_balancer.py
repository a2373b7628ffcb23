"""The module of a broker: requests, answers, and what it hands over."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from godwit.broker.modules import BrokerView, Request, Timer, ToNeighbour
from godwit.broker.routing import RouteCluster, RouteRing, SteeringStatus, StopSubscriptions
from godwit.broker.stimuli import Hop, LinkKind, LocalClient, Neighbour
from godwit.content.messages import AdvertisementId, Publication
from godwit.errors import UsageError
from godwit.overlay.clusters.steered_routing import CLUSTER_LANE
from godwit.policies.cluster_balancing.balancing_letters import (
    Accept,
    BalancingLetter,
    GiveBack,
    LoadRequest,
    Used,
    decoded,
    encoded,
)
from godwit.policies.cluster_balancing.cluster_balancer import ClusterBalancer
from godwit.policies.cluster_balancing.settings import ClusterBalancingSettings

Q, R = Neighbour("Q"), Neighbour("R")
RING = [Neighbour(f"X{number}") for number in range(1, 10)]
SETTINGS = ClusterBalancingSettings()
NOTHING = SteeringStatus(
    mates=("Q", "R"),
    other_clusters=tuple(range(1, 10)),
    rings={},
    clusters={},
    stand_in=None,
    matches_for=(),
    is_changing=False,
    subscriptions_in=0,
    subscriptions_out=0,
)


class Driver:
    """Drives one module; its broker is what the test says."""

    def __init__(self, steering: SteeringStatus = NOTHING) -> None:
        self.view = SimpleNamespace(
            broker="P",
            steering=steering,
            neighbours=dict.fromkeys((Q, R, *RING), LinkKind.CROSS),
        )
        self.module = ClusterBalancer(SETTINGS, Random(1))
        started = self.module.start(cast(BrokerView, self.view), 0.0)
        assert [*started] == [Timer("window", 5.0)]

    def publish(self, count: int, last_hop: Hop, *to: Hop, publisher: str = "p") -> None:
        publication = Publication(
            publisher=publisher,
            sequence=0,
            advertisement=AdvertisementId(f"{publisher}/1"),
            content={},
        )
        for _ in range(count):
            self.module.on_publication(publication, last_hop, to, 1.0)

    def window(self, now_s: float = 5.0) -> list[Request]:
        *requests, timer = self.module.on_timer("window", now_s)
        assert timer == Timer("window", now_s + 5.0)
        return requests

    def letter(self, letter: BalancingLetter, by: Neighbour, now_s: float = 5.1) -> list[Any]:
        return plain(self.module.on_letter(encoded(letter), by, now_s))


def plain(requests: Iterable[Request]) -> list[Any]:
    """Letters decoded; decisions left out."""
    found: list[Any] = []
    for request in requests:
        if isinstance(request, ToNeighbour):
            found.append((request.neighbour.name, decoded(request.body)))
        elif isinstance(request, Timer | RouteRing | RouteCluster | StopSubscriptions):
            found.append(request)
    return found


def overloaded() -> Driver:
    """20 publications in a unit to 9 clusters: a load of 180."""
    driver = Driver()
    driver.publish(100, LocalClient("p"), *RING)
    return driver


def test_a_broker_below_the_threshold_asks_for_nothing() -> None:
    driver = Driver()
    driver.publish(80, LocalClient("p"), *RING)
    assert driver.window() == []
    assert driver.module.loads.total == 144.0


def test_an_overloaded_broker_asks_its_mates_and_hands_over_the_excess() -> None:
    driver = overloaded()
    asked = [("Q", LoadRequest(1)), ("R", LoadRequest(1)), Timer("answers", 6.0)]
    assert plain(driver.window()) == asked
    assert driver.letter(Accept(1, 90.0, 60.0), Q) == []
    assert driver.letter(Accept(1, 140.0, 10.0), R) == [
        RouteRing("p", (1, 2, 3), "R"),
        ("Q", Used(0.0)),
        ("R", Used(80.0)),
    ]


def test_a_mate_that_does_not_answer_is_not_waited_for() -> None:
    driver = overloaded()
    driver.window()
    driver.letter(Accept(1, 140.0, 10.0), Q)
    decided = plain(driver.module.on_timer("answers", 6.0))
    assert decided == [RouteRing("p", (1, 2, 3), "Q"), ("Q", Used(80.0))]
    assert driver.letter(Accept(1, 90.0, 0.0), R) == [("R", Used(0.0))], "too late"


def test_without_help_the_broker_does_its_work_itself() -> None:
    driver = overloaded()
    driver.window()
    driver.letter(Accept(1, 0.0, 150.0), Q)
    assert driver.letter(Accept(1, 0.0, 150.0), R) == []


def test_cluster_work_follows_ring_work() -> None:
    driver = Driver()
    for publisher in ("a", "b"):
        driver.publish(
            50, RING[0], Q, R, *(Neighbour(f"M{i}") for i in range(6)), publisher=publisher
        )
    assert driver.window()  # 2 publishers, 10 in a unit, 1 in and 8 out each: 180.
    driver.letter(Accept(1, 0.0, 150.0), Q)
    assert driver.letter(Accept(1, 100.0, 10.0), R) == [
        RouteCluster("a", "R"),
        ("R", Used(90.0)),
    ]


def test_a_helper_accepts_what_it_has_left_and_promises_it_once() -> None:
    driver = Driver()
    driver.publish(50, LocalClient("p"), *RING[:5])  # 50 in a unit.
    driver.window()
    assert driver.letter(LoadRequest(7), Q) == [("Q", Accept(7, 100.0, 50.0))]
    assert driver.letter(LoadRequest(8), R) == [("R", Accept(8, 0.0, 50.0))]
    driver.letter(Used(30.0), Q)
    assert driver.letter(LoadRequest(9), R) == [("R", Accept(9, 70.0, 50.0))]


def test_one_that_is_helped_does_not_help() -> None:
    helped = {"rings": {("p", 1): "R"}, "clusters": {}}
    busy = SteeringStatus(
        mates=("Q", "R"),
        other_clusters=(1,),
        stand_in=None,
        matches_for=(),
        is_changing=False,
        subscriptions_in=0,
        subscriptions_out=0,
        **helped,  # type: ignore[arg-type]
    )
    assert Driver(busy).letter(LoadRequest(1), Q) == [("Q", Accept(1, 0.0, 0.0))]


def test_a_helper_that_is_overloaded_gives_work_back() -> None:
    driver = Driver()
    handed_over = Neighbour("Q", CLUSTER_LANE)
    driver.publish(100, handed_over, R, R, R, publisher="a")  # 80 in a unit
    driver.publish(100, handed_over, R, R, R, R, publisher="b")  # 100
    assert plain(driver.window()) == [("Q", GiveBack((), ("b",)))]


def test_work_that_is_given_back_is_done_and_the_helper_left_alone() -> None:
    driver = overloaded()
    driver.view.steering = SteeringStatus(
        mates=("Q",),
        other_clusters=(1, 2, 3),
        rings={("p", 1): "Q", ("p", 2): "Q", ("p", 3): "R"},
        clusters={"a": "Q", "b": "R"},
        stand_in=None,
        matches_for=(),
        is_changing=False,
        subscriptions_in=0,
        subscriptions_out=0,
    )
    back = driver.letter(GiveBack(("p",), ("a", "b")), Q)
    assert back == [RouteRing("p", (1, 2), None), RouteCluster("a", None)]
    assert driver.window() == [], "its only mate is shunned"


def test_a_broker_that_is_overloaded_by_subscriptions_takes_none_for_a_time() -> None:
    driver = Driver()
    driver.publish(10, RING[0], Q)
    driver.view.steering = SteeringStatus(
        mates=("Q",),
        other_clusters=(1,),
        rings={},
        clusters={},
        stand_in=None,
        matches_for=(),
        is_changing=False,
        subscriptions_in=1000,
        subscriptions_out=0,
    )
    driver.window()
    stop, resume, taken = driver.letter(Accept(1, 140.0, 10.0), Q)
    assert stop == StopSubscriptions("Q")
    assert resume.name == "resume"
    assert 5.1 + SETTINGS.stop_s_min <= resume.at_s <= 5.1 + SETTINGS.stop_s_max
    assert taken == ("Q", Used(4.0))


def test_one_that_matches_for_another_does_not_ask() -> None:
    driver = overloaded()
    driver.view.steering = msgspec.structs.replace(NOTHING, matches_for=("Q",))
    assert driver.window() == []


def test_a_tree_cannot_be_balanced_like_this() -> None:
    module = ClusterBalancer(SETTINGS, Random(1))
    view = cast(BrokerView, SimpleNamespace(broker="P", steering=None))
    with pytest.raises(UsageError, match="needs an overlay of clusters"):
        module.start(view, 0.0)


@pytest.mark.parametrize(
    "wrong", [{"threshold": 0}, {"answer_s": 5.0}, {"stop_s_min": 20.0}, {"unit_s": 0.0}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="cluster balancing"):
        ClusterBalancingSettings(**wrong)  # type: ignore[arg-type]
