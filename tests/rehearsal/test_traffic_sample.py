"""What follows from the copies that samplers saw."""

from __future__ import annotations

import msgspec
import pytest
from tests.rehearsal.scenes import TICKS, subscriber

from godwit.content.messages import AdvertisementId, Publication
from godwit.protocol.frames import encode
from godwit.rehearsal.network_snapshot import SampledAdvertisement, SnapshotClient
from godwit.rehearsal.taking_snapshots import front_filters
from godwit.rehearsal.traffic_sample import (
    COPIES_MAX,
    SampledCopy,
    TrafficSample,
    frame_bytes,
)

BEGIN_S = 1_000.0
PAUL = SnapshotClient(
    name="paul", broker="B1", advertisements=(SampledAdvertisement(id="paul/a1", filter=TICKS),)
)
CLIENTS = [
    PAUL,
    subscriber("bob", "B2", "class = 'TICK' and n < 5"),
    subscriber("carol", "B2", "class = 'TICK'", "n > 3"),
]


def tick(sequence: int, n: int, at_s: float) -> Publication:
    return Publication(
        publisher="paul",
        sequence=sequence,
        advertisement=AdvertisementId("paul/a1"),
        content={"class": "TICK", "n": n},
        accepted_s=BEGIN_S + at_s,
    )


def sample(*copies: tuple[str, Publication, int, float]) -> TrafficSample:
    found = TrafficSample(BEGIN_S, BEGIN_S + 4.0)
    for broker, publication, hops, delay_s in copies:
        found.add(SampledCopy(broker, publication, hops, publication.accepted_s + delay_s))
    return found


def test_publications_are_those_that_a_broker_got_from_its_client() -> None:
    one, two = tick(1, 1, 0.25), tick(2, 2, 0.5)
    found = sample(("B2", one, 1, 0.01), ("B1", two, 0, 0.0), ("B1", one, 0, 0.0))
    (paul, *_) = found.with_publications(CLIENTS)
    publications = paul.advertisements[0].publications
    assert [(each.at_s, each.content["n"]) for each in publications] == [(0.25, 1), (0.5, 2)]
    assert publications[0].frame_bytes == len(encode(one))


@pytest.mark.parametrize("at_s", [-0.1, 4.0])
def test_publications_before_and_after_the_sample_do_not_count(at_s: float) -> None:
    found = sample(("B1", tick(1, 1, at_s), 0, 0.0), ("B2", tick(1, 1, at_s), 1, 0.5))
    (paul, *_) = found.with_publications(CLIENTS)
    assert paul.advertisements[0].publications == ()
    assert found.deliveries(CLIENTS, 0)[0] == 0.0


def test_a_copy_counts_for_each_client_that_it_matches() -> None:
    found = sample(
        ("B1", tick(1, 1, 0.1), 0, 0.001),  # B1 has no subscriber.
        ("B2", tick(1, 1, 0.1), 1, 0.010),  # bob and carol
        ("B2", tick(2, 9, 0.2), 3, 0.040),  # carol, once
    )
    hops, delay_s = found.deliveries(CLIENTS, 0)
    assert hops == pytest.approx((1 + 1 + 3) / 3)
    assert delay_s.mean == pytest.approx((0.010 + 0.010 + 0.040) / 3)
    assert delay_s.p50 == pytest.approx(0.010)
    assert delay_s.p99 == pytest.approx(0.040)


def test_a_publisher_does_not_get_what_it_publishes_itself() -> None:
    both = msgspec.structs.replace(PAUL, subscriptions=("n > 0",))
    found = sample(("B1", tick(1, 1, 0.1), 0, 0.001), ("B2", tick(1, 1, 0.1), 1, 0.010))
    hops, _ = found.deliveries([both, *CLIENTS[1:]], 0)
    assert hops == 1.0


def test_halves_take_turns() -> None:
    found = sample(
        ("B2", tick(1, 1, 0.5), 1, 0.1), ("B2", tick(2, 1, 1.5), 2, 0.1),
        ("B2", tick(3, 1, 2.5), 3, 0.1), ("B2", tick(4, 1, 3.5), 4, 0.1),
    )  # fmt: skip
    assert found.deliveries(CLIENTS, 0)[0] == 2.0
    assert found.deliveries(CLIENTS, 1)[0] == 3.0


def test_control_publications_are_left_out_and_a_sample_is_bounded() -> None:
    control = msgspec.structs.replace(tick(1, 1, 0.1), is_control=True)
    found = sample(("B1", control, 0, 0.0))
    assert found.copies == []
    plain = SampledCopy("B1", tick(1, 1, 0.1), 0, BEGIN_S)
    found.copies.extend([plain] * COPIES_MAX)
    assert found.is_full
    found.add(plain)
    assert len(found.copies) == COPIES_MAX


def test_the_size_is_that_of_the_frame() -> None:
    one = msgspec.structs.replace(tick(1, 1, 0.1), payload=b"x" * 77)
    assert frame_bytes(one) == len(encode(one))


def test_filters_that_another_one_covers_are_left_out() -> None:
    found = front_filters(["n < 5", "class = 'A'", "n < 9", "n < 5", "n < 9 and class = 'A'"])
    assert sorted(map(str, found)) == ["class = 'A'", "n < 9"]
