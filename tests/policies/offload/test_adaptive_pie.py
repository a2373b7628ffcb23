"""Adaptive PIE: equation (4.5), its two rules, and the order of its subscriptions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.policies.offload.by_hand import STAR, Scene
from tests.policies.offload.loads import info, pie

from godwit.content.messages import Subscription, Unsubscription
from godwit.policies.offload.adaptive_pie import AdaptiveBounds, bounded_filter
from godwit.policies.offload.broker_load import OffloadAction
from godwit.policies.offload.pie import LOCAL_PIE, Pie, PieValues
from godwit.policies.offload.settings import BalancingSettings

INPUT, MATCH, OUTPUT = OffloadAction.INPUT, OffloadAction.MATCH, OffloadAction.OUTPUT
ADAPTIVE = BalancingSettings(
    pie="adaptive",
    local_pie_period_s=10.0,
    local_detection_min_s=90_000.0,  # No sessions.
    local_detection_max_s=90_000.0,
)
#: Ten heartbeats: published values of before are forgotten.
LONG_S = 10 * 5 * ADAPTIVE.local_pie_period_s


def bounds(**current: float) -> AdaptiveBounds:
    made = AdaptiveBounds(ratio_trigger=0.1, delay_trigger=0.1, normalization_s=0.1, history=10)
    made.bounds.update({OffloadAction(name): value for name, value in current.items()})
    return made


def values(*, input: float = 0.0, output: float = 0.0, match_s: float = 0.0001) -> PieValues:
    return PieValues.of(info(input=input, output=output, match_s=match_s))


@pytest.mark.parametrize(
    ("own", "published", "expected"),
    [
        pytest.param(0.5, [], 0.4, id="the load less the trigger"),
        pytest.param(0.5, [0.5] * 10, 0.4, id="a constant load has no deviation"),
        pytest.param(0.5, [0.4, 0.6] * 5, 0.5, id="an erratic one has"),
        pytest.param(0.05, [], 0.0, id="not below 0"),
        pytest.param(0.9, [0.0, 1.0] * 5, 1.0, id="not above 1"),
        pytest.param(0.5, [0.0, 1.0] * 5 + [0.5] * 10, 0.4, id="only the last ten"),
    ],
)
def test_the_bound(own: float, published: list[float], expected: float) -> None:
    """(4.5)."""
    made = bounds()
    for each in published:
        made.on_published(values(output=each))
    made.renew(values(output=own), [])
    assert made.bounds[OUTPUT] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("current", "own", "others", "changes"),
    [
        pytest.param(0.0, 0.25, [], True, id="a higher bound, by more than the trigger"),
        pytest.param(0.0, 0.19, [], False, id="a higher bound, by less"),
        pytest.param(0.5, 0.4, [], False, id="a lower bound that filters no broker out"),
        pytest.param(0.5, 0.4, [0.4], True, id="a lower bound that filters one out"),
        pytest.param(0.5, 0.4, [0.2, 0.6], False, id="others are beyond both bounds"),
    ],
)
def test_when_the_bound_changes(
    current: float, own: float, others: list[float], changes: bool
) -> None:
    made = bounds(output=current)
    known: list[Pie] = [pie(f"B{n}", output=value) for n, value in enumerate(others, 2)]
    assert (OUTPUT in made.renew(values(output=own), known)) is changes
    assert (made.bounds[OUTPUT] != current) is changes


def test_delays_are_in_seconds() -> None:
    made = bounds()
    assert made.renew(values(match_s=0.05), []) == [MATCH]
    assert made.bounds[MATCH] == pytest.approx(0.04)


def test_a_load_is_admitted_if_one_of_the_three_is_below_its_bound() -> None:
    made = bounds(input=0.3, output=0.3, match=0.0)
    assert made.admits(values(input=0.2, output=0.9))
    assert not made.admits(values(input=0.3, output=0.3))


def test_the_subscription_of_the_thesis() -> None:
    filter = bounded_filter(LOCAL_PIE, "C1", INPUT, 0.5)
    assert str(filter) == "class = '$LOCAL_PIE' and cluster = 'C1' and input < 0.5"


def subscribing(scene: Scene, broker: str) -> list[str]:
    """The subscriptions to loads that a broker made and withdrew, in order; then forgotten."""
    lines = []
    for request in scene.submitted[broker]:
        if isinstance(request, Subscription) and "LOCAL_PIE" in str(request.filter):
            lines.append("+ " + str(request.filter).partition("cluster = 'B0' and ")[2])
        elif isinstance(request, Unsubscription):
            lines.append("- " + str(request.id).partition("B0.")[2].partition("-")[0])
    scene.submitted[broker].clear()
    return lines


def test_a_broker_subscribes_anew_and_only_then_unsubscribes() -> None:
    scene = Scene(STAR, ADAPTIVE)
    assert subscribing(scene, "B1") == ["+ input < 0.0", "+ match < 0.0", "+ output < 0.0"]
    scene.load("B1", output=0.5)
    scene.wait(11.0)
    assert subscribing(scene, "B1") == ["+ output < 0.4", "- output"]
    scene.wait(LONG_S)
    assert subscribing(scene, "B1") == ["+ output < 0.65", "- output"], "the load has deviated"
    scene.wait(LONG_S)
    assert subscribing(scene, "B1") == [], "with a constant load the bounds do not change"


def test_only_lighter_brokers_are_heard() -> None:
    scene = Scene(STAR, ADAPTIVE)
    scene.load("B1", output=0.5)
    scene.load("B2", output=0.2)
    scene.load("B3", output=0.45)
    scene.wait(3 * LONG_S)
    known = {name: [each.broker for each in _known(scene, name)] for name in ("B1", "B2", "B3")}
    assert known == {"B1": ["B2"], "B2": [], "B3": ["B2"]}


def _known(scene: Scene, broker: str) -> list[Pie]:
    balancer = scene.modules[broker]._balancer
    return list(balancer.known)  # type: ignore[union-attr]


def test_plain_pie_has_one_subscription_that_stays() -> None:
    scene = Scene(STAR, replace(ADAPTIVE, pie="plain"))
    scene.load("B1", output=0.5)
    scene.wait(200.0)
    made = [r for r in scene.submitted["B1"] if isinstance(r, Subscription)]
    assert [str(each.filter) for each in made if "PIE" in str(each.filter)] == [
        "class = '$LOCAL_PIE' and cluster = 'B0'"
    ]
    assert [each.broker for each in _known(scene, "B1")] == ["B2", "B3"]
