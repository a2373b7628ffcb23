"""The load balancer in simulated brokers: loads meet, nothing is lost, and then it is quiet."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from random import Random

import pytest
from msgspec.structs import replace

from godwit.broker.effects import Decision
from godwit.broker.stimuli import Received
from godwit.content.messages import Publication
from godwit.overlay.epochs.epoch_routing import EpochRouting
from godwit.overlay.topology import Topology, peer
from godwit.policies import offload
from godwit.policies.offload.offload_module import Offload
from godwit.policies.offload.settings import BalancingSettings
from godwit.simulation.faults import Crash, Fault, Restart
from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.simulation.playing import play
from godwit.simulation.resources import BrokerResources
from godwit.simulation.simulator import Simulator
from godwit.workloads.balancing import BalancingSetup, balancing_timeline, balancing_workload
from godwit.workloads.stocks import StockMarket
from godwit.workloads.timelines import Join

#: A small LS2: 20 publications a second from 120 s on, half as many more from 500 s on.
SMALL = BalancingSetup(
    publishers=40,
    publications_per_min=15.0,
    rate_step_s=500.0,
    subscribers=160,
    zero_traffic_share=0.25,
    joining_s=100.0,
)
#: As fast as the windows of the meters allow.
QUICK = BalancingSettings(
    local_pie_period_s=10.0,
    global_pie_period_s=20.0,
    local_detection_min_s=10.0,
    local_detection_max_s=20.0,
    global_detection_min_s=25.0,
    global_detection_max_s=35.0,
    stabilize_s=20.0,
)
TRIGGER = QUICK.local_ratio_trigger


@dataclasses.dataclass
class Watched(Observer):
    decisions: list[tuple[float, str, Decision]] = dataclasses.field(default_factory=list)
    control: Counter[str] = dataclasses.field(default_factory=Counter)
    moves: int = 0
    on_each: Callable[[float, str, Decision], None] | None = None

    def on_decision(self, broker: str, policy: str, decision: Decision, now_s: float) -> None:
        self.decisions.append((now_s, broker, decision))
        if self.on_each is not None:
            self.on_each(now_s, broker, decision)

    def on_handled(self, broker: str, received: Received, done_s: float) -> None:
        message = received.message
        if isinstance(message, Publication) and message.is_control:
            self.control[str(message.content["class"])] += 1

    def on_moved(self, *what: object) -> None:
        self.moves += 1

    def count(self, action: str) -> int:
        return sum(1 for _, _, decision in self.decisions if decision.action == action)


class Play:
    """A workload whose subscribers all join at one edge broker, or at the `crowded` ones."""

    def __init__(
        self,
        topology: Topology,
        bandwidths_bytes_s: dict[str, float],
        settings: BalancingSettings = QUICK,
        *,
        setup: BalancingSetup = SMALL,
        until_s: float = 900.0,
        faults: tuple[Fault, ...] = (),
        crowded: tuple[str, ...] = (),
    ) -> None:
        random = Random(1)
        market = StockMarket(random, symbols=setup.publishers)
        places = cycle(crowded or topology.brokers[1:2])
        workload = balancing_workload(
            setup, market, random, publishers_at=topology.brokers[0], subscribers_at=next(places)
        )
        self.oracle, self.watched = Oracle(), Watched()
        self.simulator = Simulator(
            topology,
            seed=1,
            modules=offload.modules(settings, seed=1),
            resources={
                name: BrokerResources(output_bandwidth_bytes_s=bandwidth)
                for name, bandwidth in bandwidths_bytes_s.items()
            },
            observers=(self.oracle, self.watched),
            faults=faults,
            check=False,
        )
        self._until_s = until_s
        timeline = [
            dataclasses.replace(step, subscriber=dataclasses.replace(who, at=next(places)))
            if isinstance(step, Join) and (who := step.subscriber)
            else step
            for step in balancing_timeline(setup, workload, random)
        ]
        play(self.simulator, workload, timeline, until_s=until_s)

    def run(self, until_s: float) -> None:
        self.simulator.run(until_s=until_s)

    def finish(self) -> None:
        """To the end, and check every delivery."""
        self.simulator.run(until_s=self._until_s + 30.0)
        self.oracle.finish(self.simulator.now_s)
        assert not self.oracle.violations

    def module(self, broker: str) -> Offload:
        module = self.simulator.brokers[broker].broker.modules["offload"]
        assert isinstance(module, Offload)
        return module

    def outputs(self, *brokers: str) -> list[float]:
        """The output utilisations of the last half minute, as the balancer sees them."""
        return [self.module(name).account(0.0)["load"]["output"] for name in brokers]  # type: ignore[index]


#: B1 has a tenth of the bandwidth of B4.
UNEQUAL = {"B1": 5_000.0, "B2": 10_000.0, "B3": 20_000.0, "B4": 50_000.0}


def test_loads_meet_before_and_after_a_step_of_the_rate_and_then_nothing_happens() -> None:
    """LS1 in small: L1, L2, L17, L39."""
    scene = Play(peer(clusters=1, edges=4), UNEQUAL)
    scene.run(480.0)
    before = scene.outputs(*UNEQUAL)
    assert max(before) - min(before) <= TRIGGER, before
    scene.run(700.0)
    sessions, moves = scene.watched.count("session"), scene.watched.moves
    after = scene.outputs(*UNEQUAL)
    assert max(after) - min(after) <= TRIGGER, after
    assert sum(after) > 1.2 * sum(before), "the rate has risen by half"
    scene.watched.control.clear()
    scene.finish()
    assert scene.watched.count("session") - sessions <= 1
    assert scene.watched.moves - moves <= 10, "L17"
    assert moves <= 4 * SMALL.subscribers
    subscribers = {
        name: sum(1 for _ in scene.simulator.brokers[name].broker.sessions.subscriptions())
        for name in UNEQUAL
    }
    assert sum(subscribers.values()) == SMALL.subscribers
    assert not any(scene.module(name).is_watching for name in UNEQUAL)
    assert scene.watched.control["$LB"] <= 40
    for _, _, decision in scene.watched.decisions:
        if "difference_after" in decision.reason and decision.reason["moved"]:
            before_s, after_s = (decision.reason[f"difference_{w}"] for w in ("before", "after"))
            assert abs(float(after_s)) < abs(float(before_s)), "L39"
    assert scene.watched.count("achieved") > 0


def test_a_new_broker_gets_its_share() -> None:
    scene = Play(peer(clusters=1, edges=2), {"B1": 20_000.0, "B2": 20_000.0, "B3": 20_000.0})
    scene.run(300.0)
    scene.simulator.add_broker("B3", ["B0"])
    scene.run(490.0)
    outputs = scene.outputs("B1", "B2", "B3")
    assert max(outputs) - min(outputs) <= TRIGGER, outputs
    assert outputs[2] > 0
    scene.finish()


def test_a_dry_run_moves_no_client() -> None:
    fast = {"B1": 40_000.0, "B2": 40_000.0}
    scene = Play(peer(clusters=1, edges=2), fast, replace(QUICK, dry_run=True), until_s=200.0)
    scene.finish()
    assert scene.watched.count("proposed") > 0
    assert scene.watched.moves == 0
    assert scene.watched.count("asked") == 0


def test_disjoint_pairs_balance_at_the_same_time() -> None:
    """Not one session at a time in the whole network."""
    equal = dict.fromkeys(UNEQUAL, 8_000.0)
    settings = replace(QUICK, press_samples=150)
    scene = Play(peer(clusters=1, edges=4), equal, settings, crowded=("B1", "B2"), until_s=250.0)
    open_sessions: set[str] = set()
    most = 0

    def follow(_now_s: float, _broker: str, decision: Decision) -> None:
        nonlocal most
        if decision.action == "session":
            open_sessions.add(decision.subject)
            most = max(most, len(open_sessions))
        elif decision.action in ("ended", "gave up"):
            open_sessions.discard(decision.subject)

    scene.watched.on_each = follow
    scene.finish()
    assert most >= 2


def test_clusters_in_a_chain_share_the_load_by_global_sessions() -> None:
    """LS6 in small: L32, L34; the global sessions begin and end."""
    shape = peer(clusters=3, edges=2)
    bandwidths = {name: 8_000.0 for name in shape.brokers if not name.endswith("0")}
    scene = Play(shape, bandwidths, setup=dataclasses.replace(SMALL, rate_step_s=5_000.0))
    scene.finish()
    assert scene.watched.count("global session") >= 2
    assert scene.watched.count("global session") == scene.watched.count("global ended")
    for name in bandwidths:
        assert scene.module(name).account(0.0)["other_cluster"] is None
    outputs = scene.outputs(*bandwidths)
    means = [sum(outputs[at : at + 2]) / 2 for at in (0, 2, 4)]
    assert means[0] - means[1] <= QUICK.global_ratio_trigger + 0.02, means
    assert means[1] - means[2] <= QUICK.global_ratio_trigger + 0.02, means
    assert means[2] > 0


def test_adaptive_pie_subscribes_by_value_and_hears_less() -> None:
    """The head's tables have the bounds: they are subscriptions, not a filter at the sender."""
    heard = {}
    for pie in ("plain", "adaptive"):
        scene = Play(peer(clusters=1, edges=4), UNEQUAL, replace(QUICK, pie=pie), until_s=480.0)
        scene.run(240.0)
        epochs = scene.simulator.brokers["B0"].broker.routing
        assert isinstance(epochs, EpochRouting)
        filters = {
            str(entry.subscription.filter)
            for entry in epochs._now._interests  # type: ignore[attr-defined]
            if "$LOCAL_PIE" in str(entry.subscription.filter)
        }
        bounded = [text for text in filters if "<" in text]
        assert bool(bounded) is (pie == "adaptive"), filters
        scene.watched.control.clear()
        scene.finish()
        heard[pie] = scene.watched.control["$LOCAL_PIE"]
    assert heard["adaptive"] < 0.8 * heard["plain"], heard


@pytest.mark.parametrize("broker", ["B1", "B4"], ids=["the crowded one", "an acceptor"])
@pytest.mark.parametrize("at_s", [30.0, 60.0, 95.0])
def test_a_broker_that_crashes_does_not_leave_others_busy(broker: str, at_s: float) -> None:
    """A restarted broker of the simulator has lost its tables and its clients."""
    faults = (Crash(broker=broker, at_s=at_s), Restart(broker=broker, at_s=at_s + 20.0))
    scene = Play(peer(clusters=1, edges=4), UNEQUAL, until_s=300.0, faults=faults)
    scene.run(300.0)
    for name in UNEQUAL:
        scene.simulator.brokers[name].command("offload", "pause")
    scene.run(600.0)
    for name in UNEQUAL:
        account = scene.module(name).account(0.0)
        assert account["session"] is None
        assert account["status"] in ("OK", "N/A")
