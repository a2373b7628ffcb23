"""The networks of the allocation experiments: RS1, RS2 and RS3 of the thesis, and small ones.

The thesis does not give the capacity of its brokers.  USABLE_PER_S, the quotes a second that a full
broker may send, follows from its results:

R1, R6  The best results of CRAM-IOU are 91% fewer brokers, 7 of 80, and a highest message rate that
        is 85% lower, 7 of 46.7: six stocks at a broker.  The lowest mean rate is 92% lower: three
        stocks.  With RS4 a subscription sinks 70% of 70 quotes a minute, so six stocks with 100
        subscriptions sink 490 quotes a second, and so do three with 200.
R11     Or is 80% with BIN PACKING and CRAM.  They fill brokers to the last byte, so what they may
        use is less than what there is: 85%, because the last broker is filled in part.
RS3     MANUAL is saturated there.  A broker in its tree sends all publications over two links, and
        some to its own subscribers: 201 a second with 400 brokers, 252 with 1,000.  That is nine
        tenths of its bandwidth if 185 and 240 are usable.

Matching takes MATCHING_BASE_S and MATCHING_PER_SUBSCRIPTION_S: the output is the bottleneck, as in
the thesis, and a broker that gets all quotes is busy for a third of its time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from godwit.lab.declaration import Case
from godwit.overlay.topology import Topology, balanced_tree
from godwit.simulation.resources import BrokerResources
from godwit.workloads.allocation import (
    CAPACITIES,
    PUBLICATIONS_PER_MIN,
    allocation_workload,
    heterogeneous_counts,
    homogeneous_counts,
)
from godwit.workloads.stocks import THESIS_LIKE, StockMarket
from godwit.workloads.workload import Workload

USABLE_PER_S = 500.0
#: RS3, by the number of brokers.
USABLE_LARGE_PER_S = {400: 185.0, 1000: 240.0}
#: Mean size of a quote with its header.
QUOTE_BYTES = 235.0
#: The share of a broker's bandwidth that a plan may use; the rest is for bursts.
USABLE_SHARE = 0.85
MATCHING_BASE_S = 4e-3
MATCHING_PER_SUBSCRIPTION_S = 10e-6
#: Subscribers join within this time, before anything is published.
JOINING_S = 60.0
SETTLING_S = 15.0
FANOUT = 2
#: Which quotes are played after deployment.
PROFILED, LATER = "profiled", "later"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationSetup:
    brokers: int
    publishers: int
    subscriptions: int
    """In all; the thesis's Ns times the publishers, or with RS2 Ns times their half."""

    is_heterogeneous: bool = False
    vector_length: int = 1_280
    usable_per_s: float = USABLE_PER_S
    measured_s: float = 100.0
    quotes: int = 1_280
    """Of each publisher; bit vectors are filled with the first of them."""

    quotes_every: int = 10
    """After deployment, one in so many of the quotes is played, and the first again after the last:
    a short run covers all that was profiled."""

    plays_later: bool = False
    """Whether the quotes that are played are those after the profiled ones, not the same."""

    is_simulated_before: bool = True
    """Whether MANUAL is run to gather profiles; else they are computed (expected_state.py)."""

    deliveries_every: int = 1
    checked_every: int = 1

    @property
    def grape_samples(self) -> int:
        """The publications that GRAPE traces before it moves a publisher.

        The thesis's 1,000 would take 15 minutes of virtual time.
        """
        return min(100, self.quotes // 4)

    @property
    def moving_s(self) -> float:
        """Two sessions of GRAPE."""
        return 2.5 * self.grape_samples * 60.0 / PUBLICATIONS_PER_MIN

    @property
    def publishing_s(self) -> float:
        """Each publisher fills a bit vector."""
        return self.vector_length * 60.0 / PUBLICATIONS_PER_MIN

    @property
    def begins_s(self) -> float:
        return JOINING_S + SETTLING_S

    @property
    def counts(self) -> tuple[int, ...]:
        """Subscriptions of each publisher."""
        if not self.is_heterogeneous:
            return homogeneous_counts(self.publishers, self.subscriptions // self.publishers)
        most = round(2 * self.subscriptions / (self.publishers + 1))
        return heterogeneous_counts(self.publishers, most)

    @property
    def topology(self) -> Topology:
        """MANUAL: a balanced tree.  With RS2 the strongest brokers are on top."""
        return balanced_tree(self.brokers, fanout=FANOUT)

    @property
    def capacities(self) -> Mapping[str, float]:
        """The part of a full broker's bandwidth that each broker has, the strongest first."""
        names = self.topology.brokers
        if not self.is_heterogeneous:
            return dict.fromkeys(names, 1.0)
        total = sum(count for count, _ in CAPACITIES)
        shares = [
            share for count, share in CAPACITIES for _ in range(count * self.brokers // total)
        ]
        return dict(zip(names, shares, strict=True))

    @property
    def resources(self) -> Mapping[str, BrokerResources]:
        full_bytes_s = self.usable_per_s * QUOTE_BYTES / USABLE_SHARE
        return {
            broker: BrokerResources(
                cpu_speed=1.0,
                matching_work_base=MATCHING_BASE_S,
                matching_work_per_subscription=MATCHING_PER_SUBSCRIPTION_S,
                output_bandwidth_bytes_s=full_bytes_s * share,
            )
            for broker, share in self.capacities.items()
        }

    def workload(self, seed: int) -> Workload:
        """RS4, with clients at random brokers: RS2 gives strong brokers more of them.

        The same seed has the same clients and publications.
        """
        random = Random(seed)
        market = StockMarket(random, symbols=self.publishers, profile=THESIS_LIKE)
        weakest = min(self.capacities.values())
        places = [
            broker
            for broker, share in self.capacities.items()
            for _ in range(round(share / weakest))
        ]
        return allocation_workload(self.counts, market, places, random)


def setup_of(case: Case) -> AllocationSetup:
    """Of a case with `brokers`, `capacity` (equal or unequal) and `subscriptions`.

    It may have the `quotes` that are played (profiled or later), and, with up to 80 brokers,
    `usable_per_s` of a full one.
    """
    brokers, subscriptions = int(case["brokers"]), int(case["subscriptions"])
    unequal = case["capacity"] == "unequal"
    length = int(case.get("vector_length", 0))
    later = case.get("quotes") == LATER
    match brokers:
        case 16:
            return AllocationSetup(
                brokers=brokers,
                publishers=8,
                subscriptions=subscriptions,
                is_heterogeneous=unequal,
                vector_length=length or 140,
                quotes=140,
                quotes_every=1,
                plays_later=later,
                usable_per_s=float(case.get("usable_per_s", 130.0)),
                measured_s=110.0,
            )
        case 80:
            return AllocationSetup(
                brokers=brokers,
                publishers=40,
                subscriptions=subscriptions,
                is_heterogeneous=unequal,
                vector_length=length or 1_280,
                usable_per_s=float(case.get("usable_per_s", USABLE_PER_S)),
                plays_later=later,
                is_simulated_before=False,
                deliveries_every=4,
                checked_every=4,
            )
        case _:
            return AllocationSetup(
                brokers=brokers,
                publishers={400: 72, 1000: 100}[brokers],
                subscriptions=subscriptions,
                vector_length=length or 1_280,
                usable_per_s=USABLE_LARGE_PER_S[brokers],
                measured_s=45.0,
                quotes_every=20,
                is_simulated_before=False,
                deliveries_every=10,
                checked_every=10,
            )
