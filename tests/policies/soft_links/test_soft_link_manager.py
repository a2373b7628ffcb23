"""The module that manages soft links, in a simulation: links follow the traffic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from godwit.broker.effects import Decision
from godwit.broker.routing import in_use
from godwit.broker.stimuli import LinkKind, Neighbour, Received
from godwit.content.filters import Filter
from godwit.content.messages import Letter, Publication
from godwit.overlay.mesh.mesh_routing import MeshRouting
from godwit.overlay.mesh.mesh_settings import MeshSettings
from godwit.overlay.topology import balanced_tree
from godwit.policies import soft_links
from godwit.policies.soft_links.soft_link_manager import (
    COMPLETE_EVERY,
    EXCHANGES,
    SoftLinkManager,
)
from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.simulation.simulator import Simulator

PERIOD_S = 20.0
SETTINGS = MeshSettings(delta=4, fanout=4, period_s=PERIOD_S)


class Watch(Observer):
    def __init__(self) -> None:
        self.decisions: list[tuple[str, Decision]] = []
        self.forwarders: Counter[str] = Counter()
        self.letters_to: Counter[str] = Counter()

    def on_decision(self, broker: str, policy: str, decision: Decision, now_s: float) -> None:
        self.decisions.append((broker, decision))

    def on_handled(self, broker: str, received: Received, done_s: float) -> None:
        self.forwarders[broker] += isinstance(received.message, Publication)
        self.letters_to[broker] += isinstance(received.message, Letter)


def settings_of(settings: MeshSettings) -> Mapping[str, Any]:
    return dict(msgspec.to_builtins(settings))


def soft_links_of(simulator: Simulator, broker: str) -> set[str]:
    links = simulator.brokers[broker].broker.routing.neighbours
    return {link.name for link, kind in links.items() if kind is LinkKind.SOFT}


def test_links_follow_the_traffic_within_three_periods() -> None:
    """B8 publishes for B15, later for B12: both are six links away, in different parts."""
    watch, oracle = Watch(), Oracle(settle_s=10.0)
    simulator = Simulator(
        balanced_tree(15, fanout=2),
        seed=1,
        overlay=MeshRouting,
        settings=settings_of(SETTINGS),
        modules=soft_links.modules(SETTINGS),
        observers=(watch, oracle),
    )
    publisher = simulator.client("p", at="B08")
    advertisement = publisher.advertise(Filter.parse("to is present"))
    for at in ("B12", "B15"):
        simulator.client(f"s{at}", at=at).subscribe(Filter.parse(f"to = '{at}'"))
    shift_s, end_s = 5 * PERIOD_S, 12 * PERIOD_S
    for number in range(int(end_s)):
        to = "B15" if number < shift_s else "B12"
        simulator.at(1.0 + number, publisher.publish, advertisement, {"to": to})
    simulator.run(until_s=3 * PERIOD_S)
    first = soft_links_of(simulator, "B08")
    assert first, "a soft link was opened"
    assert first <= {"B01", "B02", "B03", "B05", "B07", "B09", "B10", "B11"}, "within delta"
    watch.forwarders.clear()
    simulator.run(until_s=shift_s)
    assert not watch.forwarders["B04"], "the neighbour of the publisher is bypassed"
    simulator.run(until_s=shift_s + 3 * PERIOD_S)
    mesh = in_use(simulator.brokers["B08"].broker.routing)
    assert isinstance(mesh, MeshRouting)
    simulator.run(until_s=end_s + 5.0)
    oracle.finish(end_s + 5.0)
    assert oracle.is_satisfied, oracle.violations
    assert {"open", "close"} == {decision.action for _, decision in watch.decisions}
    for _, decision in watch.decisions:
        assert set(decision.reason) == {"gain", "publications", "distance"}, decision


def test_loads_reach_brokers_within_delta_and_no_others() -> None:
    watch = Watch()
    settings = MeshSettings(delta=2, period_s=PERIOD_S)
    simulator = Simulator(
        balanced_tree(15, fanout=2),
        seed=1,
        overlay=MeshRouting,
        settings=settings_of(settings),
        modules=soft_links.modules(settings),
        observers=(watch,),
    )
    simulator.run(until_s=2 * PERIOD_S)
    manager = simulator.brokers["B08"].broker.modules["soft links"]
    assert isinstance(manager, SoftLinkManager)
    assert set(manager._near) == {"B02", "B04", "B09"}
    far, near = manager._near["B02"], manager._near["B04"]
    assert 0.0 < near.round_trip_s < far.round_trip_s
    assert manager.on_letter(b"?", Neighbour("B04"), 0.0) == (), "what is malformed is ignored"
    account = manager.account(0.0)
    assert account["soft"] == []
    assert set(account) == {"soft", "candidates", "gains", "round_trips_s"}


def test_a_letter_has_what_has_changed_and_everything_now_and_then() -> None:
    settings = MeshSettings(delta=4, period_s=PERIOD_S)
    sizes: list[tuple[float, int]] = []

    class Letters(Observer):
        def on_handled(self, broker: str, received: Received, done_s: float) -> None:
            if broker == "B02" and isinstance(received.message, Letter):
                sizes.append((done_s, len(received.message.body)))

    simulator = Simulator(
        balanced_tree(15, fanout=2),
        seed=1,
        overlay=MeshRouting,
        settings=settings_of(settings),
        modules=soft_links.modules(settings),
        observers=(Letters(),),
    )
    exchange_s = PERIOD_S / EXCHANGES
    simulator.run(until_s=(COMPLETE_EVERY + 1.5) * exchange_s)

    def largest(exchange: int) -> int:
        return max(size for at_s, size in sizes if round(at_s / exchange_s) == exchange)

    assert largest(COMPLETE_EVERY) < 70, "only the sender itself: no load has changed"
    assert largest(COMPLETE_EVERY + 1) > 2 * largest(COMPLETE_EVERY), "everything"
