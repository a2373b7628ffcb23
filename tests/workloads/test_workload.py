"""The stream of publications, and the measures, on cases that can be counted by hand."""

from __future__ import annotations

from random import Random

import pytest

from godwit.content.filters import Filter
from godwit.content.values import Record
from godwit.errors import UsageError
from godwit.workloads.clients import Publisher, Subscriber
from godwit.workloads.timelines import RateStep
from godwit.workloads.workload import Workload
from godwit.workloads.workload_figures import (
    covering_share,
    matching_brokers,
    share_sunk,
    spread,
    zero_traffic_share,
)


def publisher(name: str, per_min: float, phase: float = 0.0) -> Publisher:
    advertisement = Filter.parse("from is present")
    return Publisher(
        name=name, at="B1", advertisement=advertisement, subject=name,
        publications_per_min=per_min, phase=phase,
    )  # fmt: skip


def two_publishers() -> Workload:
    publishers = (publisher("p", 30.0), publisher("q", 15.0, phase=0.25))
    return Workload(
        publishers=publishers, subscribers=(), content=lambda publisher: {"from": publisher.name}
    )


def sub(at: str, text: str) -> Subscriber:
    return Subscriber(name=f"{at}: {text}", at=at, filter=Filter.parse(text))


def test_publications_come_in_order_and_before_the_end() -> None:
    found = [(p.at_s, p.publisher) for p in two_publishers().publications(until_s=6.0)]

    assert found == [(0.0, "p"), (1.0, "q"), (2.0, "p"), (4.0, "p"), (5.0, "q")]


def test_a_step_holds_from_the_next_publication_on() -> None:
    steps = [RateStep(2.0, "p", 60.0), RateStep(100.0, "p", 1.0)]
    found = two_publishers().publications(until_s=16.0, from_s=10.0, steps=[RateStep(3, "q", 60)])
    assert [p.at_s for p in found if p.publisher == "q"] == [11.0, 12.0, 13.0, 14.0, 15.0]

    found = two_publishers().publications(until_s=6.0, steps=steps)
    assert [p.at_s for p in found if p.publisher == "p"] == [0.0, 2.0, 3.0, 4.0, 5.0]


def test_a_sample_has_of_each_publisher_what_its_rate_gives_it() -> None:
    records = list(two_publishers().sample(30))

    assert len(records) == 30
    assert sum(record["from"] == "p" for record in records) == 20


def test_share_sunk_and_zero_traffic() -> None:
    records: list[Record] = [{"x": n} for n in range(10)]

    assert share_sunk(Filter.parse("x > 7"), records) == 0.2
    subscribers = [sub("B1", "x > 7"), sub("B1", "x > 9"), sub("B2", "y = 1"), sub("B2", "x = 0")]
    assert zero_traffic_share(subscribers, records) == 0.5


def test_a_broker_with_two_matching_subscribers_counts_once() -> None:
    subscribers = [
        sub("B1", "t = 'a'"), sub("B1", "t = 'a' and x > 0"), sub("B2", "x > 0"),
        sub("B3", "t = 'a'"), sub("B4", "t = 'b'"), sub("B5", "x = 1"),
    ]  # fmt: skip
    records: list[Record] = [{"t": "a", "x": 1}, {"t": "a", "x": 0}, {"x": 2}, {"z": 1}]
    found = matching_brokers(subscribers, records)  # B1 B2 B3 B5, B1 B3, B2, nobody.

    assert (found.mean, found.least, found.most, found.count) == (1.75, 0, 4, 4)


@pytest.mark.parametrize("seed", range(5))
def test_matching_brokers_agrees_with_asking_every_filter(seed: int) -> None:
    random = Random(seed)
    subscribers = [
        sub(f"B{random.randrange(6)}", random.choice(("t = 'a'", "t = true", "t = 1", "x > 2")))
        for _ in range(8)
    ]
    records: list[Record] = [
        {"t": random.choice(("a", True, 1, 1.0, "b")), "x": random.randrange(5)} for _ in range(20)
    ]
    counts = [len({s.at for s in subscribers if s.filter.matches(r)}) for r in records]

    assert matching_brokers(subscribers, records) == spread(counts)


@pytest.mark.parametrize(
    ("filters", "share"),
    [
        pytest.param(["x > 1"], 0.0, id="alone"),
        pytest.param(["x > 1", "x > 1"], 0.5, id="of two equal ones, one is covered"),
        pytest.param(["x > 1", "x > 2", "x > 3", "y > 0"], 0.5, id="a chain and a stranger"),
        pytest.param(["x > 1 and x < 3", "x > 2 and x < 4"], 0.0, id="overlap is no cover"),
        pytest.param(["t = 'a'", "t = 'a' and x > 1", "t = 'b'"], 1 / 3, id="by topic"),
        pytest.param(["t is present", "t = 'a'", "t = 'a' and u = 1"], 2 / 3, id="nothing fixed"),
    ],
)
def test_covering_share(filters: list[str], share: float) -> None:
    assert covering_share([Filter.parse(text) for text in filters]) == pytest.approx(share)


def test_nothing_cannot_be_measured() -> None:
    for measure in (
        lambda: spread([]),
        lambda: share_sunk(Filter.parse("x > 1"), []),
        lambda: covering_share([]),
        lambda: zero_traffic_share([], []),
    ):
        with pytest.raises(UsageError):
            measure()


def test_a_spread_prints_as_one_line() -> None:
    assert str(spread([1, 2, 3])) == "2 ± 0.82 (1 to 3)"
