"""What a publisher sends, measured, and the window that its bit vectors share."""

from __future__ import annotations

from godwit.profile.publisher_profile import PublisherMeters, PublisherProfile


def test_the_common_window_ends_with_the_last_publication() -> None:
    assert PublisherProfile("p", 1.0, 1.0, last_id=119).window(10) == range(110, 120)


def test_before_a_vector_can_be_full_the_window_has_what_was_sent() -> None:
    assert PublisherProfile("p", 1.0, 1.0, last_id=4).window(10) == range(5)
    assert PublisherProfile("p", 1.0, 1.0, last_id=104, first_id=100).window(10) == range(100, 105)


def test_rates_and_ids_of_each_publisher() -> None:
    meters = PublisherMeters(window_s=60.0)
    for second in range(120):
        meters.record("fast", 500 + 2 * second, 100, float(second))
        meters.record("fast", 501 + 2 * second, 100, float(second))
    meters.record("new", 7, 300, 119.0)
    found = meters.profiles(119.5)

    fast, new = found["fast"], found["new"]
    assert fast == PublisherProfile("fast", 2.0, 200.0, last_id=739, first_id=500)
    assert new == PublisherProfile("new", 0.2, 60.0, 7, 7), "over 5 s at least"


def test_publications_that_overtake_each_other() -> None:
    meters = PublisherMeters()
    for message_id in (4, 6, 5):
        meters.record("p", message_id, 1, 0.0)
    assert meters.profiles(1.0)["p"].last_id == 6


def test_a_publisher_that_left_and_came_back_is_measured_anew() -> None:
    meters = PublisherMeters()
    for message_id in range(100):
        meters.record("p", message_id, 10, 0.0)
    meters.forget("p")
    assert not meters.profiles(1.0)
    meters.record("p", 100, 10, 1.0)
    assert meters.profiles(11.0)["p"] == PublisherProfile("p", 0.1, 1.0, 100, 100)
