"""GRAPE's choice, against a search that follows the definitions, on random trees."""

from __future__ import annotations

from random import Random

import pytest

from godwit.overlay.topology import Topology, chain, random_tree, star
from godwit.policies.placement.selection import Candidate, Entry, candidates, choose
from godwit.policies.placement.settings import Metric

# -- by definition (thesis 5.2.2): a walk for each candidate -------------------------------------


class Reference:
    def __init__(self, entries: list[Entry]) -> None:
        self._entries = {entry.broker: entry for entry in entries}

    def messages(self, candidate: str) -> int:
        return self._sum_rate(candidate, None)

    def _sum_rate(self, broker: str, previous: str | None) -> int:
        onward = self._onward(broker, previous)
        return self._beyond(broker, previous).bit_count() + sum(
            self._sum_rate(name, broker) for name in onward
        )

    def _beyond(self, broker: str, previous: str | None) -> int:
        bits = int.from_bytes(self._entries[broker].bits, "little")
        for name in self._onward(broker, previous):
            bits |= self._beyond(name, broker)
        return bits

    def delay_s(self, candidate: str, ping_s: float = 0.0) -> float:
        total_s, deliveries = self._walk(candidate, ping_s, None)
        return total_s / deliveries if deliveries else ping_s

    def _walk(self, broker: str, so_far_s: float, previous: str | None) -> tuple[float, int]:
        entry = self._entries[broker]
        through_s = entry.input_queue_s + entry.matching_s
        total_s = entry.deliveries * (so_far_s + through_s + entry.to_clients_s)
        deliveries = entry.deliveries
        for name in self._onward(broker, previous):
            link_s = {**entry.links_s, **self._back(broker)}.get(name, 0.0)
            reached_s = so_far_s + through_s + entry.to_neighbours_s[name] + link_s
            there_s, there = self._walk(name, reached_s, broker)
            total_s += there_s
            deliveries += there
        return total_s, deliveries

    def _back(self, broker: str) -> dict[str, float]:
        """Latency of links that the other end has measured."""
        return {
            name: self._entries[name].links_s[broker]
            for name in self._onward(broker, None)
            if broker in self._entries[name].links_s
        }

    def _onward(self, broker: str, previous: str | None) -> list[str]:
        neighbours = self._entries[broker].to_neighbours_s
        return [name for name in neighbours if name != previous and name in self._entries]


def random_entries(shape: Topology, random: Random, *, bits: int = 100) -> list[Entry]:
    """Most brokers deliver nothing; delays are all different."""
    entries = []
    for name in shape.brokers:
        share = random.choice((0.0, 0.0, 0.1, 0.5, 1.0))
        vector = sum(1 << bit for bit in range(bits) if random.random() < share)
        entries.append(
            Entry(
                broker=name,
                address="",
                bits=vector.to_bytes((bits + 7) // 8, "little"),
                deliveries=vector.bit_count() * random.randint(1, 20),
                input_queue_s=random.expovariate(1000),
                matching_s=random.expovariate(1000),
                to_clients_s=random.expovariate(1000),
                to_neighbours_s={n: random.expovariate(1000) for n in shape.neighbours(name)},
                links_s={n: random.expovariate(1000) for n in shape.neighbours(name) if n > name},
            )
        )
    return entries


@pytest.mark.parametrize("seed", range(200))
def test_candidates_are_what_the_definitions_say(seed: int) -> None:
    random = Random(seed)
    shape = random_tree(random.randint(1, 25), random)
    entries = random_entries(shape, random)
    pings_s = {name: random.expovariate(100) for name in shape.brokers}
    here = random.choice(shape.brokers)
    reference = Reference(entries)

    found = candidates(entries, here, pings_s)
    assert found[0].broker == here
    assert {each.broker for each in found} == set(shape.brokers)
    for each in found:
        assert each.messages == reference.messages(each.broker)
        ping_s = pings_s[each.broker] / 2
        assert each.delay_s == pytest.approx(reference.delay_s(each.broker, ping_s))
        assert each.hops == shape.distances(here)[each.broker]


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize("primary", list(Metric))
@pytest.mark.parametrize("weight_percent", [1, 25, 50, 75, 100])
def test_the_choice_is_the_best_by_exhaustive_search(
    seed: int, primary: Metric, weight_percent: int
) -> None:
    random = Random(seed)
    shape = random_tree(random.randint(1, 12), random)
    entries = random_entries(shape, random, bits=20)
    here = random.choice(shape.brokers)
    chosen = choose(candidates(entries, here), primary, weight_percent)

    reference = Reference(entries)
    load = {name: float(reference.messages(name)) for name in shape.brokers}
    delay = {name: reference.delay_s(name) for name in shape.brokers}
    first, second = (load, delay) if primary is Metric.LOAD else (delay, load)
    low, high = min(first.values()), max(first.values())
    norm = {n: 100 * (v - low) / (high - low) if high > low else 0 for n, v in first.items()}
    kept = [name for name in shape.brokers if norm[name] <= 100 - weight_percent + 1e-6]
    best = min(second[name] for name in kept)
    assert chosen.broker in kept
    assert second[chosen.broker] == pytest.approx(best)


def test_an_overlay_that_answered_in_part_is_walked_as_far_as_it_answered() -> None:
    shape = chain(4)
    entries = random_entries(shape, Random(3))[:2]

    assert [each.broker for each in candidates(entries, "B1")] == ["B1", "B2"]


def test_a_thousand_brokers_of_a_star_or_a_chain() -> None:
    """Wide and deep: no walk for each neighbour, no recursion."""
    for shape in (star(999), chain(1000)):
        entries = random_entries(shape, Random(1))
        assert len(candidates(entries, shape.brokers[500])) == 1000


# -- ties and weights ----------------------------------------------------------------------------


def candidate(broker: str, hops: int, messages: int, delay_s: float) -> Candidate:
    return Candidate(broker, "", hops, messages, delay_s)


@pytest.mark.parametrize(
    ("primary", "weight_percent", "best"),
    [
        pytest.param(Metric.LOAD, 100, "light", id="load 100%: the least load"),
        pytest.param(Metric.LOAD, 50, "between", id="load 50%: the fastest of the lighter half"),
        pytest.param(Metric.LOAD, 0, "fast", id="load 0%: the least delay"),
        pytest.param(Metric.DELAY, 100, "fast", id="delay 100%: the least delay"),
        pytest.param(Metric.DELAY, 50, "between", id="delay 50%: the lightest of the faster half"),
        pytest.param(Metric.DELAY, 0, "light", id="delay 0%: the least load"),
    ],
)
def test_weights(primary: Metric, weight_percent: float, best: str) -> None:
    field = [
        candidate("here", 0, 150, 0.030),
        candidate("light", 3, 100, 0.028),
        candidate("between", 2, 140, 0.015),
        candidate("fast", 1, 200, 0.010),
    ]
    assert choose(field, primary, weight_percent).broker == best


@pytest.mark.parametrize(
    ("field", "best"),
    [
        pytest.param([candidate("B9", 0, 5, 0.1), candidate("B1", 1, 5, 0.1)], "B9", id="it stays"),
        pytest.param(
            [candidate("B9", 0, 6, 0.1), candidate("B5", 2, 5, 0.1), candidate("B7", 1, 5, 0.1)],
            "B7",
            id="the shortest way",
        ),
        pytest.param(
            [candidate("B9", 0, 6, 0.1), candidate("B5", 1, 5, 0.1), candidate("B4", 1, 5, 0.1)],
            "B4",
            id="the first name",
        ),
        pytest.param(
            [candidate("B9", 0, 5, 0.1 + 0.2), candidate("B1", 1, 5, 0.3)],
            "B9",
            id="sums that differ by their last digit are equal",
        ),
    ],
)
def test_ties(field: list[Candidate], best: str) -> None:
    assert choose(field, Metric.LOAD, 100).broker == best


def test_a_session_that_nobody_wanted_anything_of() -> None:
    entries = [
        Entry("B1", "", b"", 0, 0.0, 0.0, 0.0, {"B2": 0.0}),
        Entry("B2", "", b"", 0, 0.0, 0.0, 0.0, {"B1": 0.0}),
    ]
    assert choose(candidates(entries, "B1"), Metric.DELAY, 100).broker == "B1"
