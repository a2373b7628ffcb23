"""Documents for tests of allocation: publishers, brokers, and subscriptions as strings of bits.

Windows have 64 bits and rates are whole numbers, so sums of loads are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from godwit.policies.allocation.algorithms import subscriber_units
from godwit.policies.allocation.gathered import (
    Gathered,
    GatheredBroker,
    GatheredPublisher,
    GatheredSubscription,
)
from godwit.policies.allocation.gathered_reading import AllocationProblem, read
from godwit.policies.allocation.units import AllocationUnit, UnitFactory

WINDOW = 64
FIRST = 100


def publisher(
    name: str = "p1", rate: float = 64, size: float = 10, **more: object
) -> GatheredPublisher:
    fields = {"id": name, "rate_per_s": rate, "bandwidth_bytes_s": rate * size,
              "last_id": FIRST + WINDOW - 1, "first_id": FIRST, **more}  # fmt: skip
    return GatheredPublisher(**fields)  # type: ignore[arg-type]


def broker(
    name: str, bandwidth: float = 1e9, base_s: float = 1e-6, each_s: float = 0.0
) -> GatheredBroker:
    return GatheredBroker(
        id=name,
        output_bandwidth_bytes_s=bandwidth,
        matching_delay_base_s=base_s,
        matching_delay_per_subscription_s=each_s,
    )


def brokers(count: int, bandwidth: float = 1e9, **more: float) -> tuple[GatheredBroker, ...]:
    return tuple(broker(f"B{i:02}", bandwidth, **more) for i in range(1, count + 1))


def subscription(name: str, bits: Mapping[str, str] | str, **more: str) -> GatheredSubscription:
    """`bits` for publisher p1, or by publisher; from the first id on, zeros after the last."""
    by_publisher = {"p1": bits} if isinstance(bits, str) else dict(bits)
    return GatheredSubscription(
        id=name,
        first_id=dict.fromkeys(by_publisher, FIRST),
        bits=by_publisher,
        broker=more.get("broker"),
        client=more.get("client"),
    )


def bits_of(positions: Sequence[int] | range | set[int]) -> str:
    chosen = set(positions)
    return "".join("1" if i in chosen else "0" for i in range(WINDOW))


def gathered(
    subscriptions: Sequence[GatheredSubscription],
    capacities: Sequence[GatheredBroker] | None = None,
    publishers: Sequence[GatheredPublisher] | None = None,
) -> Gathered:
    return Gathered(
        publishers=tuple(publishers if publishers is not None else [publisher()]),
        brokers=tuple(capacities if capacities is not None else brokers(3)),
        subscriptions=tuple(subscriptions),
    )


def random_bits(random: Random) -> str:
    """A range, a sparse set or everything: covering, intersecting and equal ones all occur."""
    kind = random.random()
    if kind < 0.15:
        return "1" * WINDOW
    if kind < 0.7:
        start = random.choice((0, 0, random.randrange(WINDOW)))
        return bits_of(range(start, random.randint(start, WINDOW)))
    return bits_of(set(random.sample(range(WINDOW), random.randint(1, 20))))


def random_gathered(
    random: Random, *, subscriptions: int, publishers: int = 2, capacities: Sequence[GatheredBroker]
) -> Gathered:
    names = [f"p{i}" for i in range(1, publishers + 1)]
    found = []
    for i in range(subscriptions):
        chosen = random.sample(names, random.choice((1, 1, 1, min(2, publishers))))
        found.append(subscription(f"s{i:03}", {name: random_bits(random) for name in chosen}))
    rates = [random.choice((16, 32, 64)) for _ in names]
    return gathered(
        found, capacities, [publisher(name, rate) for name, rate in zip(names, rates, strict=True)]
    )


def problem_with_units(
    document: Gathered,
) -> tuple[AllocationProblem, list[AllocationUnit], UnitFactory]:
    problem = read(document, compensate=False)
    factory = UnitFactory(problem.table)
    return problem, subscriber_units(problem, factory), factory


Ids = frozenset[tuple[int, int]]


def ids_of(unit: AllocationUnit) -> Ids:
    """The profile as a set of (publisher, position)."""
    return frozenset(
        (p, 64 * word + bit)
        for p, words in unit.profile.blocks.items()
        for word, value in enumerate(words.tolist())
        for bit in range(64)
        if value >> bit & 1
    )
