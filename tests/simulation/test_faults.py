"""Each declared fault does what it says: two brokers, a quote every second, one fault."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from godwit.content.filters import Filter
from godwit.content.messages import Publication
from godwit.overlay.topology import chain
from godwit.simulation.faults import BrokerPause, Crash, Delay, Fault, Partition, Restart
from godwit.simulation.observers import DropReason, Observer
from godwit.simulation.oracle import Oracle, ViolationKind
from godwit.simulation.resources import BrokerResources, LinkOptions
from godwit.simulation.simulator import Simulator
from godwit.simulation.statistics import Statistics

X = Filter.parse("x is present")
LINK = LinkOptions(latency_s_min=0.01, latency_s_mean=0.01)


class Arrivals(Observer):
    def __init__(self) -> None:
        self.times_s: list[float] = []

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        self.times_s.append(now_s)


class Run:
    def __init__(self, *faults: Fault, resources: BrokerResources | None = None) -> None:
        self.oracle, self.statistics, self.arrivals = Oracle(), Statistics(), Arrivals()
        self.simulator = Simulator(
            chain(2),
            seed=1,
            link=LINK,
            faults=faults,
            observers=[self.oracle, self.statistics, self.arrivals],
            resources=resources or BrokerResources(),
        )
        paul = self.simulator.client("paul", at="B1")
        self.alice = self.simulator.client("alice", at="B2")
        self.alice.subscribe(X)
        advertisement = paul.advertise(X)
        for second in range(1, 21):
            self.simulator.at(float(second), paul.publish, advertisement, {"x": second})

    def finish(self) -> Run:
        self.simulator.run()
        self.oracle.finish(self.simulator.now_s)
        return self

    @property
    def lost(self) -> int:
        assert {v.verdict for v in self.oracle.violations} <= {ViolationKind.LOST}
        return self.oracle.violation_count


def test_without_a_fault_everything_arrives_at_once() -> None:
    run = Run().finish()

    assert run.lost == 0
    assert run.statistics.deliveries == 20
    assert run.statistics.delay_s().highest < 0.05


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(BrokerPause(broker="B2", at_s=5.5, for_s=3.0), id="a broker stands still"),
        pytest.param(
            Partition(brokers=frozenset({"B2"}), at_s=5.5, for_s=3.0), id="a link is cut and heals"
        ),
        pytest.param(
            Delay(link=("B1", "B2"), at_s=5.5, for_s=3.0, extra_s=2.5), id="a link is slow"
        ),
    ],
)
def test_a_passing_fault_delays_and_loses_nothing(fault: Fault) -> None:
    run = Run(fault).finish()

    assert run.lost == 0
    assert run.statistics.deliveries == 20
    assert run.statistics.delay_s().p50 < 0.05
    assert 2.4 < run.statistics.delay_s().highest < 2.6


def test_a_crashed_broker_loses_what_comes_and_what_it_had() -> None:
    run = Run(Crash(broker="B2", at_s=5.5)).finish()

    assert run.statistics.deliveries == 5
    assert run.lost == 15
    assert run.statistics.dropped == {("B2", DropReason.DOWN): 15}


def test_a_restarted_broker_works_again_with_empty_tables() -> None:
    run = Run(Crash(broker="B2", at_s=5.5), Restart(broker="B2", at_s=10.5))
    run.simulator.at(15.5, run.alice.subscribe, X)  # A new subscription, as after a new start.
    run.finish()

    # B1 still knows the old subscription; B2 knows nobody until the client asks again.
    assert run.statistics.dropped == {("B2", DropReason.DOWN): 5}
    assert run.simulator.brokers["B2"].broker.routing.subscription_count == 1
    assert run.statistics.deliveries == 5 + 5


def test_a_crash_also_loses_what_the_broker_had_not_finished_sending() -> None:
    """At 20 bytes per second a copy takes over two seconds to leave; one is halfway out."""
    slow = BrokerResources(output_bandwidth_bytes_s=20.0)
    undisturbed = Run(resources=slow).finish()
    crash_s = 30.0
    run = Run(Crash(broker="B2", at_s=crash_s), resources=slow).finish()

    arrived = [at_s for at_s in undisturbed.arrivals.times_s if at_s <= crash_s + 0.01]
    assert 0 < len(arrived) < 20
    assert run.arrivals.times_s == arrived
    assert run.lost == 20 - len(arrived)


def test_a_crash_in_the_middle_is_not_repaired_by_waiting() -> None:
    run = Run(Crash(broker="B1", at_s=5.5)).finish()

    assert run.statistics.deliveries == 5
    assert run.lost == 15
