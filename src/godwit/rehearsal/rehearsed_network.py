"""One run of a network in the simulator: the brokers of production, sampled traffic.

The sample is played again and again, each publication at its time within it; `traffic` plays it so
much faster.  A client is at its broker from the start, subscriptions are in effect before the first
publication.  Brokers take the measured time for a message; links and connections to clients have
one latency.

Departures from a live network: a subscriber is never slow; acknowledgements take no bandwidth; the
brokers of one machine do not compete for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from godwit.broker.effects import Deliver, Effect, Send
from godwit.broker.stimuli import Received
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Publication, size_bytes
from godwit.content.values import Value
from godwit.overlay import OVERLAYS
from godwit.overlay.topology import Topology
from godwit.rehearsal.network_snapshot import SampledAdvertisement, SnapshotClient
from godwit.simulation.observers import Observer
from godwit.simulation.resources import BrokerResources, LinkOptions
from godwit.simulation.simulated_client import SimulatedClient
from godwit.simulation.simulator import Modules, Simulator, no_modules

#: Subscriptions are made at this virtual time, and are in effect long before PLAYING_S.
JOINING_S, PLAYING_S = 1.0, 4.0
#: Measured from so long after the first publication on.
WARM_S = 1.0
#: A bandwidth that delays nothing.
UNLIMITED_BYTES_S = 1e15


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedNetwork:
    """What is simulated."""

    topology: Topology
    clients: tuple[SnapshotClient, ...]
    sample_s: float
    overlay: str = "tree"
    overlay_settings: Mapping[str, object] = field(default_factory=dict)
    modules: Modules = no_modules
    matching_delay_s: Mapping[str, float]
    limited_bytes_s: Mapping[str, float] = field(default_factory=dict)
    """Brokers whose output makes copies wait, in bytes of frames."""

    link: LinkOptions
    rates: Mapping[str, float] = field(default_factory=dict)
    """By client: how much faster than in the sample it publishes."""

    settle_s: float = 0.0
    """For policies and soft links, before it is measured."""

    measured_s: float = 20.0
    seed: int = 1


@dataclass(slots=True)
class RunCounts(Observer):
    """What is counted of a run between two times."""

    from_s: float
    until_s: float
    sizes: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """The frame of each publication, by publisher and sequence number."""
    handled: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    copies: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    bytes_out: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    hops: int = 0
    delays_s: list[float] = field(default_factory=list)
    moved: set[str] = field(default_factory=set)
    homes: dict[str, str] = field(default_factory=dict)
    """Where each client is in the end."""
    refused: list[str] = field(default_factory=list)
    """What brokers said to clients that they did not admit."""

    def on_matched(
        self,
        broker: str,
        received: Received,
        effects: Sequence[Effect],
        time_s: float,
        queue_delay_s: float,
        matching_delay_s: float,
        size_bytes: int,
    ) -> None:
        message = received.message
        if not isinstance(message, Publication) or message.is_control:
            return
        if not self.from_s <= time_s < self.until_s:
            return
        self.handled[broker] += 1
        copies = 0
        for effect in effects:
            if isinstance(effect, Deliver):
                copies += len(effect.to)
            elif isinstance(effect, Send) and isinstance(effect.message, Publication):
                copies += not effect.message.is_control
        sizes = self.sizes[message.publisher]
        self.copies[broker] += copies
        self.bytes_out[broker] += copies * sizes[message.sequence]

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        if not publication.is_control and self.from_s <= now_s < self.until_s:
            self.hops += hops * len(clients)
            self.delays_s.extend([now_s - publication.accepted_s] * len(clients))

    def on_moved(
        self, client: str, source: str, target: str, took_s: float, paused_s: float, now_s: float
    ) -> None:
        self.moved.add(client)


def simulated(
    network: RehearsedNetwork, *, observers: Iterable[Observer] = (), check: bool = False
) -> RunCounts:
    """Run it; `check` asserts the invariants of brokers after every step."""
    begin_s = PLAYING_S + WARM_S + network.settle_s
    counts = RunCounts(begin_s, begin_s + network.measured_s)
    frames = _frame_ratio(network.clients)
    simulator = Simulator(
        network.topology,
        seed=network.seed,
        overlay=OVERLAYS[network.overlay],
        settings=network.overlay_settings,
        modules=network.modules,
        resources={
            name: _resources(network, name, frames) for name in network.topology.brokers
        },
        link=network.link,
        observers=[counts, *observers],
        check=check,
    )  # fmt: skip
    joined = [_Playing(simulator, each, network, counts) for each in network.clients]
    for each in joined:
        each.advertise()
    simulator.at(JOINING_S, _subscribe, joined)
    simulator.run(until_s=counts.until_s)
    for name, client in simulator.clients.items():
        counts.homes[name] = client.home.broker
        counts.refused += [f"{name}: {refusal.reason}" for refusal in client.refusals]
    return counts


def _resources(network: RehearsedNetwork, broker: str, frames: float) -> BrokerResources:
    limit_bytes_s = network.limited_bytes_s.get(broker)
    return BrokerResources(
        cpu_speed=1.0,
        matching_work_base=network.matching_delay_s[broker],
        matching_work_per_subscription=0.0,
        output_bandwidth_bytes_s=(
            UNLIMITED_BYTES_S if limit_bytes_s is None else limit_bytes_s * frames
        ),
    )


def _frame_ratio(clients: Sequence[SnapshotClient]) -> float:
    """The simulator's size of a publication over that of its frame."""
    found = [
        size_bytes(_sized(client.name, advertised, each.content)) / each.frame_bytes
        for client in clients
        for advertised in client.advertisements
        for each in advertised.publications[:10]
    ]
    return fmean(found) if found else 1.0


def _sized(client: str, advertised: SampledAdvertisement, content: dict[str, Value]) -> Publication:
    return Publication(
        publisher=client, sequence=0, advertisement=AdvertisementId(advertised.id), content=content
    )


class _Playing:
    """A client, and the sample of its publications."""

    def __init__(
        self,
        simulator: Simulator,
        entry: SnapshotClient,
        network: RehearsedNetwork,
        counts: RunCounts,
    ) -> None:
        self._entry = entry
        self._simulator = simulator
        self._counts = counts
        self._sample_s = network.sample_s / network.rates.get(entry.name, 1.0)
        self._rate = network.rates.get(entry.name, 1.0)
        self._until_s = counts.until_s
        self._client: SimulatedClient = simulator.client(entry.name, at=entry.broker)

    def advertise(self) -> None:
        for advertised in self._entry.advertisements:
            id = self._client.advertise(Filter.parse(advertised.filter))
            if advertised.publications:
                self._next(id, self._times(advertised))

    def subscribe(self) -> None:
        for text in self._entry.subscriptions:
            self._client.subscribe(Filter.parse(text))

    def _times(
        self, advertised: SampledAdvertisement
    ) -> Iterator[tuple[float, dict[str, Value], int]]:
        """Times, contents and frame sizes, one sample after the other."""
        begin_s = PLAYING_S
        while begin_s < self._until_s:
            for each in advertised.publications:
                yield begin_s + each.at_s / self._rate, each.content, each.frame_bytes
            begin_s += self._sample_s

    def _next(
        self, id: AdvertisementId, times: Iterator[tuple[float, dict[str, Value], int]]
    ) -> None:
        following = next(times, None)
        if following is not None:
            at_s, content, frame_bytes = following
            self._simulator.at(at_s, self._publish, id, content, frame_bytes, times)

    def _publish(
        self,
        id: AdvertisementId,
        content: dict[str, Value],
        frame_bytes: int,
        times: Iterator[tuple[float, dict[str, Value], int]],
    ) -> None:
        # Before it is sent: a publication that waits for a move keeps its place in the sequence.
        self._counts.sizes[self._entry.name].append(frame_bytes)
        self._client.publish(id, dict(content))
        self._next(id, times)


def _subscribe(joined: Sequence[_Playing]) -> None:
    for each in joined:
        each.subscribe()
