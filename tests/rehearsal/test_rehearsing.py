"""Rehearsals of small networks whose figures are known by hand, and of simulated ones."""

from __future__ import annotations

import msgspec
import pytest
from tests.rehearsal.scenes import (
    BANDWIDTH_BYTES_S,
    FRAME_BYTES,
    MATCHING_S,
    MEASURED,
    SAMPLE_S,
    interval,
    publisher,
    reading,
    snapshot,
    subscriber,
)

from godwit.api.plan_requests import PlanToApply
from godwit.errors import UsageError
from godwit.rehearsal.changes_to_try import RehearsedChange
from godwit.rehearsal.network_figures import Objective, delay_figures
from godwit.rehearsal.network_snapshot import NetworkSnapshot
from godwit.rehearsal.rehearsed_network import RehearsedNetwork, simulated
from godwit.rehearsal.rehearsing import (
    RehearsalOptions,
    RehearsalReport,
    RehearsedOutcome,
    is_enough,
    rehearse,
)
from godwit.simulation.oracle import Oracle
from godwit.simulation.resources import LinkOptions

OPTIONS = RehearsalOptions(measured_s=SAMPLE_S, check=True)


def rehearsed(
    change: RehearsedChange,
    scene: NetworkSnapshot | None = None,
    objective: Objective = "messages",
) -> tuple[RehearsalReport, RehearsedOutcome]:
    report = rehearse(scene or snapshot(), [change], objective=objective, options=OPTIONS)
    return report, report.outcomes[0]


def test_the_unchanged_network_is_as_it_was_measured() -> None:
    report = rehearse(snapshot(), [], options=OPTIONS)
    assert report.is_independent
    for name in ("messages_per_s", "deliveries_per_s", "output_bytes_per_s", "hops"):
        assert report.error[name] == pytest.approx(0.0, abs=0.01), name
    for name in ("load_max", "input_utilisation", "output_utilisation"):
        assert report.error[name] == pytest.approx(0.0, abs=0.01), name
    assert report.error["delay_mean_s"] == pytest.approx(0.0, abs=0.05)
    before = report.before.brokers
    assert before["B2"].publications_per_s == pytest.approx(10.0, rel=0.01)
    assert before["B3"].output_bytes_per_s == pytest.approx(20 * FRAME_BYTES, rel=0.01)


def test_an_error_is_that_of_the_second_measurement() -> None:
    twice = {name: reading(20, 20) for name in MEASURED.brokers}
    second = interval(twice, deliveries_per_s=25.0, hops=1.8, delay_s=0.010)
    report = rehearse(snapshot(second=second), [], options=OPTIONS)
    assert report.error["messages_per_s"] == pytest.approx(-0.5, abs=0.01)
    alone = rehearse(snapshot(second=None), [], options=OPTIONS)
    assert not alone.is_independent
    assert alone.error["messages_per_s"] == pytest.approx(0.0, abs=0.01)


def test_twice_the_traffic_is_twice_of_everything_but_hops() -> None:
    report, found = rehearsed(RehearsedChange(text="traffic=2", traffic=2.0))
    for name in ("messages_per_s", "deliveries_per_s", "output_bytes_per_s", "load_max"):
        assert found.difference[name] == pytest.approx(1.0, abs=0.01), name
    assert found.difference["hops"] == pytest.approx(0.0, abs=0.01)
    assert found.gain == pytest.approx(-1.0, abs=0.01)
    assert not is_enough(found, 0.0)
    assert report.before.hops == pytest.approx(1.8, abs=0.01)


def test_too_much_traffic_is_said_to_overload_a_broker() -> None:
    _, found = rehearsed(RehearsedChange(text="traffic=6", traffic=6.0))
    assert any(note.startswith("B3 is overloaded: 120%") for note in found.notes), found.notes


def test_a_plan_that_brings_everyone_to_one_broker() -> None:
    homes = {"paul": "B1", "bob": "B1", "carol": "B1", "dave": "B1"}
    plan = PlanToApply(links=[], root="B1", clients=homes)
    _, found = rehearsed(RehearsedChange(text="plan", plan=plan))
    assert found.moves == 3
    assert found.after.hops == 0.0
    assert found.after.messages_per_s == pytest.approx(10.0, rel=0.01)
    assert found.after.brokers.keys() == {"B1"}
    assert found.after.output_bytes_per_s == pytest.approx(25 * FRAME_BYTES, rel=0.01)
    assert found.gain == pytest.approx(2 / 3, abs=0.01)
    assert is_enough(found, 0.6)
    assert not is_enough(found, 0.7)


def test_a_broker_that_makes_more_copies_is_slower() -> None:
    """Copies for each message are 1, 1.5 and 2, measured delays 3, 3.5 and 4 ms: 1 ms a copy."""
    delays_s = {"B1": 0.003, "B2": 0.0035, "B3": 0.004}
    brokers = {
        name: msgspec.structs.replace(each, matching_delay_s=delays_s[name])
        for name, each in MEASURED.brokers.items()
    }
    first = msgspec.structs.replace(MEASURED, brokers=brokers)
    plan = PlanToApply(links=[], root="B1", clients=dict.fromkeys(["bob", "carol", "dave"], "B1"))
    _, found = rehearsed(RehearsedChange(text="plan", plan=plan), snapshot(first=first))
    after = found.after.brokers["B1"]
    assert after.matching_delay_s == pytest.approx(0.002 + 2.5 * 0.001, rel=0.02)
    assert after.input_utilisation == pytest.approx(10 * 0.0045, rel=0.02)


def test_a_gain_within_the_error_is_not_certain() -> None:
    """W2: measured were 12 messages a second, simulated are 10, and 9.5 would be a gain of 5%."""
    second = interval(
        {name: reading(12, 12) for name in MEASURED.brokers},
        deliveries_per_s=25.0,
        hops=1.8,
        delay_s=0.010,
    )
    change = RehearsedChange(text="traffic=0.95", traffic=0.95)
    _, found = rehearsed(change, snapshot(second=second))
    assert found.gain == pytest.approx(0.05, abs=0.01)
    assert not found.is_certain
    assert not is_enough(found, 0.0)


def test_a_gain_is_not_certain_if_nothing_was_measured() -> None:
    nothing = interval({}, deliveries_per_s=0.0, hops=0.0, delay_s=0.0)
    change = RehearsedChange(text="traffic=0.5", traffic=0.5)
    report, found = rehearsed(change, snapshot(second=nothing))
    assert report.error["messages_per_s"] is None
    assert found.gain == pytest.approx(0.5, abs=0.01)
    assert not is_enough(found, 0.1)


@pytest.mark.parametrize(
    ("objective", "gain"), [("messages", 1 / 3), ("hops", 1 - 20 / 25 / 1.8), ("brokers", 1 / 3)]
)
def test_a_broker_less_gains_by_the_objective(objective: Objective, gain: float) -> None:
    """bob goes from B2 to B1, which has fewer clients than B3; B1 and B3 are linked."""
    change = RehearsedChange(text="without=B2", without=("B2",))
    _, found = rehearsed(change, objective=objective)
    assert found.gain == pytest.approx(gain, abs=0.01)
    assert (found.moves, found.new_links) == (1, 1)


def test_outcomes_are_ranked_by_gain() -> None:
    changes = [
        RehearsedChange(text="more", traffic=2.0),
        RehearsedChange(text="less", traffic=0.5),
        RehearsedChange(text="same"),
    ]
    report = rehearse(snapshot(), changes, options=OPTIONS)
    assert [each.change for each in report.outcomes] == ["less", "same", "more"]


@pytest.mark.parametrize("overlay", ["clusters", "mesh"])
def test_other_overlays_deliver_the_same(overlay: str) -> None:
    clusters = 1 if overlay == "clusters" else None
    change = RehearsedChange(text=overlay, overlay=overlay, clusters=clusters)
    _, found = rehearsed(change)
    assert found.difference["deliveries_per_s"] == pytest.approx(0.0, abs=0.01)
    assert found.after.hops <= 1.81


def test_placement_moves_the_publisher_to_its_subscribers() -> None:
    """At B3 paul causes 10 + 5 messages a second at B2 and B3, and none at B1."""
    options = RehearsalOptions(measured_s=SAMPLE_S, settle_s=60.0, check=True)
    change = RehearsedChange(text="placement=grape-load", placement="grape-load")
    found = rehearse(snapshot(), [change], options=options).outcomes[0]
    assert found.moves == 1
    assert found.after.messages_per_s == pytest.approx(15.0, rel=0.02)
    assert found.after.brokers["B1"].publications_per_s == 0.0


def test_a_limited_output_makes_copies_wait() -> None:
    """At 190% of the output of B3, half of the copies wait at the end."""
    scene = snapshot()
    brokers = tuple(
        msgspec.structs.replace(each, limits_output=True, output_bandwidth_bytes_s=2_100.0)
        for each in scene.brokers
    )
    scene = msgspec.structs.replace(scene, brokers=brokers)
    report, found = rehearsed(RehearsedChange(text="traffic=2", traffic=2.0), scene)
    assert report.before.delay_mean_s < 0.2
    assert found.after.delay_mean_s > 1.0
    assert BANDWIDTH_BYTES_S > 2_100.0


def test_a_network_without_publications_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing is published"):
        rehearse(snapshot([subscriber("bob", "B1")]), [], options=OPTIONS)


def test_a_rehearsal_finds_the_latency_of_a_network_that_was_simulated() -> None:
    scene = snapshot()
    network = RehearsedNetwork(
        topology=scene.topology,
        clients=scene.clients,
        sample_s=SAMPLE_S,
        matching_delay_s=dict.fromkeys(scene.broker_names, MATCHING_S),
        link=LinkOptions(latency_s_min=0.002, latency_s_mean=0.005),
        measured_s=60.0,
        seed=7,
    )
    delays = delay_figures(simulated(network).delays_s)
    first = msgspec.structs.replace(MEASURED, delay_s=delays)
    report = rehearse(snapshot(first=first, second=first), [], options=OPTIONS)
    for name in ("delay_mean_s", "delay_p50_s"):
        assert report.error[name] == pytest.approx(0.0, abs=0.1), name


@pytest.mark.parametrize("overlay", ["tree", "mesh"])
def test_deliveries_of_a_rehearsal_are_those_of_the_oracle(overlay: str) -> None:
    clients = (
        publisher("paul", "B1"),
        publisher("quinn", "B3", per_s=30.0),
        *(subscriber(f"s{n}", f"B{n % 3 + 1}", f"class = 'TICK' and n < {n}") for n in range(1, 9)),
    )
    scene = snapshot(clients)
    oracle = Oracle(settle_s=10.0)
    network = RehearsedNetwork(
        topology=scene.topology,
        clients=scene.clients,
        sample_s=SAMPLE_S,
        overlay=overlay,
        matching_delay_s=dict.fromkeys(scene.broker_names, MATCHING_S),
        link=LinkOptions(latency_s_min=0.001, latency_s_mean=0.004),
        rates={"paul": 3.0},
        measured_s=20.0,
    )
    counts = simulated(network, observers=[oracle], check=True)
    assert oracle.violations == []
    assert oracle.deliveries > 1_000
    assert counts.refused == []
    assert counts.homes == {client.name: client.broker for client in clients}
