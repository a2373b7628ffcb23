"""PRESS: bits from what was delivered; rates by counting them."""

from __future__ import annotations

import pytest
from tests.policies.offload.scenes import publication, sample, subscriptions

from godwit.broker.stimuli import LocalClient, Module, Neighbour
from godwit.content.filters import Filter
from godwit.content.messages import Publication
from godwit.errors import UsageError
from godwit.policies.offload.press import Press, Sampled
from godwit.policies.offload.remaining_traffic import RemainingTraffic

STREAM = [
    publication({"class": "STOCK", "volume": 0}, 0),
    publication({"class": "STOCK", "volume": 10}, 1),
    publication({"class": "STOCK", "volume": 20}, 2),
    publication({"class": "SPORTS", "type": "racing"}, 3),
    publication({"class": "STOCK", "volume": 100}, 4),
    publication({"class": "STOCK", "volume": 500}, 5),
]
CANDIDATES = {
    "stock": "class = 'STOCK'",
    "above 15": "class = 'STOCK' and volume > 15",
    "above 150": "class = 'STOCK' and volume > 150",
    "sports": "class = 'SPORTS'",
}
ACCEPTOR = [
    Filter.parse("class = 'STOCK' and volume > 50"),
    Filter.parse("class = 'STOCK' and volume < 5"),
    Filter.parse("class = 'MOVIES'"),
]


def bits(sampled: Sampled) -> dict[str, str]:
    """The vectors by the first client of each group, the first sample on the right."""
    return {
        (*profile.group.clients, *profile.group.staying)[0]: f"{profile.received.bits:06b}"
        for profile in sampled.groups
    }


def table_4_1() -> Sampled:
    return sample(subscriptions(CANDIDATES), ACCEPTOR, STREAM, seconds=2.0)  # ir = 3


def test_table_4_1_of_the_thesis() -> None:
    found = table_4_1()

    assert bits(found) == {
        "stock": "110111",
        "above 15": "110100",
        "above 150": "100000",
        "sports": "001000",
    }
    assert f"{found.lcss.bits:06b}" == "110001"
    assert (found.samples, found.input_per_s) == (6, 3.0)


def test_equations_4_6_to_4_8_of_the_thesis() -> None:
    found = table_4_1()
    traffic = RemainingTraffic(found)
    rate = found.input_per_s / found.samples

    assert found.groups[0].received.count * rate == 2.5
    assert traffic.added_bits(0) * rate == 1.0  # E1: AND NOT
    traffic.move(0, 1)
    assert f"{traffic.lcss:06b}" == "110111"


def test_bits_come_from_deliveries_and_not_from_filters() -> None:
    """The broker delivers less than the filters match: the bits say what it delivered."""
    press = Press(subscriptions(CANDIDATES), ACCEPTOR, samples_max=6, now_s=0.0)
    for number, each in enumerate(STREAM):
        reached = [LocalClient("sports")] if number < 2 else []
        press.on_publication(each, reached, 1.0)

    assert bits(press.result(1.0)) == {
        "stock": "000000",
        "above 15": "000000",
        "above 150": "000000",
        "sports": "000011",
    }


def test_a_shifted_stream_shifts_the_estimates_of_the_same_filters() -> None:
    held = subscriptions({"low": "class = 'STOCK' and volume < 50", "high": "volume >= 50"})
    before = [publication({"class": "STOCK", "volume": v}, v) for v in (1, 2, 3, 60)]
    after = [publication({"class": "STOCK", "volume": v}, v) for v in (1, 70, 80, 90)]

    rates = []
    for stream in (before, after):
        found = sample(held, (), stream, seconds=4.0)
        rates.append([profile.received.count for profile in found.groups])

    assert rates == [[3, 1], [1, 3]]


def test_bytes_are_those_of_the_samples_received() -> None:
    held = subscriptions({"small": "x < 5", "large": "x > 5"})
    stream = [publication({"x": 1}, 0, size_bytes=10), publication({"x": 9}, 1, size_bytes=1000)]

    found = sample(held, (), stream, seconds=2.0)

    assert [profile.size_bytes for profile in found.groups] == [10, 1000]


# -- groups --------------------------------------------------------------------------------------


def test_clients_with_equal_filters_are_one_group_however_they_are_written() -> None:
    held = subscriptions({"a": "x > 5 and x > 3", "b": "x > 5", "c": "x > 6"})

    found = sample(held, (), [publication({"x": 7})], seconds=1.0)

    assert [profile.group.clients for profile in found.groups] == [("a", "b"), ("c",)]
    assert [profile.group.subscriptions_per_client for profile in found.groups] == [1, 1]


def test_a_client_of_several_filters_is_in_one_group_and_receives_a_publication_once() -> None:
    held = subscriptions(
        {
            "both": ["x > 5", "y > 5"],
            "x": "x > 5",
            "twin": ["y > 5", "x > 5"],
            "twice": ["x > 5"] * 2,
        }
    )
    stream = [publication({"x": 9, "y": 9}, 0), publication({"x": 0, "y": 9}, 1)]

    found = sample(held, (), stream, seconds=1.0)

    assert [profile.group.clients for profile in found.groups] == [
        ("both", "twin"),
        ("x",),
        ("twice",),
    ]
    assert [profile.group.subscriptions_per_client for profile in found.groups] == [2, 1, 2]
    assert [profile.received.bits for profile in found.groups] == [0b11, 0b01, 0b01]
    assert [profile.size_bytes for profile in found.groups] == [200, 100, 100]


def test_clients_that_stay_are_in_their_group_but_are_no_candidates() -> None:
    held = subscriptions({"a": "x > 5", "b": "x > 5", "c": "x > 6"})

    found = sample(held, (), [publication({"x": 7})], seconds=1.0, staying=["a", "c"])

    assert [(p.group.clients, p.group.staying) for p in found.groups] == [
        (("b",), ("a",)),
        ((), ("c",)),
    ]


def test_a_client_that_left_is_no_candidate() -> None:
    held = subscriptions({"a": "x > 5", "b": "x > 5", "c": "x > 6"})
    press = Press(held, (), samples_max=1, now_s=0.0)
    for client in ("a", "c", "never here"):
        press.on_departed(client)
    press.on_publication(publication({"x": 7}), [LocalClient("b")], 1.0)

    assert [profile.group.clients for profile in press.result(1.0).groups] == [("b",)]


# -- sampling ------------------------------------------------------------------------------------


def control(sequence: int) -> Publication:
    return Publication(
        publisher="P", sequence=sequence, advertisement=STREAM[0].advertisement,
        content={"class": "$PIE"}, is_control=True,
    )  # fmt: skip


def test_sampling_ends_when_there_are_enough_samples() -> None:
    press = Press(subscriptions(CANDIDATES), ACCEPTOR, samples_max=2, now_s=10.0)
    full = [
        press.on_publication(each, [LocalClient("stock")], 11.0 + number)
        for number, each in enumerate(STREAM[:4])
    ]
    found = press.result(99.0)

    assert full == [False, True, True, True]
    assert (found.samples, found.seconds, found.input_per_s) == (2, 2.0, 1.0)
    assert bits(found)["stock"] == "000011"


def test_only_deliveries_to_clients_count() -> None:
    """A broker and a module may have the name of a client."""
    press = Press(subscriptions(CANDIDATES), ACCEPTOR, samples_max=1, now_s=0.0)
    press.on_publication(STREAM[0], [Neighbour("stock"), Module("sports")], 1.0)

    assert set(bits(press.result(1.0)).values()) == {"000000"}


def test_what_is_sampled_when_the_time_is_over() -> None:
    press = Press(subscriptions(CANDIDATES), ACCEPTOR, samples_max=50, now_s=0.0)
    press.on_publication(STREAM[0], [LocalClient("stock"), Neighbour("B9")], 3.0)
    found = press.result(30.0)

    assert (found.samples, found.input_per_s) == (1, 1 / 30)
    assert bits(found)["stock"] == "000001"


def test_control_publications_are_not_sampled() -> None:
    press = Press(subscriptions(CANDIDATES), ACCEPTOR, samples_max=1, now_s=0.0)

    assert not press.on_publication(control(0), [], 1.0)
    assert press.on_publication(STREAM[0], [], 2.0)
    assert press.on_publication(control(1), [], 3.0)


def test_without_publications_there_is_no_rate() -> None:
    press = Press(subscriptions(CANDIDATES), ACCEPTOR, samples_max=50, now_s=5.0)
    found = press.result(5.0)

    assert (found.samples, found.input_per_s) == (0, 0.0)
    assert found.groups[0].size_bytes == 0


def test_memory_of_the_vectors_is_a_megabit_for_ten_thousand_subscriptions() -> None:
    """L31: 10,000 subscriptions and 100 samples."""
    held = subscriptions({f"c{number}": f"x > {number}" for number in range(10_000)})
    press = Press(held, (), samples_max=100, now_s=0.0)
    found = press.result(1.0)

    assert sum(profile.received.length for profile in found.groups) == 1_000_000


def test_press_needs_a_sample() -> None:
    with pytest.raises(UsageError, match="samples_max is 0"):
        Press((), (), samples_max=0, now_s=0.0)
