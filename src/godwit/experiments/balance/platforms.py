"""The platforms of the load-balancing experiments: what the brokers of tables 7.2 and 7.4 can do.

    simulation   table 7.2 and 7.4, CPU in "MHz", memory in MB, bandwidth in Mbps
    cluster      the heterogeneous cluster: delay factors, and throttled bandwidth
    homogeneous  the same cluster without delay factors, all edge brokers alike
    planetlab    random nodes around the world
    quarter      the simulation with a quarter of the subscribers, and brokers that are as busy
    small        the simulation with fewer clients and slower brokers, for the scale small

Chosen where the thesis is silent:

matching     It says that the delay is linear in the subscriptions, and not how steep.  The steps
             here let the broker that all join in the simulation use a third of its CPU.  On the
             homogeneous cluster and on PlanetLab the brokers are fast enough for output to be the
             only bottleneck, as in the thesis.
factors      B0 has a delay factor of 0, so a factor is what is added: with 1x matching takes twice
             as long as on the homogeneous cluster.
messages     A quote has 235 bytes here.  In the thesis it is a serialised Java object, whose size
             is not given: 3,000 bytes on the real platforms lets the throttled lines of table 7.2
             carry about 40% of what they can.  We divide bandwidth and memory by that ratio, which
             is the same for all messages.
heads        Table 7.4 has no heads; they are like B0 of table 7.2.
bandwidth    Of the homogeneous cluster: 8 Mbps.  Of PlanetLab, whose nodes are not known: in the
             proportions of the heterogeneous cluster, a tenth of table 7.2 for the star and a 25th
             of table 7.4 for the chain, whose first cluster then cannot carry all load, as in
             figure 7.10e.
latency      Of the simulation: none, as in the thesis.
disturbance  The thesis has what its machines had.  Here CPU and bandwidth of the cluster vary with
             a standard deviation of 3% every 10 s, those of PlanetLab with 5%.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import cycle, islice

from godwit.simulation.disturbance import Disturbance
from godwit.simulation.resources import DEFAULT_LINK, BrokerResources, LinkOptions
from godwit.workloads.balancing import (
    CLUSTER,
    GLOBAL_SIMULATION,
    PLANETLAB,
    SIMULATION,
    BalancingSetup,
)

BYTES_PER_MBIT = 1e6 / 8
BYTES_PER_MB = 1e6
#: Bytes of a quote on our links, and as a serialised Java object.
QUOTE_BYTES, JAVA_QUOTE_BYTES = 235.0, 3000.0
#: CPU of a broker of the cluster without delay factor.
UNDELAYED_CPU = 10_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """What brokers can do, and for how long clients do what."""

    setup: BalancingSetup
    global_setup: BalancingSetup
    head: BrokerResources
    edges: tuple[BrokerResources, ...]
    """Of the star: B1, B2, B3, B4."""

    clusters: tuple[tuple[BrokerResources, ...], ...]
    """Of the chain: B11 and B12, B21 and B22 ..."""

    equal: BrokerResources | None = None
    """An edge broker of LS5 and LS7, where all are equal; None if they differ there, too."""

    link: LinkOptions = DEFAULT_LINK
    disturbance: Disturbance | None = None
    until_s: float
    global_until_s: float
    deliveries_every: int = 1
    """One in so many deliveries is recorded."""

    checked_every: int = 1
    """The oracle checks one in so many publications."""

    def several(self, count: int) -> tuple[BrokerResources, ...]:
        """So many edge brokers of LS5 and LS7: equal ones, or those of the star again and again."""
        return tuple(islice(cycle(self.edges if self.equal is None else (self.equal,)), count))


def _pairs(edges: Iterable[BrokerResources]) -> tuple[tuple[BrokerResources, ...], ...]:
    flat = tuple(edges)
    return tuple(flat[start : start + 2] for start in range(0, len(flat), 2))


# -- the simulation: rows are CPU, memory in MB, bandwidth in Mbps -------------------------------


def _simulated(
    cpu: float, memory_mb: float, mbps: float, *, work: float = 0.002
) -> BrokerResources:
    return BrokerResources(
        cpu_speed=cpu,
        matching_work_base=0.1,
        matching_work_per_subscription=work,
        memory_bytes=memory_mb * BYTES_PER_MB,
        output_bandwidth_bytes_s=mbps * BYTES_PER_MBIT,
    )


TABLE_7_2 = ((100.0, 16.0, 0.5), (200.0, 16.0, 1.0), (400.0, 32.0, 2.0), (1000.0, 32.0, 5.0))
TABLE_7_4 = (
    (300.0, 128.0, 1.0), (200.0, 128.0, 0.5), (350.0, 64.0, 1.0), (400.0, 64.0, 1.5),
    (266.0, 64.0, 1.0), (700.0, 64.0, 2.0), (166.0, 64.0, 0.5), (233.0, 128.0, 0.5),
)  # fmt: skip

_SIMULATION = Platform(
    setup=SIMULATION,
    global_setup=GLOBAL_SIMULATION,
    head=_simulated(2000.0, 32.0, 10.0),
    edges=tuple(_simulated(*row) for row in TABLE_7_2),
    clusters=_pairs(_simulated(*row) for row in TABLE_7_4),
    link=LinkOptions(latency_s_min=0.0, latency_s_mean=0.0),
    equal=_simulated(400.0, 32.0, 2.0),
    until_s=4000.0,
    global_until_s=9500.0,
    deliveries_every=10,
    checked_every=5,
)

# -- a quarter of the simulation: for long runs, whose time goes with the deliveries ---------------

QUARTER = 4


def _quarter(cpu: float, memory_mb: float, mbps: float) -> BrokerResources:
    """As busy with a quarter of the subscribers: a subscription weighs four times as much."""
    return _simulated(cpu, memory_mb / QUARTER, mbps / QUARTER, work=0.002 * QUARTER)


_QUARTER = replace(
    _SIMULATION,
    setup=replace(SIMULATION, subscribers=SIMULATION.subscribers // QUARTER),
    global_setup=replace(GLOBAL_SIMULATION, subscribers=GLOBAL_SIMULATION.subscribers // QUARTER),
    # What it sends to edge brokers does not go with their subscribers.
    head=_simulated(2000.0, 32.0, 10.0, work=0.002 * QUARTER),
    edges=tuple(_quarter(*row) for row in TABLE_7_2),
    clusters=_pairs(_quarter(*row) for row in TABLE_7_4),
    equal=_quarter(400.0, 32.0, 2.0),
    deliveries_every=4,
    checked_every=2,
)

# -- the cluster: rows are delay factor, memory in MB, bandwidth in Mbps -------------------------


def _delayed(factor: float, memory_mb: float, mbps: float) -> BrokerResources:
    """A broker of the real platforms; the factor is what is added to its matching delay."""
    smaller = QUOTE_BYTES / JAVA_QUOTE_BYTES
    return BrokerResources(
        cpu_speed=UNDELAYED_CPU / (1 + factor),
        matching_work_base=0.1,
        matching_work_per_subscription=0.04,
        memory_bytes=memory_mb * BYTES_PER_MB * smaller,
        output_bandwidth_bytes_s=mbps * BYTES_PER_MBIT * smaller,
    )


CLUSTER_7_2 = ((1.0, 256.0, 12.0), (1.5, 256.0, 9.0), (2.5, 256.0, 6.0), (10.0, 256.0, 0.85))
CLUSTER_7_4 = (
    (1.0, 2000.0, 10.0), (0.5, 512.0, 12.0), (1.0, 512.0, 10.0), (1.5, 512.0, 8.0),
    (2.5, 512.0, 6.0), (1.5, 512.0, 9.0), (1.0, 512.0, 8.0), (3.0, 512.0, 5.0),
)  # fmt: skip
#: Bandwidth of an edge broker of the homogeneous cluster, in Mbps.
ALIKE_MBPS = 8.0

_CLUSTER = Platform(
    setup=CLUSTER,
    global_setup=CLUSTER,
    head=_delayed(0.0, 2000.0, 100.0),
    edges=tuple(_delayed(*row) for row in CLUSTER_7_2),
    clusters=_pairs(_delayed(*row) for row in CLUSTER_7_4),
    disturbance=Disturbance(cpu_sd=0.03, output_sd=0.03),
    until_s=2700.0,
    global_until_s=5000.0,
    deliveries_every=3,
    checked_every=3,
)
_ALIKE = _delayed(0.0, 256.0, ALIKE_MBPS)
_HOMOGENEOUS = replace(_CLUSTER, edges=(_ALIKE,) * 4, clusters=_pairs((_ALIKE,) * 8), equal=_ALIKE)

# -- PlanetLab: bandwidth of the edge brokers in Mbps --------------------------------------------

PLANETLAB_STAR = tuple(mbps / 10 for _, _, mbps in CLUSTER_7_2)
PLANETLAB_CHAIN = tuple(mbps / 25 for _, _, mbps in CLUSTER_7_4)
#: A fifth of the CPU of the cluster: its nodes are shared.
_PLANETLAB_FACTOR, _PLANETLAB_MB = 4.0, 128.0

_PLANETLAB = Platform(
    setup=PLANETLAB,
    global_setup=PLANETLAB,
    head=_delayed(0.0, 2000.0, 100.0),
    edges=tuple(_delayed(_PLANETLAB_FACTOR, _PLANETLAB_MB, mbps) for mbps in PLANETLAB_STAR),
    clusters=_pairs(_delayed(_PLANETLAB_FACTOR, _PLANETLAB_MB, mbps) for mbps in PLANETLAB_CHAIN),
    link=LinkOptions(latency_s_min=0.02, latency_s_mean=0.05),
    disturbance=Disturbance(cpu_sd=0.05, output_sd=0.05),
    until_s=3000.0,
    global_until_s=5000.0,
)

# -- small: as the simulation, with a tenth of the clients ---------------------------------------

_SMALL_SETUP = BalancingSetup(
    publishers=10,
    publications_per_min=60.0,
    rate_step_s=750.0,
    subscribers=150,
    zero_traffic_share=0.25,
    joining_s=300.0,
)


#: Not as different as in table 7.2: all join the weakest broker, and sooner than there.
SMALL_STAR = ((300.0, 16.0, 1.5), (400.0, 16.0, 2.0), (500.0, 32.0, 2.5), (700.0, 32.0, 3.5))


def _slow(cpu: float, memory_mb: float, mbps: float) -> BrokerResources:
    return _simulated(cpu, memory_mb, 0.06 * mbps, work=0.05)


_SMALL = Platform(
    setup=_SMALL_SETUP,
    global_setup=replace(_SMALL_SETUP, rate_step_s=1200.0),
    head=_slow(2000.0, 32.0, 10.0),
    edges=tuple(_slow(*row) for row in SMALL_STAR),
    clusters=_pairs(_slow(*row) for row in TABLE_7_4),
    link=LinkOptions(latency_s_min=0.0, latency_s_mean=0.0),
    until_s=1200.0,
    global_until_s=1700.0,
)
_SMALL_ALIKE = _slow(400.0, 32.0, 2.0)

PLATFORMS: Mapping[str, Platform] = {
    "simulation": _SIMULATION,
    "quarter": _QUARTER,
    "cluster": _CLUSTER,
    "homogeneous": _HOMOGENEOUS,
    "planetlab": _PLANETLAB,
    "small": _SMALL,
    "small-alike": replace(
        _SMALL,
        edges=(_SMALL_ALIKE,) * 4,
        clusters=_pairs((_SMALL_ALIKE,) * 8),
        equal=_SMALL_ALIKE,
    ),
}
