"""From what a broker did to rows: a stimulus and its effects in, the whole row out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.trace.test_writer import rows

from godwit.broker.core import Broker
from godwit.broker.effects import Deliver, Effect, Notify, Send, SetTimer, Submit
from godwit.broker.meters import Meters
from godwit.broker.routing import Place
from godwit.broker.stimuli import Hop, LocalClient, Module, Neighbour, Received
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    Letter,
    Message,
    Publication,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Sweep,
    Unsubscription,
)
from godwit.errors import UsageError
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.trace import recorder as in_recorder
from godwit.trace import rows as in_rows
from godwit.trace.recorder import TOGETHER, Recorder
from godwit.trace.writer import TraceWriter

B2, B3 = Neighbour("B2"), Neighbour("B3")


def quote(sequence: int = 5, **content: Any) -> Publication:
    return Publication(
        publisher="p",
        sequence=sequence,
        advertisement=AdvertisementId("p/a1"),
        content=content or {"class": "STOCK"},
        accepted_s=1.0,
        size_bytes=80,
    )


def handled(
    folder: Path, message: Message, last_hop: Hop, *effects: Effect, hops: int = 0
) -> dict[str, Any]:
    with TraceWriter(folder) as writer:
        Recorder(writer).handled(
            "B1", Received(message, last_hop, hops), effects, 2.0, 0.25, 0.5, 99
        )
    (row,) = rows(folder / "handled")
    return row


def test_a_publication_that_is_passed_on_and_delivered(tmp_path: Path) -> None:
    publication = quote()
    effects = (
        Send(B3, publication, 2),
        Submit("m", publication),
        Deliver((LocalClient("s1"), LocalClient("s2")), publication, 1),
        SetTimer("m", "tick", 9.0),
    )
    assert handled(tmp_path, publication, B2, *effects, hops=1) == {
        "time_s": 2.0,
        "broker": "B1",
        "kind": "Publication",
        "class": "STOCK",
        "publisher": "p",
        "sequence": 5,
        "owner": None,
        "came_from": "B2",
        "from_broker": True,
        "went_to": "B3",
        "copies": 1,
        "local_matches": 2,
        "messages_out": 3,
        "hops": 1,
        "queue_delay_s": 0.25,
        "matching_delay_s": 0.5,
        "size_bytes": 99,
        "is_control": False,
    }


def test_a_letter_that_a_publication_causes_is_no_copy_of_it(tmp_path: Path) -> None:
    letter = Send(B2, Letter(module="pop", body=b""))
    row = handled(tmp_path, quote(), B2, Send(B3, quote(), 2), letter)
    assert (row["copies"], row["messages_out"]) == (1, 2)


def test_a_subscription_has_no_publisher(tmp_path: Path) -> None:
    id = SubscriptionId("s1/s1")
    subscription = Subscription(id=id, filter=Filter.parse("price < 3"))
    notice = Notify(LocalClient("s1"), SubscriptionInEffect(id=id))
    row = handled(tmp_path, subscription, LocalClient("s1"), Send(B2, subscription, 1), notice)
    assert (row["kind"], row["came_from"], row["from_broker"]) == ("Subscription", "s1", False)
    assert (row["class"], row["publisher"], row["sequence"]) == (None, None, None)
    assert row["owner"] == "s1"
    assert (row["copies"], row["local_matches"], row["messages_out"]) == (1, 0, 2)


@pytest.mark.parametrize(
    ("hops", "went_to"),
    [
        ([], None),
        ([B2], "B2"),
        ([B3, B2], "B3 B2"),
        ([B2, B3, B2, B2], "B2 B3"),
        ([Neighbour("B22"), B2], "B22 B2"),
    ],
)
def test_where_it_went_names_each_neighbour_once(
    hops: list[Neighbour], went_to: str | None, tmp_path: Path
) -> None:
    subscription = Subscription(id=SubscriptionId("s1/s1"), filter=Filter.parse("price < 3"))
    sent = [Send(hop, subscription, 1) for hop in hops]
    row = handled(tmp_path, subscription, LocalClient("s1"), *sent)
    assert (row["went_to"], row["copies"]) == (went_to, len(hops))


@pytest.mark.parametrize(
    ("message", "owner"),
    [
        (Unsubscription(id=SubscriptionId("$B1.offload/s3")), "$B1.offload"),
        (SubscriptionInEffect(id=SubscriptionId("a/b/s1")), "a/b"),
        (Advertisement(id=AdvertisementId("p/a1"), filter=Filter.parse("x > 1")), "p"),
        (Letter(module="pop", body=b""), None),
        (Sweep(client="s1", to="B2", move=1), "s1"),
    ],
)
def test_the_owner_is_in_the_id(message: Message, owner: str | None, tmp_path: Path) -> None:
    assert handled(tmp_path, message, B2)["owner"] == owner


def test_what_a_module_says_is_control_from_its_first_broker_on(tmp_path: Path) -> None:
    """The broker stamps it only after it came in."""
    row = handled(tmp_path, quote(5, **{"class": "$load"}), Module("m"))
    assert (row["class"], row["is_control"], row["from_broker"]) == ("$load", True, False)


@pytest.mark.parametrize("content", [{"price": 3}, {"class": 7}, {"class": True}])
def test_a_class_is_a_text_or_nothing(content: dict[str, Any], tmp_path: Path) -> None:
    assert handled(tmp_path, quote(5, **content), B2)["class"] is None


def test_deliveries_to_several_clients_are_rows_of_their_own(tmp_path: Path) -> None:
    with TraceWriter(tmp_path) as writer:
        recorder = Recorder(writer)
        recorder.delivered(["s1", "s2"], quote(5), 3, 1.5)
        recorder.delivered(["s1"], quote(6, price=1), 0, 4.0)
        assert writer.rows == 3
    shared = {"publisher": "p", "advertisement": "p/a1", "size_bytes": 80}
    first = {"time_s": 1.5, "sequence": 5, "class": "STOCK", "hops": 3, "delay_s": 0.5}
    second = {"time_s": 4.0, "sequence": 6, "class": None, "hops": 0, "delay_s": 3.0}
    assert rows(tmp_path / "delivered") == [
        {"client": "s1", **shared, **first},
        {"client": "s2", **shared, **first},
        {"client": "s1", **shared, **second},
    ]


def test_a_sample_is_of_whole_publications_and_of_nothing_else(tmp_path: Path) -> None:
    with TraceWriter(tmp_path) as writer:
        recorder = Recorder(writer, sample_every=3)
        for sequence in range(7):
            for hop in (LocalClient("p"), B2):
                received = Received(quote(sequence), hop)
                recorder.handled("B1", received, [], 0.0, 0.0, 0.0, 1)
            recorder.delivered(["s1"], quote(sequence), 0, 2.0)
        subscription = Subscription(id=SubscriptionId("s/s1"), filter=Filter.parse("x > 1"))
        recorder.handled("B1", Received(subscription, B2), [], 0.0, 0.0, 0.0, 1)
    assert [row["sequence"] for row in rows(tmp_path / "handled")] == [0, 0, 3, 3, 6, 6, None]
    assert [row["sequence"] for row in rows(tmp_path / "delivered")] == [0, 3, 6]


def test_deliveries_can_be_sampled_alone(tmp_path: Path) -> None:
    with TraceWriter(tmp_path) as writer:
        recorder = Recorder(writer, sample_every=2, deliveries_every=3)
        for sequence in range(13):
            recorder.handled("B1", Received(quote(sequence), B2), [], 0.0, 0.0, 0.0, 1)
            recorder.delivered(["s1"], quote(sequence), 0, 2.0)
    assert [row["sequence"] for row in rows(tmp_path / "handled")] == [0, 2, 4, 6, 8, 10, 12]
    assert [row["sequence"] for row in rows(tmp_path / "delivered")] == [0, 6, 12]


def test_gauges_are_what_the_meters_show_and_what_the_driver_says(tmp_path: Path) -> None:
    meters = Meters(output_bandwidth_bytes_s=1_000.0)
    meters.on_handled(1, 200, serving_s=2.0, now_s=1.0)
    meters.on_sent(3, 500, busy_s=0.5, now_s=1.0)
    broker = Broker("B1", routing=TreeRouting(Place.of("B1", ["B2"])), meters=meters)
    advertisement = Advertisement(id=AdvertisementId("p/a1"), filter=Filter.parse("x > 1"))
    broker.handle(Received(advertisement, LocalClient("p")), now_s=1.0)
    with TraceWriter(tmp_path) as writer:
        Recorder(writer).gauge(
            broker, time_s=10.0, messages_queued=4, bytes_queued=44, memory_bytes=4_444, clients=7
        )
    assert rows(tmp_path / "gauges") == [
        {
            "time_s": 10.0,
            "broker": "B1",
            "input_utilisation": 0.2,
            "output_utilisation": 0.05,
            "matching_delay_s": 2.0,
            "publications_per_s": 0.1,
            "messages_in_per_s": 0.1,
            "messages_out_per_s": 0.3,
            "bytes_in_per_s": 20.0,
            "bytes_out_per_s": 50.0,
            "messages_queued": 4,
            "bytes_queued": 44,
            "memory_bytes": 4_444,
            "subscriptions": 0,
            "advertisements": 1,
            "clients": 7,
        }
    ]


def test_names_are_numbered_anew_in_every_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was said of one group must not leak into the next."""
    monkeypatch.setattr(in_rows, "ROWS_PER_GROUP", 3)
    monkeypatch.setattr(in_rows, "ROWS_PER_PACK", 2)
    monkeypatch.setattr(in_recorder, "TOGETHER", 2)
    with TraceWriter(tmp_path) as writer:
        recorder = Recorder(writer)
        for number in range(20):
            received = Received(quote(number), Neighbour(f"B{number % 7}"))
            effects = [Send(Neighbour(f"B{number % 5}"), quote(number), 1)]
            recorder.handled(f"B{number % 3}", received, effects, 0.0, 0.0, 0.0, 1)
            assert writer.handled._collected < 3 + 2
            recorder.delivered([f"s{number}", f"s{number % 4}"], quote(number), 0, 2.0)
    found = rows(tmp_path / "handled")
    assert [(row["broker"], row["came_from"], row["went_to"]) for row in found] == [
        (f"B{number % 3}", f"B{number % 7}", f"B{number % 5}") for number in range(20)
    ]
    clients = [(row["sequence"], row["client"]) for row in rows(tmp_path / "delivered")]
    assert clients == [(n, client) for n in range(20) for client in (f"s{n}", f"s{n % 4}")]


def test_deliveries_wait_for_no_more_than_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_rows, "ROWS_PER_GROUP", 8)
    monkeypatch.setattr(in_recorder, "ROWS_PER_GROUP", 8)
    monkeypatch.setattr(in_recorder, "TOGETHER", 1)
    with TraceWriter(tmp_path) as writer:
        recorder = Recorder(writer)
        for number in range(50):
            recorder.delivered(["a", "b", "c"], quote(number), 0, 2.0)
            assert writer.delivered._collected < 8 + 3
        assert writer.rows == 150
    found = [(row["sequence"], row["client"]) for row in rows(tmp_path / "delivered")]
    assert found == [(number, client) for number in range(50) for client in "abc"]


def test_what_is_kept_to_be_looked_at_together_is_counted_and_rotated(tmp_path: Path) -> None:
    with TraceWriter(tmp_path) as writer:
        recorder = Recorder(writer)
        for number in range(TOGETHER + 3):
            recorder.handled("B1", Received(quote(number), B2), [], 0.0, 0.0, 0.0, 1)
            recorder.delivered(["s1", "s2"], quote(number), 0, 2.0)
        assert writer.rows == 3 * (TOGETHER + 3)
        recorder.handled("B1", Received(quote(99), B2), [], 0.0, 0.0, 0.0, 1)
        writer.rotate()
        assert writer.rows == 3 * (TOGETHER + 3) + 1
    (first, *_) = sorted((tmp_path / "handled").iterdir())
    assert len(pq.read_table(first)) == TOGETHER + 3 + 1


def test_one_of_none_is_no_sample(tmp_path: Path) -> None:
    with (
        TraceWriter(tmp_path) as writer,
        pytest.raises(UsageError, match="sample_every is 0; it must be at least 1"),
    ):
        Recorder(writer, sample_every=0)
