"""Ir, d and Or over a window, against equations (4.1) and (4.3) worked by hand."""

from __future__ import annotations

import pytest

from godwit.broker.meters import IDLE, Meters

BANDWIDTH = 1000.0


def meters() -> Meters:
    return Meters(output_bandwidth_bytes_s=BANDWIDTH, window_s=10.0)


def test_nothing_is_known_before_the_first_window_is_complete() -> None:
    meter = meters()
    meter.on_handled(1, 100, serving_s=0.5, now_s=1.0)

    assert meter.load(9.9) == IDLE


def test_input_utilisation_is_the_publication_rate_times_the_matching_delay() -> None:
    meter = meters()
    for second in range(10):
        meter.on_handled(1, 100, serving_s=0.2, now_s=float(second))
        meter.on_handled(0, 50, serving_s=0.4, now_s=float(second))

    load = meter.load(10.0)
    assert load.publications_per_s == pytest.approx(1.0)
    assert load.messages_in_per_s == pytest.approx(2.0)
    assert load.bytes_in_per_s == pytest.approx(150.0)
    assert load.matching_delay_s == pytest.approx(0.3)
    assert load.input_utilisation == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("queued", "sent", "busy_s", "expected"),
    [
        pytest.param([4000], [4000], 4.0, 0.4, id="no overload: the share of time spent sending"),
        pytest.param([20000], [10000], 10.0, 2.0, id="overload: twice what could be sent"),
        pytest.param([5000], [], 0.0, 1.5, id="a blocked link is busy all the time (E3)"),
        pytest.param([], [], 0.0, 0.0, id="nothing to send"),
    ],
)
def test_output_utilisation(
    queued: list[int], sent: list[int], busy_s: float, expected: float
) -> None:
    meter = meters()
    for size in queued:
        meter.on_queued(size)
    for size in sent:
        meter.on_dequeued(size)
        meter.on_sent(1, size, busy_s=busy_s, now_s=5.0)

    assert meter.load(10.0).output_utilisation == pytest.approx(expected)


def test_what_leaves_at_once_counts_without_having_been_queued() -> None:
    meter = meters()
    meter.on_sent(2, 3000, busy_s=3.0, now_s=5.0)

    load = meter.load(10.0)
    assert load.output_utilisation == pytest.approx(0.3)
    assert load.messages_out_per_s == pytest.approx(0.2)
    assert load.bytes_out_per_s == pytest.approx(300.0)


def test_a_draining_backlog_does_not_look_like_less_than_its_busy_time() -> None:
    """E3: in the second window more is sent than queued, and the output is busy throughout."""
    meter = meters()
    meter.on_queued(20000)
    meter.on_dequeued(10000)
    meter.on_sent(1, 10000, busy_s=10.0, now_s=9.0)
    assert meter.load(10.0).output_utilisation == pytest.approx(2.0)
    meter.on_dequeued(10000)
    meter.on_sent(1, 10000, busy_s=10.0, now_s=19.0)

    assert meter.load(20.0).output_utilisation == pytest.approx(1.0)


def test_windows_that_passed_in_silence_read_zero() -> None:
    meter = meters()
    meter.on_handled(1, 100, serving_s=0.2, now_s=1.0)

    assert meter.load(10.0).publications_per_s == pytest.approx(0.1)
    assert meter.load(35.0).publications_per_s == 0.0


def test_a_message_after_a_silence_counts_in_its_own_window() -> None:
    meter = meters()
    meter.on_handled(1, 100, serving_s=0.2, now_s=1.0)
    meter.on_handled(1, 100, serving_s=0.2, now_s=32.0)

    assert meter.last.publications_per_s == 0.0
    assert meter.load(40.0).publications_per_s == pytest.approx(0.1)
