"""Plans from JSON to JSON, of all algorithms: what they promise, computed by plan_checker.py.

The documents have everything that the form allows: vectors that begin anywhere and are of any
length, publishers that have left or are not wanted, clients with several subscriptions, clients
that publish and subscribe, brokers of different capacities, and where everything is now.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

import msgspec
import pytest
from tests.policies.allocation.plan_checker import Document, check_plan, received_ids
from tests.sweeps import seeds

from godwit.policies.allocation.capacity import UnallocatableError
from godwit.policies.allocation.gathered import Gathered
from godwit.policies.allocation.planner import make_plan
from godwit.policies.allocation.settings import ALGORITHMS, AllocationSettings


def document_of(random: Random) -> Document:
    """In tight ones capacities bind: by bandwidth, by matching, or both."""
    is_tight = random.random() < 0.8
    publishers = [publisher_of(random, i, is_tight=is_tight) for i in range(random.randint(1, 4))]
    names = [f"B{i}" for i in range(random.choice((4, 8) if is_tight else (1, 2, 5)))]
    subscriptions = [
        subscription_of(random, i, len(publishers), names)
        for i in range(random.choice((15, 30) if is_tight else (0, 1, 3, 10)))
    ]
    if is_tight:  # Everything is wanted: then the capacity test knows all that will arrive.
        subscriptions += [
            {"id": f"all{i}", "first_id": {each["id"]: 0}, "bits": {each["id"]: "1" * 101}}
            for i, each in enumerate(publishers)
        ]
    document: Document = {"publishers": publishers, "subscriptions": subscriptions}
    if random.random() < 0.3:
        document["vector_length"] = random.choice((10, 64, 1_024))
    rate = sum(each["rate_per_s"] for each in publishers)
    slopes = [0, 1e-5]
    bandwidths = [1e6]
    if is_tight:
        load = delivered_bytes_s(document)
        bandwidths = [load * share for share in (0, 0.5, 0.7, 0.9)]
        slopes = [0, 1 / rate / (0.5 * len(subscriptions) + 2)]
    document["brokers"] = [
        {
            "id": name,
            "output_bandwidth_bytes_s": random.choice(bandwidths),
            "matching_delay_base_s": random.choice((1e-6, 1e-4)),
            "matching_delay_per_subscription_s": random.choice(slopes),
            "neighbours": names[max(0, i - 1) : i] + names[i + 1 : i + 2],
        }
        for i, name in enumerate(names)
    ]
    return document


def publisher_of(random: Random, number: int, *, is_tight: bool) -> Document:
    found: Document = {
        "id": f"p{number}",
        "rate_per_s": random.choice((0.5, 7, 16, 64)),
        "bandwidth_bytes_s": random.choice((10, 640, 3000)),
        "last_id": random.choice((40, 63, 100)),
    }
    if random.random() < 0.3:
        found["first_id"] = random.choice((0, 5, 30))
    if random.random() < 0.3:
        found["broker"] = "B0"
    if random.random() < 0.3 and not is_tight:
        found["client"] = f"c{random.randrange(6)}"
    return found


def subscription_of(
    random: Random, number: int, publishers: int, brokers: Sequence[str]
) -> Document:
    share = random.random()
    chosen = random.sample(range(publishers + 1), random.choice((1, 1, 1, 2)))
    bits = {
        f"p{p}": "".join(
            "01"[random.random() < share] for _ in range(random.choice((0, 3, 40, 64, 90)))
        )
        for p in chosen  # The last one has left.
    }
    firsts = {p: random.choice((0, 0, 20, 90)) for p in bits}
    found: Document = {"id": f"s{number}", "bits": bits, "first_id": firsts}
    client = random.randrange(6)
    if random.random() < 0.3:
        found["client"] = f"c{client}"
    if random.random() < 0.4:
        found["broker"] = brokers[client % len(brokers)]
    return found


def delivered_bytes_s(document: Document) -> float:
    windows, received = received_ids(document)
    sizes = {each["id"]: float(each["bandwidth_bytes_s"]) for each in document["publishers"]}
    return sum(
        (
            sizes[publisher] * len(ids) / len(windows[publisher])
            for found in received.values()
            for publisher, ids in found.items()
            if ids
        ),
        0.0,
    )


def planned(document: Document, settings: AllocationSettings) -> Document:
    gathered = msgspec.json.decode(json.dumps(document), type=Gathered)
    made: Document = json.loads(msgspec.json.encode(make_plan(gathered, settings)))
    return made


#: Here a bound that added compensated loads to those of links was above a plan.
COMPENSATED = 66


@pytest.mark.parametrize("seed", sorted({*range(seeds(12, whole=400)), COMPENSATED}))
def test_every_algorithm(seed: int) -> None:
    random = Random(f"checked plans {seed}")
    document = document_of(random)
    for algorithm in ALGORITHMS:
        settings = AllocationSettings(
            algorithm=algorithm,
            seed=seed,
            stay=random.choice((0, 0, 0.5, 1)),
            improve_steps=random.choice((0, 0, 20)),
            search=random.choice(("exact", "stop-rule")),
        )
        try:
            plan = planned(document, settings)
        except UnallocatableError:
            assert not settings.is_baseline
            continue
        check_plan(document, plan, within_capacity=not settings.is_baseline)
