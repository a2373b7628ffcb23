"""The load of one broker: Ir, d and Or of the thesis (4.1.3), window after window.

Paper    Cheung, thesis 4.1.3, equations (4.1) to (4.3).
Words    ir -> publications_per_s; d -> matching_delay_s; Ir -> input_utilisation;
         ou, ot -> used and total output bandwidth; Or -> output_utilisation;
         tbusy, twindow -> busy_s, window_s; brx, btx -> bytes put into, sent from, the queues.
Departs  Or in two corner cases (erratum E3): while a backlog drains, brx/btx falls below one, so
         it is clamped; with a blocked link btx is zero and the thesis would report no load.
         twindow is left open there; it is WINDOW_S here, windows follow each other.

The driver feeds the meters: `on_handled` for each message that passed the matching engine,
`on_sent` for each that left, with `on_queued` and `on_dequeued` if it had to wait.  A live broker
counts less for each message and samples its sockets: runtime/live_meters.py.
"""

from __future__ import annotations

from dataclasses import dataclass

WINDOW_S = 10.0


@dataclass(frozen=True, slots=True)
class Load:
    """The load over one window."""

    window_s: float
    publications_per_s: float
    messages_in_per_s: float
    bytes_in_per_s: float
    messages_out_per_s: float
    bytes_out_per_s: float
    matching_delay_s: float
    input_utilisation: float
    output_utilisation: float


IDLE = Load(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class Meters:
    """Count within the current window, and keep the load of the last complete one."""

    __slots__ = (
        "_backlog_bytes",
        "_backlog_bytes_at_start",
        "_bytes_in",
        "_bytes_sent",
        "_messages_in",
        "_messages_out",
        "_publications_in",
        "_sending_s",
        "_serving_s",
        "_window_end_s",
        "_window_s",
        "last",
        "output_bandwidth_bytes_s",
        "window_s",
    )

    def __init__(
        self, *, output_bandwidth_bytes_s: float, window_s: float = WINDOW_S, now_s: float = 0.0
    ) -> None:
        self.output_bandwidth_bytes_s = output_bandwidth_bytes_s
        self.window_s = window_s
        """How long a window should be."""
        self._window_s = window_s
        self._window_end_s = now_s + window_s
        self._backlog_bytes = 0
        self.last = IDLE
        self._clear()

    def _clear(self) -> None:
        self._publications_in = 0
        self._messages_in = 0
        self._bytes_in = 0
        self._serving_s = 0.0
        self._messages_out = 0
        self._bytes_sent = 0
        self._sending_s = 0.0
        self._backlog_bytes_at_start = self._backlog_bytes

    def on_handled(
        self,
        publications: int,
        size_bytes: int,
        serving_s: float,
        now_s: float,
        messages: int = 1,
    ) -> None:
        """The matching engine processed messages, publications or not."""
        if now_s >= self._window_end_s:
            self._roll(now_s)
        self._publications_in += publications
        self._messages_in += messages
        self._bytes_in += size_bytes
        self._serving_s += serving_s

    def on_queued(self, size_bytes: int) -> None:
        """A message must wait in an output queue."""
        self._backlog_bytes += size_bytes

    def on_dequeued(self, size_bytes: int) -> None:
        """A message that waited is being sent."""
        self._backlog_bytes -= size_bytes

    def on_sent(self, messages: int, size_bytes: int, busy_s: float, now_s: float) -> None:
        """Messages left after keeping the output busy for `busy_s`."""
        if now_s >= self._window_end_s:
            self._roll(now_s)
        self._messages_out += messages
        self._bytes_sent += size_bytes
        self._sending_s += busy_s

    def load(self, now_s: float) -> Load:
        """The load over the last complete window; idle before the first is complete."""
        if now_s >= self._window_end_s:
            self._roll(now_s)
        return self.last

    def _roll(self, now_s: float) -> None:
        """Close the current window; if whole windows have passed since, the last one was idle."""
        windows_passed = 1 + int((now_s - self._window_end_s) // self._window_s)
        self.last = self._reading()
        self._clear()
        if windows_passed > 1:
            self.last = self._reading()
        self._window_end_s += windows_passed * self._window_s

    def _reading(self) -> Load:
        window_s = self._window_s
        matching_delay_s = self._serving_s / self._messages_in if self._messages_in else 0.0
        publications_per_s = self._publications_in / window_s
        # What was queued was sent, or added to the backlog.
        growth_bytes = self._backlog_bytes - self._backlog_bytes_at_start
        return Load(
            window_s=window_s,
            publications_per_s=publications_per_s,
            messages_in_per_s=self._messages_in / window_s,
            bytes_in_per_s=self._bytes_in / window_s,
            messages_out_per_s=self._messages_out / window_s,
            bytes_out_per_s=self._bytes_sent / window_s,
            matching_delay_s=matching_delay_s,
            input_utilisation=publications_per_s * matching_delay_s,  # (4.1): ir / mr = ir d
            output_utilisation=output_utilisation(
                self._sending_s / window_s,
                queued_bytes=self._bytes_sent + growth_bytes,
                sent_bytes=self._bytes_sent,
                backlog_bytes=self._backlog_bytes,
                had_backlog=self._backlog_bytes_at_start > 0,
                capacity_bytes=self.output_bandwidth_bytes_s * window_s,
            ),
        )


def output_utilisation(
    busy: float,
    *,
    queued_bytes: float,
    sent_bytes: float,
    backlog_bytes: float,
    had_backlog: bool,
    capacity_bytes: float,
) -> float:
    """(4.3): Or = (tbusy / twindow) (brx / btx), with E3's two corner cases.

    `busy` is the share of the window in which the output was sending, `had_backlog` whether
    something waited at its start, `capacity_bytes` what could have been sent in it.
    """
    if sent_bytes > 0:
        ratio = queued_bytes / sent_bytes
        return busy * (max(1.0, ratio) if had_backlog else ratio)
    if backlog_bytes > 0:
        # A backlog and nothing sent: the link was busy, or blocked, all the time.
        return 1 + queued_bytes / capacity_bytes
    return 0.0
