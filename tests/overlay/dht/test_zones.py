"""The content space and its zones: every filter meets what it matches, every message arrives."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from tests.sweeps import seeds

from godwit.content.filters import Filter
from godwit.errors import UsageError
from godwit.overlay.dht.content_space import ContentSpace, Dimension
from godwit.overlay.dht.zone_joining import join_all
from godwit.overlay.dht.zones import Zone, ZoneMap, zones_of
from godwit.testing.overlay_shapes import DIMENSIONS
from godwit.testing.random_content import CLASSES, NAMES, SIZES, RandomContent

SEEDS = seeds(50, whole=500)
SQUARE = ContentSpace((Dimension("topic", salt=1), Dimension("topic", salt=2)))
LINE = ContentSpace((Dimension("size", low=0, high=8),))


def brokers(count: int) -> list[str]:
    return [f"B{number:03d}" for number in range(count)]


def about(topic: int) -> Filter:
    return Filter.parse(f"topic = 't{topic}'")


def random_map(random: Random) -> ZoneMap:
    content = RandomContent(("class", "name", "size"), random)
    sample = [content.filter(every_attribute=False) for _ in range(random.choice((0, 30)))]
    return join_all(
        brokers(random.randint(1, 30)),
        ContentSpace(random.choice(DIMENSIONS)),
        subscriptions=sample,
        publications=[{"size": 3}] * random.choice((0, 50)),
    )


def test_an_owner_of_a_publication_has_every_subscription_that_matches_it() -> None:
    """D1, Z1, Z2."""
    for seed in range(SEEDS):
        random = Random(seed)
        zones, content = random_map(random), RandomContent(("class", "name", "size"), random)
        for _ in range(20):
            filter = content.filter(every_attribute=False)
            record = {
                "class": random.choice(CLASSES),
                "name": random.choice(NAMES),
                "size": random.choice((*SIZES, -1, 2.5, 10**12, True, "3")),
            }
            for absent in random.sample(list(record), random.randrange(3)):
                del record[absent]
            point = zones.space.point(record)
            assert sum(zone.has(point) for zone in zones.zones) == 1, f"Z1: seed {seed}"
            if filter.is_satisfiable and filter.matches(record):
                owner = zones.owner_of(record, "p")
                assert owner in zones.owners_of(filter), f"D1: seed {seed}: {filter} {record}"


def test_every_message_arrives_on_a_way_without_a_loop() -> None:
    for seed in range(SEEDS):
        zones = random_map(Random(seed))
        for source in zones.brokers:
            for target in zones.brokers:
                way = [source, *zones.way(source, target)]
                assert len(set(way)) == len(way), f"seed {seed}: {way}"
                assert all((b, n) in zones.hop_links[a] for n, (a, b) in _crossed(way))


def _crossed(way: list[str]) -> list[tuple[int, tuple[str, str]]]:
    return [(n, (a, b)) for n, (a, b) in enumerate(pairwise(way), 1)]


def test_zones_are_equal_without_a_sample() -> None:
    zones = join_all(brokers(16), SQUARE)
    assert {zone.volume for zone in zones.zones} == {1 / 16}


def test_a_split_divides_the_subscriptions() -> None:
    """Subscriptions to small sizes only: the zones are small there."""
    sample = [Filter.parse(f"size = {number / 100}") for number in range(100)]
    zones = join_all(brokers(4), LINE, subscriptions=sample)
    stored = [sum(owner in zones.owners_of(each) for each in sample) for owner in zones.brokers]
    assert sum(stored) == 100
    assert max(stored) <= 26


def test_a_popular_event_is_replicated() -> None:
    """A point cannot be divided: its owners take turns by publisher."""
    zones = join_all(brokers(4), SQUARE, publications=[{"topic": "t1"}] * 100)
    owners = next(zone.owners for zone in zones.zones if len(zone.owners) > 1)
    assert {zones.owner_of({"topic": "t1"}, f"p{n}") for n in range(100)} == set(owners)
    assert set(owners) <= set(zones.owners_of(about(1))), "each has all subscriptions"


def test_topics_are_spread_over_all_brokers() -> None:
    sample = [about(number) for number in range(64)]
    zones = join_all(brokers(64), SQUARE, subscriptions=sample)
    owners = {zones.owner_of({"topic": f"t{number}"}, "p") for number in range(64)}
    assert len(owners) > 48


def test_the_way_is_as_long_as_the_square_is_wide() -> None:
    zones = join_all(brokers(64), SQUARE)
    ways = [len(list(zones.way(a, b))) for a in zones.brokers for b in zones.brokers]
    assert max(ways) == 7
    direct = join_all(brokers(64), SQUARE, is_direct=True)
    assert {len(list(direct.way("B000", other))) for other in direct.brokers} == {0, 1}


def test_wrong_values_are_refused() -> None:
    with pytest.raises(UsageError, match="less than"):
        Dimension("x", low=1, high=1)
    with pytest.raises(UsageError, match="one dimension or more"):
        ContentSpace(())
    with pytest.raises(UsageError, match="one broker or more"):
        join_all([], SQUARE)
    with pytest.raises(UsageError, match="every broker owns one zone"):
        ZoneMap(LINE, [Zone(((0, 0.5),), ("A",)), Zone(((0.5, 1),), ("A",))], is_direct=False)
    with pytest.raises(UsageError, match="owns no zone"):
        join_all(["A"], LINE).zone_of("B")
    with pytest.raises(UsageError, match="needs the zones"):
        zones_of({})
