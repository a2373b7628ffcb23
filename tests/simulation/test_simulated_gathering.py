"""Gathering in simulated networks: what is gathered is what clients have received."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pytest
from tests.sweeps import seeds

from godwit.broker import stimuli
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Letter, Publication, SubscriptionId
from godwit.content.values import Value
from godwit.errors import UsageError
from godwit.overlay.topology import Topology, chain, random_tree, star
from godwit.policies.allocation.cbc import profiling_modules
from godwit.policies.allocation.cbc_pages import PAGE_BYTES, bit_text
from godwit.policies.allocation.cbc_settings import ProfilingSettings
from godwit.policies.allocation.gathered import Gathered
from godwit.profile.bit_vector import BitVector
from godwit.simulation.faults import Crash
from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.simulation.resources import DEFAULT_RESOURCES, BrokerResources
from godwit.simulation.simulated_client import SimulatedClient
from godwit.simulation.simulated_gathering import SimulatedCroc, gather, with_modelled_delays
from godwit.simulation.simulator import Simulator

#: Longer than anything takes to arrive in these runs.
QUIET_S = 5.0
KINDS = 4


class Received(Observer):
    """What each client received, in order: the model that profiles are compared with."""

    def __init__(self) -> None:
        self.publications: dict[str, list[Publication]] = {}
        self.letter_bytes_max = 0

    def on_handled(self, broker: str, received: stimuli.Received, done_s: float) -> None:
        if isinstance(received.message, Letter):
            self.letter_bytes_max = max(self.letter_bytes_max, len(received.message.body))

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        for client in clients:
            self.publications.setdefault(client, []).append(publication)


class Scene:
    """Random clients in a network whose brokers have CBC."""

    def __init__(
        self,
        topology: Topology,
        random: Random,
        *,
        length: int = 1_280,
        resources: BrokerResources = DEFAULT_RESOURCES,
    ) -> None:
        self.received, self.oracle = Received(), Oracle()
        self.random = random
        self.simulator = Simulator(
            topology,
            seed=random.getrandbits(32),
            modules=profiling_modules(ProfilingSettings(vector_length=length)),
            observers=(self.received, self.oracle),
            resources=resources,
            check=False,
        )
        self.length = length
        self.filters: dict[SubscriptionId, tuple[str, Filter, int]] = {}
        """Subscriptions: client, filter, and what the client had received before."""
        self.publishers: dict[SimulatedClient, AdvertisementId] = {}
        self.homes: dict[str, str] = {}

    def publisher(self, name: str, at: str) -> None:
        client = self.simulator.client(name, at=at)
        self.homes[name] = at
        advertised = Filter.parse("kind is a number and size is a number")
        self.publishers[client] = client.advertise(advertised)

    def subscriber(self, name: str, at: str, subscriptions: int) -> None:
        client = self.simulator.client(name, at=at)
        self.homes[name] = at
        for _ in range(subscriptions):
            self.simulator.at(self.simulator.now_s, self.subscribe, client)

    def subscribe(self, client: SimulatedClient) -> None:
        kind, size = self.random.randrange(KINDS), self.random.randrange(100)
        text = self.random.choice((f"kind = {kind}", f"size < {size}", f"kind >= {kind}"))
        before = len(self.received.publications.get(client.name, ()))
        filter = Filter.parse(text)
        self.filters[client.subscribe(filter)] = (client.name, filter, before)

    def publish(self, count: int, over_s: float) -> None:
        """Each publisher publishes so many within the next seconds."""
        for client in self.publishers:
            for _ in range(count):
                at_s = self.simulator.now_s + self.random.uniform(0, over_s)
                self.simulator.at(at_s, self._publish, client)

    def _publish(self, client: SimulatedClient) -> None:
        content: dict[str, Value] = {
            "kind": self.random.randrange(KINDS),
            "size": self.random.randrange(100),
        }
        client.publish(self.publishers[client], content)

    def wait(self, seconds: float) -> None:
        self.simulator.run(until_s=self.simulator.now_s + seconds)

    def expected(self) -> dict[str, dict[str, tuple[int, str]]]:
        """For each subscription and publisher, the first id and the bits."""
        found: dict[str, dict[str, tuple[int, str]]] = {}
        for id, (client, filter, before) in self.filters.items():
            vectors: dict[str, BitVector] = {}
            for publication in self.received.publications.get(client, [])[before:]:
                if filter.matches(publication.content):
                    sequence = publication.sequence
                    vector = vectors.setdefault(
                        publication.publisher, BitVector(sequence, self.length)
                    )
                    vector.record(sequence)
            found[id] = {name: (each.first, bit_text(each)) for name, each in vectors.items()}
        return found


def bits_of(gathered: Gathered) -> dict[str, dict[str, tuple[int, str]]]:
    return {
        each.id: {name: (each.first_id[name], bits) for name, bits in each.bits.items()}
        for each in gathered.subscriptions
    }


def counted(
    bits: Mapping[str, Mapping[str, tuple[int, str]]], found: Gathered, length: int
) -> dict[tuple[str, str], list[int]]:
    """What plans count: ids within the windows that end with the last publications."""
    last = {each.id: each.last_id for each in found.publishers}
    ids = {
        (id, publisher): [
            first + place
            for place, bit in enumerate(text)
            if bit == "1" and first + place > last[publisher] - length
        ]
        for id, of_publishers in bits.items()
        for publisher, (first, text) in of_publishers.items()
    }
    return {key: received for key, received in ids.items() if received}


def random_scene(seed: int) -> Scene:
    """Subscribers come and go in quiet times, publishers publish in between."""
    random = Random(seed)
    topology = random_tree(random.randint(1, 12), random)
    scene = Scene(topology, random, length=random.choice((8, 64, 1_280)))
    for number in range(random.randint(1, 3)):
        scene.publisher(f"p{number}", random.choice(topology.brokers))
    for number in range(random.randint(1, 8)):
        count = random.choice((1, 1, 2, 5, 12))
        scene.subscriber(f"s{number}", random.choice(topology.brokers), count)
    scene.wait(QUIET_S)
    scene.publish(random.randint(1, 40), over_s=3.0)
    scene.wait(3.0 + QUIET_S)
    for id in random.sample(list(scene.filters), k=len(scene.filters) // 4):
        client = scene.simulator.clients[scene.filters.pop(id)[0]]
        scene.simulator.at(scene.simulator.now_s, client.unsubscribe, id)
    late = scene.simulator.clients["s0"]
    scene.simulator.at(scene.simulator.now_s, scene.subscribe, late)
    scene.wait(QUIET_S)
    scene.publish(random.randint(1, 20), over_s=3.0)
    scene.wait(3.0 + QUIET_S)
    return scene


@pytest.mark.parametrize("seed", range(seeds(100, whole=1_000)))
def test_profiles_are_what_was_delivered(seed: int) -> None:
    scene = random_scene(seed)
    assert scene.oracle.is_satisfied
    at = scene.random.choice(scene.simulator.topology.brokers)
    found = gather(scene.simulator, at=at)
    assert {each.id for each in found.subscriptions} == set(scene.filters)
    assert counted(bits_of(found), found, scene.length) == counted(
        scene.expected(), found, scene.length
    ), f"seed {seed}"
    assert not found.missing
    assert [each.id for each in found.brokers] == sorted(scene.simulator.topology.brokers)
    for each in found.subscriptions:
        client = each.id.partition("/")[0]
        assert (each.client, each.broker) == (client, scene.homes[client])
    for broker in found.brokers:
        assert set(broker.neighbours) == set(scene.simulator.topology.neighbours(broker.id))
    published = {client.name: scene.homes[client.name] for client in scene.publishers}
    assert {each.id: each.broker for each in found.publishers} == published
    assert all(each.first_id == 0 for each in found.publishers)


def test_all_brokers_give_the_same_answer_and_two_at_the_same_time() -> None:
    scene = random_scene(3)
    names = scene.simulator.topology.brokers
    crocs = [
        SimulatedCroc(scene.simulator, at=name, id=f"from-{name}-{turn}")
        for name in names[:4]
        for turn in (1, 2)
    ]
    scene.wait(20.0)
    assert all(croc.is_complete for croc in crocs)
    first, *others = [croc.answers.gathered().subscriptions for croc in crocs]
    assert first
    assert all(other == first for other in others)
    for node in scene.simulator.brokers.values():
        assert node.broker.modules["cbc"].account(0.0)["gatherings"] == 0


def test_while_the_network_serves_traffic() -> None:
    """Nothing is lost, and each profile is one that was true in the meantime."""
    scene = Scene(star(4), Random(7))
    scene.publisher("p0", "B1")
    for number in range(20):
        scene.subscriber(f"s{number}", f"B{2 + number % 4}", 1 + number % 3)
    scene.wait(QUIET_S)
    scene.publish(1_600, over_s=16.0)
    scene.wait(8.0)
    found = bits_of(gather(scene.simulator, at="B3"))
    scene.wait(30.0)
    assert scene.oracle.is_satisfied
    for id, vectors in scene.expected().items():
        first, bits = vectors["p0"]
        then, early = found[id]["p0"]
        assert len(bits) == 1_280, "it has shifted"
        assert first - then >= 0
        assert bits.startswith(early[first - then :])


@pytest.mark.parametrize("victim", ["B2", "B3", "B4"])
def test_a_dead_broker_is_named_and_the_others_answer(victim: str) -> None:
    scene = Scene(chain(4), Random(1))
    scene.subscriber("alice", "B4", 1)
    scene.wait(QUIET_S)
    scene.simulator.inject(Crash(broker=victim, at_s=0.0))
    begin_s = scene.simulator.now_s
    found = gather(scene.simulator, at="B1", silence_s=2.0)
    behind = [name for name in ("B2", "B3", "B4") if name >= victim]
    assert list(found.missing) == behind
    assert [each.id for each in found.brokers] == [
        name for name in scene.simulator.topology.brokers if name < victim
    ]
    assert 2.0 < scene.simulator.now_s - begin_s < 4.0, "one silence, however far it is"


def test_a_broker_dies_in_the_middle_of_its_answer() -> None:
    """What it and those behind it have not said to the end does not count."""
    slow = BrokerResources(output_bandwidth_bytes_s=100_000.0)
    scene = Scene(chain(3), Random(1), resources=slow)
    for number in range(100):
        scene.subscriber(f"s{number}", "B3", 12)
    scene.subscriber("near", "B2", 1)
    scene.wait(QUIET_S)
    croc = SimulatedCroc(scene.simulator, at="B1", id="g", silence_s=2.0)
    while "B3" not in croc.answers.begun:
        scene.wait(0.01)
    assert "B3" not in croc.answers.answered
    scene.simulator.inject(Crash(broker="B3", at_s=0.0))
    scene.wait(20.0)
    found = croc.answers.gathered()
    assert found.missing == ("B3",)
    assert [each.client for each in found.subscriptions] == ["near"]


def test_a_broker_without_cbc_is_named() -> None:
    profiling = profiling_modules()
    simulator = Simulator(
        chain(3), seed=1, modules=lambda name: profiling(name) if name != "B2" else []
    )
    found = gather(simulator, at="B1", silence_s=1.0)
    assert found.missing == ("B2", "B3"), "and what is behind it, of which the scene knows"
    with pytest.raises(UsageError, match="B2 has no module cbc"):
        gather(simulator, at="B2")


def test_rates_bandwidth_and_capacities() -> None:
    resources = {
        "B1": BrokerResources(output_bandwidth_bytes_s=1e6),
        "B2": BrokerResources(output_bandwidth_bytes_s=5e5, cpu_speed=10.0),
    }
    simulator = Simulator(chain(2), seed=1, modules=profiling_modules(), resources=resources)
    paul = simulator.client("paul", at="B1")
    alice = simulator.client("alice", at="B2")
    advertised = paul.advertise(Filter.parse("kind is a number"))
    alice.subscribe(Filter.parse("kind >= 0"))
    for number in range(3_000):
        simulator.at(1.0 + number * 0.05, paul.publish, advertised, {"kind": number})
    simulator.run(until_s=121.0)
    found = gather(simulator, at="B2")
    (publisher,) = found.publishers
    assert publisher.rate_per_s == pytest.approx(20.0, rel=0.1)
    assert publisher.bandwidth_bytes_s == pytest.approx(20.0 * 48, rel=0.2)
    assert publisher.last_id == pytest.approx(2_400, abs=3)
    bandwidths = {each.id: each.output_bandwidth_bytes_s for each in found.brokers}
    assert bandwidths == {"B1": 1e6, "B2": 5e5}
    measured = {each.id: each.matching_delay_base_s for each in found.brokers}
    assert measured["B2"] == pytest.approx(100 * measured["B1"], rel=0.01)
    modelled = {each.id: each for each in with_modelled_delays(found, resources).brokers}
    assert modelled["B2"].matching_delay_base_s == pytest.approx(0.1 / 10.0)
    assert modelled["B2"].matching_delay_per_subscription_s == pytest.approx(0.001 / 10.0)
    n = simulator.brokers["B2"].broker.routing.subscription_count
    delay_s = modelled["B2"].matching_delay_base_s
    delay_s += modelled["B2"].matching_delay_per_subscription_s * n
    assert measured["B2"] == pytest.approx(delay_s, rel=0.01)


def test_large_answers_come_in_pages_and_leave_room_on_links() -> None:
    """1,000 subscriptions: many pages, none of them large."""
    scene = Scene(chain(3), Random(1))
    scene.publisher("p0", "B2")
    for number in range(100):
        scene.subscriber(f"s{number}", "B3", 10)
    scene.wait(QUIET_S)
    scene.publish(300, over_s=10.0)
    scene.wait(10.0 + QUIET_S)
    assert bits_of(gather(scene.simulator, at="B1")) == scene.expected()
    assert 0 < scene.received.letter_bytes_max < 2 * PAGE_BYTES
